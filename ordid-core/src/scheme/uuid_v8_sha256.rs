//! UUID version 8 of a name: 122 bits of SHA-256 of a namespace and a name, in no order.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |            custom_a: the hash's bits from 0 to 31             |
//! +-------------------------------+-------+-----------------------+
//! |   custom_a: bits 32 to 47     | ver 8 | custom_b: 52 to 63    |
//! +---+---------------------------+-------+-----------------------+
//! |var|            custom_c: the hash's bits from 66 to 95        |
//! +---+-----------------------------------------------------------+
//! |                custom_c: bits 96 to 127                       |
//! +---------------------------------------------------------------+
//! ```
//!
//! This is the form of RFC 9562's appendix B.2, with a better hash than that of [`uuid_v5`](super::uuid_v5).
//! [`named`](super::named) says what such keys are for, and what they are not. Anybody may define version 8
//! differently, so the value does not say that it comes from a name.
//!
//! # Example: the RFC's own vector
//!
//! ```
//! # #[cfg(feature = "named")] {
//! use ordid_core::{scheme::{FromName, UuidV8Sha256}, uuid::Uuid};
//!
//! let key = UuidV8Sha256::from_name(&Uuid::NAMESPACE_DNS, b"www.example.com");
//! assert_eq!(key.to_string(), "5c146b14-3c52-8afd-938a-375d0df1fbf6");
//! # }
//! ```
//!
//! # References
//!
//! RFC 9562 sections 5.8 (layout), 6.5 (names), appendix B.2 (vector).

use uuid::Uuid;

#[cfg(any(test, feature = "named"))]
use crate::scheme::{anatomy::with_version, named::FromName};
use crate::{
    error::Error,
    key::Scheme,
    scheme::anatomy::{Certainty, Inspection, Layout},
};

/// The scheme `uuid_v8_sha256`.
#[derive(Debug)]
pub enum UuidV8Sha256 {}

impl Scheme for UuidV8Sha256 {
    without_order!(rfc_9562!("uuid_v8_sha256", version 8));

    const IS_NAMED: bool = true;
}

#[cfg(any(test, feature = "named"))]
impl FromName for UuidV8Sha256 {
    fn from_name(namespace: &Uuid, name: &[u8]) -> Uuid {
        use sha2::Digest as _;

        let hash = sha2::Sha256::new()
            .chain_update(namespace.as_bytes())
            .chain_update(name)
            .finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        with_version(Uuid::from_bytes(bytes), 8)
    }
}

/// The fields of a UUID of version 8, as RFC 9562 names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The hash's first 48 bits.
    pub custom_a: u64,
    /// 12 bits.
    pub custom_b: u16,
    /// 62 bits.
    pub custom_c: u64,
}

impl Layout for UuidV8Sha256 {
    fields_around_version!(8: custom_a = 48, custom_b = 12, custom_c = 62);

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        Inspection::of_version::<Self>(raw, 8, Certainty::Possible)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::scheme::testing::{declared, does_not_fit, name_of_the_rfc, vectors};

    #[test]
    fn a_name_of_the_rfc_makes_its_key() {
        name_of_the_rfc::<UuidV8Sha256>(&vectors("rfc9562")["v8"][1], "sha256", |parts| {
            [
                parts.custom_a.into(),
                parts.custom_b.into(),
                parts.custom_c.into(),
            ]
        });
    }

    #[test]
    fn no_rule_orders_keys() {
        assert_eq!(declared::<UuidV8Sha256>(), []);
    }

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let parts = Parts {
            custom_a: 0,
            custom_b: 0,
            custom_c: 1 << 62,
        };
        does_not_fit::<UuidV8Sha256, _>([(parts, "custom_c 4611686018427387904", 62)]);
    }
}
