//! Crockford's base32 for keys of 128 bits: 26 digits, of which the first has three bits.
//!
//! Writing looks up two digits at once. Reading combines entries of tables that are already shifted to their place among four
//! digits. That is faster than a digit at a time (`cargo xtask bench schemes` has the rows `typeid` and `ulid`), and tables
//! need no instructions that a processor might not have.

/// Length of the text.
pub(super) const LENGTH: usize = 26;

/// An alphabet of 32 characters of ASCII, with the tables of both ways.
#[derive(Debug)]
pub(super) struct Base32 {
    /// The two characters of each value of ten bits.
    pairs: [[u8; 2]; 1 << 10],
    /// The value of each character as the first to the fourth of four digits, or [`NONE`].
    fours: [[u32; 256]; 4],
}

/// Stands for a character that is no digit. No value has this bit.
const NONE: u32 = 1 << 31;

impl Base32 {
    /// Makes the tables of an alphabet.
    ///
    /// # Panics
    ///
    /// Panics if the alphabet has a character twice, or one that is not ASCII. In a `const` this is a compile error.
    pub(super) const fn new(alphabet: &[u8; 32]) -> Self {
        let mut tables = Self {
            pairs: [[0; 2]; 1 << 10],
            fours: [[NONE; 256]; 4],
        };
        let mut value = 0_u32;
        while value < 32 {
            let character = alphabet[value as usize];
            assert!(character.is_ascii(), "a character of ASCII");
            assert!(
                tables.fours[0][character as usize] == NONE,
                "each character once"
            );
            let mut place = 0;
            while place < 4 {
                tables.fours[place][character as usize] = value << (15 - 5 * place);
                place += 1;
            }
            let mut other = 0;
            while other < 32 {
                tables.pairs[(value << 5) as usize | other] = [character, alphabet[other]];
                other += 1;
            }
            value += 1;
        }
        tables
    }

    /// Writes the upper and the lower half of a number: 130 bits, of which the first two are zero.
    #[inline]
    pub(super) fn encode(&self, high: u64, low: u64) -> [u8; LENGTH] {
        // In words and not in pairs: what reads the text next would wait until each pair is in the cache.
        let eight = |group: u64| {
            let [a, b, c, d] = [30, 20, 10, 0].map(|at| u64::from(self.pair(group >> at)));
            (a | b << 16 | c << 32 | d << 48).to_le_bytes()
        };
        let mut text = [0; LENGTH];
        text[..2].copy_from_slice(&self.pair(high >> 56).to_le_bytes());
        text[2..10].copy_from_slice(&eight(high >> 16));
        text[10..18].copy_from_slice(&eight(high << 24 | low >> 40));
        text[18..].copy_from_slice(&eight(low));
        text
    }

    /// Returns the two characters of the lowest ten bits.
    #[inline]
    fn pair(&self, bits: u64) -> u16 {
        let [low, high, ..] = bits.to_le_bytes();
        u16::from_le_bytes(self.pairs[usize::from(u16::from_le_bytes([low, high]) & 0x3ff)])
    }

    /// Reads a number; `None` if a character is no digit, or if the number has more than 128 bits.
    #[inline]
    pub(super) fn decode(&self, text: &[u8; LENGTH]) -> Option<u128> {
        let fours = self.fours(text);
        let [first, a, b, c, d, e, f] = fours.map(u64::from);
        if any_of(fours) & NONE != 0 || first >= 1 << 8 {
            return None;
        }
        let (second, third, fourth) = (a << 20 | b, c << 20 | d, e << 20 | f);
        let high = first << 56 | second << 16 | third >> 24;
        Some(u128::from(high) << 64 | u128::from(third << 40 | fourth))
    }

    /// Whether all characters are digits.
    pub(super) fn has_digits_only(&self, text: &[u8; LENGTH]) -> bool {
        any_of(self.fours(text)) & NONE == 0
    }

    /// Returns the values of the first two digits and of four each, with [`NONE`] where one is no digit.
    #[inline]
    fn fours(&self, text: &[u8; LENGTH]) -> [u32; 7] {
        let [a, b, c, d] = &self.fours;
        let value = |table: &[u32; 256], at: usize| table[usize::from(text[at])];
        let four = |at| value(a, at) | value(b, at + 1) | value(c, at + 2) | value(d, at + 3);
        [
            value(c, 0) | value(d, 1),
            four(2),
            four(6),
            four(10),
            four(14),
            four(18),
            four(22),
        ]
    }
}

/// Returns the bits that any of these values has.
fn any_of(values: [u32; 7]) -> u32 {
    values.into_iter().fold(0, |all, value| all | value)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    static DIGITS: Base32 = Base32::new(ALPHABET);

    /// One digit after the other, by division.
    fn written(number: u128) -> [u8; LENGTH] {
        let mut text = [0; LENGTH];
        let mut rest = number;
        for character in text.iter_mut().rev() {
            *character = ALPHABET[usize::try_from(rest % 32).unwrap()];
            rest /= 32;
        }
        text
    }

    fn encode(number: u128) -> [u8; LENGTH] {
        let (high, low) = Uuid::from_u128(number).as_u64_pair();
        DIGITS.encode(high, low)
    }

    fn read(text: &[u8; LENGTH]) -> Option<u128> {
        text.iter().try_fold(0_u128, |number, character| {
            let value = ALPHABET.iter().position(|it| it == character)?;
            number.checked_mul(32)?.checked_add(value.try_into().ok()?)
        })
    }

    #[test]
    fn every_byte_in_every_place_is_read_as_one_digit_after_the_other() {
        for start in [written(0), written(u128::MAX), written(u128::MAX / 3)] {
            for at in 0..LENGTH {
                for byte in 0..=u8::MAX {
                    let mut text = start;
                    text[at] = byte;
                    assert_eq!(DIGITS.decode(&text), read(&text), "{text:?}");
                    assert_eq!(
                        DIGITS.has_digits_only(&text),
                        text.iter().all(|it| ALPHABET.contains(it)),
                        "{text:?}"
                    );
                }
            }
        }
    }

    #[test]
    #[should_panic = "each character once"]
    fn an_alphabet_that_has_a_character_twice_is_refused() {
        let _ = Base32::new(b"0123456789abcdefghjkmnpqrstvwxy0");
    }

    proptest! {
        #[test]
        fn numbers_are_written_one_digit_after_the_other(number: u128) {
            prop_assert_eq!(encode(number), written(number));
            prop_assert_eq!(DIGITS.decode(&written(number)), Some(number));
        }

        /// Several wrong characters do not make up for each other.
        #[test]
        fn any_bytes_are_read_one_digit_after_the_other(
            number: u128,
            wrong in proptest::collection::vec((0_usize..LENGTH, any::<u8>()), 0..4),
        ) {
            let mut text = written(number);
            for (at, byte) in wrong {
                text[at] = byte;
            }
            prop_assert_eq!(DIGITS.decode(&text), read(&text));
        }
    }
}
