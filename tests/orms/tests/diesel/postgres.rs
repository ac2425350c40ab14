//! PostgreSQL over libpq.

use diesel::{connection::SimpleConnection as _, prelude::*, sql_types::Text};
use libtest_mimic::Trial;
use ordid_tests::{servers::Servers, trials::ignored};

use crate::{
    async_work,
    engine::columns,
    keys::Long,
    migrations::migrations,
    print_schema::{Declared, postgres as printed},
    retries,
    scratch::on_server,
    tables::tables,
    upserts::on_conflict,
    work,
};

columns! {
    diesel::PgConnection, diesel::pg::Pg, ordid::storage::dialect::Postgres;
    native: Native, diesel::sql_types::Uuid;
    long: Long, diesel::sql_types::Text;
    short: Short, diesel::sql_types::Text;
    base32: Base32, diesel::sql_types::Text;
    in_bytes: InBytes, diesel::sql_types::Binary;
    no_order: NoOrder, diesel::sql_types::Uuid;
    number: Number, diesel::sql_types::BigInt;
    object: Object, diesel::sql_types::Binary;
    push: Push, diesel::sql_types::Text;
    wide: Wide, diesel::sql_types::Binary;
    wide_text: WideText, diesel::sql_types::Text;
}

on_conflict! {
    diesel::PgConnection, diesel::pg::Pg, ordid::storage::dialect::Postgres;
    native_tags: Native, diesel::sql_types::Uuid;
    short_tags: Short, diesel::sql_types::Text;
}

tables! {
    diesel::PgConnection, diesel_async::AsyncPgConnection, diesel::pg::Pg, ordid::storage::dialect::Postgres, diesel::sql_types::Uuid;

    const COPIES: bool = true;
    const WAIT: &'static str = "SET lock_timeout = '200ms'";
    const PLAIN: [&'static str; 2] = ["?sslmode=disable", ""];
    const SESSION: &'static str = "CAST(pg_backend_pid() AS BIGINT)";

    fn kill(killer: &mut PgConnection, session: i64) {
        diesel::sql_query(format!("SELECT pg_terminate_backend({session})"))
            .execute(killer)
            .unwrap();
    }
}

migrations!(
    diesel::PgConnection,
    diesel::pg::Pg,
    ordid::storage::dialect::Postgres,
    plan,
    "Index"
);

/// What the database says of a column's type.
fn declared(connection: &mut PgConnection, table: &str, column: &str) -> QueryResult<String> {
    diesel::sql_query(
        "SELECT udt_name::text AS declared FROM information_schema.columns \
         WHERE table_name = $1 AND column_name = $2",
    )
    .bind::<Text, _>(table)
    .bind::<Text, _>(column)
    .get_result::<Declared>(connection)
    .map(|it| it.declared)
}

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
    let mut add = |name: &str, test| {
        on_server::<PgConnection>(trials, servers, "postgres", name, " WITH (FORCE)", test);
    };
    columns(&mut add);
    upserts(&mut add);
    add("migrations_have_the_columns_of_keys", migrations);
    add(
        "circles_are_checked_at_commit",
        work::deferred::<diesel::pg::Pg>,
    );
    let tests = work::tests::<diesel::pg::Pg>().into_iter();
    let tests = tests.chain(retries::tests::<diesel::pg::Pg>());
    for (name, test) in tests.chain(async_work::tests::<diesel::pg::Pg>()) {
        add(name, test);
    }
    commands(|name, test| match test {
        Ok(test) => {
            on_server::<PgConnection>(trials, servers, "postgres", name, " WITH (FORCE)", test)
        }
        Err(reason) => trials.push(ignored(format!("postgres::{name}"), reason)),
    });
}
