//! An ordered UUID beside auto-increment: time, data, index.

use ordid_core::{
    scheme::UuidV7,
    storage::{
        column::{Binary16, Char22, Char36},
        dialect::MariaDb,
    },
};
use sqlx::MySql;

use super::{Finding, Outcome};
use crate::{
    engine::{Engine, Result},
    key::{Arrival, Case},
    load,
    report::Line,
};

pub(super) async fn run(rows: u32) -> Result<Vec<Finding>> {
    let Ok(mut database) = MySql::open().await? else {
        return Ok(Vec::new());
    };
    let auto = Case::automatic("auto-increment", "BIGINT AUTO_INCREMENT");
    let steady = &[Arrival::Steady];
    let forms = [
        Case::of::<UuidV7, Binary16, MariaDb>("v7", steady),
        Case::of::<UuidV7, Char22, MariaDb>("v7", steady),
        Case::of::<UuidV7, Char36, MariaDb>("v7", steady),
    ];
    let auto = load::<MySql>(&mut database, &auto, Arrival::Any, rows).await?;
    let mut lines = Vec::new();
    for case in &forms {
        lines.push(load::<MySql>(&mut database, case, Arrival::Steady, rows).await?);
    }
    MySql::close(database).await?;

    let size = |line: &Line| line.figures[1];
    let ordered = &lines[0];
    let time = auto.rate / ordered.rate;
    let data = size(ordered) / size(&auto);
    let sizes: Vec<_> = lines
        .iter()
        .map(|line| format!("{:.0}", size(line)))
        .collect();
    Ok(vec![
        Finding {
            claim: "an ordered UUID inserts about as fast as auto-increment, into about as much data",
            source: "about equal",
            ours: format!("time {time:.2} x, data {data:.2} x"),
            outcome: Outcome::of(time <= 1.5 && data <= 1.2),
        },
        Finding {
            claim: "of the UUID's forms, 16 bytes take the least",
            source: "smallest",
            ours: format!("{} MB (16 bytes, 22, 36 characters)", sizes.join(", ")),
            outcome: Outcome::of(lines[1..].iter().all(|line| size(ordered) < size(line))),
        },
    ])
}
