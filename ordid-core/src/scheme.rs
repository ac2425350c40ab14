//! The schemes: one file each, with the layout, the generator and its tests.

mod anatomy;
#[cfg(test)]
#[cfg(not(loom))]
mod laws;
pub mod uuid_v7;
pub mod uuid_v7_sub_millis;
pub mod uuid_v7_unguessable;

pub use anatomy::{Certainty, Inspection, Layout, TimeOrdered};
pub use uuid_v7::UuidV7;
pub use uuid_v7_sub_millis::UuidV7SubMillis;
pub use uuid_v7_unguessable::UuidV7Unguessable;
