//! What a real tiberius sends to SQL Server and Babelfish, and what `ordid-tiberius` makes of the answers. The peer is a
//! recorder, no SQL engine: it keeps no row, and says what the test told it to.

mod changes;
mod entities;
mod errors;
mod flush;
mod follower;
mod keys;
mod leases;
mod reconnect;
mod shards;
mod wire;

/// What each flush asks first.
const ASK: &str =
    "SELECT CASE @@OPTIONS & 2 WHEN 0 THEN @@TRANCOUNT ELSE -1 - @@TRANCOUNT END, @@VERSION";
/// The marker row of a flush.
const RECORD: &str = "INSERT INTO ordid_flushes (id) VALUES (@P1); SELECT @@ROWCOUNT";
