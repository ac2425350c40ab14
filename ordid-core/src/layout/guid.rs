//! The two byte orders of a GUID, and SQL Server's comparison.
//!
//! *Network order* is RFC 9562's, and the order of the hyphenated text. *Wire order* is what
//! `Guid.ToByteArray` gives in .NET and what SQL Server gets: the first three groups of the text
//! (4, 2 and 2 bytes) with their bytes reversed.

/// Turns network order into wire order, or back: it is its own inverse.
///
/// With a UUID of version 1 this is also the shuffle that documentation recommends for
/// `UuidCreateSequential`, and that `NEWSEQUENTIALID` does.
#[inline]
pub const fn swap(bytes: &[u8; 16]) -> [u8; 16] {
    let b = bytes;
    [
        b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13],
        b[14], b[15],
    ]
}

/// Returns the bytes whose `memcmp` is SQL Server's order of `uniqueidentifier`, of a value in
/// network order: wire bytes 10 to 15, 8, 9, 6, 7, 4, 5, 0 to 3.
///
/// # References
///
/// `System.Data.SqlTypes.SqlGuid.CompareTo`; Microsoft Learn, "Comparing GUID and uniqueidentifier
/// values".
#[inline]
pub const fn sql_server_sort_key(bytes: &[u8; 16]) -> [u8; 16] {
    let b = bytes;
    [
        b[10], b[11], b[12], b[13], b[14], b[15], b[8], b[9], b[7], b[6], b[5], b[4], b[3], b[2],
        b[1], b[0],
    ]
}

/// Returns the value, in network order, whose [`sql_server_sort_key`] these bytes are: a value that
/// rises in SQL Server as the bytes rise.
#[inline]
pub const fn from_sql_server_sort_key(key: &[u8; 16]) -> [u8; 16] {
    let k = key;
    [
        k[15], k[14], k[13], k[12], k[11], k[10], k[9], k[8], k[6], k[7], k[0], k[1], k[2], k[3],
        k[4], k[5],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTING: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    #[test]
    fn swap_is_its_own_inverse_and_uuids_own() {
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
