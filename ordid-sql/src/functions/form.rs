//! How a column writes a key: as a number, or as digits of 4, 5, 6 or 8 bits.

use ordid_core::{
    layout::{guid, uuid_to_bin},
    scheme::catalogue::AnyColumn,
};

use super::shape::{Piece, Shape};

/// The hex digits of texts.
pub(super) const HEX: &str = "0123456789abcdef";
const BASE_32: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TILDE: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";
const PUSH: &str = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/// The text around the digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shell {
    /// An integer, which has no digits.
    Number,
    /// A type for UUIDs.
    Uuid,
    /// Bytes: hex digits, as the database shows them.
    Bytes,
    /// A text of hex digits with hyphens.
    Hyphens,
    /// A text of these digits.
    Text,
}

/// The form of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) shell: Shell,
    /// Bits of a digit.
    pub(super) width: u32,
    /// How many digits there are.
    pub(super) count: u32,
    pub(super) alphabet: &'static str,
    /// Zero bits in front of the key's.
    pad: u32,
    /// The byte of the key that each byte is. Only keys of 128 bits have it.
    bytes: Option<[u8; 16]>,
}

/// A bit of what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bit {
    Zero,
    One,
    /// A bit of a field of the time, by its value as a power of two.
    Field(usize, u32),
    /// A bit of the bucket.
    Bucket(u32),
}

const COUNTING: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

impl Form {
    /// Returns the form of a column for the keys of a scheme.
    pub(super) fn of(column: &AnyColumn, shape: &Shape) -> Self {
        let digits = |shell, width: u32, alphabet, pad: u32| Self {
            shell,
            width,
            count: (shape.bits + pad).div_ceil(width),
            alphabet,
            pad,
            bytes: None,
        };
        let hex = |shell| digits(shell, 4, HEX, 0);
        let permuted = |shell, bytes| Self {
            bytes: Some(bytes),
            ..hex(shell)
        };
        match (column.name, shape.bits) {
            ("bigint" | "integer" | "number19" | "bigint_unsigned" | "number20", _) => {
                digits(Shell::Number, 4, HEX, 0)
            }
            ("uuid" | "mariadb_uuid", _) => hex(Shell::Uuid),
            // SQL Server's own bytes of it are .NET's.
            ("unique_identifier" | "babelfish_unique_identifier", _) => {
                permuted(Shell::Uuid, guid::swap(&COUNTING))
            }
            ("unique_identifier_permuted", _) => permuted(
                Shell::Uuid,
                guid::swap(&guid::from_sql_server_sort_key(&COUNTING)),
            ),
            ("char36", _) | ("text", 128) => hex(Shell::Hyphens),
            ("text", 96) => hex(Shell::Text),
            ("char26", _) => digits(Shell::Text, 5, BASE_32, 2),
            ("char20", _) | ("text", 120) => digits(Shell::Text, 6, PUSH, 0),
            ("char22" | "char32" | "text", _) => digits(Shell::Text, 6, TILDE, 0),
            ("binary16_swapped", _) => permuted(Shell::Bytes, uuid_to_bin(&COUNTING)),
            ("binary16_dotnet" | "raw16_dotnet", _) => {
                permuted(Shell::Bytes, guid::swap(&COUNTING))
            }
            _ => hex(Shell::Bytes),
        }
    }

    /// Returns how many characters a text has.
    pub(super) fn characters(&self) -> u32 {
        match self.shell {
            Shell::Hyphens => self.count + 4,
            _ => self.count,
        }
    }

    /// Returns the place of a bit of the key among the stored bits.
    fn stored(&self, bit: u32) -> u32 {
        let byte = bit / 8;
        let place = self.bytes.map_or(byte, |bytes| {
            let place = bytes.iter().position(|it| u32::from(*it) == byte);
            let place = place.expect("a permutation has each of the 16 bytes");
            u32::try_from(place).expect("one of 16")
        });
        self.pad + place * 8 + bit % 8
    }

    /// Returns the runs of stored bits that a run of the key's bits is, of at most 32 bits each.
    pub(super) fn runs(&self, piece: Piece) -> Vec<Piece> {
        let mut runs: Vec<Piece> = Vec::new();
        for bit in piece.0..piece.0 + piece.1 {
            let stored = self.stored(bit);
            match runs.last_mut() {
                Some((first, bits)) if *first + *bits == stored && *bits < 48 => *bits += 1,
                _ => runs.push((stored, 1)),
            }
        }
        runs
    }

    /// Returns the stored bits of keys: a bit of the time where the key has one, else that of the given key.
    pub(super) fn bits(&self, shape: &Shape, key: &[u8]) -> Vec<Bit> {
        let count = self.count * self.width;
        let mut bits = vec![Bit::Zero; usize::try_from(count).expect("a key is short")];
        let mut put = |bit: u32, value| {
            let stored = usize::try_from(self.stored(bit)).expect("a key is short");
            bits[stored] = value;
        };
        for (byte, first) in key.iter().zip((0_u32..).step_by(8)) {
            for bit in 0..8 {
                if byte >> (7 - bit) & 1 == 1 {
                    put(first + bit, Bit::One);
                }
            }
        }
        for (number, pieces) in shape.fields.iter().enumerate() {
            let mut left: u32 = pieces.iter().map(|(_, bits)| bits).sum();
            for (first, count) in *pieces {
                for bit in *first..first + count {
                    left -= 1;
                    put(bit, Bit::Field(number, left));
                }
            }
        }
        if let Some((first, count)) = shape.bucket {
            for bit in 0..count {
                put(first + bit, Bit::Bucket(count - 1 - bit));
            }
        }
        bits
    }

    /// Returns what each character of a text is one of, with how many characters in a row that holds for: those that the
    /// digits have in keys of the scheme, and the hyphens. `None` for what is not stored as text.
    pub(super) fn characters_of(&self, shape: &Shape) -> Option<Vec<(String, usize)>> {
        if !matches!(self.shell, Shell::Hyphens | Shell::Text) {
            return None;
        }
        let fixed = self.fixed_digits(shape);
        let mut runs: Vec<(String, usize)> = Vec::new();
        let mut push = |characters: &str| match runs.last_mut() {
            Some((last, count)) if last == characters => *count += 1,
            _ => runs.push((characters.to_owned(), 1)),
        };
        for digit in 0..self.count {
            if self.shell == Shell::Hyphens && [8, 12, 16, 20].contains(&digit) {
                push("-");
            }
            let known = fixed.iter().find(|(known, _)| *known == digit);
            push(known.map_or(self.alphabet, |(_, characters)| characters));
        }
        Some(runs)
    }

    /// Returns the digits that have but some values in keys of the scheme, with these values.
    pub(super) fn fixed_digits(&self, shape: &Shape) -> Vec<(u32, String)> {
        let count = self.count * self.width;
        let mut known: Vec<Option<bool>> =
            vec![Some(false); usize::try_from(count).expect("short")];
        for bit in 0..shape.bits {
            known[usize::try_from(self.stored(bit)).expect("a key is short")] = None;
        }
        for (first, bits, value) in shape.fixed {
            for bit in 0..*bits {
                let stored = usize::try_from(self.stored(first + bit)).expect("a key is short");
                known[stored] = Some(value >> (bits - 1 - bit) & 1 == 1);
            }
        }
        let width = usize::try_from(self.width).expect("a digit is short");
        let digits = (0..).zip(known.chunks(width));
        let some = digits.filter(|(_, known)| known.iter().any(Option::is_some));
        let values = some.map(|(digit, known)| {
            let characters = self.alphabet.chars().enumerate();
            let fits = characters.filter(|(value, _)| {
                let bits = known.iter().rev().enumerate();
                bits.into_iter()
                    .all(|(place, bit)| bit.is_none_or(|bit| (value >> place & 1 == 1) == bit))
            });
            (digit, fits.map(|(_, character)| character).collect())
        });
        values.collect()
    }
}
