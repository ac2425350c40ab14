//! Several nodes, each with its own rising keys that begin with the node.

use sqlx::{MySql, Postgres};

use super::{Finding, Outcome};
use crate::{
    engine::{Engine, Result},
    key::{Arrival, Case},
    load,
};

/// How many nodes take turns, a statement each.
const NODES: u32 = 16;

pub(super) async fn run(rows: u32) -> Result<Vec<Finding>> {
    let claim = "nodes whose keys begin with the node hurt each other (SQL Server)";
    let source = "more I/O; no figure";
    let mut findings = Vec::new();
    if let Ok(mut database) = MySql::open().await? {
        let [node_first, time_first] = both::<MySql>(&mut database, rows, "BINARY(16)").await?;
        MySql::close(database).await?;
        findings.push(Finding {
            claim,
            source,
            ours: format!(
                "MariaDB, {NODES} nodes: {node_first:.1} rows a leaf, time first {time_first:.1}"
            ),
            outcome: Outcome::NotJudged("of another engine"),
        });
    }
    if let Ok(mut database) = Postgres::open().await? {
        let [node_first, time_first] = both::<Postgres>(&mut database, rows, "uuid").await?;
        Postgres::close(database).await?;
        findings.push(Finding {
            claim,
            source,
            ours: format!(
                "PostgreSQL, {NODES} nodes: leaf density {node_first:.1}, time first \
                 {time_first:.1}"
            ),
            outcome: Outcome::NotJudged("of another engine"),
        });
    }
    Ok(findings)
}

/// Returns how full leaves get where the node comes first, and where the time does.
async fn both<DB: Engine>(
    database: &mut DB::Open,
    rows: u32,
    declared: &'static str,
) -> Result<[f64; 2]> {
    let mut full = [0.0; 2];
    for (node_first, full) in [true, false].into_iter().zip(&mut full) {
        let case = Case::of_nodes(NODES, node_first, declared);
        let line = load::<DB>(database, &case, Arrival::Burst, rows).await?;
        let figure = if DB::SERVER == "postgres" { 1 } else { 0 };
        *full = line.figures[figure];
    }
    Ok(full)
}
