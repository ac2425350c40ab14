//! All schemes by their names, and `ordid` does not have the feature.

use ordid::scheme::catalogue;

pub use catalogue::*;
