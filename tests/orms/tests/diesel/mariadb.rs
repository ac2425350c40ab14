//! MariaDB over its C client.

use diesel::{
    prelude::*,
    sql_types::{Nullable, Text},
};
use libtest_mimic::Trial;
use ordid_tests::servers::Servers;

use crate::{
    engine::{add_all, engine},
    keys::Long,
    print_schema::mysql as printed,
    scratch::on_server,
    tables::tables,
};

engine! {
    diesel::MysqlConnection, diesel::mysql::Mysql, ordid::storage::dialect::MariaDb,
    diesel::sql_types::Binary, on_duplicate_key, "PRIMARY";
    maria: Maria, diesel::sql_types::Text;
    swapped: Swapped, diesel::sql_types::Binary;
    unsigned: Unsigned, diesel::sql_types::Unsigned<diesel::sql_types::BigInt>;
}

tables! {
    diesel::MysqlConnection, diesel_async::AsyncMysqlConnection, diesel::mysql::Mysql, ordid::storage::dialect::MariaDb, diesel::sql_types::Binary;

    const WAIT: &'static str = "SET innodb_lock_wait_timeout = 1";
    const PLAIN: [&'static str; 2] = ["", "?prefer_socket=false"];
    const SESSION: &'static str = "CAST(CONNECTION_ID() AS SIGNED)";
    const KILL: &'static str = "KILL {session}";
}

const DECLARED: &str = "SELECT CAST(column_type AS CHAR) AS declared FROM information_schema.columns \
     WHERE table_schema = DATABASE() AND table_name = ? AND column_name = ?";

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
    add_all(trials, "mariadb", tests(), |trials, name, test| {
        on_server::<MysqlConnection>(trials, servers, "mariadb", name, "", test);
    });
}
