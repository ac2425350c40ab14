//! Paragraphs that the documentation of every adapter contains, for `#[doc = ..]`.
//!
//! An adapter adds its own sentences. The links are resolved at the item that has the documentation: its module has
//! `UnitOfWork` in scope, and its crate has `FlushError` at the root. If a text does not end with a new line, the
//! adapter's next sentence continues its last paragraph.

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
Collects entities, and inserts, updates and deletes their rows in one transaction. Parents are inserted before their
children, and deleted after them. A statement has many rows of a table, in the order of its stored keys."
    };
    (circles) => {
        "\
# Rows that refer to each other

Tables may refer to each other, and rows to rows of their own table. If rows refer to each other in a
circle, one of them is inserted with NULL in a nullable foreign key, and an `UPDATE` sets this foreign key after
all inserts. Before such rows are deleted, it is set to NULL. If a circle has no nullable foreign key, the flush
fails before anything is sent, and the error names the circle."
    };
    (updates) => {
        "\
# Updates and deletes

Every row that is updated or deleted must exist. If one is missing, nothing is written
([`Error::is_missing_row`](crate::FlushError::is_missing_row)). A flush first inserts, then updates, then deletes. So a
new row cannot take a unique value that an update or a delete of the same flush frees.

`update` writes all columns of a row, including those that somebody else has changed since the row was read.
`update_columns` writes only the columns that you name: `work.update_columns(order, (Order::total, Order::note))`, with
`#[ordid(columns)]` at the struct.

A field under `#[ordid(version)]`, an integer or a timestamp, detects whether somebody else has changed the row since it
was read. An update or a delete takes the row only if it still has the version that was read, and an update writes the
next version. If the row has another version, nothing is written. The error
([`Error::is_stale`](crate::FlushError::is_stale)) has the key and both versions."
    };
    (changes) => {
        concat!(
            "\n",
            $crate::documentation!(circles),
            " A foreign key that is declared `#[ordid(parent, deferrable)]` needs no NULL on PostgreSQL and \
             SQLite, which then check it at COMMIT.\n\n",
            $crate::documentation!(updates),
            " On PostgreSQL and SQLite (from 3.33 on), one `UPDATE` takes many rows, and stores values as an \
             `INSERT` does. On MySQL and MariaDB, each row has its own `UPDATE`. \
             On MySQL and MariaDB from 100 rows of a table on, and on PostgreSQL from 1,001, the rows go through a temporary table, if the server lets the flush make one: see \
             [`EngineProfile::temporary_tables`](ordid_sql::EngineProfile::temporary_tables). `flush_in` makes none. \
             Two rows cannot exchange unique values, since these are checked row by row.\n"
        )
    };
    (flush) => {
        "\
Writes everything in one transaction of its own, and empties the unit of work. If the flush fails, nothing is written,
and the unit of work still has the same entities with the same keys, so it can be flushed again."
    };
    (retries) => {
        "\
# Retries

A failure that may pass on the same connection ([`is_transient`](crate::FlushError::is_transient)), such as a deadlock or
a serialization failure, is rolled back and tried again, with the same keys, as often as
[`with_retry`](Self::with_retry) says. A lost connection ([`is_connection_lost`](crate::FlushError::is_connection_lost))
ends the flush: connect anew, and flush again, or use [`flush_with`](Self::flush_with), which does that itself.

If the answer to COMMIT is lost ([`is_commit_unknown`](crate::FlushError::is_commit_unknown)), the rows may be there.
So the next flush first asks the database, and sends the rows again only if they are not there. It looks for one row by
its key, since either all rows were committed or none. A flush that updates, upserts or deletes looks for its marker row
instead, in the table that [`flushes_table`](crate::flushes_table) declares. So does any flush
[`with_record`](Self::with_record), and one that only inserts rows which the database would accept twice, or whose keys
others may write. If entities are added, updated or deleted in between, the next flush fails and sends nothing: flush
again before you change anything.

While the outcome of a COMMIT is unknown, statements wait for locks for 10 s at most on PostgreSQL, MySQL, MariaDB and
SQL Server, since the older transaction may hold the keys for hours. On all of these but PostgreSQL the bound is a
setting of the session, so the flush restores the session's own value afterwards. If the flush is dropped, the session
may keep the bound. [`with_deadline`](Self::with_deadline) bounds all attempts and waits together."
    };
    (flush_with) => {
        "\
If the connection is lost, this flush goes on: it sends the uncommitted rows again over another connection, with the
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

The flush is never retried: most databases end the whole transaction at a deadlock, so the earlier statements of the
transaction would have to be repeated, too.

Constraints that the database checks at COMMIT fail in your commit, not here. If the flush had to defer
them ([`FlushPlan::defers`](ordid_sql::FlushPlan::defers)), all deferrable constraints stay deferred until your commit.
"
    };
    (sharded) => {
        concat!(
            $crate::documentation!(sharded_parts),
            "\n\nWhat must be written together belongs to one shard: route it by one key. Where that cannot be, there is \
             [`two_phase_commit`](Self::two_phase_commit) on PostgreSQL, through SQLx and mysql_async also on MySQL and \
             MariaDB, and through Diesel on MariaDB. It has its price.\n\n",
            $crate::documentation!(sharded_parents),
        )
    };
    (two_phase_commit) => {
        "\
Commits the rows of all shards together: either all of them are written, once, or none. All shards have to be
PostgreSQL with `max_prepared_transactions` above 0 or, through SQLx or mysql_async, MySQL or MariaDB with InnoDB, or,
through Diesel, MariaDB; and they have to have the table `ordid_flushes`. The name, of at most 16 letters, digits, `_` or `-`, identifies this set of
databases. Programs that flush to the same databases in the same order give the same name, and no other programs use
it. On MySQL and MariaDB, no other program on the same server may use it, since the ids of prepared transactions are
shared by all databases of the server.

# What it promises

- `Ok`: all rows of all shards are committed. An error that is not
  [`is_commit_unknown`](crate::FlushError::is_commit_unknown): nothing is written on any shard, and nothing will be.
- If the flush is decided but a shard cannot be reached, the error is [`is_prepared`](crate::FlushError::is_prepared),
  and also `is_commit_unknown`, since not all rows are there. If the answer to the deciding COMMIT was lost, the error
  is only `is_commit_unknown`. In both cases, flush again, or let `recover_prepared` end the flush.
- If somebody rolls back the prepared transaction of a shard although the flush is committed, the error is
  `is_commit_unknown` and names that transaction. The next flush commits the other shards, and then writes the rows of
  this shard.
- If a flush is dropped, because a client disconnects or by a `select!`, it leaves prepared transactions, or is decided
  but not finished on each shard. Only the next flush of the same unit of work or `recover_prepared` ends it.
- If the program dies, its prepared transactions stay in the databases until they are recovered. The recovery follows
  the flush's decision. It needs no file, and any program that reaches the databases can run it.
- The flush is atomic, not isolated: a reader may see the rows of one shard before those of another are committed.

# What it costs

- A prepared transaction holds its locks and keeps `VACUUM` from removing rows, also while its program is gone. So run
  `recover_prepared` when a program starts and every few minutes, and keep an eye on `prepared_orphans`. Run it at
  least twice a day: it leaves a prepared transaction to a person if this is older than half a day and the decision is
  not found, since `remove_old_markers` removes marker rows after a day. A flush that takes longer than half a day to
  decide writes nothing.
- The first shard with rows is written after all others are prepared. So the flush takes about twice as long, and each
  other shard writes to its log twice.
- If two flushes wait for each other on different shards, no database sees a deadlock. So a statement waits for a lock
  for at most 10 s, or less if the session has a shorter limit, and is then retried.
- If only one shard has rows, they are committed as without two-phase commit.

# MySQL and MariaDB

Their transactions are prepared by XA statements. SeaORM has no way to send these, so it returns an error before
anything is sent. Diesel sends them, but reads the answer to every query through a prepared statement, and MySQL has no
prepared `XA RECOVER`: through Diesel the databases have to be MariaDB 10.6 or later, and on MySQL it is an error before rows
are sent. The flush also has to make its connections, or take them from a pool, as by `flush_with`. A mixed set of PostgreSQL
and MySQL is not possible either, as SQLx has one type for each.

- MySQL needs the privilege `XA_RECOVER_ADMIN` to list prepared transactions (`GRANT XA_RECOVER_ADMIN ON *.* TO ..`), and a
  flush asks for it before it sends rows. MariaDB needs none.
- MariaDB, and MySQL before 8.0.29 or with `xa_detach_on_prepare=OFF`, keep a prepared transaction for its connection. So each
  flush closes the connections of all shards but the first one, and opens others.
- A crash may lose a COMMIT that the server has confirmed if `innodb_flush_log_at_trx_commit` is not 1, its default;
  with a binary log, also if `sync_binlog` is not 1, which is MySQL's default, but MariaDB's is 0. If the server loses
  the decision, and other shards have committed their part, only the rows of those shards are written. These settings
  apply to the whole server, so a flush cannot change them. After a crash, a MariaDB server with a binary log may also
  have lost its prepared transactions; the tests kill only servers without a binary log.
- Statements wait for locks for at most 10 s, or for `innodb_lock_wait_timeout` if that is less. A prepared transaction keeps purge from
  removing old versions of rows.
- Galera has no XA. Group Replication, TiDB and Vitess are refused by their profiles: it was not tried there. A Galera node
  under the usual profile refuses `XA START`.
- If several shards are databases of one server, a recovery given these databases in another order is refused only if the
  decision shows it: give them in the order of the flush.

It cannot be combined with `in_chunks` or `without_record`, nor with connections inside a test transaction.
"
    };
    (prepared_orphans) => {
        "\
Lists the transactions that flushes with [`two_phase_commit`](crate::ShardedUnitOfWork::two_phase_commit) under this name
have prepared and not ended, in the order of the databases. Give the databases in the order of the flushes. A running
flush has prepared transactions, too: look at their age.
"
    };
    (recover_prepared) => {
        "\
Ends the prepared transactions of flushes with [`two_phase_commit`](crate::ShardedUnitOfWork::two_phase_commit) under
this name that began at least `older_than` ago: commits those of committed flushes, and rolls back the others. Give the
databases in the order of the flushes.

Run it when a program starts, and every few minutes. Several programs may run it at once, also while others flush. If a
flush has not decided yet, the recovery decides against it, so the flush fails and writes nothing. So choose an
`older_than` that is longer than a flush takes, for example five minutes: with its retries and waits for locks, a flush
can take two.

If a transaction cannot be ended, the recovery still ends the others, and then returns the first error.

A transaction that is more than half a day old and whose flush has no marker row is left alone, as nobody knows what
was decided: [`Recovered::left`](ordid_sql::Recovered::left).
"
    };
    (sharded_parts) => {
        "\
Distributes entities over several databases by their keys, with a [`UnitOfWork`] for each shard of a
[`Sharding`](ordid_sql::Sharding).

# What is atomic

- **The part of one shard is atomic**: one transaction of its database writes all of its rows or none.
- **The whole is not.** Each part is committed by itself, in no particular order. If one part fails, the others are
  committed nevertheless. Meanwhile a reader may see the rows of one shard and not yet those of another.
- **Failed parts stay** in the unit of work, with the same keys, and committed parts are removed. So the next flush
  sends only the rest, and when it succeeds, every row is there exactly once. If a COMMIT had no answer and the
  database could not be asked, its part stays, too, with the error
  [`Error::is_commit_unknown`](crate::FlushError::is_commit_unknown), and the next flush asks the database first."
    };
    (sharded_parents) => {
        "\
# What the databases cannot check

A foreign key ends at its database, so a row's parents have to be on its shard; the database refuses a row
whose parent is elsewhere.

Rows that are referred to on all shards, such as airlines or countries, have to be on each shard. If the sharding
declares their type [everywhere](ordid_sql::Sharding::everywhere), each shard gets a copy of what is added, updated or
deleted, under the same key. Since the whole is not atomic, the copies differ after a part has failed, until the next
flush succeeds.
"
    };
    (sharded_errors) => {
        "
# Errors

Returns the errors of [`plan`](Self::plan), and an error if the numbers of databases and shards differ: then nothing was
sent to any database. For other errors, [`Error::shards`](crate::FlushError::shards) has the result of each shard: the
parts that succeeded are committed, and the others stay in the unit of work, to be flushed again. With
[`two_phase_commit`](Self::two_phase_commit), all parts are committed or none, as its documentation says.
"
    };
    (flush_errors) => {
        "\
# Errors

Returns the errors of [`plan`](Self::plan) before anything is sent, for example if a key was added twice. Any other
error says what failed, in which table and chunk, and with which row's key. To find the row, the flush sends the
statements again up to this row, in a transaction that is rolled back."
    };
    (flush_in_errors) => {
        "\
# Errors

Returns the errors of [`flush`](Self::flush), but never [`is_commit_unknown`](crate::FlushError::is_commit_unknown),
since you commit the transaction."
    };
    (unknown_commits) => {
        "\
If the answer to COMMIT is lost, the rows may be there. So the flush looks for one row by its key, over another
connection, and sends the rows again only if this row is missing, since either all rows were committed or none. A flush
that updates, upserts or deletes looks for its marker row instead, in the table that
[`flushes_table`](crate::flushes_table) declares. So does every flush [`with_record`](Self::with_record); there you also
find what happens to rows that the database would accept twice."
    };
    (journaled) => {
        "\
A [`Journal`](ordid_sql::Journal) for [`UnitOfWork::with_journal`], and the entity types whose rows it keeps.

Rows go through serde, so a value that serde leaves out or writes with less precision would be lost with the process.
The flush finds such a loss before anything is sent: it reads each row back, compares the columns, and fails if one
differs. With SQLx, tokio-postgres, mysql_async, rusqlite, tiberius, and Diesel on PostgreSQL, MySQL and MariaDB, it
also compares what would be sent of both rows, so a type whose own `Serialize` hides something, such as a secret, is an
error. With Diesel on SQLite and with Oracle this comparison is not possible: keep no rows of such types in a journal
there.
"
    };
    (flushes_table) => {
        "\
Returns the `CREATE TABLE` of `ordid_flushes`. A flush with updates, upserts or deletes writes a marker row to it, in
its own transaction: if the answer to COMMIT is lost, that row shows whether the flush was committed. A
flush that only inserts writes one [on request](crate::UnitOfWork::with_record), or if the database would accept its
rows twice, or if others may write their keys.

Run it once, as a migration or by [`create_flushes_table`](crate::create_flushes_table), and call
[`remove_old_markers`](crate::remove_old_markers) once in a while. The column `flushed_at` is only for people to read;
on MySQL and SQL Server its times are UTC. If you cannot create a table, use
[`without_record`](crate::UnitOfWork::without_record).
"
    };
    (create_flushes_table) => {
        "\
Creates the table `ordid_flushes` if it does not exist, as [`flushes_table`](crate::flushes_table) declares it, without
a migration. Call this function when a program is deployed or starts. Several programs may call it at the same time, on
SQLite with a busy timeout. It needs the privilege to create a table, and no flush calls it.
"
    };
    (remove_old_markers) => {
        "\
Deletes the rows of `ordid_flushes` that are more than a day old, and returns how many there were. It deletes 1,000 in
each transaction. If one of them fails, those before it stay deleted.

Call it once a day or so, from one program or several. The flush that wrote a marker row looks for it, and if the
COMMIT is unknown, so does the next flush of the same unit of work. This is a matter of seconds or minutes. So a day is
safe, unless a unit of work with an unknown COMMIT or the journal of a killed process is kept for longer than half a
day; the other half allows for clocks that differ. Flush those first: without its marker row, such a flush may end with
[`is_commit_unknown`](crate::FlushError::is_commit_unknown), and sends nothing again.

A row's key is a UUID of version 7, with the time at which the flushing program made it by its own clock. The row's age
is the time since then by the clock of this program. In the primary key's index the old rows are next to each other, so
the statement reads no other rows. Flushes do not wait for it, since their rows come after the old ones.
"
    };
    (detect_engine) => {
        "\
Asks the server which engine it is, and returns the engine's profile, for
[`with_engine`](crate::UnitOfWork::with_engine). It detects CockroachDB, YugabyteDB, Aurora DSQL and Citus, which speak
the protocol of PostgreSQL, and TiDB, Vitess, Galera and MySQL Group Replication, which speak the protocol of MySQL.
For any other server it returns the library's own profile.

Call it once, when the program starts: it runs a transaction with two queries. It does not detect a pooler or a proxy,
since the server behind it answers: give its profile yourself, such as
[`PGBOUNCER`](ordid_sql::EngineProfile::PGBOUNCER). The detection was tested on PostgreSQL, MariaDB, MySQL, Galera and
a replication group. It was not tested on the other engines: their versions and tables are taken from their
documentation. A server that has left its group counts as a member as long as it is configured as one.
"
    };
    (watching) => {
        "\
# Watching flushes

With the feature `tracing`, a flush is a span `ordid.flush` of the target `ordid`, at INFO, with its `tables`, `rows`,
`retries` and `outcome`: `ok`, `nothing`, `unknown`, or `some_chunks` if a flush in chunks failed behind them. An event at WARN
says why the flush is retried. With `metrics`, the histograms `ordid_flush_rows` and `ordid_flush_seconds` have the rows and the
time of each committed flush, and of each chunk. The counter `ordid_flush_retries_total` counts the retries by their `cause`, such as
`transient` or `lost`. The counter `ordid_flush_failures_total` counts the flushes that returned an error of the
database, by what they `wrote`: `nothing`, `unknown`, or `some_chunks`. None of these contains keys or values."
    };
    (leases) => {
        "\
# Nodes that nobody else has

[`SqlLease`] leases nodes from a table, for schemes with a node in their keys. It uses connections of its own, outside
of the program's transactions: see [`ordid_core::coordination`] for what leases promise."
    };
}
