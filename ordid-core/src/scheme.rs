//! The schemes: one file each, with the layout, the generator and its tests.

/// Names a generator. With `std` clock and entropy have defaults; without it there are none to have.
macro_rules! generator_alias {
    ($(#[$attribute:meta])* $name:ident<C, E> = $generator:ty) => {
        #[cfg(feature = "std")]
        $(#[$attribute])*
        pub type $name<C = crate::clock::SystemClock, E = crate::entropy::ThreadEntropy> =
            $generator;

        #[cfg(not(feature = "std"))]
        $(#[$attribute])*
        pub type $name<C, E> = $generator;
    };
}

mod anatomy;
#[cfg(all(test, not(loom)))]
mod laws;
pub mod uuid_v7;
pub mod uuid_v7_sub_millis;
pub mod uuid_v7_unguessable;

pub use anatomy::{Certainty, Inspection, Layout, TimeOrdered};
pub use uuid_v7::UuidV7;
pub use uuid_v7_sub_millis::UuidV7SubMillis;
pub use uuid_v7_unguessable::UuidV7Unguessable;
