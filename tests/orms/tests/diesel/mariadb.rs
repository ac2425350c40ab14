//! MariaDB over its C client.

use diesel::{
    prelude::*,
    sql_types::{BigInt, Nullable, Text},
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
    print_schema::{command, mysql as printed},
    retries::retries,
    scratch::on_server,
    upserts::on_duplicate_key,
    work::work,
};

macro_rules! columns {
    ($($module:ident: $key:ident, $sql_type:ty;)+) => {
        $(column!($module, $key, $sql_type, diesel::MysqlConnection, diesel::mysql::Mysql, ordid::storage::dialect::MariaDb);)+

        fn columns(mut add: impl FnMut(&str, fn(&str) -> crate::Outcome)) {
            $(
                add(concat!(stringify!($module), "_come_back"), |url| {
                    $module::round_trip(&mut MysqlConnection::establish(url)?)
                });
                add(concat!(stringify!($module), "_are_printed_as_they_are"), |url| {
                    $module::printed(&mut MysqlConnection::establish(url)?)
                });
                add(concat!(stringify!($module), "_keep_their_order"), |url| {
                    $module::order(&mut MysqlConnection::establish(url)?)
                });
            )+
        }

        /// What the command `diesel` prints.
        fn commands(mut add: impl FnMut(&str, fn(&str) -> crate::Outcome)) {
            $(add(concat!(stringify!($module), "_are_printed_so_by_the_command"), |url| {
                $module::printed_by_command(&mut MysqlConnection::establish(url)?, url)
            });)+
        }
    };
}

columns! {
    native: Native, diesel::sql_types::Binary;
    long: Long, diesel::sql_types::Text;
    short: Short, diesel::sql_types::Text;
    base32: Base32, diesel::sql_types::Text;
    maria: Maria, diesel::sql_types::Text;
    swapped: Swapped, diesel::sql_types::Binary;
    no_order: NoOrder, diesel::sql_types::Binary;
    number: Number, diesel::sql_types::BigInt;
    unsigned: Unsigned, diesel::sql_types::Unsigned<diesel::sql_types::BigInt>;
    object: Object, diesel::sql_types::Binary;
    push: Push, diesel::sql_types::Text;
    wide: Wide, diesel::sql_types::Binary;
    wide_text: WideText, diesel::sql_types::Text;
}

on_duplicate_key! {
    diesel::MysqlConnection, diesel::mysql::Mysql, ordid::storage::dialect::MariaDb;
    native_tags: Native, diesel::sql_types::Binary;
    short_tags: Short, diesel::sql_types::Text;
}

work! {
    diesel::MysqlConnection, diesel::mysql::Mysql, ordid::storage::dialect::MariaDb, diesel::sql_types::Binary
}

retries! {
    diesel::MysqlConnection,
    wait: "SET innodb_lock_wait_timeout = 1",
    plain: "",
    kill: |killer, id| {
        diesel::sql_query(format!("KILL {id}"))
            .execute(killer)
            .unwrap();
    }
}

async_work! {
    diesel_async::AsyncMysqlConnection, diesel::MysqlConnection, diesel::mysql::Mysql,
    wait: "SET innodb_lock_wait_timeout = 1",
    plain: "?prefer_socket=false",
    session: "CAST(CONNECTION_ID() AS SIGNED)",
    kill: |killer, id| {
        diesel::sql_query(format!("KILL {id}"))
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
fn declared(connection: &mut MysqlConnection, table: &str, column: &str) -> QueryResult<String> {
    diesel::sql_query(
        "SELECT CAST(column_type AS CHAR) AS declared FROM information_schema.columns \
         WHERE table_schema = DATABASE() AND table_name = ? AND column_name = ?",
    )
    .bind::<Text, _>(table)
    .bind::<Text, _>(column)
    .get_result::<Declared>(connection)
    .map(|it| it.declared)
}

/// The number of a connection's session, to end it by.
fn session(connection: &mut MysqlConnection) -> QueryResult<i64> {
    diesel::select(diesel::dsl::sql::<BigInt>(
        "CAST(CONNECTION_ID() AS SIGNED)",
    ))
    .get_result(connection)
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Nullable<Text>)]
    key: Option<String>,
}

fn plan(connection: &mut MysqlConnection, key: Long) -> QueryResult<String> {
    let lines: Vec<Line> = diesel::sql_query("EXPLAIN SELECT id FROM long_keys WHERE id = ?")
        .bind::<Text, _>(key)
        .load(connection)?;
    Ok(lines.into_iter().filter_map(|it| it.key).collect())
}

/// A migration has the key types' columns and the table of flushes; text is found by its index.
fn migrations(url: &str) -> Outcome {
    type Column = <Long as StoredAs<diesel::mysql::Mysql>>::Column;
    let key = <Column as ColumnOn<ordid::storage::dialect::MariaDb>>::primary_key("id");
    let up = format!(
        "CREATE TABLE long_keys ({key});\n{}",
        flushes_table::<diesel::mysql::Mysql>()
    );
    let (_folder, migrations) =
        migrations::of(&up, "DROP TABLE ordid_flushes;\nDROP TABLE long_keys")?;
    let mut connection = MysqlConnection::establish(url)?;
    connection.run_pending_migrations(migrations.clone())?;
    let keys = Long::rising(1_000);
    for key in &keys {
        diesel::insert_into(long_keys::table)
            .values(long_keys::id.eq(key))
            .execute(&mut connection)?;
    }

    let wanted = long_keys::table.filter(long_keys::id.eq(keys[500]));
    let plan = plan(&mut connection, keys[500])?;
    assert!(plan.contains("PRIMARY"), "{plan}");
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
        on_server::<MysqlConnection>(trials, servers, "mariadb", name, "", test);
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
        native_tags::upserts(&mut MysqlConnection::establish(url)?)
    });
    add("short_tags_are_inserted_or_updated", |url| {
        short_tags::upserts(&mut MysqlConnection::establish(url)?)
    });
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
            on_server::<MysqlConnection>(trials, servers, "mariadb", name, "", test);
        }),
        Err(reason) => commands(|name, _| {
            trials.push(ignored(format!("mariadb::{name}"), reason.clone()));
        }),
    }
}
