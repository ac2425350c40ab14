//! PostgreSQL over libpq.

use diesel::{
    connection::SimpleConnection as _,
    prelude::*,
    sql_types::{BigInt, Text},
};
use diesel_migrations::MigrationHarness as _;
use libtest_mimic::Trial;
use ordid::storage::ColumnOn;
use ordid_diesel::{StoredAs, flushes_table};
use ordid_tests::{servers::Servers, trials::ignored};

use crate::{
    Outcome,
    async_work::async_work,
    engine::column,
    keys::{Keys as _, Long},
    migrations,
    print_schema::{command, postgres as printed},
    retries::retries,
    scratch::on_server,
    upserts::on_conflict,
    work::work,
};

macro_rules! columns {
    ($($module:ident: $key:ident, $sql_type:ty;)+) => {
        $(column!($module, $key, $sql_type, diesel::PgConnection, diesel::pg::Pg, ordid::storage::dialect::Postgres);)+

        fn columns(mut add: impl FnMut(&str, fn(&str) -> crate::Outcome)) {
            $(
                add(concat!(stringify!($module), "_come_back"), |url| {
                    $module::round_trip(&mut PgConnection::establish(url)?)
                });
                add(concat!(stringify!($module), "_are_printed_as_they_are"), |url| {
                    $module::printed(&mut PgConnection::establish(url)?)
                });
                add(concat!(stringify!($module), "_keep_their_order"), |url| {
                    $module::order(&mut PgConnection::establish(url)?)
                });
            )+
        }

        /// What the command `diesel` prints.
        fn commands(mut add: impl FnMut(&str, fn(&str) -> crate::Outcome)) {
            $(add(concat!(stringify!($module), "_are_printed_so_by_the_command"), |url| {
                $module::printed_by_command(&mut PgConnection::establish(url)?, url)
            });)+
        }
    };
}

columns! {
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

work! {
    diesel::PgConnection, diesel::pg::Pg, ordid::storage::dialect::Postgres, diesel::sql_types::Uuid
}

retries! {
    diesel::PgConnection,
    wait: "SET lock_timeout = '200ms'",
    plain: "?sslmode=disable",
    kill: |killer, id| {
        diesel::sql_query(format!("SELECT pg_terminate_backend({id})"))
            .execute(killer)
            .unwrap();
    }
}

async_work! {
    diesel_async::AsyncPgConnection, diesel::PgConnection, diesel::pg::Pg,
    wait: "SET lock_timeout = '200ms'",
    plain: "",
    session: "CAST(pg_backend_pid() AS BIGINT)",
    kill: |killer, id| {
        diesel::sql_query(format!("SELECT pg_terminate_backend({id})"))
            .execute(killer)
            .unwrap();
    }
}

#[derive(QueryableByName)]
struct Declared {
    #[diesel(sql_type = Text)]
    declared: String,
}

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

/// The number of a connection's session, to end it by.
fn session(connection: &mut PgConnection) -> QueryResult<i64> {
    diesel::select(diesel::dsl::sql::<BigInt>(
        "CAST(pg_backend_pid() AS BIGINT)",
    ))
    .get_result(connection)
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text, column_name = "QUERY PLAN")]
    line: String,
}

fn plan(connection: &mut PgConnection, key: Long) -> QueryResult<String> {
    let lines: Vec<Line> = diesel::sql_query("EXPLAIN SELECT id FROM long_keys WHERE id = $1")
        .bind::<Text, _>(key)
        .load(connection)?;
    Ok(lines.into_iter().map(|it| it.line).collect())
}

/// A migration has the key types' columns and the table of flushes; text is found by its index.
fn migrations(url: &str) -> Outcome {
    type Column = <Long as StoredAs<diesel::pg::Pg>>::Column;
    let key = <Column as ColumnOn<ordid::storage::dialect::Postgres>>::primary_key("id");
    let up = format!(
        "CREATE TABLE long_keys ({key});\n{}",
        flushes_table::<diesel::pg::Pg>()
    );
    let (_folder, migrations) =
        migrations::of(&up, "DROP TABLE ordid_flushes;\nDROP TABLE long_keys")?;
    let mut connection = PgConnection::establish(url)?;
    connection.run_pending_migrations(migrations.clone())?;
    let keys = Long::rising(1_000);
    for key in &keys {
        diesel::insert_into(long_keys::table)
            .values(long_keys::id.eq(key))
            .execute(&mut connection)?;
    }
    connection.batch_execute("ANALYZE long_keys")?;
    let wanted = long_keys::table.filter(long_keys::id.eq(keys[500]));
    let plan = plan(&mut connection, keys[500])?;
    assert!(plan.contains("Index"), "{plan}");
    assert_eq!(wanted.count().get_result::<i64>(&mut connection)?, 1);
    connection.revert_last_migration(migrations)?;
    assert!(wanted.count().get_result::<i64>(&mut connection).is_err());
    Ok(())
}

diesel::table! {
    long_keys (id) { id -> Text, }
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let mut add = |name: &str, test: fn(&str) -> Outcome| {
        on_server::<PgConnection>(trials, servers, "postgres", name, " WITH (FORCE)", test);
    };
    columns(&mut add);
    add("a_graph_goes_in_parents_first", work::graph);
    add("rows_are_updated_and_deleted", work::changes);
    add("what_is_refused_writes_nothing", work::refused);
    add("an_open_transaction_is_respected", work::transactions);
    add("a_lock_that_does_not_come_is_tried_again", retries::locked);
    add("a_killed_connection_is_replaced", retries::killed);
    add(
        "what_became_of_a_lost_commit_is_found_out",
        retries::lost_commit,
    );
    add(
        "another_form_is_told_with_what_to_declare",
        work::other_forms,
    );
    add("plain_inserts_get_keys", work::plain_inserts);
    add("migrations_have_the_columns_of_keys", migrations);
    add("native_tags_are_inserted_or_updated", |url| {
        native_tags::upserts(&mut PgConnection::establish(url)?)
    });
    add("native_tags_come_back_from_updates_and_deletes", |url| {
        native_tags::returning(&mut PgConnection::establish(url)?)
    });
    add("short_tags_are_inserted_or_updated", |url| {
        short_tags::upserts(&mut PgConnection::establish(url)?)
    });
    add("short_tags_come_back_from_updates_and_deletes", |url| {
        short_tags::returning(&mut PgConnection::establish(url)?)
    });
    add("circles_are_checked_at_commit", work::deferred);
    add("async::a_graph_goes_in_parents_first", async_work::graph);
    add("async::rows_are_updated_and_deleted", async_work::changes);
    add("async::what_is_refused_writes_nothing", async_work::refused);
    add(
        "async::an_open_transaction_is_respected",
        async_work::transactions,
    );
    add(
        "async::a_connection_that_is_not_made_is_an_attempt",
        async_work::unreached,
    );
    add("async::pools_lend_their_connections", async_work::pools);
    add(
        "async::a_lock_that_does_not_come_is_tried_again",
        async_work::locked,
    );
    add(
        "async::a_dropped_flush_leaves_no_half_graph",
        async_work::dropped,
    );
    add("async::a_killed_connection_is_replaced", async_work::killed);
    add(
        "async::what_became_of_a_lost_commit_is_found_out",
        async_work::lost_commit,
    );
    match command() {
        Ok(()) => commands(|name, test| {
            on_server::<PgConnection>(trials, servers, "postgres", name, " WITH (FORCE)", test);
        }),
        Err(reason) => commands(|name, _| {
            trials.push(ignored(format!("postgres::{name}"), reason.clone()));
        }),
    }
}
