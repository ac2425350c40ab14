//! UUID version 5: 122 bits of SHA-1 of a namespace and a name, in no order.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                   sha1_high (upper 32 bits)                   |
//! +-------------------------------+-------+-----------------------+
//! |  sha1_high (lower 16 bits)    | ver 5 |     sha1_mid (12)     |
//! +---+---------------------------+-------+-----------------------+
//! |var|                  sha1_low (upper 30 bits)                 |
//! +---+-----------------------------------------------------------+
//! |                      sha1_low (lower 32 bits)                 |
//! +---------------------------------------------------------------+
//! ```
//!
//! Use it for keys that other programs compute from names, too. [`named`](super::named) says what such keys are for,
//! and what they are not. If no other program computes them, use [`uuid_v8_sha256`](super::uuid_v8_sha256): somebody
//! can find two names with the same SHA-1.
//!
//! # Example: the RFC's own vector
//!
//! ```
//! # #[cfg(feature = "named")] {
//! use ordid_core::{scheme::{FromName, UuidV5}, uuid::Uuid};
//!
//! let key = UuidV5::from_name(&Uuid::NAMESPACE_DNS, b"www.example.com");
//! assert_eq!(key.to_string(), "2ed6657d-e927-568b-95e1-2665a8aea6a2");
//! # }
//! ```
//!
//! # References
//!
//! RFC 9562 sections 5.5 (layout), 6.5 (names), appendix A.4 (vector).

use uuid::Uuid;

#[cfg(any(test, feature = "named"))]
use crate::scheme::named::FromName;
use crate::{
    error::Error,
    key::Scheme,
    scheme::anatomy::{Certainty, Inspection, Layout},
};

/// The scheme `uuid_v5`.
#[derive(Debug)]
pub enum UuidV5 {}

impl Scheme for UuidV5 {
    without_order!(rfc_9562!("uuid_v5", version 5));

    const IS_NAMED: bool = true;
}

#[cfg(any(test, feature = "named"))]
impl FromName for UuidV5 {
    fn from_name(namespace: &Uuid, name: &[u8]) -> Uuid {
        Uuid::new_v5(namespace, name)
    }
}

/// The fields of a UUID of version 5, as RFC 9562 names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The hash's first 48 bits.
    pub sha1_high: u64,
    /// 12 bits.
    pub sha1_mid: u16,
    /// 62 bits.
    pub sha1_low: u64,
}

impl Layout for UuidV5 {
    fields_around_version!(5: sha1_high = 48, sha1_mid = 12, sha1_low = 62);

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        Inspection::of_version::<Self>(raw, 5, Certainty::Stated)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::scheme::testing::{declared, does_not_fit, name_of_the_rfc, vectors};

    #[test]
    fn a_name_of_the_rfc_makes_its_key() {
        name_of_the_rfc::<UuidV5>(&vectors("rfc9562")["v5"][0], "sha1", |parts| {
            [
                parts.sha1_high.into(),
                parts.sha1_mid.into(),
                parts.sha1_low.into(),
            ]
        });
    }

    #[test]
    fn no_rule_orders_keys() {
        assert_eq!(declared::<UuidV5>(), []);
    }

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let parts = Parts {
            sha1_high: 0,
            sha1_mid: 1 << 12,
            sha1_low: 0,
        };
        does_not_fit::<UuidV5, _>([(parts, "sha1_mid 4096", 12)]);
    }
}
