//! What the compiler says of mistakes in the models of object-relational mappers, and beside rusqlite, tokio-postgres and mysql_async.
//!
//! The `.stderr` files are those of Rust 1.95. `TRYBUILD=overwrite cargo test -p ordid-orm-tests --test ui`
//! writes them anew; read the difference.

#[test]
fn mistakes_in_seaorm_models_are_underlined() {
    trybuild::TestCases::new().compile_fail("ui/seaorm/*.rs");
}

#[test]
fn mistakes_beside_diesel_are_underlined() {
    trybuild::TestCases::new().compile_fail("ui/diesel/*.rs");
}

#[test]
fn mistakes_beside_rusqlite_are_underlined() {
    trybuild::TestCases::new().compile_fail("ui/rusqlite/*.rs");
}

#[test]
fn mistakes_beside_tokio_postgres_are_underlined() {
    trybuild::TestCases::new().compile_fail("ui/tokio_postgres/*.rs");
}

#[test]
fn mistakes_beside_mysql_async_are_underlined() {
    trybuild::TestCases::new().compile_fail("ui/mysql_async/*.rs");
}
