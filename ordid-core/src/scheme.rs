//! The schemes: one file each, with the layout, the generator and its tests.

pub mod uuid_v7;

pub use uuid_v7::UuidV7;
