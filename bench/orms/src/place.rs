//! Where the tables are, and how they are made anew: the same for all libraries.

use clap::ValueEnum;
use ordid_harness::Access;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};
use tempfile::TempDir;

use crate::{Result, orders::Orders};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
    Mariadb,
}

impl Engine {
    fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
        }
    }

    /// The parameters that one statement can have.
    pub(crate) const fn max_parameters(self) -> usize {
        match self {
            Self::Sqlite => 32_766,
            Self::Postgres | Self::Mariadb => 65_535,
        }
    }

    /// The types of keys, of codes and of texts.
    fn types(self) -> [&'static str; 3] {
        match self {
            Self::Sqlite => ["BLOB", "TEXT", "TEXT"],
            Self::Postgres => ["uuid", "text", "text"],
            Self::Mariadb => [
                "BINARY(16)",
                "VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin",
                "TEXT",
            ],
        }
    }

    fn key(self, bytes: [u8; 16]) -> String {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self {
            Self::Postgres => format!("'{digits}'"),
            Self::Sqlite | Self::Mariadb => format!("X'{digits}'"),
        }
    }

    /// Returns what brings the statistics up to date, and the disk to rest.
    fn settle(self) -> &'static str {
        match self {
            Self::Sqlite => "ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)",
            Self::Postgres => "VACUUM ANALYZE",
            Self::Mariadb => "ANALYZE TABLE customers",
        }
    }

    fn version(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "SELECT 'SQLite ' || sqlite_version() || ', a file, WAL, synchronous = NORMAL'"
            }
            Self::Postgres => {
                "SELECT split_part(version(), ' on ', 1) || ', fsync ' || current_setting('fsync')"
            }
            Self::Mariadb => {
                "SELECT CAST(CONCAT(VERSION(), ', flush log at commit ', \
                 @@innodb_flush_log_at_trx_commit) AS CHAR)"
            }
        }
    }
}

/// A database that only this process has.
pub(crate) struct Place {
    pub(crate) engine: Engine,
    /// The server's own database, from which others are made.
    server: Option<String>,
    url: String,
    _folder: Option<TempDir>,
    /// What is private goes when this does.
    _access: Option<Access>,
}

impl Place {
    /// Finds or starts what the database is in. An `Err` inside says why the engine is left out.
    pub(crate) fn find(engine: Engine) -> Result<std::result::Result<Self, String>> {
        if engine == Engine::Sqlite {
            let folder = tempfile::tempdir()?;
            let file = folder.path().join("bench.sqlite");
            return Ok(Ok(Self {
                engine,
                server: None,
                url: file
                    .to_str()
                    .ok_or("a folder with a strange name")?
                    .to_owned(),
                _folder: Some(folder),
                _access: None,
            }));
        }
        let access = match ordid_harness::access(engine.name())? {
            Access::Skip(reason) => return Ok(Err(reason)),
            access => access,
        };
        let server = access.url().expect("not skipped");
        let (start, _) = server.rsplit_once('/').ok_or("a URL without a database")?;
        Ok(Ok(Self {
            engine,
            url: format!("{start}/ordid_bench_{}", std::process::id()),
            server: Some(server),
            _folder: None,
            _access: Some(access),
        }))
    }

    /// The URL; of SQLite the file.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The URL as SQLx wants it.
    pub(crate) fn sqlx_url(&self) -> String {
        match self.engine {
            Engine::Sqlite => format!("sqlite:{}?mode=rwc", self.url),
            Engine::Postgres | Engine::Mariadb => self.url.clone(),
        }
    }

    async fn connect(&self) -> Result<AnyConnection> {
        let mut connection = AnyConnection::connect(&self.sqlx_url()).await?;
        if self.engine == Engine::Sqlite {
            run(&mut connection, "PRAGMA journal_mode = WAL".to_owned()).await?;
        }
        Ok(connection)
    }

    pub(crate) async fn remove(&self) -> Result<()> {
        let Some(server) = &self.server else {
            for end in ["", "-wal", "-shm"] {
                match std::fs::remove_file(format!("{}{end}", self.url)) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(error.into());
                    }
                    _ => {}
                }
            }
            return Ok(());
        };
        let mut server = AnyConnection::connect(server).await?;
        let drop = format!("DROP DATABASE IF EXISTS {}", self.database());
        run(&mut server, drop).await?;
        Ok(server.close().await?)
    }

    fn database(&self) -> &str {
        self.url.rsplit_once('/').map_or("", |(_, name)| name)
    }

    /// Makes the database anew: the tables, with the customers in theirs. Returns the version.
    pub(crate) async fn create(&self, orders: &Orders) -> Result<String> {
        self.remove().await?;
        if let Some(server) = &self.server {
            let mut server = AnyConnection::connect(server).await?;
            run(&mut server, format!("CREATE DATABASE {}", self.database())).await?;
            server.close().await?;
        }
        let [key, code, text] = self.engine.types();
        let mut connection = self.connect().await?;
        let tables = format!(
            "CREATE TABLE customers (id {key} NOT NULL PRIMARY KEY, name {text} NOT NULL);
             CREATE TABLE orders (
                id {key} NOT NULL PRIMARY KEY,
                customer_id {key} NOT NULL,
                product {code} NOT NULL,
                quantity INTEGER NOT NULL,
                total BIGINT NOT NULL,
                note {text},
                FOREIGN KEY (customer_id) REFERENCES customers (id)
             )"
        );
        run(&mut connection, tables).await?;
        let customers = orders.customers.iter();
        let rows = customers.map(|id| format!("({}, 'customer')", self.engine.key(*id.as_bytes())));
        let rows: Vec<_> = rows.collect();
        let customers = format!(
            "INSERT INTO customers (id, name) VALUES {}",
            rows.join(", ")
        );
        run(&mut connection, customers).await?;
        run(&mut connection, self.engine.settle().to_owned()).await?;
        let version = sqlx::query_scalar(self.engine.version());
        let version = version.fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(version)
    }

    /// Returns how many rows there are, with notes, with more than five pieces, above 50,000.
    pub(crate) async fn summary(&self) -> Result<[i64; 4]> {
        let mut connection = self.connect().await?;
        let sql = "SELECT COUNT(*), COUNT(note), COUNT(CASE WHEN quantity > 5 THEN 1 END), \
                   COUNT(CASE WHEN total > 50000 THEN 1 END) FROM orders";
        let (rows, notes, pieces, totals) = sqlx::query_as(sql).fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok([rows, notes, pieces, totals])
    }
}

async fn run(connection: &mut AnyConnection, sql: String) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await?;
    Ok(())
}
