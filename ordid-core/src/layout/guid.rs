//! The two byte orders of a GUID, and SQL Server's comparison.
//!
//! *Network order* is the order of RFC 9562 and of the hyphenated text. *Wire order* is the order that
//! `Guid.ToByteArray` returns in .NET, and in which SQL Server receives a value: the bytes of each of the first three
//! groups of the text (4, 2 and 2 bytes) are reversed.

/// Converts network order to wire order, or back: the function is its own inverse.
///
/// For a UUID of version 1 this is also the byte shuffle that documentation recommends for `UuidCreateSequential`,
/// and that `NEWSEQUENTIALID` does.
#[inline]
pub const fn swap(bytes: &[u8; 16]) -> [u8; 16] {
    let (first, second) = halves(bytes);
    // Its groups reversed, the last one first.
    of_halves(groups_reversed(first.swap_bytes()), second)
}

/// The permutations are written on halves, as shifts of registers: byte by byte they would cost
/// several times as much.
pub(super) const fn halves(bytes: &[u8; 16]) -> (u64, u64) {
    uuid::Uuid::from_bytes(*bytes).as_u64_pair()
}

pub(super) const fn of_halves(first: u64, second: u64) -> [u8; 16] {
    uuid::Uuid::from_u64_pair(first, second).into_bytes()
}

/// Takes groups of 16, 16 and 32 bits, and returns them from the last to the first.
pub(super) const fn groups_reversed(half: u64) -> u64 {
    half << 32 | half >> 16 & 0xffff_0000 | half >> 48
}

/// Returns bytes that compare, from the first, as SQL Server compares `uniqueidentifier`. The parameter is in network
/// order; the result is wire bytes 10 to 15, 8, 9, 6, 7, 4, 5, 0 to 3.
///
/// # References
///
/// `System.Data.SqlTypes.SqlGuid.CompareTo`; Microsoft Learn, "Comparing GUID and uniqueidentifier
/// values".
#[inline]
pub const fn sql_server_sort_key(bytes: &[u8; 16]) -> [u8; 16] {
    let (first, second) = halves(bytes);
    of_halves(second.rotate_left(16), first.swap_bytes())
}

/// Returns the value, in network order, that has this [`sql_server_sort_key`]. Rising sort keys give values that rise
/// in SQL Server.
#[inline]
pub const fn from_sql_server_sort_key(key: &[u8; 16]) -> [u8; 16] {
    let (first, second) = halves(key);
    of_halves(second.swap_bytes(), first.rotate_right(16))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTING: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    #[test]
    fn swap_is_its_own_inverse_and_matches_the_uuid_crate() {
        assert_eq!(swap(&swap(&COUNTING)), COUNTING);
        let uuid = uuid::Uuid::from_bytes(COUNTING);
        assert_eq!(swap(&COUNTING), uuid.to_bytes_le());
    }

    #[test]
    fn the_sort_key_takes_wire_bytes_in_sql_servers_order() {
        let wire = swap(&COUNTING);
        let order = [10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3];
        assert_eq!(sql_server_sort_key(&COUNTING), order.map(|i| wire[i]));
        assert_eq!(
            from_sql_server_sort_key(&sql_server_sort_key(&COUNTING)),
            COUNTING
        );
    }
}
