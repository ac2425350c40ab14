//! The schemes: one file each, with the layout, the generator and its tests.

mod anatomy;
pub mod comb;
mod guid;
#[cfg(all(test, not(loom)))]
mod laws;
pub mod medo;
pub mod newid;
pub mod sequential_guid;
pub mod uuid_v7;
pub mod uuid_v7_sub_millis;
pub mod uuid_v7_unguessable;
pub mod uuid_v8_sql_server;

pub use anatomy::{Certainty, Inspection, Layout, TimeOrdered};
pub use comb::{
    CombEfCore, CombNHibernate, CombRtBinary, CombRtLegacy, CombRtPostgreSql, CombRtSql,
};
pub use medo::Medo;
pub use newid::NewId;
pub use sequential_guid::{SequentialGuidAsBinary, SequentialGuidAsString, SequentialGuidAtEnd};
pub use uuid_v7::UuidV7;
pub use uuid_v7_sub_millis::UuidV7SubMillis;
pub use uuid_v7_unguessable::UuidV7Unguessable;
pub use uuid_v8_sql_server::UuidV8SqlServer;
