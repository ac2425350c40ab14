//! COMB: random GUIDs whose last bytes are a time. SQL Server's `uniqueidentifier` compares the last six bytes first,
//! so they rise there.
//!
//! | scheme | time | where | rises in |
//! |---|---|---|---|
//! | [`comb_nhibernate`](CombNHibernate) | days since 1900, 1/300 s of the day | last six bytes | SQL Server, MariaDB `UUID` |
//! | [`comb_rt_legacy`](CombRtLegacy) | the same | last six bytes | SQL Server, MariaDB `UUID` |
//! | [`comb_rt_sql`](CombRtSql) | Unix milliseconds | last six bytes | SQL Server, MariaDB `UUID` |
//! | [`comb_rt_postgresql`](CombRtPostgreSql) | Unix milliseconds | first six bytes of the text | bytes |
//! | [`comb_rt_binary`](CombRtBinary) | Unix milliseconds | first six bytes of `ToByteArray` | .NET bytes: Oracle `RAW(16)`, SQLite `BLOB` |
//! | [`comb_efcore`](CombEfCore) | .NET ticks, one a key | last eight bytes | SQL Server |
//!
//! All keep version 4, and all but EF Core's keep RFC 9562's variant. In the originals, keys of the same time are in
//! random order. Here a count follows the time, in the bits that the column's comparison reads next, and random bits
//! follow the count. So the original could have made every key that ordid makes.
//!
//! MariaDB's `UUID` compares keys of version 4 by their last segment first, if the variant's high bit is set. A COMB
//! with its time there rises in that type, but not in a `BINARY(16)`. The orders of SQL Server and MariaDB differ
//! after 14 bits of count: SQL Server reads the second byte of the text's third group next, MariaDB the first. So the
//! four bits beside the version are zero in keys that ordid makes, and the count continues in the second byte, where
//! keys rise in both.
//!
//! In MariaDB's `UUID`, the keys of one generator have the order of `Ord`, and so have all keys of different times. **But
//! two keys of the same time may have another order there**: `Ord` is SQL Server's order. If others made the keys, this
//! needs equal bytes 8 and 9, so it is true of at most one pair in 16,384 of the same time. If two generators of ordid
//! made them, it needs equal counts of 22 bits.

mod datetime;
mod efcore;
mod unix;

pub use datetime::{
    CombNHibernate, CombNHibernateGenerator, CombRtLegacy, CombRtLegacyGenerator, DateTimeParts,
};
pub use efcore::{CombEfCore, CombEfCoreGenerator, EfCoreParts};
pub use unix::{
    CombRtBinary, CombRtBinaryGenerator, CombRtPostgreSql, CombRtPostgreSqlGenerator, CombRtSql,
    CombRtSqlGenerator, UnixParts,
};

use crate::{
    layout::{
        Comparison,
        along::{Along, Fixed},
    },
    scheme::guid::COUNT_BITS,
};

/// The bits beside the version.
const BESIDE_VERSION: u128 = 0xf << 72;
/// The keys that a COMB with its time at the end can be.
const AT_END: Along = Along::new(Comparison::SqlServer, Fixed::rfc(4), 48, COUNT_BITS);
/// Those that ordid makes: they rise in MariaDB's `UUID` too.
const MADE_AT_END: Along = Along::new(
    Comparison::SqlServer,
    Fixed::rfc(4).and_zero(BESIDE_VERSION),
    48,
    COUNT_BITS,
);

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use core::cmp::Ordering;

    use uuid::Uuid;

    use super::*;
    use crate::key::Scheme;

    fn of_each(test: impl Fn(fn(&Uuid) -> bool, fn(&Uuid, &Uuid) -> Ordering)) {
        test(CombNHibernate::check, CombNHibernate::cmp);
        test(CombRtLegacy::check, CombRtLegacy::cmp);
        test(CombRtSql::check, CombRtSql::cmp);
    }

    fn in_mariadb(left: &Uuid, right: &Uuid) -> Ordering {
        let of = |key: &Uuid| Comparison::MariaDbUuid.sort_key(key.as_bytes());
        of(left).cmp(&of(right))
    }

    /// The limit that the documentation names.
    #[test]
    fn mariadb_may_sort_keys_of_the_same_time_in_another_order() {
        let [left, right] = [
            "fbe89288-749a-4312-8b43-24d2f2eee275",
            "d2ef9288-749a-4312-8b43-24d2f2eee275",
        ]
        .map(|text| text.parse().unwrap());
        of_each(|check, cmp| {
            assert!(check(&left) && check(&right));
            assert_eq!(cmp(&left, &right), Ordering::Less);
            assert_eq!(in_mariadb(&left, &right), Ordering::Greater);
        });
    }

    proptest::proptest! {
        /// There are few times and few counts, so that many pairs have one in common.
        #[test]
        fn mariadb_sorts_keys_of_others_in_the_order_of_their_time_and_of_bytes_8_and_9(
            keys: [[u8; 8]; 2],
            time in 0_u64..4,
            count in 0_u16..4,
            other_time in 0_u64..4,
            other_count in 0_u16..4,
        ) {
            let key = |[a, b, c, d, e, f, g, h]: [u8; 8], time: u64, count: u16| {
                let [_, _, t0, t1, t2, t3, t4, t5] = (time << 20).to_be_bytes();
                let [c0, c1] = (count << 5 | 0x8000).to_be_bytes();
                Uuid::from_bytes([a, b, c, d, e, f, g & 0xf | 0x40, h, c0, c1, t0, t1, t2, t3, t4, t5])
            };
            let left = key(keys[0], time, count);
            let right = key(keys[1], other_time, other_count);
            if (time, count) != (other_time, other_count) {
                of_each(|check, cmp| {
                    assert!(check(&left) && check(&right));
                    assert_eq!(cmp(&left, &right), in_mariadb(&left, &right));
                });
            }
        }
    }
}
