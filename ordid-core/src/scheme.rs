//! The schemes: one file each, with the layout, the generator and its tests.

mod anatomy;
#[cfg(all(test, not(loom)))]
mod laws;
pub mod ordered_text;
pub mod push_id;
pub mod ulid;
pub mod uuid_v7;
pub mod uuid_v7_sub_millis;
pub mod uuid_v7_unguessable;

pub use anatomy::{Certainty, Inspection, Layout, TimeOrdered};
pub use ordered_text::{
    OrderedText22, OrderedText22Push, OrderedText22Time64, OrderedText22Time64Push, OrderedText32,
    OrderedText32Push,
};
pub use push_id::FirebasePushId;
pub use ulid::Ulid;
pub use uuid_v7::UuidV7;
pub use uuid_v7_sub_millis::UuidV7SubMillis;
pub use uuid_v7_unguessable::UuidV7Unguessable;
