//! Tests what the compiler says of mistakes. `tests/tests/derived_*.rs` have what it accepts, each a crate as a user may have it.
//!
//! One folder per class of mistake, or per library; the `.stderr` files are those of Rust 1.95. Most mistakes have one
//! error. SeaORM's derives report a key type without their traits many times. Among their errors, ordid's is the first if
//! `OrderedKey` stands before `DeriveEntityModel`.
//! `TRYBUILD=overwrite cargo test -p ordid-ui-tests` writes them anew; read the difference.

use trybuild::TestCases;

#[test]
fn every_mistake_is_underlined() {
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
        "diesel",
        "mysql_async",
        "rusqlite",
        "seaorm",
        "tokio_postgres",
    ] {
        cases.compile_fail(format!("{class}/*.rs"));
    }
}
