//! An issue tracker of many tenants over axum and SQLx, on SQLite or PostgreSQL.

mod error;
mod graphql;
mod http;
mod import;
mod model;
mod openapi;
mod store;

pub use error::Error;
pub use http::router;
pub use store::Store;

/// Checks the variable `TRACKER_MASK`, which has the mask of tenants' ids.
///
/// # Errors
///
/// Returns an error if it is set, and is not 32 hexadecimal digits.
pub fn check_mask() -> Result<(), Error> {
    match std::env::var("TRACKER_MASK") {
        Ok(text) if model::mask_of(&text).is_none() => Err(Error::refused(
            "TRACKER_MASK is not 32 hexadecimal digits, such as `openssl rand -hex 16` writes",
        )),
        Err(std::env::VarError::NotUnicode(_)) => Err(Error::refused("TRACKER_MASK is no text")),
        _ => Ok(()),
    }
}
