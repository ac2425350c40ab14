//! Byte permutations and comparison rules. They concern bytes alone, and no keys or databases.

pub(crate) mod along;
pub mod guid;

/// How a column's stored values are compared, as one rule over the bytes of the 128-bit value in
/// network order.
///
/// A database compares each column type by one such rule. A scheme knows the rules under which its keys rise
/// ([`Orders`]). A column keeps the scheme's order if its rule is one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Comparison {
    /// Raw keys compare by this rule: byte by byte from the first, as `memcmp` does. So do `BINARY(16)`, `BLOB`,
    /// PostgreSQL's `uuid`, and text under a binary collation. Integers compare by their values.
    Bytes,
    /// MariaDB's `UUID` type: values of versions 1 to 5 compare by their segments from the last to the first, others
    /// byte by byte. See [`mariadb_uuid_sort_key`].
    MariaDbUuid,
    /// SQL Server's `uniqueidentifier`: bytes 10 to 15 of the wire order first. See
    /// [`guid::sql_server_sort_key`].
    SqlServer,
    /// Byte by byte over .NET's wire order ([`guid::swap`]): Oracle's `RAW(16)` and MySQL's `BINARY(16)` if .NET
    /// programs write `Guid.ToByteArray` into them.
    DotNetBytes,
    /// Byte by byte over the result of MySQL's `UUID_TO_BIN(x, 1)`, in which the groups of the text are in this
    /// order: 3, 2, 1, 4, 5. See [`uuid_to_bin`].
    UuidToBin,
}

impl Comparison {
    const fn bit(self) -> u8 {
        match self {
            Self::Bytes => 1,
            Self::MariaDbUuid => 2,
            Self::SqlServer => 4,
            Self::DotNetBytes => 8,
            Self::UuidToBin => 16,
        }
    }

    /// All rules.
    pub const ALL: [Self; 5] = [
        Self::Bytes,
        Self::MariaDbUuid,
        Self::SqlServer,
        Self::DotNetBytes,
        Self::UuidToBin,
    ];

    /// Returns bytes that compare, from the first, as the rule compares `bytes`, a value in network order.
    pub const fn sort_key(self, bytes: &[u8; 16]) -> [u8; 16] {
        match self {
            Self::Bytes => *bytes,
            Self::MariaDbUuid => mariadb_uuid_sort_key(bytes),
            Self::SqlServer => guid::sql_server_sort_key(bytes),
            Self::DotNetBytes => guid::swap(bytes),
            Self::UuidToBin => uuid_to_bin(bytes),
        }
    }

    /// Returns the value, in network order, that has this [`sort_key`](Self::sort_key). Rising sort keys give values
    /// that rise under the rule.
    #[inline]
    pub const fn from_sort_key(self, key: &[u8; 16]) -> [u8; 16] {
        match self {
            Self::Bytes => *key,
            Self::MariaDbUuid => from_mariadb_uuid_sort_key(key),
            Self::SqlServer => guid::from_sql_server_sort_key(key),
            Self::DotNetBytes => guid::swap(key),
            Self::UuidToBin => bin_to_uuid(key),
        }
    }

    /// Returns the rule in words, for error messages.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Bytes => "compares byte by byte from the first",
            Self::MariaDbUuid => "compares UUIDs of versions 1 to 5 from the last segment",
            Self::SqlServer => "compares bytes 10 to 15 first",
            Self::DotNetBytes => "compares the byte order of .NET's `Guid.ToByteArray`",
            Self::UuidToBin => "compares what `UUID_TO_BIN(x, 1)` returns, third group first",
        }
    }

    /// Returns the name of a scheme of 128 bits whose keys rise under the rule.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Bytes | Self::MariaDbUuid => "uuid_v7",
            Self::SqlServer => "uuid_v8_sql_server",
            Self::DotNetBytes => "sequential_guid_as_binary",
            Self::UuidToBin => "uuid_v1",
        }
    }
}

/// The set of comparison rules under which a scheme's keys keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Orders(u8);

impl Orders {
    /// Ordered under no rule; random keys, for example.
    pub const NONE: Self = Self(0);
    /// Ordered under [`Comparison::Bytes`] alone.
    pub const BYTES: Self = Self(Comparison::Bytes.bit());
    /// Ordered under [`Comparison::SqlServer`] alone.
    pub const SQL_SERVER: Self = Self(Comparison::SqlServer.bit());

    /// Returns the set with one more rule.
    #[must_use]
    pub const fn and(self, comparison: Comparison) -> Self {
        Self(self.0 | comparison.bit())
    }

    /// Returns whether keys keep their order under the rule.
    pub const fn contains(self, comparison: Comparison) -> bool {
        self.0 & comparison.bit() != 0
    }
}

/// Returns whether MariaDB's `UUID` type swaps the segments of this value. It does so for versions 1 to 5 if the
/// highest bit of the variant is set, and for version 0, too, unless byte 6 is zero.
///
/// # References
///
/// MariaDB 10.11.5, `plugin/type_uuid`; checked with all 65,536 pairs of bytes 6 and 8.
pub const fn mariadb_uuid_is_swapped(bytes: &[u8; 16]) -> bool {
    bytes[6] > 0 && bytes[6] < 0x60 && bytes[8] >= 0x80
}

/// Returns whether MariaDB's `UUID` type refuses this value, because the stored form would be that of a swapped
/// value. Among others, it refuses one in 64 values of version 8.
///
/// As text it is refused with error 1292. As 16 bytes it is *not* refused: MariaDB stores the bytes unchanged, and
/// reads them back as the swapped value.
///
/// # References
///
/// MariaDB 10.11.19: byte 6 at least 0x80 with byte 8 in 0x01 to 0x80.
pub const fn mariadb_uuid_is_refused(bytes: &[u8; 16]) -> bool {
    bytes[6] >= 0x80 && bytes[8] > 0 && bytes[8] <= 0x80
}

/// Returns bytes that compare, from the first, as MariaDB's `UUID` type compares values, of all versions together.
/// For swapped values these are `node, clock_seq, time_hi, time_mid, time_low`, for others the value itself.
pub const fn mariadb_uuid_sort_key(bytes: &[u8; 16]) -> [u8; 16] {
    if mariadb_uuid_is_swapped(bytes) {
        let b = bytes;
        [
            b[10], b[11], b[12], b[13], b[14], b[15], b[8], b[9], b[6], b[7], b[4], b[5], b[0],
            b[1], b[2], b[3],
        ]
    } else {
        *bytes
    }
}

/// Returns the value that has this [`mariadb_uuid_sort_key`]. If two values have it, it returns the swapped one,
/// because the database [refuses](mariadb_uuid_is_refused) the other.
pub const fn from_mariadb_uuid_sort_key(key: &[u8; 16]) -> [u8; 16] {
    let k = key;
    let swapped = [
        k[12], k[13], k[14], k[15], k[10], k[11], k[8], k[9], k[6], k[7], k[0], k[1], k[2], k[3],
        k[4], k[5],
    ];
    if mariadb_uuid_is_swapped(&swapped) {
        swapped
    } else {
        *key
    }
}

/// Returns the bytes that MySQL's `UUID_TO_BIN(x, 1)` returns: the third group of the text, the second, the first,
/// and the rest. The time of a version 1 UUID then comes first, highest bits first.
///
/// # References
///
/// MySQL 8.4 manual, section 14.23, "Miscellaneous Functions", `UUID_TO_BIN`.
#[inline]
pub const fn uuid_to_bin(bytes: &[u8; 16]) -> [u8; 16] {
    let (first, second) = guid::halves(bytes);
    let swapped = first << 48 | first << 16 & 0xffff_0000_0000 | first >> 32;
    guid::of_halves(swapped, second)
}

/// Does the same as MySQL's `BIN_TO_UUID(x, 1)`: the inverse of [`uuid_to_bin`].
#[inline]
pub const fn bin_to_uuid(bytes: &[u8; 16]) -> [u8; 16] {
    let (first, second) = guid::halves(bytes);
    guid::of_halves(guid::groups_reversed(first), second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_is_a_set() {
        assert!(!Orders::NONE.contains(Comparison::Bytes));
        assert!(Orders::BYTES.contains(Comparison::Bytes));
        assert!(!Orders::BYTES.contains(Comparison::MariaDbUuid));
        assert!(
            Orders::BYTES
                .and(Comparison::MariaDbUuid)
                .contains(Comparison::MariaDbUuid)
        );
    }

    #[test]
    fn uuid_to_bin_matches_the_manual() {
        // The manual's example.
        let uuid = uuid::Uuid::parse_str("6ccd780c-abcd-1026-9564-5b8c656024db").unwrap();
        let bin = uuid_to_bin(uuid.as_bytes());
        assert_eq!(
            uuid::Uuid::from_bytes(bin).simple().to_string(),
            "1026abcd6ccd780c95645b8c656024db"
        );
        assert_eq!(bin_to_uuid(&bin), *uuid.as_bytes());
    }

    proptest::proptest! {
        #[test]
        fn a_sort_key_converts_back_to_its_value(value: [u8; 16], version in 1u8..16) {
            let mut of_version = value;
            of_version[6] = version << 4 | value[6] & 0x0f;
            for value in [value, of_version] {
                for rule in Comparison::ALL {
                    if rule != Comparison::MariaDbUuid || !mariadb_uuid_is_refused(&value) {
                        let key = rule.sort_key(&value);
                        proptest::prop_assert_eq!(rule.from_sort_key(&key), value, "{:?}", rule);
                    }
                }
            }
        }
    }

    #[test]
    fn mariadb_swaps_v1_to_v5_only() {
        let v1 = *b"\x00\x11\x22\x33\x44\x55\x16\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";
        assert_eq!(
            mariadb_uuid_sort_key(&v1),
            *b"\xaa\xbb\xcc\xdd\xee\xff\x88\x99\x16\x77\x44\x55\x00\x11\x22\x33"
        );
        let mut v7 = v1;
        v7[6] = 0x76;
        assert_eq!(mariadb_uuid_sort_key(&v7), v7);
        let mut low_variant = v1;
        low_variant[8] = 0x7f;
        assert_eq!(mariadb_uuid_sort_key(&low_variant), low_variant);
    }
}
