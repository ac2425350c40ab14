//! Refuses a table that another move touches: each has one trigger and one function for a table, and both moves would write
//! them.
//!
//! Two moves share a table if the main table of one is that of the other, refers to it, or is referred to by the same table.
//! So the main table of the other move is among the tables of this one, or one of these refers to it.

use super::{
    mysql::{is_same, refers_to},
    session::Session,
    subject::{literal, named, title},
};
use crate::{engine::Engine, failure::Failure};

/// Returns the reason to wait for another move, if there is one that has begun and is not ended.
///
/// # Errors
///
/// The database refuses.
pub(crate) async fn refusal(
    session: &mut Session,
    schema: Option<&str>,
    name: &str,
) -> Result<Option<String>, Failure> {
    let schema = schema.unwrap_or_default();
    // Each row is a table of this move, and a table whose move would have it, too.
    let (query, find): (_, fn(&str, &str) -> String) = match session.engine() {
        Engine::Postgres => (
            format!(
                "WITH main AS (SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = {} AND \
                 c.relname = {}), moved AS (SELECT oid FROM main UNION SELECT f.conrelid FROM pg_constraint f JOIN main ON \
                 f.confrelid = main.oid WHERE f.contype = 'f'), pairs AS (SELECT oid AS it, oid AS other FROM moved UNION SELECT m.oid, \
                 f.confrelid FROM moved m JOIN pg_constraint f ON f.conrelid = m.oid AND f.contype = 'f') SELECT n.nspname, c.relname, \
                 o.nspname, t.relname FROM pairs p JOIN pg_class c ON c.oid = p.it JOIN pg_namespace n ON n.oid = c.relnamespace JOIN \
                 pg_class t ON t.oid = p.other JOIN pg_namespace o ON o.oid = t.relnamespace WHERE p.other NOT IN (SELECT oid FROM \
                 main) ORDER BY 3, 4, 1, 2",
                literal(schema),
                literal(name)
            ),
            |schema, journal| {
                format!(
                    "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = {} AND c.relname = {}",
                    literal(schema),
                    literal(journal)
                )
            },
        ),
        Engine::Mysql | Engine::Mariadb => {
            let main = format!("SELECT {} AS s, {} AS t", literal(schema), literal(name));
            // UNION alone would take names for one that differ in case alone.
            let moved = format!(
                "{main} UNION ALL SELECT table_schema, table_name FROM information_schema.key_column_usage k WHERE {}",
                refers_to(schema, name)
            );
            (
                format!(
                    "SELECT s, t, other_s, other_t FROM (SELECT s, t, s AS other_s, t AS other_t FROM ({moved}) AS own UNION ALL SELECT m.s, \
                     m.t, k.referenced_table_schema, k.referenced_table_name FROM ({moved}) AS m JOIN \
                     information_schema.key_column_usage k ON {} AND {} WHERE k.referenced_table_name IS NOT NULL) AS pairs WHERE NOT \
                     ({} AND {}) ORDER BY 3, 4, 1, 2",
                    is_same("k.table_schema", "m.s"),
                    is_same("k.table_name", "m.t"),
                    is_same("other_s", &literal(schema)),
                    is_same("other_t", &literal(name))
                ),
                |schema, journal| {
                    format!(
                        "SELECT 1 FROM information_schema.tables WHERE table_schema = {} AND table_name = {}",
                        literal(schema),
                        literal(journal)
                    )
                },
            )
        }
        // A rebuilt table has no triggers of a move, and its plan is refused while the journal of another is there.
        _ => return Ok(None),
    };
    for row in session.rows(&query).await? {
        let [Some(own_schema), Some(own), Some(other_schema), Some(other)] = &row[..] else {
            continue;
        };
        let journal = named("ordid_move_", other, "");
        if session.exists(&find(other_schema, &journal)).await? {
            return Ok(Some(format!(
                "{} is also a table of the move of {}, which is not ended (its journal is {}): end that move first, by --finish or \
                 --rollback",
                title(Some(own_schema), own),
                title(Some(other_schema), other),
                title(Some(other_schema), &journal)
            )));
        }
    }
    Ok(None)
}
