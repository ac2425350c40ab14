//! Paragraphs that stand in the documentation of every adapter. Each is here once, and
//! `#[doc = ordid_sql::docs!(circles)]` puts it where the users of an adapter look for it.
//!
//! A paragraph has no blank line at its end, so that the adapter can add a sentence of its own. Its links are to
//! items that an adapter has at its root.

/// Returns a paragraph, by its name.
#[doc(hidden)]
#[macro_export]
macro_rules! docs {
    (watching) => {
        "# Watching flushes

With the feature `tracing`, a flush is a span `ordid.flush` of the target `ordid`, at INFO, with its `tables`, `rows`
and `retries`. It says at WARN why it is tried again. With `metrics`, the histogram `ordid_flush_rows` has the rows of
each committed flush, and the counter `ordid_flush_retries_total` the retries by their `cause`, `transient` or `lost`.
Neither contains keys or values."
    };
    (leases) => {
        "# Nodes that nobody else has

[`SqlLease`] leases nodes from a table, for schemes with a node in their keys. It uses connections of its own, outside
of the program's transactions: see [`ordid_core::coordination`] for what leases promise."
    };
    (unit_of_work) => {
        "Collects entities and inserts, updates and deletes them in one transaction: parents before children, deletes
the other way round, many rows a round trip, each table in the order in which the server sorts the stored keys.

An entity is any struct with `#[derive(OrderedKey)]` whose key type names a column; the rows of each type are kept in
one `Vec`."
    };
    (circles) => {
        "# Rows that refer to each other

Tables may refer to each other, and rows to rows of their own table. If rows refer to each other in a circle, one of
them is inserted with NULL in a foreign key that can be NULL, and an `UPDATE` sets it after all inserts; before they
are deleted it is set to NULL. A circle without such a foreign key is an error that names it, before anything is sent."
    };
    (changes) => {
        "# Updates and deletes

Each row has to be there: if one is not, nothing is written
([`is_missing_row`](crate::FlushError::is_missing_row)). Rows are updated after all inserts and deleted after that, so
a unique value is not free for a new row before the next flush."
    };
    (journaled) => {
        "A [`Journal`](ordid_sql::Journal) for [`UnitOfWork::with_journal`], and the entity types whose rows it keeps:
types with serde's `Serialize` and `Deserialize`. What serde leaves out or writes with less precision is found before
anything is sent."
    };
    (flush) => {
        "Writes everything in one transaction of its own, and is empty afterwards. If it fails, nothing is written and
nothing is lost: the same entities with the same keys are there to be flushed again."
    };
    (retries) => {
        "# Retries

A failure that may pass on the same connection ([`is_transient`](crate::FlushError::is_transient)), such as a deadlock or
a serialization failure, is rolled back and tried again, with the same keys, as often as
[`with_retry`](Self::with_retry) says. A lost connection ([`is_connection_lost`](crate::FlushError::is_connection_lost))
ends the flush: connect anew, and flush again, or use [`flush_with`](Self::flush_with), which does that itself.

If the answer to COMMIT is lost ([`is_commit_unknown`](crate::FlushError::is_commit_unknown)), the rows may be there.
So the next flush begins by asking the database, unless entities were added, and sends the rows again only if they are
not there. It looks for one of them by its key, as they are there all or none. A flush with updates or deletes looks for
its marker row instead, in the table that [`flushes_table`](crate::flushes_table) declares, as does any flush
[`with_record`](Self::with_record)."
    };
    (flush_with) => {
        "A lost connection does not end this flush: what was not committed is sent again over another one, with the
same keys. If the answer to COMMIT is lost, the flush first asks the database, over another connection, whether the rows
are there. Each connection that is lost and each that cannot be made counts as an attempt of
[`with_retry`](Self::with_retry)."
    };
    (flush_in) => {
        "Writes everything inside the transaction that is open on the connection, in a savepoint: if it fails, the
transaction is as before. Nothing is committed, and the entities stay until [`clear`](Self::clear), since only the
caller knows when the transaction is committed.

It is never tried again, since what came before it in the transaction would have to be repeated, too.

# Errors

As [`flush`](Self::flush), but never one that [`is_commit_unknown`](crate::FlushError::is_commit_unknown): that question
belongs to your commit."
    };
    (sharded) => {
        "As [`UnitOfWork`], over as many databases as a [`Sharding`](ordid_sql::Sharding) has: each row goes to its
shard, by its key.

The rows of one shard are one transaction of that database, all of them or none. The whole is not: each shard is
committed by itself, and if one fails, the others are committed all the same. Those that failed keep their rows, with
the same keys, and those that succeeded are empty, so flushing again sends what is left. There is no two-phase commit:
what must be written together belongs to one shard.

A foreign key ends at its database, so a row's parents have to be on its shard. Rows to which those of all shards refer
are [everywhere](ordid_sql::Sharding::everywhere)."
    };
    (sharded_flush) => {
        "Flushes each shard into its own database, the first over the first connection, each in a transaction of its
own: as [`UnitOfWork::flush`]. Returns what each of them wrote. A shard without entities sends nothing.

# Errors

What [`plan`](Self::plan) finds, and another number of connections than of shards: then nothing was sent to any of
them. Otherwise [`shards`](crate::FlushError::shards) says what became of each."
    };
    (flushes_table) => {
        "Returns the `CREATE TABLE` of `ordid_flushes`, to which a flush with updates or deletes writes a marker row in
its own transaction: if the answer to a COMMIT is lost, that row tells whether it was carried out. A flush that only
inserts writes none, unless it is [asked to](UnitOfWork::with_record).

Make it a migration. Rows are only looked for while their flush is under way: delete those of more than a day at any
time, by `flushed_at`."
    };
}
