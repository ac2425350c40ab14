//! Finds schemes by their names without the feature of `ordid`.

use ordid::scheme::catalogue;

pub use catalogue::*;
