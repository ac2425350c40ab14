//! Paragraphs that the documentation of every adapter contains, for `#[doc = ..]`.
//!
//! An adapter adds its own sentences. The links are resolved at the item that has the documentation: its module has
//! `UnitOfWork` in scope, and its crate has `FlushError` at the root. A text that ends without a new line takes a sentence
//! of the adapter's own.

/// Returns a piece of the documentation that all adapters have.
///
/// ```text
/// #[doc = ordid_sql::documentation!(unit_of_work)]
/// pub struct UnitOfWork<DB: Backend>(Work<Binder<DB>>);
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! documentation {
    (tasks) => {
        "\
| you want to | use |
|---|---|
| insert rows and their children in one transaction | [`UnitOfWork::add`], then [`UnitOfWork::flush`] |
| change or remove rows in the same transaction | [`UnitOfWork::update`], [`UnitOfWork::delete`] |
| insert or update | [`UnitOfWork::upsert`], [`UnitOfWork::insert_or_ignore`], [`OnConflict`] |
| flush inside your own transaction | [`UnitOfWork::flush_in`] |
| say how often and how long a flush tries | [`UnitOfWork::with_retry`], [`UnitOfWork::with_deadline`] |
| write more rows than one transaction takes | [`UnitOfWork::in_chunks`] |
| see the statements first | [`UnitOfWork::plan`] |
| write to several databases | [`ShardedUnitOfWork`] |"
    };
    (columns_postgres) => {
        "\
| `postgres = uuid` | 128 bits | `uuid` | 16 bytes | yes |
| `postgres = bytea` | all but integers | `bytea` | the key's bytes | yes |
| `postgres = text` | all but integers | `text COLLATE \"C\"` | the key's own text | yes |
| `postgres = char22`, `char26` | 128 bits | `text COLLATE \"C\"` | ordered text, a ULID | yes |
| `postgres = char20`, `char32` | `PushId`, `Key192` | `text COLLATE \"C\"` | the key's own text | yes |
| `postgres = bigint` | `i64` | `bigint` | a number | yes |"
    };
    (columns_mysql) => {
        "\
| `mysql = binary16`, `binary12`, `binary24` | 128 bits, `ObjectId`, `Key192` | `BINARY(n)` | the key's bytes | yes |
| `mysql = binary16_swapped` | 128 bits | `BINARY(16)` | as `UUID_TO_BIN(x, 1)` writes it | of version 1 only |
| `mysql = binary16_dotnet` | 128 bits | `BINARY(16)` | as .NET's `Guid.ToByteArray` | of schemes for it only |
| `mysql = char36` | 128 bits | `CHAR(36)`, `ascii_bin` | text with hyphens | yes |
| `mysql = char22`, `char26` | 128 bits | `CHAR(n)`, `ascii_bin` | ordered text, a ULID | yes |
| `mysql = char20`, `char32` | `PushId`, `Key192` | `CHAR(n)`, `ascii_bin` | the key's own text | yes |
| `mysql = bigint`, `bigint_unsigned` | `i64`, `u64` | `BIGINT`, `BIGINT UNSIGNED` | a number | yes |
| `mysql = mariadb_uuid` | 128 bits | MariaDB's `UUID` | text, which the server packs | of versions 6 and 7, and of COMBs |"
    };
    (columns_sqlite) => {
        "\
| `sqlite = blob` | all but integers | `BLOB` | the key's bytes | yes |
| `sqlite = text` | all but integers | `TEXT` | the key's own text | yes |
| `sqlite = char22`, `char26` | 128 bits | `TEXT` | ordered text, a ULID | yes |
| `sqlite = char20`, `char32` | `PushId`, `Key192` | `TEXT` | the key's own text | yes |
| `sqlite = integer` | `i64` | `INTEGER` | a number, the rowid | yes |"
    };
    (unit_of_work) => {
        "\
Entities, collected to be inserted, updated and deleted in one transaction: parents before children,
deletes the other way round, many rows a statement, each table in the order of its stored keys."
    };
    (circles) => {
        "\
# Rows that refer to each other

Tables may refer to each other, and rows to rows of their own table. If rows refer to each other in a
circle, one of them is inserted with NULL in a foreign key that can be NULL, and an `UPDATE` sets it after
all inserts; before they are deleted it is set to NULL. A circle without such a foreign key is an error that
names it, before anything is sent."
    };
    (updates) => {
        "\
# Updates and deletes

Each row has to be there: if one is not, nothing is written
([`Error::is_missing_row`](crate::FlushError::is_missing_row)). Rows are updated after all inserts and
deleted after that, so a unique value is not free for a new row before the next flush.

`update` writes all columns of a row, also those that somebody else has changed since it was read. `update_columns`
writes those that it names and leaves the others: `work.update_columns(order, (Order::total, Order::note))`, with
`#[ordid(columns)]` at the struct.

A field that is `#[ordid(version)]`, an integer or a timestamp, tells whether somebody else has changed the row since it
was read. An update or a delete finds the row only with the version that it was read with, and an update writes the next
one. Otherwise nothing is written, [`Error::is_stale`](crate::FlushError::is_stale), and the error has the key and both
versions."
    };
    (changes) => {
        concat!(
            "\n",
            $crate::documentation!(circles),
            " With a foreign key that is declared `#[ordid(parent, deferrable)]` this is not necessary on \
             PostgreSQL and SQLite, which then check it at COMMIT.\n\n",
            $crate::documentation!(updates),
            " PostgreSQL and SQLite (from 3.33 on) take many rows an `UPDATE`, and a value arrives as by an \
             `INSERT`. MySQL and MariaDB are sent one for each row. From 100 rows of a table on, or 1,001 on \
             PostgreSQL, the rows go through a temporary table, if the server lets the flush make one: see \
             [`EngineProfile::temporary_tables`](ordid_sql::EngineProfile::temporary_tables). `flush_in` makes none. \
             Two rows cannot exchange unique values, since these are checked row by row.\n"
        )
    };
    (flush) => {
        "\
Writes everything in one transaction of its own, and is empty afterwards. If it fails, nothing is written and
nothing is lost: the same entities with the same keys are there to be flushed again."
    };
    (retries) => {
        "\
# Retries

A failure that may pass on the same connection ([`is_transient`](crate::FlushError::is_transient)), such as a deadlock or
a serialization failure, is rolled back and tried again, with the same keys, as often as
[`with_retry`](Self::with_retry) says. A lost connection ([`is_connection_lost`](crate::FlushError::is_connection_lost))
ends the flush: connect anew, and flush again, or use [`flush_with`](Self::flush_with), which does that itself.

If the answer to COMMIT is lost ([`is_commit_unknown`](crate::FlushError::is_commit_unknown)), the rows may be there.
So the next flush begins by asking the database, and sends the rows again only if they are not there. It looks for one
of them by its key, as they are there all or none. A flush with other changes looks for its marker row instead, in
the table that [`flushes_table`](crate::flushes_table) declares, as does any flush [`with_record`](Self::with_record)
and one that inserts only rows which the database would take twice, or whose keys others may write. If entities were added, updated or deleted in between, the flush fails and sends nothing: flush again before that.

While the outcome of a COMMIT is unknown, statements wait for locks for 10 s at most on PostgreSQL, MySQL, MariaDB and SQL
Server, since the older transaction may hold the keys for hours. Each server but PostgreSQL keeps such a bound for the
session, so the flush sets the session's own value again; a session whose flush is dropped may keep the bound. [`with_deadline`](Self::with_deadline) bounds all attempts and
waits together."
    };
    (flush_with) => {
        "\
A lost connection does not end this flush: what was not committed is sent again over another one, with the
same keys. If the answer to COMMIT is lost, the flush first asks the database, over another connection, whether the rows
are there. Each connection that is lost and each that cannot be made counts as an attempt of
[`with_retry`](Self::with_retry)."
    };
    (flush_in) => {
        "\
Writes everything inside an open transaction, in a savepoint: if it fails, the transaction is as before,
unless [`is_transaction_over`](crate::FlushError::is_transaction_over) says that the server has ended it.
The entities stay until [`clear`](Self::clear), since only the caller knows when the transaction is
committed.

Fields under `#[ordid(returning)]` are not filled, for the same reason.

It is never tried again, since what came before it in the transaction would have to be repeated, too:
most databases end the whole transaction at a deadlock.

Constraints that the database checks at COMMIT fail in your commit, not here. If the flush had to defer
them ([`FlushPlan::defers`](ordid_sql::FlushPlan::defers)), all that can be deferred stay so until then.
"
    };
    (sharded) => {
        concat!(
            $crate::documentation!(sharded_parts),
            "\n\nWhat must be written together belongs to one shard: route it by one key. Where that cannot be, there is \
             [`two_phase_commit`](Self::two_phase_commit) on PostgreSQL, and through SQLx and mysql_async also on MySQL and MariaDB, which has its \
             price.\n\n",
            $crate::documentation!(sharded_parents),
        )
    };
    (two_phase_commit) => {
        "\
Commits the rows of all shards together: either all of them are written, once, or none. All shards have to be PostgreSQL
with `max_prepared_transactions` above 0 or, through SQLx or mysql_async, MySQL or MariaDB with InnoDB, and to have the table
`ordid_flushes`. The name, of at most 16 letters, digits, `_` or `-`, is that of this set of databases: programs that flush to
the same databases in the same order give the same name, and no others do. On MySQL and MariaDB, no others on the same server
do: ids of prepared transactions are the server's there, not the database's.

# What it promises

- `Ok`: all rows of all shards are committed. An error that is not
  [`is_commit_unknown`](crate::FlushError::is_commit_unknown): nothing is written on any shard, and nothing will be.
- If the flush is decided and a shard cannot be reached, the error [`is_prepared`](crate::FlushError::is_prepared), and
  also `is_commit_unknown`, as not all rows are there. If the answer to the COMMIT that decides was lost, it only
  `is_commit_unknown`. Either way flush again, or let
  `recover_prepared` end it.
- If a person rolls back what a shard has prepared for a flush that is committed, the error `is_commit_unknown` and names
  it. Flushing again commits the other shards, and then writes the rows of that one.
- A flush that is dropped, by a client that disconnects or a `select!`, leaves prepared transactions, or is decided and not
  finished on each shard. Only the next flush of the same unit of work or `recover_prepared` ends it.
- If the program dies, its prepared transactions stay in the databases until they are recovered. What is
  recovered is what was decided. No file is needed, and any program that reaches the databases can do it.
- It is atomic, not isolated: whoever reads while the shards commit may find the rows of one and not yet those of another.

# What it costs

- A prepared transaction holds its locks and keeps `VACUUM` from removing rows, also while its program is gone. So run
  `recover_prepared` when a program starts and every few minutes, and keep an eye on `prepared_orphans`. Run
  it at least twice a day: what is older than half a day, and whose decision is not found, is left to a person, as
  `remove_old_markers` removes marker rows after a day. A flush that takes longer than half a day to decide writes nothing.
- The first shard with rows is written after all others are prepared. So the flush takes about twice as long, and each
  other shard writes to its log twice.
- Two flushes that wait for each other on different shards are not seen by any database as a deadlock. So a statement
  waits for a lock for 10 s at most, or less if the session is set so, and is tried again.
- Rows of one shard alone are committed as without it.

# MySQL and MariaDB

Their transactions are prepared by the statements of XA, which SeaORM leaves no way to send: there it is an error before
anything is sent. Diesel sends them, but reads the answer to every query through a prepared statement, and MySQL has no
prepared `XA RECOVER`: through Diesel the databases have to be MariaDB 10.6 or later, and on MySQL it is an error before rows
are sent. The flush also has to make its connections, or take them from a pool, as by `flush_with`. A mixed set of PostgreSQL
and MySQL is not possible either, as SQLx has one type for each.

- MySQL needs the privilege `XA_RECOVER_ADMIN` to list prepared transactions (`GRANT XA_RECOVER_ADMIN ON *.* TO ..`), and a
  flush asks for it before it sends rows. MariaDB needs none.
- MariaDB, and MySQL before 8.0.29 or with `xa_detach_on_prepare=OFF`, keep a prepared transaction for its connection. So each
  flush closes the connections of all shards but the first one, and opens others.
- A crash may lose a COMMIT that the server has confirmed if `innodb_flush_log_at_trx_commit` is not 1, its default; with a
  binary log, also if `sync_binlog` is not 1, which is MySQL's default, but MariaDB's is 0. If it loses the decision, and
  other shards have committed their part, the rows of those shards alone are written. These settings are those of the whole
  server, so a flush cannot change them. After a crash, a MariaDB server with a binary log may also not have what
  it had prepared; the tests kill servers without one.
- Statements wait for locks for `innodb_lock_wait_timeout`, 50 s by default. A prepared transaction keeps purge from
  removing old versions of rows.
- Galera has no XA. Group Replication, TiDB and Vitess are refused by their profiles: it was not tried there. A Galera node
  under the usual profile refuses `XA START`.
- If several shards are databases of one server, a recovery given these databases in another order is refused only if the
  decision shows it: give them in the order of the flush.

It does not go with `in_chunks` and `without_record`, nor with connections inside a test's transaction.
"
    };
    (prepared_orphans) => {
        "\
Lists the transactions that flushes with [`two_phase_commit`](crate::ShardedUnitOfWork::two_phase_commit) under this name
have prepared and not ended, in the order of the databases, which are those of the flushes in the same order. A flush that
is under way has some, too: look at their age.
"
    };
    (recover_prepared) => {
        "\
Ends the prepared transactions of flushes with [`two_phase_commit`](crate::ShardedUnitOfWork::two_phase_commit) under this
name that began so long ago: commits those of flushes that are committed, and rolls back the others. The databases are those
of the flushes, in the same order.

Run it when a program starts, and every few minutes. Several programs may do so at once, also while others flush: of a
flush that has not decided yet it sees to it that it never will, so that its flush fails and writes nothing. So let
`older_than` be longer than a flush takes, five minutes for example: with its retries and waits for locks, a flush can take
two.

If a transaction cannot be ended, the others are all the same, and the first error is returned after that.

A transaction that is more than half a day old and whose flush has no marker row is left alone, as nobody knows what
was decided: [`Recovered::left`](ordid_sql::Recovered::left).
"
    };
    (sharded_parts) => {
        "\
New entities of which each goes to one of several databases, split by key: a [`UnitOfWork`] for each shard
of a [`Sharding`](ordid_sql::Sharding).

# What is atomic

- **One shard's part is**: its rows are one transaction of that database, all of them or none.
- **The whole is not.** Each part is committed by itself, in no order. If one fails, the others are
  committed all the same; whoever reads meanwhile may find the rows of one shard and not yet those of
  another.
- **What failed stays**, with the same keys, and what was committed is taken out. So flushing again sends
  what is left, and when that succeeds, every row is there exactly once. A part whose COMMIT had no answer,
  and of which the database could not be asked, stays, too, and is asked for then:
  [`Error::is_commit_unknown`](crate::FlushError::is_commit_unknown) of its error says so."
    };
    (sharded_parents) => {
        "\
# What the databases cannot check

A foreign key ends at its database, so a row's parents have to be on its shard; the database refuses a row
whose parent is elsewhere.

Rows to which those of all shards refer, such as airlines or countries, are on each of them: of a type that
the sharding has [everywhere](ordid_sql::Sharding::everywhere), each shard gets a copy of what is added,
updated or deleted, under the same key. As the whole is not atomic, the copies differ where a part failed,
until flushing again succeeds.
"
    };
    (sharded_errors) => {
        "
# Errors

What [`plan`](Self::plan) finds, and another number of databases than of shards: then nothing was sent to
any of them. Otherwise [`Error::shards`](crate::FlushError::shards) says what became of each: the parts of the
shards that succeeded are committed, and those of the others are there to be flushed again. With
[`two_phase_commit`](Self::two_phase_commit) all parts are committed or none, as the text says.
"
    };
    (flush_errors) => {
        "\
# Errors

What [`plan`](Self::plan) finds, before anything is sent: among it a key that was added twice. Any other error says what
failed, in which table and chunk, and with which row's key. To find the row, what was sent is sent once more up to it, in a
transaction that is rolled back."
    };
    (flush_in_errors) => {
        "\
# Errors

As [`flush`](Self::flush), but never one that [`is_commit_unknown`](crate::FlushError::is_commit_unknown): that question
belongs to your commit."
    };
    (unknown_commits) => {
        "\
If the answer to COMMIT is lost, the rows may be there. So the flush looks for one of them by its key, over another
connection, and sends the rows again only if it is not there: they are there all or none. A flush with other changes looks
for its marker row instead, in the table that [`flushes_table`](crate::flushes_table) declares, and so does every flush
[`with_record`](Self::with_record), which also says what happens to rows that the database would take twice."
    };
    (journaled) => {
        "\
A [`Journal`](ordid_sql::Journal) for [`UnitOfWork::with_journal`], and the entity types whose rows it keeps.

Rows go through serde, so what serde leaves out or writes with less precision is lost with the process.
Such a loss is found before anything is sent: each row is read back and its columns are compared, and a column
that differs is an error. SQLx, tokio-postgres, mysql_async, rusqlite, tiberius, and Diesel on PostgreSQL, MySQL and MariaDB also tell
what they would send of both, so that a type whose own `Serialize` hides something, as of a secret, is an error. Diesel on
SQLite and Oracle do
not tell: with them, keep no rows of such types in a journal.
"
    };
    (flushes_table) => {
        "\
Returns the `CREATE TABLE` of `ordid_flushes`. A flush with updates, upserts or deletes writes a marker row to it, in
its own transaction: if the answer to COMMIT is lost, that row shows whether the flush was committed. A
flush that only inserts does so [on request](crate::UnitOfWork::with_record), and where the database would take its
rows twice or others may write their keys.

Run it once, as a migration or by [`create_flushes_table`](crate::create_flushes_table), and call
[`remove_old_markers`](crate::remove_old_markers) once in a while. `flushed_at` is for people; it has the time of UTC on
MySQL and SQL Server. Where no table can be made, there is [`without_record`](crate::UnitOfWork::without_record).
"
    };
    (create_flushes_table) => {
        "\
Creates the table `ordid_flushes` if there is none: [`flushes_table`](crate::flushes_table), without a migration. Call
it when a program is deployed or starts; several may do so at the same time, on SQLite with a busy timeout. It needs the privilege to create a table,
and no flush calls it.
"
    };
    (remove_old_markers) => {
        "\
Deletes the rows of `ordid_flushes` that are more than a day old, and returns how many there were. It deletes 1,000 in
each transaction. If one of them fails, those before it stay deleted.

Call it once a day or so, from one program or several. A marker row is looked for by the flush that wrote it, and by the
next flush of the same unit of work if a COMMIT is unknown: a matter of seconds or minutes. So a day is safe, unless a
unit of work with an unknown COMMIT or the journal of a killed process is kept for longer than half a day; the other half
is for clocks that differ. Flush those first: without its marker row, such a flush may end with
[`is_commit_unknown`](crate::FlushError::is_commit_unknown), and sends nothing again.

A row's age is that of its key, a UUID of version 7 which the flushing program made by its clock, by the clock of this
program. The primary key has the old rows next to each other, so the statement reads no others, and flushes do not wait
for it: their rows come behind.
"
    };
    (detect_engine) => {
        "\
Asks the server which engine it is, and returns its profile, for [`with_engine`](crate::UnitOfWork::with_engine): CockroachDB,
YugabyteDB, Aurora DSQL and Citus, which speak the protocol of PostgreSQL; TiDB, Vitess, Galera and MySQL Group Replication,
which speak that of MySQL. For any other server it returns the library's own profile.

Ask once, when the program starts: it takes a transaction with two queries. A pooler or a proxy is not found, since the server
behind it answers: give its profile yourself, such as
[`PGBOUNCER`](ordid_sql::EngineProfile::PGBOUNCER). It was run on PostgreSQL, MariaDB, MySQL, Galera and a replication
group. The other engines were not run: their versions and tables are those of their documentation. A server that has left its
group is taken for a member as long as it is set up as one.
"
    };
    (watching) => {
        "\
# Watching flushes

With the feature `tracing`, a flush is a span `ordid.flush` of the target `ordid`, at INFO, with its `tables`, `rows`
and `retries`. It says at WARN why it is tried again. With `metrics`, the histogram `ordid_flush_rows` has the rows of
each committed flush. The counter `ordid_flush_retries_total` has the retries by their `cause`, such as `transient` or
`lost`, and `ordid_flush_failures_total` the flushes that returned an error of the database, by what they `wrote`: `nothing` or
`unknown`. None of these contains keys or values."
    };
    (leases) => {
        "\
# Nodes that nobody else has

[`SqlLease`] leases nodes from a table, for schemes with a node in their keys. It uses connections of its own, outside
of the program's transactions: see [`ordid_core::coordination`] for what leases promise."
    };
}
