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
the other way round, many rows a round trip, each table in the order in which the server sorts the stored keys."
    };
    (entities) => {
        "An entity is any struct with `#[derive(OrderedKey)]` whose key type names a column; the rows of each type are kept in
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
    (deferrable) => {
        "On PostgreSQL and SQLite a foreign key that is declared `#[ordid(parent, deferrable)]` is checked at COMMIT
instead, so that a circle with one needs neither the NULL nor the `UPDATE`."
    };
    (many_updates) => {
        "PostgreSQL and SQLite (from 3.33 on) take many rows an `UPDATE`, and a value arrives as by an `INSERT`; MySQL and
MariaDB are sent one for each row, which takes as many round trips. Two rows cannot exchange unique values, since these
are checked row by row."
    };
    (deferred) => {
        "Constraints that the database checks at COMMIT fail in your commit, not here. If the flush had to defer them
([`FlushPlan::defers`](crate::FlushPlan::defers)), all that can be deferred stay so until then."
    };
    (journaled) => {
        "A [`Journal`](ordid_sql::Journal) for [`UnitOfWork::with_journal`], and the entity types whose rows it keeps:
types with serde's `Serialize` and `Deserialize`.

Rows go through serde, so what serde leaves out or writes with less precision is lost with the process. That is found
before anything is sent: each row is read back, its columns are compared, and a column that differs is an error."
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

It is never tried again, since what came before it in the transaction would have to be repeated, too: most databases
end the whole transaction at a deadlock."
    };
    (flush_in_errors) => {
        "# Errors

As [`flush`](Self::flush), but never one that [`is_commit_unknown`](crate::FlushError::is_commit_unknown): that question
belongs to your commit."
    };
    (sharded) => {
        "New entities of which each goes to one of several databases, split by key: a [`UnitOfWork`] for each shard of a
[`Sharding`](ordid_sql::Sharding).

# What is atomic

- **One shard's part is**: its rows are one transaction of that database, all of them or none.
- **The whole is not.** Each part is committed by itself, in no order. If one fails, the others are committed all the
  same; whoever reads meanwhile may find the rows of one shard and not yet those of another.
- **What failed stays**, with the same keys, and what was committed is taken out. So flushing again sends what is left,
  and when that succeeds, every row is there exactly once. A part whose COMMIT had no answer, and of which the database
  could not be asked, stays, too, and is asked for then:
  [`is_commit_unknown`](crate::FlushError::is_commit_unknown) of its error says so.

There is no two-phase commit. PostgreSQL has it switched off (`max_prepared_transactions` is 0) and SQLite not at all;
where it is on, a program that dies between the two phases leaves locks that nobody takes away. What must be written
together belongs to one shard: route it by one key.

# What the databases cannot check

A foreign key ends at its database, so a row's parents have to be on its shard; the database refuses a row whose parent
is elsewhere.

Rows to which those of all shards refer, such as airlines or countries, are on each of them: of a type that the sharding
has [everywhere](ordid_sql::Sharding::everywhere), each shard gets a copy of what is added, updated or deleted, under
the same key. As the whole is not atomic, the copies differ where a part failed, until flushing again succeeds."
    };
    (sharded_flush) => {
        "Flushes each shard into its own database, the first over the first connection, each in a transaction of its
own: as [`UnitOfWork::flush`]. Returns what each of them wrote. A shard without entities sends nothing."
    };
    (sharded_errors) => {
        "# Errors

What [`plan`](Self::plan) finds, and another number of databases than of shards: then nothing was sent to any of them.
Otherwise [`shards`](crate::FlushError::shards) says what became of each: the parts of the shards that succeeded are
committed, and those of the others are there to be flushed again."
    };
    (flushes_table) => {
        "Returns the `CREATE TABLE` of `ordid_flushes`. A flush with updates or deletes writes a marker row to it, in its
own transaction: if the answer to COMMIT is lost, that row shows whether the flush was committed. A flush that only
inserts does so only [on request](crate::UnitOfWork::with_record).

Run it once, as a migration. A marker row is looked for only while its flush is under way: rows older than a day can be
deleted at any time, by `flushed_at`."
    };
}
