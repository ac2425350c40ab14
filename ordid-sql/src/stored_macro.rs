//! The wrapper of a key in a column of the user's choice, which every library has: a foreign trait can only be
//! implemented for a type of the adapter's own crate, so each adapter declares the type by this macro.

/// Writes `pub struct Stored<K, C>`, with this documentation, and the standard library's traits for it.
#[doc(hidden)]
#[macro_export]
macro_rules! stored_key {
    ($(#[$documentation:meta])*) => {
        $(#[$documentation])*
        pub struct Stored<K: ordid_core::storage::KeepsOrder<C>, C: ordid_core::storage::Stores<K::Raw>> {
            key: K,
            column: std::marker::PhantomData<fn() -> C>,
        }

        impl<K: ordid_core::storage::KeepsOrder<C>, C: ordid_core::storage::Stores<K::Raw>> Stored<K, C> {
            /// Wraps a key.
            pub const fn new(key: K) -> Self {
                Self {
                    key,
                    column: std::marker::PhantomData,
                }
            }

            /// Returns the key.
            pub fn into_key(self) -> K {
                self.key
            }
        }

        impl<K: ordid_core::storage::KeepsOrder<C>, C: ordid_core::storage::Stores<K::Raw>> From<K> for Stored<K, C> {
            fn from(key: K) -> Self {
                Self::new(key)
            }
        }

        // By hand: a derive would ask the same of the column, which has no values.

        impl<K: ordid_core::storage::KeepsOrder<C>, C: ordid_core::storage::Stores<K::Raw>> Clone for Stored<K, C> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<K: ordid_core::storage::KeepsOrder<C>, C: ordid_core::storage::Stores<K::Raw>> Copy for Stored<K, C> {}

        impl<K: ordid_core::storage::KeepsOrder<C>, C: ordid_core::storage::Stores<K::Raw>> PartialEq for Stored<K, C> {
            fn eq(&self, other: &Self) -> bool {
                self.key == other.key
            }
        }

        impl<K: ordid_core::storage::KeepsOrder<C>, C: ordid_core::storage::Stores<K::Raw>> Eq for Stored<K, C> {}

        impl<K: ordid_core::storage::KeepsOrder<C>, C: ordid_core::storage::Stores<K::Raw>> PartialOrd for Stored<K, C> {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl<K: ordid_core::storage::KeepsOrder<C>, C: ordid_core::storage::Stores<K::Raw>> Ord for Stored<K, C> {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.key.cmp(&other.key)
            }
        }

        impl<K: ordid_core::storage::KeepsOrder<C>, C: ordid_core::storage::Stores<K::Raw>> std::hash::Hash for Stored<K, C> {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.key.hash(state);
            }
        }

        impl<K: ordid_core::storage::KeepsOrder<C>, C: ordid_core::storage::Stores<K::Raw>> std::fmt::Debug for Stored<K, C> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.key, f)
            }
        }

        impl<K: ordid_core::storage::KeepsOrder<C>, C: ordid_core::storage::Stores<K::Raw>> std::fmt::Display for Stored<K, C> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.key, f)
            }
        }
    };
}
