//! Settings of servers as people have them.

/// A setting of sessions that begin later.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name in documents.
    pub name: &'static str,
    /// The statement that sets it.
    pub set: &'static str,
    /// The statement that takes it back.
    pub reset: &'static str,
}

/// Of MySQL and `MariaDB`. They hold for the whole server.
pub mod mysql {
    use super::Setting;

    /// The server commits no statement by itself.
    pub const NO_AUTOCOMMIT: Setting = Setting {
        name: "autocommit=0",
        set: "SET GLOBAL autocommit = 0",
        reset: "SET GLOBAL autocommit = 1",
    };
    /// A query sees rows of transactions that are still open.
    pub const READ_UNCOMMITTED: Setting = Setting {
        name: "transaction_isolation=READ-UNCOMMITTED",
        set: "SET GLOBAL TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        reset: "SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    };
    /// A query locks the rows that it reads.
    pub const SERIALIZABLE: Setting = Setting {
        name: "transaction_isolation=SERIALIZABLE",
        set: "SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        reset: "SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    };
    /// The server cuts values that do not fit.
    pub const NOT_STRICT: Setting = Setting {
        name: "sql_mode without strict",
        set: "SET GLOBAL sql_mode = ''",
        reset: "SET GLOBAL sql_mode = DEFAULT",
    };
}

/// Of PostgreSQL. They hold for the database of the connection.
pub mod postgres {
    use super::Setting;

    /// Says something of the database that the connection is to.
    macro_rules! alter {
        ($setting:literal) => {
            concat!(
                "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I ",
                $setting,
                "', current_database()); END $$"
            )
        };
    }

    /// Takes back what is set.
    pub const RESET: &str = alter!("RESET ALL");

    /// The server may refuse a COMMIT because of what others have read.
    pub const SERIALIZABLE: Setting = Setting {
        name: "default_transaction_isolation=serializable",
        set: alter!("SET default_transaction_isolation = serializable"),
        reset: RESET,
    };
    /// The server refuses each write.
    pub const READ_ONLY: Setting = Setting {
        name: "default_transaction_read_only=on",
        set: alter!("SET default_transaction_read_only = on"),
        reset: RESET,
    };
    /// The server gives up a statement that takes three seconds.
    pub const STATEMENT_TIMEOUT: Setting = Setting {
        name: "statement_timeout=3s",
        set: alter!("SET statement_timeout = 3000"),
        reset: RESET,
    };
    /// The server ends a transaction whose client is silent for half a second.
    pub const IDLE_TIMEOUT: Setting = Setting {
        name: "idle_in_transaction_session_timeout=500ms",
        set: alter!("SET idle_in_transaction_session_timeout = 500"),
        reset: RESET,
    };
    /// A crash may lose what was committed.
    pub const ASYNCHRONOUS: Setting = Setting {
        name: "synchronous_commit=off",
        set: alter!("SET synchronous_commit = off"),
        reset: RESET,
    };
}
