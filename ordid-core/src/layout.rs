//! Byte permutations and comparison rules: facts about bytes, with no key and no database.

pub(crate) mod along;
pub mod guid;

/// How a column's stored values are compared, as one rule over the bytes of the 128-bit value in
/// network order.
///
/// A database compares by one such rule per column type; a scheme knows under which of them its
/// keys rise ([`Orders`]). Together they decide whether a mapping keeps order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Comparison {
    /// Byte by byte from the first, as `memcmp` does: `BINARY(16)`, `BLOB`, PostgreSQL's `uuid`,
    /// and text under a binary collation.
    Bytes,
    /// MariaDB's `UUID` type: values of versions 1 to 5 compare by their segments from the last to
    /// the first, others byte by byte. See [`mariadb_uuid_sort_key`].
    MariaDbUuid,
    /// SQL Server's `uniqueidentifier`: bytes 10 to 15 of the wire order first. See
    /// [`guid::sql_server_sort_key`].
    SqlServer,
    /// Byte by byte over .NET's wire order ([`guid::swap`]): Oracle's `RAW(16)` and MySQL's
    /// `BINARY(16)` where .NET programs write `Guid.ToByteArray` into them.
    DotNetBytes,
}

impl Comparison {
    const fn bit(self) -> u8 {
        match self {
            Self::Bytes => 1,
            Self::MariaDbUuid => 2,
            Self::SqlServer => 4,
            Self::DotNetBytes => 8,
        }
    }

    /// All rules.
    pub const ALL: [Self; 4] = [
        Self::Bytes,
        Self::MariaDbUuid,
        Self::SqlServer,
        Self::DotNetBytes,
    ];

    /// Returns the bytes whose `memcmp` is the rule's order, of a value in network order.
    pub const fn sort_key(self, bytes: &[u8; 16]) -> [u8; 16] {
        match self {
            Self::Bytes => *bytes,
            Self::MariaDbUuid => mariadb_uuid_sort_key(bytes),
            Self::SqlServer => guid::sql_server_sort_key(bytes),
            Self::DotNetBytes => guid::swap(bytes),
        }
    }

    /// Returns how the rule reads in an error message.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Bytes => "compares byte by byte from the first",
            Self::MariaDbUuid => "compares UUIDs of versions 1 to 5 from the last segment",
            Self::SqlServer => "compares bytes 10 to 15 first",
            Self::DotNetBytes => "compares the byte order of .NET's `Guid.ToByteArray`",
        }
    }
}

/// The set of comparison rules under which a scheme's keys keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Orders(u8);

impl Orders {
    /// Ordered under no rule, such as random keys.
    pub const NONE: Self = Self(0);
    /// Ordered under [`Comparison::Bytes`] alone.
    pub const BYTES: Self = Self(Comparison::Bytes.bit());
    /// Ordered under [`Comparison::SqlServer`] alone.
    pub const SQL_SERVER: Self = Self(Comparison::SqlServer.bit());

    /// Returns the set with one rule more.
    #[must_use]
    pub const fn and(self, comparison: Comparison) -> Self {
        Self(self.0 | comparison.bit())
    }

    /// Returns whether keys keep their order under the rule.
    pub const fn contains(self, comparison: Comparison) -> bool {
        self.0 & comparison.bit() != 0
    }
}

/// Returns whether MariaDB's `UUID` type swaps the segments of this value: version 1 to 5 with a
/// high variant bit.
///
/// # References
///
/// MariaDB 10.11.5, `plugin/type_uuid`; found with all 65,536 pairs of bytes 6 and 8.
pub const fn mariadb_uuid_is_swapped(bytes: &[u8; 16]) -> bool {
    bytes[6] > 0 && bytes[6] < 0x60 && bytes[8] >= 0x80
}

/// Returns the bytes whose `memcmp` is the order of MariaDB's `UUID` type for values of one kind
/// (all swapped, or none): `node, clock_seq, time_hi, time_mid, time_low` for swapped values, the
/// value itself for the rest.
pub const fn mariadb_uuid_sort_key(bytes: &[u8; 16]) -> [u8; 16] {
    let b = bytes;
    if mariadb_uuid_is_swapped(b) {
        [
            b[10], b[11], b[12], b[13], b[14], b[15], b[8], b[9], b[6], b[7], b[4], b[5], b[0],
            b[1], b[2], b[3],
        ]
    } else {
        *bytes
    }
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
