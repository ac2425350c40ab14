//! The record that a slot of the file holds.
//!
//! ```text
//!  0           8           12          20          24
//!  +-----------+-----------+-----------+-----------+
//!  | ordidhwm  |  version  |  millis   |  CRC-32   |   numbers: little-endian
//!  +-----------+-----------+-----------+-----------+
//! ```
//!
//! The CRC-32 (ISO-HDLC, as in gzip) is of the 20 bytes before it.

use ordid_core::clock::Timestamp;

/// Bytes of a record.
pub(crate) const LENGTH: usize = 24;
/// The form described above.
pub(crate) const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"ordidhwm";

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Nothing, a part of a record, or something else.
    Invalid,
    /// A whole record of another version, which this one must not overwrite.
    OtherVersion(u32),
    /// A whole record.
    Mark(Timestamp),
}

pub(crate) fn encode(mark: Timestamp) -> [u8; LENGTH] {
    encode_version(mark, VERSION)
}

fn encode_version(mark: Timestamp, version: u32) -> [u8; LENGTH] {
    let mut record = [0; LENGTH];
    record[..8].copy_from_slice(&MAGIC);
    record[8..12].copy_from_slice(&version.to_le_bytes());
    record[12..20].copy_from_slice(&mark.as_unix_millis().to_le_bytes());
    let checksum = crc32fast::hash(&record[..20]);
    record[20..].copy_from_slice(&checksum.to_le_bytes());
    record
}

/// Decodes what the file has in the place of a record, which may be less than one.
pub(crate) fn decode(bytes: &[u8]) -> Slot {
    let Some((magic, bytes)) = bytes.split_first_chunk::<8>() else {
        return Slot::Invalid;
    };
    let Some((version, bytes)) = bytes.split_first_chunk::<4>() else {
        return Slot::Invalid;
    };
    let Some((millis, bytes)) = bytes.split_first_chunk::<8>() else {
        return Slot::Invalid;
    };
    let mut sum = crc32fast::Hasher::new();
    for part in [&magic[..], version, millis] {
        sum.update(part);
    }
    if *magic != MAGIC || bytes != sum.finalize().to_le_bytes() {
        return Slot::Invalid;
    }
    match u32::from_le_bytes(*version) {
        VERSION => Timestamp::from_unix_millis(u64::from_le_bytes(*millis))
            .map_or(Slot::Invalid, Slot::Mark),
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
        assert_eq!(decode(&record), Slot::Mark(at(0x017f_22e2_79b0)));
        // By Python's `zlib.crc32`.
        assert_eq!(record[20..], 0xee0e_8812_u32.to_le_bytes());
    }

    #[test]
    fn another_length_or_another_bit_is_no_record() {
        let record = encode(at(1_645_557_742_000));
        for length in 0..LENGTH {
            assert_eq!(decode(&record[..length]), Slot::Invalid, "{length} bytes");
        }
        assert_eq!(decode(&[&record[..], &[0]].concat()), Slot::Invalid);
        for bit in 0..8 * LENGTH {
            let mut spoilt = record;
            spoilt[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&spoilt), Slot::Invalid, "bit {bit}");
        }
        assert_eq!(decode(&[0; LENGTH]), Slot::Invalid);
    }

    #[test]
    fn another_version_is_told_from_damage() {
        assert_eq!(decode(&encode_version(at(7), 2)), Slot::OtherVersion(2));
    }
}
