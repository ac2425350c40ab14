//! The libraries, and the ways of inserting that each has.

mod diesel;
mod mysql_async;
mod rusqlite;
mod seaorm;
mod tokio_postgres;

use std::time::Duration;

use bench_common::rates::Role;

use crate::{
    Result,
    orders::Line,
    place::{Engine, Place},
};

/// A way of inserting rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Case {
    /// `UnitOfWork::flush`.
    Flush,
    /// The library's insert of so many rows a statement.
    Many(usize),
    /// The library's `COPY`.
    Copy,
    /// The library's insert of one row.
    One,
}

impl Case {
    pub(crate) fn role(self) -> Role {
        match self {
            Self::Flush => Role::Flush,
            Self::Many(_) | Self::Copy => Role::Peer,
            Self::One => Role::RowByRow,
        }
    }
}

/// How many columns a row has.
const COLUMNS: usize = 6;

/// The flush, statements of some sizes up to the largest that there can be, and row by row.
fn cases(engine: Engine) -> Vec<Case> {
    let most = engine.max_parameters() / COLUMNS;
    let many = [100, 500, 1_000, most].map(Case::Many);
    [Case::Flush]
        .into_iter()
        .chain(many)
        .chain([Case::One])
        .collect()
}

/// A library on an engine.
pub(crate) trait Library {
    fn name(&self) -> &'static str;

    fn cases(&self) -> Vec<Case>;

    /// What a case is called.
    fn title(&self, case: Case) -> String;

    /// Inserts these rows once over a fresh connection, and returns how long it took: from the
    /// library's own structs in memory to the commit.
    fn run(&self, place: &Place, lines: &[Line], case: Case) -> Result<Duration>;
}

/// Every library that there is on an engine.
pub(crate) fn all(engine: Engine) -> Vec<Box<dyn Library>> {
    let diesel: Box<dyn Library> = match engine {
        Engine::Sqlite => Box::new(diesel::sqlite::OnDiesel),
        Engine::Postgres => Box::new(diesel::postgres::OnDiesel),
        Engine::Mariadb => Box::new(diesel::mariadb::OnDiesel),
    };
    let mut all = vec![diesel, Box::new(seaorm::OnSeaOrm(engine))];
    if engine == Engine::Sqlite {
        all.push(Box::new(rusqlite::OnRusqlite));
    }
    if engine == Engine::Mariadb {
        all.push(Box::new(mysql_async::OnMysqlAsync));
    }
    if engine == Engine::Postgres {
        all.push(Box::new(tokio_postgres::OnTokioPostgres));
    }
    all
}
