//! Errors as the engines document them.

use super::Refusal;

const fn postgres(sqlstate: &'static str, message: &'static str) -> Refusal {
    Refusal {
        sqlstate,
        number: 0,
        message,
    }
}

const fn mysql(number: u16, sqlstate: &'static str, message: &'static str) -> Refusal {
    Refusal {
        sqlstate,
        number,
        message,
    }
}

/// PostgreSQL: after a statement has failed.
pub const IN_FAILED_TRANSACTION: Refusal = postgres(
    "25P02",
    "current transaction is aborted, commands ignored until end of transaction block",
);

/// PostgreSQL: a statement that is not understood.
pub const SYNTAX: Refusal = postgres("42601", "syntax error at or near \"COPY\"");

/// PostgreSQL: the client has given a `COPY` up.
pub const CANCELED: Refusal = postgres("57014", "COPY from stdin failed: canceled by user");

/// PostgreSQL: a key is there.
pub const UNIQUE_VIOLATION: Refusal = postgres(
    "23505",
    "duplicate key value violates unique constraint \"pkey\"",
);

/// Aurora DSQL: "Unsupported PostgreSQL features".
pub const NO_COPY: Refusal = postgres("0A000", "unsupported statement: Copy");

/// PostgreSQL, and each engine behind its protocol: a statement ran into its time-out.
pub const STATEMENT_TIMEOUT: Refusal =
    postgres("57014", "canceling statement due to statement timeout");

/// CockroachDB: "Transaction Retry Error Reference".
pub const RETRY_SERIALIZABLE: Refusal = postgres(
    "40001",
    "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn \
     (RETRY_SERIALIZABLE - failed preemptive refresh due to conflicting locks on /Table/106/1): \"sql txn\"",
);

/// CockroachDB: "Common Errors and Solutions", result is ambiguous.
pub const RESULT_IS_AMBIGUOUS: Refusal = postgres(
    "40003",
    "result is ambiguous: error=rpc error: transport is closing",
);

/// YugabyteDB: "Transaction error codes".
pub const CONFLICTS: Refusal = postgres(
    "40001",
    "could not serialize access due to concurrent update (query layer retry isn't possible because this is not \
     the first command in the transaction. Consider using READ COMMITTED isolation level.)",
);

/// YugabyteDB: a tablet server did not answer in time.
pub const TIMED_OUT: Refusal = postgres(
    "XX000",
    "Timed out: UpdateTransaction RPC (request call id 7) to 10.0.0.2:9100 timed out after 10.000s",
);

/// YugabyteDB: the record of a transaction is gone.
pub const EXPIRED: Refusal = postgres("40001", "Transaction 5f2a expired or aborted by a conflict");

/// PostgreSQL, and a server behind its protocol: a file cannot be written.
pub const IO_ERROR: Refusal = postgres("58030", "could not write to file: Input/output error");

/// YugabyteDB and PostgreSQL.
pub const DEADLOCK_DETECTED: Refusal = postgres("40P01", "deadlock detected");

/// Aurora DSQL: "Concurrency control": a row has changed.
pub const OC000: Refusal = postgres(
    "40001",
    "change conflicts with another transaction, please retry: (OC000)",
);

/// Aurora DSQL: the schema has changed.
pub const OC001: Refusal = postgres(
    "40001",
    "schema has been updated by another transaction, please retry: (OC001)",
);

/// Aurora DSQL: "Cluster quotas and database limits".
pub const ROW_LIMIT: Refusal = postgres("54000", "transaction row limit exceeded");

/// Aurora DSQL: more than 100 new connections a second.
pub const RATE_EXCEEDED: Refusal = postgres("53400", "Unable to accept connection, rate exceeded.");

/// PostgreSQL behind Patroni: the old primary is shut down.
pub const ADMIN_SHUTDOWN: Refusal = postgres(
    "57P01",
    "terminating connection due to administrator command",
);

/// PostgreSQL behind Patroni, and Aurora: the address reaches a server that became a replica.
pub const READ_ONLY: Refusal =
    postgres("25006", "cannot execute INSERT in a read-only transaction");

/// A savepoint that is not there: on MySQL's protocol, too.
pub const NO_SAVEPOINT: Refusal = Refusal {
    sqlstate: "3B001",
    number: 1305,
    message: "savepoint \"ordid_flush\" does not exist",
};

/// MySQL: a key is there.
pub const DUPLICATE: Refusal = mysql(1062, "23000", "Duplicate entry 'x' for key 'PRIMARY'");

/// MySQL's deadlock, and what Galera says of a transaction that it has aborted.
pub const DEADLOCK: Refusal = mysql(
    1213,
    "40001",
    "Deadlock found when trying to get lock; try restarting transaction",
);

/// MySQL, behind Aurora's and RDS's addresses: the server that they reach has become a replica.
pub const MYSQL_READ_ONLY: Refusal = mysql(
    1290,
    "HY000",
    "The MySQL server is running with the --read-only option so it cannot execute this statement",
);

/// Galera: the node has lost its cluster, or is not in it yet.
pub const WSREP_NOT_READY: Refusal = mysql(
    1047,
    "08S01",
    "WSREP has not yet prepared node for application use",
);

/// MySQL Group Replication: another member was first, or this one leaves the group while it waits for the others.
pub const ROLLED_BACK_BY_PLUGIN: Refusal = mysql(
    3101,
    "40000",
    "Plugin instructed the server to rollback the current transaction.",
);

/// MySQL Group Replication: the member has left the group, or the transaction is larger than
/// `group_replication_transaction_size_limit`.
pub const HOOK_FAILED: Refusal = mysql(
    3100,
    "HY000",
    "Error on observer while running replication hook 'before_commit'.",
);

/// TiDB: "Error Codes and Troubleshooting".
pub const FOR_UPDATE_CONFLICT: Refusal = mysql(
    8002,
    "HY000",
    "[42] can not retry select for update statement",
);

/// TiDB, likewise.
pub const RETRY_LATER: Refusal = mysql(
    8022,
    "HY000",
    "Error: KV error safe to retry tikv restarts txn: Txn(Mvcc(TxnLockNotFound)) [try again later]",
);

/// TiDB, likewise.
pub const SCHEMA_CHANGED: Refusal = mysql(
    8028,
    "HY000",
    "Information schema is changed during the execution of the statement(for example, table definition may be updated \
     by other DDL ran in parallel). If you see this error often, try increasing `tidb_max_delta_schema_count`. \
     [try again later]",
);

/// TiDB, likewise.
pub const WRITE_CONFLICT: Refusal = mysql(
    9007,
    "HY000",
    "Write conflict, txnStartTS=416617006551793665, conflictStartTS=416617018650001409, \
     conflictCommitTS=416617023093080065, key={tableID=47, indexID=1, indexValues={string, }} primary=[]byte(nil) \
     [try again later]",
);

/// TiDB, likewise: the transaction is too large.
pub const TOO_LARGE: Refusal = mysql(8004, "HY000", "Transaction is too large, size: 104857800");

/// TiDB, likewise: its placement driver does not answer.
pub const PD_TIMEOUT: Refusal = mysql(9001, "HY000", "PD server timeout");

/// Vitess: "Errors", and `go/vt/vterrors`: a transaction that took more than 20 seconds.
pub const VITESS_ABORTED: Refusal = mysql(
    1105,
    "HY000",
    "target: shop.0.primary: vttablet: rpc error: code = Aborted desc = transaction 1625246880147384837: ended at \
     2024-11-26 13:20:45.123 UTC (exceeded timeout: 20s) (CallerID: app)",
);

/// Vitess: the shard's primary is gone.
pub const VITESS_UNAVAILABLE: Refusal = mysql(
    1105,
    "HY000",
    "target: shop.0.primary: vttablet: rpc error: code = Unavailable desc = error reading from server: EOF",
);

/// Vitess: MySQL's deadlock behind Vitess's number.
pub const VITESS_DEADLOCK: Refusal = mysql(
    1105,
    "HY000",
    "target: shop.-80.primary: vttablet: Deadlock found when trying to get lock; try restarting transaction \
     (errno 1213) (sqlstate 40001) (CallerID: app): Sql: \"insert into orders\"",
);

/// Vitess: a statement that it does not have.
pub const VITESS_UNSUPPORTED: Refusal = mysql(
    1105,
    "HY000",
    "VT12001: unsupported: multi-shard or vindex write statement",
);

/// Vitess: a query of more than 100,000 rows.
pub const VITESS_ROWS: Refusal = mysql(
    1105,
    "HY000",
    "target: shop.0.primary: vttablet: rpc error: code = ResourceExhausted desc = Row count exceeded 100000",
);
