//! Migrations in a folder of their own, as `diesel migration run` reads them.

use std::fs;

use diesel_migrations::FileBasedMigrations;
use tempfile::TempDir;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Returns a folder with one migration; it is there as long as the first value.
pub fn of(up: &str, down: &str) -> Result<(TempDir, FileBasedMigrations), Error> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("migrations");
    let migration = root.join("2026-01-01-000000_keys");
    fs::create_dir_all(&migration)?;
    fs::write(migration.join("up.sql"), up)?;
    fs::write(migration.join("down.sql"), down)?;
    let migrations = FileBasedMigrations::from_path(&root)?;
    Ok((folder, migrations))
}

diesel::table! {
    long_keys (id) { id -> Text, }
}

/// Defines the test for a backend: a migration has the key types' columns and the table of flushes, and
/// text is found by its index, of which `$index` is a sign in what `$plan` returns.
macro_rules! migrations {
    ($connection:ty, $backend:ty, $dialect:ty, $plan:ident, $index:literal) => {
        fn migrations(url: &str) -> crate::Outcome {
            use diesel::prelude::*;
            use diesel_migrations::MigrationHarness as _;
            use ordid::storage::ColumnOn;

            use crate::{
                keys::{Keys as _, Long},
                migrations::long_keys,
            };

            type Column = <Long as ordid_diesel::StoredAs<$backend>>::Column;
            let key = <Column as ColumnOn<$dialect>>::primary_key("id");
            let up = format!(
                "CREATE TABLE long_keys ({key});\n{}",
                ordid_diesel::flushes_table::<$backend>()
            );
            let down = "DROP TABLE ordid_flushes;\nDROP TABLE long_keys";
            let (_folder, migrations) = crate::migrations::of(&up, down)?;
            let mut connection = <$connection>::establish(url)?;
            connection.run_pending_migrations(migrations.clone())?;
            let keys = Long::rising(1_000);
            for key in &keys {
                diesel::insert_into(long_keys::table)
                    .values(long_keys::id.eq(key))
                    .execute(&mut connection)?;
            }
            let wanted = long_keys::table.filter(long_keys::id.eq(keys[500]));
            let plan = $plan(&mut connection, keys[500])?;
            assert!(plan.contains($index), "{plan}");
            assert_eq!(wanted.count().get_result::<i64>(&mut connection)?, 1);
            connection.revert_last_migration(migrations)?;
            assert!(wanted.count().get_result::<i64>(&mut connection).is_err());
            Ok(())
        }
    };
}

pub(crate) use migrations;
