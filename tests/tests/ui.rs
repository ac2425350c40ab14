//! What the compiler says of mistakes. What it accepts is in `derived_*.rs`, each a crate as a user may have it.
//!
//! One folder per class of mistake in `ui/`; the `.stderr` files are those of Rust 1.95.
//! `TRYBUILD=overwrite cargo test -p ordid-tests --test ui` writes them anew; read the difference.

use trybuild::TestCases;

#[test]
fn every_mistake_is_underlined_and_nothing_cascades() {
    let cases = TestCases::new();
    for class in [
        "option",
        "key",
        "parent",
        "returning",
        "shape",
        "scheme",
        "parameter",
        "columns",
        "adapter",
        "types",
    ] {
        cases.compile_fail(format!("ui/{class}/*.rs"));
    }
}
