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
