//! Keys that are computed from names: the same name in the same namespace gives the same key, in every program and at
//! any time.
//!
//! An import that runs twice makes the same keys twice, and so does a request that is sent again. The database then
//! refuses rows that it already has, whereas rows with generated keys would be stored a second time.
//!
//! ```text
//! key of (namespace, [a])       = hash(namespace || a)
//! key of (namespace, [a, b])    = hash(hash(namespace || a) || b)
//! ```
//!
//! The key of one part is that of RFC 9562. If there are several parts, each is a name in the namespace that the
//! parts before it make. So parts do not run into each other: `["ab", "c"]`, `["a", "bc"]`, `["abc"]` and
//! `["abc", ""]` give four different keys. Every library and database with version 5 can compute them, with one call
//! for each part: `uuid_generate_v5(uuid_generate_v5(namespace, 'ab'), 'c')` in PostgreSQL.
//!
//! # What it does not do
//!
//! - **Named keys have no order and no time.** A hash can be anywhere, so each insert goes to another page, as with
//!   [`uuid_v4`](super::uuid_v4), and columns take them only as `unordered(..)`.
//! - **They are no secret.** Whoever knows or guesses the name knows the key.
//! - A key has 122 bits of the hash. Two names do not get one key by chance; somebody who may choose both names needs
//!   about 2^61 attempts.
//! - The key type is not part of the name. Give each key type its own namespace.
//!
//! # References
//!
//! RFC 9562 sections 5.5 and 6.5, appendix B.2.

use uuid::Uuid;

use crate::key::Scheme;

/// A scheme whose keys are computed from names, as [`KeyType::named`](crate::KeyType::named) does.
#[diagnostic::on_unimplemented(
    message = "keys of scheme `{Self}` are not made of names",
    label = "not made of names",
    note = "choose a scheme that is, `#[ordid(scheme = uuid_v5)]` or `#[ordid(scheme = uuid_v8_sha256)]`, \
            and turn on the feature `named` of `ordid`"
)]
pub trait FromName: Scheme<Raw = Uuid> {
    /// Computes the key of a name in a namespace, as in RFC 9562 section 6.5.
    fn from_name(namespace: &Uuid, name: &[u8]) -> Uuid;
}
