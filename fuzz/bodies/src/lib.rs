//! What the fuzz targets do with their input: each takes bytes, and panics where ordid-core breaks a
//! promise. No fuzzer is in here, so that tests can call it too.
//!
//! | target | input | promises |
//! |---|---|---|
//! | [`text`] | text | whatever is read is written as the same text; errors are short |
//! | [`layouts`] | bytes of a raw key | taking apart and putting together are inverse; nothing panics |
//! | [`parts`] | numbers for fields | put together is refused or comes apart into the same fields |
//! | [`columns`] | what a database returns | whatever is read is stored as the same bytes |
//! | [`convert`] | bytes of a raw key | every way has a way back |
//! | [`scatter`] | text, or bytes | whatever is read is written as the same bytes or text |
//! | [`time`] | numbers | ticks and nanoseconds agree; nothing overflows |
//!
//! [`SCHEMES`] come from the catalogue of ordid-core, and the columns from its list of columns.

mod columns;
mod convert;
mod draw;
mod layouts;
mod parts;
mod scatter;
mod schemes;
mod text;
mod time;

pub use columns::columns;
pub use convert::convert;
pub use layouts::layouts;
pub use parts::parts;
pub use scatter::scatter;
pub use schemes::{Bodies, SCHEMES};
pub use text::text;
pub use time::time;

/// A target: its name, which is that of its corpus and its binary, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 7] = [
    ("columns", columns),
    ("convert", convert),
    ("layouts", layouts),
    ("parts", parts),
    ("scatter", scatter),
    ("text", text),
    ("time", time),
];
