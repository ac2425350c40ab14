//! Tests of the tests: they could not fail were the foreign keys not checked, neither by constraints nor
//! row by row.

use libtest_mimic::Trial;
use ordid::uuid::Uuid;
use sqlx::{MySql, Pool, Postgres, Sqlite};

use super::{
    Engine, NAMES, UP,
    schema::{ANCHOR, KINDS, Schema},
};
use crate::{
    servers::Servers,
    trials::{Outcome, on_scratch, run},
};

/// Adds them.
pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    const NAME: &str = "a_row_without_its_parent_is_refused";
    trials.push(Trial::test(format!("sqlite::{NAME}"), || {
        run(|| refused::<Sqlite>(None))
    }));
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", NAME, |pool| {
        refused(Some(pool))
    });
    on_scratch::<MySql, _, _>(trials, servers, "mariadb", NAME, |pool| refused(Some(pool)));
}

/// Of schemas of each kind, each foreign key; with triggers and without, where there are any.
async fn refused<DB: Engine>(mut pool: Option<Pool<DB>>) -> Outcome {
    let folder = tempfile::tempdir()?;
    let (mut by_constraint, mut by_trigger) = (0, 0);
    for number in 0..2 * KINDS as u64 {
        let schema = Schema::draw::<DB>(number);
        let made = DB::create(pool, folder.path(), &schema).await?;
        for (table, links) in schema.links.iter().enumerate() {
            for (column, link) in links.iter().enumerate().filter(|(_, link)| link.declared) {
                let refused = DB::execute_sql(&made, orphan::<DB>(table, column)).await;
                let refused = refused.err().ok_or("a row is taken without its parent")?;
                let refused = refused.as_database_error().ok_or("of the database")?;
                if DB::TRIGGERS && schema.by_row && !link.deferrable {
                    assert_eq!(refused.message(), "a row without its parent");
                    by_trigger += 1;
                } else {
                    assert!(refused.is_foreign_key_violation(), "{refused}");
                    by_constraint += 1;
                }
            }
        }
        pool = Some(made);
    }
    assert!(by_constraint > 100 && (by_trigger > 100 || !DB::TRIGGERS));
    Ok(())
}

/// Inserts a row that refers to none by this column.
fn orphan<DB: Engine>(table: usize, column: usize) -> String {
    let [missing, id] = [7, 9].map(|key| DB::literal(Uuid::from_u128(key)));
    let anchor = DB::literal(ANCHOR);
    let up: Vec<&str> = (0..UP.len())
        .map(|it| if it == column { &*missing } else { &*anchor })
        .collect();
    format!(
        "INSERT INTO {} (id, {}) VALUES ({id}, {})",
        NAMES[table],
        UP.join(", "),
        up.join(", ")
    )
}
