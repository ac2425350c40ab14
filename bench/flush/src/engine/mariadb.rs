//! MariaDB: a server of its own unless `ORDID_TEST_MARIADB_URL` names one. InnoDB as it comes.

use sqlx::{Connection as _, MySql, mysql::MySqlConnectOptions as Options};

use super::Engine;
use crate::form::Types;

impl Engine for MySql {
    const SERVER: &'static str = "mariadb";
    const MAX_PARAMETERS: usize = 65_535;
    const COPY: bool = false;
    const TYPES: Types = Types {
        key: "BINARY(16)",
        code: "VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin",
        text: "TEXT",
    };
    const VERSION: &'static str = "SELECT CONCAT(VERSION(), ', flush log at commit ', \
        @@innodb_flush_log_at_trx_commit)";

    fn settle(parents: &[&str]) -> String {
        format!("ANALYZE TABLE {}", parents.join(", "))
    }

    fn placeholder(_: usize) -> String {
        "?".to_owned()
    }

    super::through_server!();
    super::through_sqlx!();
}
