//! The engines, by the names that users write.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Engine {
    /// PostgreSQL.
    #[value(alias = "postgresql")]
    Postgres,
    /// MySQL.
    Mysql,
    /// MariaDB.
    Mariadb,
    /// SQLite.
    Sqlite,
    /// SQL Server.
    #[value(alias = "mssql")]
    SqlServer,
    /// Oracle.
    Oracle,
}

impl Engine {
    /// Returns the vendor's name of it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
            Self::Mariadb => "MariaDB",
            Self::Sqlite => "SQLite",
            Self::SqlServer => "SQL Server",
            Self::Oracle => "Oracle",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
