//! The atomics of the engine: the processor's, or the model checker's under `--cfg loom`.

#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicU64, Ordering};

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering};

/// Lets the thread run that this one waits for.
pub(super) fn yield_now() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(all(not(loom), feature = "std"))]
    std::thread::yield_now();
    #[cfg(all(not(loom), not(feature = "std")))]
    core::hint::spin_loop();
}

/// Makes constructors `const`, which those of the model checker are not.
macro_rules! const_unless_loom {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$attribute])*
        $visibility const fn $($rest)*
        #[cfg(loom)]
        $(#[$attribute])*
        $visibility fn $($rest)*
    };
}

pub(crate) use const_unless_loom;
