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
