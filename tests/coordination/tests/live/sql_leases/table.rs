//! A table of each database that nodes are leased from, of a test's own.

use std::{
    future::Future,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use libtest_mimic::{Failed, Trial};
use ordid_core::{
    Error,
    coordination::{AsyncNodeAllocator, LeaseTerms},
    storage::{
        Dialect as _,
        dialect::{Babelfish, Oracle, SqlServer},
    },
};
use ordid_sqlx::{Backend, ConnectOptions, SqlLease};
use ordid_tests::{
    login::{self, TdsDatabase, batch},
    servers::Servers,
    trials::{Outcome, ignored, run},
};
use tokio::net::TcpStream;
use tokio_util::compat::Compat;

use crate::{sql::sql, stores::Threads};

/// Where a table of nodes is.
pub(crate) trait Table: Clone + Send + Sync + 'static {
    /// What leases them.
    type Leases: AsyncNodeAllocator + 'static;

    fn leases(&self, terms: LeaseTerms) -> Self::Leases;
    fn with_table(leases: Self::Leases, table: &str) -> Result<Self::Leases, Error>;
    fn with_timeout(leases: Self::Leases, timeout: Duration) -> Self::Leases;
    fn create(leases: &Self::Leases) -> impl Future<Output = Result<(), Error>> + Send;

    /// Its name, as a statement has it.
    fn name(&self) -> String {
        "ordid_nodes".to_owned()
    }

    /// The name of another, as `with_table` takes it.
    fn other(&self) -> String {
        "other_nodes".to_owned()
    }

    /// Runs a statement, as an operator would.
    fn run(&self, statement: &str) -> impl Future<Output = Outcome> + Send;
}

/// A database that SQLx connects to.
pub(crate) struct Sqlx<DB: Backend>(pub(crate) ConnectOptions<DB>);

impl<DB: Backend> Clone for Sqlx<DB> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<DB: Backend> Table for Sqlx<DB> {
    type Leases = SqlLease<DB>;

    fn leases(&self, terms: LeaseTerms) -> SqlLease<DB> {
        SqlLease::new(self.0.clone(), terms)
    }

    fn with_table(leases: SqlLease<DB>, table: &str) -> Result<SqlLease<DB>, Error> {
        leases.with_table(table)
    }

    fn with_timeout(leases: SqlLease<DB>, timeout: Duration) -> SqlLease<DB> {
        leases.with_timeout(timeout)
    }

    async fn create(leases: &SqlLease<DB>) -> Result<(), Error> {
        leases.create().await
    }

    async fn run(&self, statement: &str) -> Outcome {
        sql::<DB>(&self.0, statement).await
    }
}

/// A database of SQL Server or Babelfish.
macro_rules! tds {
    ($table:ident, $flavour:ty, $new:ident) => {
        #[derive(Clone)]
        pub(crate) struct $table(pub(crate) TdsDatabase);

        impl Table for $table {
            type Leases = ordid_tiberius::SqlLease<Compat<TcpStream>, $flavour>;

            fn leases(&self, terms: LeaseTerms) -> Self::Leases {
                let database = self.0.clone();
                let connect = move || {
                    let database = database.clone();
                    async move { database.connect().await }
                };
                ordid_tiberius::SqlLease::new(ordid_tiberius::Connect::$new(connect), terms)
            }

            fn with_table(leases: Self::Leases, table: &str) -> Result<Self::Leases, Error> {
                leases.with_table(table)
            }

            fn with_timeout(leases: Self::Leases, timeout: Duration) -> Self::Leases {
                leases.with_timeout(timeout)
            }

            async fn create(leases: &Self::Leases) -> Result<(), Error> {
                leases.create().await
            }

            async fn run(&self, statement: &str) -> Outcome {
                let mut client = self.0.connect().await?;
                Ok(batch(&mut client, statement).await?)
            }
        }
    };
}

tds!(OfSqlServer, SqlServer, new);
tds!(OfBabelfish, Babelfish, for_babelfish);

/// A test on the SQL Server or Babelfish of the run, by whichever of its two forms is for it.
pub(crate) fn on_tds<F: Future<Output = Outcome>, B: Future<Output = Outcome>>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    name: &str,
    sql_server: impl FnOnce(OfSqlServer) -> F + Send + 'static,
    babelfish: impl FnOnce(OfBabelfish) -> B + Send + 'static,
) {
    let name = format!("mssql::{name}");
    trials.push(match servers.url("mssql") {
        Err(reason) => ignored(name, reason),
        Ok(url) => Trial::test(name, move || {
            run(async || {
                let database = TdsDatabase::create(&url).await?;
                let outcome = match database.is_babelfish() {
                    false => sql_server(OfSqlServer(database.clone())).await,
                    true => babelfish(OfBabelfish(database.clone())).await,
                };
                database.drop().await?;
                outcome
            })
        }),
    });
}

/// Tables of a user of Oracle, in which no other test has any of these names.
#[derive(Clone)]
pub(crate) struct OfOracle {
    url: String,
    name: String,
}

impl OfOracle {
    fn new(url: String) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);

        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self {
            url,
            name: format!("ordid_nodes_{}_{number}", std::process::id()),
        }
    }

    fn execute(&self, statement: &str) -> Outcome {
        let connection = login::oracle(&self.url)??;
        connection.execute(statement, &[])?;
        Ok(connection.commit()?)
    }

    fn drop_tables(&self) {
        for name in [self.name(), Oracle::quote(&self.other())] {
            // Not every test has both.
            let _ = self.execute(&format!("DROP TABLE {name} PURGE"));
        }
    }
}

impl Table for OfOracle {
    type Leases = Threads<ordid_oracle::SqlLease>;

    fn leases(&self, terms: LeaseTerms) -> Self::Leases {
        let url = self.url.clone();
        let connect = ordid_oracle::Connect::new(move || login::oracle(&url).expect("a URL"));
        let leases = ordid_oracle::SqlLease::new(connect, terms);
        Threads(leases.with_table(&self.name).expect("a name of ours"))
    }

    fn with_table(leases: Self::Leases, table: &str) -> Result<Self::Leases, Error> {
        leases.0.with_table(table).map(Threads)
    }

    fn with_timeout(leases: Self::Leases, timeout: Duration) -> Self::Leases {
        Threads(leases.0.with_timeout(timeout))
    }

    async fn create(leases: &Self::Leases) -> Result<(), Error> {
        leases.0.create()
    }

    fn name(&self) -> String {
        Oracle::quote(&self.name)
    }

    fn other(&self) -> String {
        format!("{}_other", self.name)
    }

    async fn run(&self, statement: &str) -> Outcome {
        self.execute(statement)
    }
}

/// A test on the Oracle of the run.
pub(crate) fn on_oracle<F: Future<Output = Outcome>>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    name: &str,
    test: impl FnOnce(OfOracle) -> F + Send + 'static,
) {
    let name = format!("oracle::{name}");
    trials.push(match servers.url("oracle") {
        Err(reason) => ignored(name, reason),
        Ok(url) => Trial::test(name, move || {
            let table = OfOracle::new(url);
            let outcome: Result<(), Failed> = run(async || test(table.clone()).await);
            table.drop_tables();
            outcome
        }),
    });
}

/// Adds tests of a module that are generic over the table: on each database, with a table of their own.
macro_rules! on_tables {
    ($module:literal, $servers:ident, $trials:ident, $($test:ident),+ $(,)?) => {
        $({
            use $crate::sql_leases::table::{Sqlx, on_oracle, on_tds};

            let name = concat!($module, "::", stringify!($test));
            for server in ["mariadb", "mysql"] {
                ordid_tests::trials::on_scratch::<sqlx::MySql, _, _>(
                    $trials, $servers, server, name, |pool| async move {
                        $test(Sqlx::<sqlx::MySql>((*pool.connect_options()).clone())).await
                    },
                );
            }
            ordid_tests::trials::on_scratch::<sqlx::Postgres, _, _>(
                $trials, $servers, "postgres", name, |pool| async move {
                    $test(Sqlx::<sqlx::Postgres>((*pool.connect_options()).clone())).await
                },
            );
            $trials.push($crate::sql::in_file(name, |options| {
                $test(Sqlx::<sqlx::Sqlite>(options))
            }));
            on_tds($trials, $servers, name, $test, $test);
            on_oracle($trials, $servers, name, $test);
        })+
    };
}

pub(crate) use on_tables;
