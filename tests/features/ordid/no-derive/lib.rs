//! Derives a key type, but `ordid` has no default features.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
pub struct OrderId(Uuid);
