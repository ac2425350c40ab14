//! MariaDB over its C client.

use diesel::{
    prelude::*,
    sql_types::{Nullable, Text},
};
use libtest_mimic::Trial;
use ordid_tests::{servers::Servers, trials::ignored};

use crate::{
    async_work,
    engine::columns,
    keys::Long,
    migrations::migrations,
    print_schema::{Declared, mysql as printed},
    retries,
    scratch::on_server,
    tables::tables,
    upserts::on_duplicate_key,
    work,
};

columns! {
    diesel::MysqlConnection, diesel::mysql::Mysql, ordid::storage::dialect::MariaDb;
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

tables! {
    diesel::MysqlConnection, diesel_async::AsyncMysqlConnection, diesel::mysql::Mysql, ordid::storage::dialect::MariaDb, diesel::sql_types::Binary;

    const WAIT: &'static str = "SET innodb_lock_wait_timeout = 1";
    const PLAIN: [&'static str; 2] = ["", "?prefer_socket=false"];
    const SESSION: &'static str = "CAST(CONNECTION_ID() AS SIGNED)";

    fn kill(killer: &mut MysqlConnection, session: i64) {
        diesel::sql_query(format!("KILL {session}"))
            .execute(killer)
            .unwrap();
    }
}

migrations!(
    diesel::MysqlConnection,
    diesel::mysql::Mysql,
    ordid::storage::dialect::MariaDb,
    plan,
    "PRIMARY"
);

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

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let mut add = |name: &str, test| {
        on_server::<MysqlConnection>(trials, servers, "mariadb", name, "", test);
    };
    columns(&mut add);
    upserts(&mut add);
    add("migrations_have_the_columns_of_keys", migrations);
    let tests = work::tests::<diesel::mysql::Mysql>().into_iter();
    let tests = tests.chain(retries::tests::<diesel::mysql::Mysql>());
    for (name, test) in tests.chain(async_work::tests::<diesel::mysql::Mysql>()) {
        add(name, test);
    }
    commands(|name, test| match test {
        Ok(test) => on_server::<MysqlConnection>(trials, servers, "mariadb", name, "", test),
        Err(reason) => trials.push(ignored(format!("mariadb::{name}"), reason)),
    });
}
