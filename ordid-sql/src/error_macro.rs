//! The error type of an adapter that answers questions of its engine, which [`FlushError`](crate::FlushError) cannot.

/// Writes `pub struct Error`, with this documentation, around the [`FlushError`](crate::FlushError) of a library's
/// error type. It dereferences to that, and has its text and its source.
#[doc(hidden)]
#[macro_export]
macro_rules! error_type {
    ($(#[$documentation:meta])* $driver:ty) => {
        $(#[$documentation])*
        pub struct Error($crate::FlushError<$driver>);

        impl std::ops::Deref for Error {
            type Target = $crate::FlushError<$driver>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl From<$crate::FlushError<$driver>> for Error {
            fn from(error: $crate::FlushError<$driver>) -> Self {
                Self(error)
            }
        }

        impl From<ordid_core::Error> for Error {
            fn from(error: ordid_core::Error) -> Self {
                Self(error.into())
            }
        }

        impl std::fmt::Debug for Error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, f)
            }
        }

        impl std::fmt::Display for Error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }

        impl std::error::Error for Error {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                self.0.source()
            }
        }
    };
}
