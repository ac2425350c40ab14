//! Recorders in the places of databases that cannot be had here. They write down what a real library sends, and answer
//! what they were told to; they are no databases.
//!
//! | recorder | takes the place of | where |
//! |---|---|---|
//! | [`tds`] | SQL Server and Babelfish, at the other end of a TCP connection | this library, for other tests, too |
//! | [`conversation`] | engines that speak the protocol of PostgreSQL or MySQL, and that run on no machine of ours | this library; the tests are `tests/engines` |
//! | `oci.c` | Oracle's client library, in the process | `tests/recorders/oracle.rs`, which compiles and loads it |
//!
//! The tests against SQL Server's and Oracle's are one program, `tests/recorders`. `tests/live` is for a SQL Server or Babelfish that
//! is given.

pub mod conversation;
pub mod tds;
