//! The record that a slot of a file holds.
//!
//! ```text
//!  0           8           12             20 (marks), 52 (leases)
//!  +-----------+-----------+--------------+-----------+
//!  |   magic   |  version  |   numbers    |  CRC-32   |   numbers: little-endian
//!  +-----------+-----------+--------------+-----------+
//! ```
//!
//! The CRC-32 (ISO-HDLC, as in gzip) is of all bytes before it. The magic is `ordidhwm` of a mark, whose
//! number is its milliseconds, and `ordidlse` of a lease.

use ordid_core::clock::Timestamp;

/// The form described above.
pub(crate) const VERSION: u32 = 1;

/// Bytes of a mark's record.
#[cfg(test)]
pub(crate) const LENGTH: usize = length::<Timestamp>();

/// What a record keeps, as numbers of 64 bits. The greatest is the newest.
pub(crate) trait Record: Copy + Ord {
    const MAGIC: [u8; 8];
    /// How many numbers.
    const NUMBERS: usize;
    /// What to do about a file in which no record is left.
    const ADVICE: &'static str;

    fn numbers(&self) -> impl Iterator<Item = u64>;

    /// `None` if no such record is ever written.
    fn of(numbers: &[u64]) -> Option<Self>;
}

impl Record for Timestamp {
    const MAGIC: [u8; 8] = *b"ordidhwm";
    const NUMBERS: usize = 1;
    const ADVICE: &'static str = "make a new one and raise it above the newest key";

    fn numbers(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.as_unix_millis())
    }

    fn of(numbers: &[u64]) -> Option<Self> {
        Self::from_unix_millis(*numbers.first()?).ok()
    }
}

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot<R> {
    /// Nothing, a part of a record, or something else.
    Invalid,
    /// A whole record of another version, which this one must not overwrite.
    OtherVersion(u32),
    /// A whole record.
    Whole(R),
}

/// Bytes of a record.
pub(crate) const fn length<R: Record>() -> usize {
    8 + 4 + 8 * R::NUMBERS + 4
}

pub(crate) fn encode<R: Record>(record: R) -> Vec<u8> {
    encode_version(record, VERSION)
}

fn encode_version<R: Record>(record: R, version: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length::<R>());
    bytes.extend(R::MAGIC);
    bytes.extend(version.to_le_bytes());
    bytes.extend(record.numbers().flat_map(u64::to_le_bytes));
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// Decodes what the file has in the place of a record, which may be less than one.
pub(crate) fn decode<R: Record>(bytes: &[u8]) -> Slot<R> {
    if bytes.len() != length::<R>() {
        return Slot::Invalid;
    }
    let Some((bytes, sum)) = bytes.split_last_chunk::<4>() else {
        return Slot::Invalid;
    };
    let Some((magic, rest)) = bytes.split_first_chunk::<8>() else {
        return Slot::Invalid;
    };
    let Some((version, rest)) = rest.split_first_chunk::<4>() else {
        return Slot::Invalid;
    };
    if *magic != R::MAGIC || *sum != crc32fast::hash(bytes).to_le_bytes() {
        return Slot::Invalid;
    }
    match u32::from_le_bytes(*version) {
        VERSION => {
            let (numbers, _) = rest.as_chunks::<8>();
            let numbers: Vec<u64> = numbers.iter().copied().map(u64::from_le_bytes).collect();
            R::of(&numbers).map_or(Slot::Invalid, Slot::Whole)
        }
        other => Slot::OtherVersion(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_unix_millis(millis).unwrap()
    }

    #[test]
    fn a_record_has_these_bytes() {
        let bytes = b"ordidhwm\x01\0\0\0\xb0\x79\xe2\x22\x7f\x01\0\0";
        let record = encode(at(0x017f_22e2_79b0));
        assert_eq!(record[..20], bytes[..]);
        assert_eq!(decode(&record), Slot::Whole(at(0x017f_22e2_79b0)));
        // By Python's `zlib.crc32`.
        assert_eq!(record[20..], 0xee0e_8812_u32.to_le_bytes());
    }

    #[test]
    fn another_length_or_another_bit_is_no_record() {
        let record = encode(at(1_645_557_742_000));
        for length in 0..LENGTH {
            assert_eq!(
                decode::<Timestamp>(&record[..length]),
                Slot::Invalid,
                "{length} bytes"
            );
        }
        let longer = [&record[..], &[0]].concat();
        assert_eq!(decode::<Timestamp>(&longer), Slot::Invalid);
        for bit in 0..8 * LENGTH {
            let mut spoilt = record.clone();
            spoilt[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode::<Timestamp>(&spoilt), Slot::Invalid, "bit {bit}");
        }
        assert_eq!(decode::<Timestamp>(&[0; LENGTH]), Slot::Invalid);
    }

    #[test]
    fn another_version_is_told_from_damage() {
        let newer = encode_version(at(7), 2);
        assert_eq!(decode::<Timestamp>(&newer), Slot::OtherVersion(2));
    }
}
