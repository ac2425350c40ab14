//! The schemes: one file each, with the layout, the generator and its tests.

mod anatomy;
pub mod compact;
pub mod instagram;
#[cfg(test)]
#[cfg(not(loom))]
mod laws;
pub mod object_id;
pub mod percona_64;
pub mod snowflake;
pub mod uuid_short;
pub mod uuid_v7;
pub mod uuid_v7_sub_millis;
pub mod uuid_v7_unguessable;

pub use anatomy::{Certainty, Inspection, Layout, TimeOrdered};
pub use compact::Compact;
pub use instagram::Instagram;
pub use object_id::ObjectIdScheme;
pub use percona_64::Percona64;
pub use snowflake::Snowflake;
pub use uuid_short::UuidShort;
pub use uuid_v7::UuidV7;
pub use uuid_v7_sub_millis::UuidV7SubMillis;
pub use uuid_v7_unguessable::UuidV7Unguessable;
