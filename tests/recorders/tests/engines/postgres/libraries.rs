//! The libraries that speak PostgreSQL's protocol: how each connects to a peer, and flushes to it.

use diesel::{Connection as _, PgConnection, pg::Pg};
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use ordid_recorders::conversation::Peer;
use ordid_sql::EngineProfile;
use sea_orm::{DatabaseConnection, SqlxPostgresConnector};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions, PgSslMode};
use tokio::task::spawn_blocking;

use crate::entities::{
    BEGINS, COMMITS, CONNECTS, Flush, Said, filled, name_savepoint, through_seaorm, through_sqlx,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Library {
    Sqlx,
    TokioPostgres,
    SeaOrm,
    Diesel,
    DieselAsync,
}

impl Library {
    pub(super) const ALL: [Self; 5] = [
        Self::Sqlx,
        Self::TokioPostgres,
        Self::SeaOrm,
        Self::Diesel,
        Self::DieselAsync,
    ];

    /// Those through which rows go by `COPY`.
    pub(super) const THAT_COPY: [Self; 3] = [Self::Sqlx, Self::TokioPostgres, Self::Diesel];

    /// Whether the library ends a transaction whose COMMIT has failed. SQLx does not know that it is over, and ends it when
    /// the connection goes back to its pool, while the flush may go on over another one.
    pub(super) const fn rolls_back_after_commit(self) -> bool {
        matches!(self, Self::Sqlx | Self::SeaOrm)
    }

    /// How an `UPDATE` of one order begins. The unit of work of `SeaORM` names the columns that its rows set, and then sends
    /// one row without a list of rows.
    pub(super) const fn update(self) -> &'static str {
        match self {
            Self::SeaOrm => r#"UPDATE "orders" SET "#,
            _ => r#"UPDATE "orders" AS ordid_target SET "#,
        }
    }

    /// Flushes with the profile of an engine.
    pub(super) async fn flush(
        self,
        peer: &Peer,
        engine: EngineProfile,
        flush: impl Into<Flush>,
    ) -> Said {
        let flush = flush.into();
        let port = peer.port();
        match self {
            Self::Sqlx => {
                let work = ordid_sqlx::UnitOfWork::<sqlx::Postgres>::new();
                let work = filled!(work, engine, flush, plain);
                through_sqlx(work, flush, &pool(peer)).await
            }
            Self::TokioPostgres => {
                let work = ordid_tokio_postgres::UnitOfWork::new();
                let mut work = filled!(work, engine, flush, plain);
                if !flush.is_within {
                    return Said::of(work.flush_with(|| connect(port)).await);
                }
                let mut client = connect(port).await.expect(CONNECTS);
                let mut open = client.transaction().await.expect(BEGINS);
                let said = Said::of(work.flush_in(&mut open).await);
                open.commit().await.expect(COMMITS);
                said
            }
            Self::SeaOrm => {
                let work = ordid_seaorm::UnitOfWork::new();
                let work = filled!(work, engine, flush, sea);
                through_seaorm(work, flush, &sea(peer)).await
            }
            Self::Diesel => {
                let flush = move || {
                    let work = ordid_diesel::UnitOfWork::<Pg>::new();
                    let mut work = filled!(work, engine, flush, diesel_postgres);
                    let connect = || PgConnection::establish(&url(port));
                    if !flush.is_within {
                        return Said::of(work.flush_with(connect));
                    }
                    let said = connect()
                        .expect(CONNECTS)
                        .transaction(|open| diesel::QueryResult::Ok(Said::of(work.flush_in(open))));
                    said.expect(COMMITS)
                };
                spawn_blocking(flush).await.expect("it does not panic")
            }
            Self::DieselAsync => {
                let work = ordid_diesel::UnitOfWork::<Pg>::new();
                let mut work = filled!(work, engine, flush, diesel_postgres);
                let connect = || async move { AsyncPgConnection::establish(&url(port)).await };
                if !flush.is_within {
                    return Said::of(work.flush_with_async(connect).await);
                }
                let mut connection = connect().await.expect(CONNECTS);
                let said = connection.transaction(async |open| {
                    diesel::QueryResult::Ok(Said::of(work.flush_in_async(open).await))
                });
                said.await.expect(COMMITS)
            }
        }
    }

    /// Returns the statements that were sent, without what only this library sends, as the others spell them, and with the
    /// catalogue's questions by their names.
    pub(super) fn sent(self, peer: &Peer) -> Vec<String> {
        // Diesel and diesel-async set each new connection up.
        const SETUP: [&str; 2] = ["SET TIME ZONE 'UTC'", "SET CLIENT_ENCODING TO 'UTF8'"];

        let mut sent = peer.take();
        match self {
            // A pool asks whether a connection is alive by an empty statement.
            Self::Sqlx | Self::SeaOrm => sent.retain(|sql| !sql.is_empty()),
            // It asks for the types of columns, to bind values as these.
            Self::TokioPostgres => sent.retain(|sql| !sql.contains("AS asked (name, number)")),
            Self::Diesel | Self::DieselAsync => sent.retain(|sql| !SETUP.contains(&&**sql)),
        }
        for sql in &mut sent {
            name_savepoint(sql);
            if sql.contains("pg_catalog.pg_index") {
                "catalogue: keys".clone_into(sql);
            } else if sql.contains("AS wanted (name, position)") {
                "catalogue: columns".clone_into(sql);
            } else if sql == "START TRANSACTION" {
                // The transactions of tokio-postgres.
                "BEGIN".clone_into(sql);
            } else if self == Self::Diesel {
                // Diesel writes the command itself.
                *sql = sql.replace(" FROM STDIN WITH (", " FROM STDIN (");
            }
        }
        sent
    }

    /// Finds out which engine answers, or what it said.
    pub(super) async fn detect(self, peer: &Peer) -> Result<EngineProfile, String> {
        let port = peer.port();
        match self {
            Self::Sqlx => {
                let found = ordid_sqlx::detect_engine(&pool(peer)).await;
                found.map_err(|error| error.to_string())
            }
            Self::TokioPostgres => {
                let mut client = connect(port).await.expect(CONNECTS);
                let found = ordid_tokio_postgres::detect_engine(&mut client).await;
                found.map_err(|error| error.to_string())
            }
            Self::SeaOrm => {
                let found = ordid_seaorm::detect_engine(&sea(peer)).await;
                found.map_err(|error| error.to_string())
            }
            Self::Diesel => {
                let detect = move || {
                    let connection = PgConnection::establish(&url(port));
                    ordid_diesel::detect_engine(&mut connection.expect(CONNECTS))
                };
                let found = spawn_blocking(detect).await.expect("it does not panic");
                found.map_err(|error| error.to_string())
            }
            Self::DieselAsync => {
                let connection = AsyncPgConnection::establish(&url(port)).await;
                let mut connection = connection.expect(CONNECTS);
                let found = ordid_diesel::detect_engine_async(&mut connection).await;
                found.map_err(|error| error.to_string())
            }
        }
    }
}

pub(super) fn pool(peer: &Peer) -> PgPool {
    let options = PgConnectOptions::new_without_pgpass()
        .host("127.0.0.1")
        .port(peer.port())
        .username("ordid")
        .ssl_mode(PgSslMode::Disable);
    PgPoolOptions::new()
        .max_connections(2)
        .connect_lazy_with(options)
}

fn sea(peer: &Peer) -> DatabaseConnection {
    SqlxPostgresConnector::from_sqlx_postgres_pool(pool(peer))
}

fn url(port: u16) -> String {
    format!("postgres://ordid@127.0.0.1:{port}/ordid?sslmode=disable")
}

async fn connect(port: u16) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(port).user("ordid");
    let (client, connection) = config.connect(tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
