//! PostgreSQL over libpq.

use diesel::{connection::SimpleConnection as _, prelude::*, sql_types::Text};
use libtest_mimic::Trial;
use ordid_tests::servers::Servers;

use crate::{
    engine::{add_all, engine},
    keys::Long,
    print_schema::postgres as printed,
    scratch::on_server,
    tables::tables,
};

engine! {
    diesel::PgConnection, diesel::pg::Pg, ordid::storage::dialect::Postgres,
    diesel::sql_types::Uuid, on_conflict, "Index";
    in_bytes: InBytes, diesel::sql_types::Binary;
}

tables! {
    diesel::PgConnection, diesel_async::AsyncPgConnection, diesel::pg::Pg, ordid::storage::dialect::Postgres, diesel::sql_types::Uuid;

    const COPIES: bool = true;
    const WAIT: &'static str = "SET lock_timeout = '200ms'";
    const PLAIN: [&'static str; 2] = ["?sslmode=disable", ""];
    const SESSION: &'static str = "CAST(pg_backend_pid() AS BIGINT)";
    const KILL: &'static str = "SELECT pg_terminate_backend({session})";
}

const DECLARED: &str = "SELECT udt_name::text AS declared FROM information_schema.columns \
     WHERE table_name = $1 AND column_name = $2";

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
    line: String,
}

fn plan(connection: &mut PgConnection, key: Long) -> QueryResult<String> {
    connection.batch_execute("ANALYZE long_keys")?;
    let lines: Vec<Line> = diesel::sql_query("EXPLAIN SELECT id FROM long_keys WHERE id = $1")
        .bind::<Text, _>(key)
        .load(connection)?;
    Ok(lines.into_iter().map(|it| it.line).collect())
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    add_all(trials, "postgres", tests(), |trials, name, test| {
        on_server::<PgConnection>(trials, servers, "postgres", name, " WITH (FORCE)", test);
    });
}
