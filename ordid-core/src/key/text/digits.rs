//! Digits of six bits: base64 with alphabets that sort as their values do. (Those of five bits are in `base32.rs`.)
//!
//! They are written here, and not by `data-encoding`, for two reasons. Its tables are constants only through a
//! procedural macro, which made each build wait for a second `syn`. And a key has one length, so eight digits at a time
//! are the bits of a number: writing takes about half the time.

/// An alphabet of `2^BITS` characters of ASCII.
///
/// ```text
/// BITS bytes   |  one number of 8 * BITS bits, the first byte most significant  |
/// 8 digits     |  BITS |  BITS |  BITS |  BITS |  BITS |  BITS |  BITS |  BITS  |
/// ```
#[derive(Debug)]
pub struct Digits<const BITS: usize> {
    /// The character of each value.
    characters: [u8; 64],
    /// The value of each character, or [`NONE`].
    values: [u8; 256],
}

/// The value of a character that is not a digit. It has more than six bits.
const NONE: u8 = 0xff;
/// Digits of a group.
const GROUP: usize = 8;

impl<const BITS: usize> Digits<BITS> {
    const MASK: usize = (1 << BITS) - 1;

    /// Makes the tables of an alphabet.
    ///
    /// # Panics
    ///
    /// Panics if the alphabet has another number of characters, or has one twice. In a `const` this is a compile error.
    pub(super) const fn new(alphabet: &[u8]) -> Self {
        assert!(
            BITS <= 6 && alphabet.len() == 1 << BITS,
            "2^BITS characters"
        );
        let mut digits = Self {
            characters: [0; 64],
            values: [NONE; 256],
        };
        let mut value = 0_u8;
        while (value as usize) < alphabet.len() {
            let character = alphabet[value as usize];
            assert!(character.is_ascii(), "a character of ASCII");
            assert!(
                digits.values[character as usize] == NONE,
                "each character once"
            );
            digits.characters[value as usize] = character;
            digits.values[character as usize] = value;
            value += 1;
        }
        digits
    }

    /// Writes the lowest `8 * BITS` bits of a number.
    #[inline]
    pub(super) fn write(&self, group: u64) -> [u8; GROUP] {
        let mut text = [0; GROUP];
        let mut rest = group;
        for character in text.iter_mut().rev() {
            *character = self.characters[usize::from(rest.to_le_bytes()[0]) & Self::MASK];
            rest >>= BITS;
        }
        text
    }

    /// Reads a number. A character that is no digit leaves bits in `wrong` that no digit has.
    #[inline]
    pub(super) fn read(&self, text: [u8; GROUP], wrong: &mut u8) -> u64 {
        text.into_iter().fold(0, |number, character| {
            let value = self.values[usize::from(character)];
            *wrong |= value;
            number << BITS | u64::from(value)
        })
    }

    /// Returns whether one of the characters that were read is not a digit.
    pub(super) const fn is_wrong(wrong: u8) -> bool {
        wrong >> BITS != 0
    }

    /// Writes bytes from the first bit on. The last digit is filled up with zero bits.
    #[inline]
    pub(super) fn encode<const BYTES: usize, const LENGTH: usize>(
        &self,
        bytes: &[u8; BYTES],
    ) -> [u8; LENGTH] {
        const { assert!(LENGTH == (BYTES * 8).div_ceil(BITS)) };
        let mut text = [0; LENGTH];
        for (bytes, text) in bytes.chunks(BITS).zip(text.chunks_mut(GROUP)) {
            // The group is the highest bytes of a word.
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let digits = self.write(u64::from_be_bytes(word) >> (64 - GROUP * BITS));
            text.copy_from_slice(&digits[..text.len()]);
        }
        text
    }

    /// Reads what [`encode`](Self::encode) writes, and nothing else: no other characters, and no bits behind the last byte.
    #[inline]
    pub(super) fn decode<const BYTES: usize, const LENGTH: usize>(
        &self,
        text: &[u8; LENGTH],
    ) -> Option<[u8; BYTES]> {
        const { assert!(LENGTH == (BYTES * 8).div_ceil(BITS)) };
        let (mut bytes, mut wrong, mut behind) = ([0; BYTES], 0, 0);
        for (bytes, text) in bytes.chunks_mut(BITS).zip(text.chunks(GROUP)) {
            let mut digits = [self.characters[0]; GROUP];
            digits[..text.len()].copy_from_slice(text);
            let word = self.read(digits, &mut wrong) << (64 - GROUP * BITS);
            let word = word.to_be_bytes();
            let (read, rest) = word.split_at(bytes.len());
            bytes.copy_from_slice(read);
            behind |= rest.iter().fold(0, |all, byte| all | byte);
        }
        (!Self::is_wrong(wrong) && behind == 0).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::{Encoding, Specification};
    use proptest::prelude::*;

    use super::*;

    const BASE32: &str = "0123456789abcdefghjkmnpqrstvwxyz";
    const BASE64: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";
    static FIVE: Digits<5> = Digits::new(BASE32.as_bytes());
    static SIX: Digits<6> = Digits::new(BASE64.as_bytes());

    /// Returns the same codec by another author.
    fn peer(symbols: &str) -> Encoding {
        let mut specification = Specification::new();
        specification.symbols.push_str(symbols);
        specification.encoding().unwrap()
    }

    fn same<const BITS: usize, const BYTES: usize, const LENGTH: usize>(
        digits: &Digits<BITS>,
        peer: &Encoding,
        bytes: [u8; BYTES],
        text: [u8; LENGTH],
    ) {
        let written: [u8; LENGTH] = digits.encode(&bytes);
        assert_eq!(str::from_utf8(&written).unwrap(), peer.encode(&bytes));
        assert_eq!(digits.decode(&written), Some(bytes));
        let read: Option<[u8; BYTES]> = digits.decode(&text);
        assert_eq!(read.map(Vec::from), peer.decode(&text).ok());
    }

    proptest! {
        #[test]
        fn another_codec_writes_and_reads_the_same(
            bytes: [u8; 24],
            near in "[0-9A-Z_a-z~]{32}",
            any: [u8; 32],
        ) {
            let front = |text: &[u8]| -> ([u8; 20], [u8; 22], [u8; 24], [u8; 32]) {
                (
                    *text.first_chunk().unwrap(),
                    *text.first_chunk().unwrap(),
                    *text.first_chunk().unwrap(),
                    *text.first_chunk().unwrap(),
                )
            };
            for text in [near.as_bytes(), &any] {
                let (text20, text22, text24, text32) = front(text);
                let (five, six) = (peer(BASE32), peer(BASE64));
                same::<6, 15, 20>(&SIX, &six, *bytes.first_chunk().unwrap(), text20);
                same::<6, 16, 22>(&SIX, &six, *bytes.first_chunk().unwrap(), text22);
                same::<6, 24, 32>(&SIX, &six, bytes, text32);
                same::<5, 15, 24>(&FIVE, &five, *bytes.first_chunk().unwrap(), text24);
                same::<5, 20, 32>(&FIVE, &five, *bytes.first_chunk().unwrap(), text32);
            }
        }
    }

    #[test]
    fn every_byte_but_the_digits_is_refused() {
        for byte in 0..=u8::MAX {
            for at in 0..32 {
                let mut text = [b'0'; 32];
                text[at] = byte;
                let is_digit = BASE64.as_bytes().contains(&byte);
                assert_eq!(
                    SIX.decode::<24, 32>(&text).is_some(),
                    is_digit,
                    "{byte} at {at}"
                );
            }
        }
    }

    #[test]
    #[should_panic = "each character once"]
    fn an_alphabet_that_has_a_character_twice_is_refused() {
        let _ = Digits::<5>::new(b"0123456789abcdefghjkmnpqrstvwxy0");
    }
}
