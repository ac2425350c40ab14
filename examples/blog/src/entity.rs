//! The entities: each has an ordered key of a type of its own, so that ids do not mix and a parent is
//! found by its type.
#![allow(
    unreachable_pub,
    reason = "what SeaORM's macros derive from models is public"
)]

pub(crate) mod author;
pub(crate) mod post;
pub(crate) mod post_tag;
pub(crate) mod tag;
