//! The libraries that speak MySQL's protocol: how each connects to a peer, and flushes to it.

use diesel::{Connection as _, MysqlConnection, mysql::Mysql};
use diesel_async::{AsyncConnection as _, AsyncMysqlConnection};
use mysql_async::{OptsBuilder, TxOpts};
use ordid_recorders::conversation::Peer;
use ordid_sql::EngineProfile;
use sea_orm::{DatabaseConnection, SqlxMySqlConnector};
use sqlx::{
    MySql,
    mysql::{MySqlConnectOptions, MySqlPool, MySqlPoolOptions, MySqlSslMode},
};
use tokio::task::spawn_blocking;

use super::{BOUNDS_WAITS, OWN_WAITS};
use crate::entities::{
    BEGINS, COMMITS, CONNECTS, Flush, Said, filled, name_savepoint, through_seaorm, through_sqlx,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Library {
    Sqlx,
    MysqlAsync,
    SeaOrm,
    Diesel,
    DieselAsync,
}

impl Library {
    pub(super) const ALL: [Self; 5] = [
        Self::Sqlx,
        Self::MysqlAsync,
        Self::SeaOrm,
        Self::Diesel,
        Self::DieselAsync,
    ];

    /// Whether the library ends a transaction whose COMMIT has failed. SQLx does so over the old connection, when it goes
    /// back to its pool; mysql_async before it gives the connection back.
    pub(super) const fn rolls_back_after_commit(self) -> bool {
        matches!(self, Self::Sqlx | Self::SeaOrm | Self::MysqlAsync)
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
                let work = ordid_sqlx::UnitOfWork::<MySql>::new();
                let work = filled!(work, engine, flush, plain);
                through_sqlx(work, flush, &pool(peer)).await
            }
            Self::MysqlAsync => {
                let pool = mysql_async::Pool::new(options(port));
                let work = ordid_mysql_async::UnitOfWork::new();
                let mut work = filled!(work, engine, flush, plain);
                let said = if flush.is_within {
                    let open = pool.start_transaction(TxOpts::default()).await;
                    let mut open = open.expect(BEGINS);
                    let said = Said::of(work.flush_in(&mut open).await);
                    open.commit().await.expect(COMMITS);
                    said
                } else {
                    Said::of(work.flush(&pool).await)
                };
                // Only a pool that nobody uses closes its connections.
                let _ = pool.disconnect().await;
                said
            }
            Self::SeaOrm => {
                let work = ordid_seaorm::UnitOfWork::new();
                let work = filled!(work, engine, flush, sea);
                through_seaorm(work, flush, &sea(peer)).await
            }
            Self::Diesel => {
                let flush = move || {
                    let work = ordid_diesel::UnitOfWork::<Mysql>::new();
                    let mut work = filled!(work, engine, flush, diesel_mysql);
                    let connect = || MysqlConnection::establish(&url(port));
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
                let work = ordid_diesel::UnitOfWork::<Mysql>::new();
                let mut work = filled!(work, engine, flush, diesel_mysql);
                let connect =
                    || async move { AsyncMysqlConnection::establish(&async_url(port)).await };
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

    /// The statement by which a transaction begins.
    pub(super) const fn begin(self) -> &'static str {
        match self {
            Self::MysqlAsync => "START TRANSACTION",
            Self::Sqlx | Self::SeaOrm | Self::Diesel | Self::DieselAsync => "BEGIN",
        }
    }

    /// Returns the statements that were sent, without those by which this library sets each new connection up, with `BEGIN`
    /// for what begins a transaction, and with the catalogue's questions by their names.
    pub(super) fn sent(self, peer: &Peer) -> Vec<String> {
        let mut sent = peer.take();
        let is_own = |sql: &str| [BOUNDS_WAITS, OWN_WAITS].contains(&sql);
        // mysql_async sends nothing there.
        if self != Self::MysqlAsync {
            sent.retain(|sql| !sql.starts_with("SET ") || is_own(sql));
        }
        // Within a transaction it is asked whether the server has ended it.
        sent.retain(|sql| {
            !sql.starts_with("SELECT 'ordid ") && !sql.starts_with("SELECT 1 /*!80000 ")
        });
        for sql in &mut sent {
            name_savepoint(sql);
            if sql.contains("information_schema.statistics") {
                "catalogue: keys".clone_into(sql);
            } else if sql.contains("global_variables") {
                "catalogue: cluster".clone_into(sql);
            } else if sql == self.begin() {
                "BEGIN".clone_into(sql);
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
            Self::MysqlAsync => {
                let pool = mysql_async::Pool::new(options(port));
                let found = ordid_mysql_async::detect_engine(&pool).await;
                let _ = pool.disconnect().await;
                found.map_err(|error| error.to_string())
            }
            Self::SeaOrm => {
                let found = ordid_seaorm::detect_engine(&sea(peer)).await;
                found.map_err(|error| error.to_string())
            }
            Self::Diesel => {
                let detect = move || {
                    let connection = MysqlConnection::establish(&url(port));
                    ordid_diesel::detect_engine(&mut connection.expect(CONNECTS))
                };
                let found = spawn_blocking(detect).await.expect("it does not panic");
                found.map_err(|error| error.to_string())
            }
            Self::DieselAsync => {
                let connection = AsyncMysqlConnection::establish(&async_url(port)).await;
                let mut connection = connection.expect(CONNECTS);
                let found = ordid_diesel::detect_engine_async(&mut connection).await;
                found.map_err(|error| error.to_string())
            }
        }
    }
}

pub(super) fn pool(peer: &Peer) -> MySqlPool {
    let options = MySqlConnectOptions::new()
        .host("127.0.0.1")
        .port(peer.port())
        .username("ordid")
        .password("any")
        .ssl_mode(MySqlSslMode::Disabled);
    MySqlPoolOptions::new()
        .max_connections(2)
        .connect_lazy_with(options)
}

fn sea(peer: &Peer) -> DatabaseConnection {
    SqlxMySqlConnector::from_sqlx_mysql_pool(pool(peer))
}

/// Without the settings that mysql_async would otherwise ask a server for when it connects.
fn options(port: u16) -> OptsBuilder {
    OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(port)
        .user(Some("ordid"))
        .pass(Some("any"))
        .prefer_socket(false)
        .max_allowed_packet(Some(1 << 24))
        .wait_timeout(Some(28_800))
}

fn url(port: u16) -> String {
    format!("mysql://ordid:any@127.0.0.1:{port}/shop")
}

/// As [`options`], for the mysql_async within diesel-async.
fn async_url(port: u16) -> String {
    let settings = "prefer_socket=false&max_allowed_packet=16777216&wait_timeout=28800";
    format!("{}?{settings}", url(port))
}
