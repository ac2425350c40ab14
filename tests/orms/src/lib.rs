//! The chapters of the guide that need Diesel, SeaORM, rusqlite, tokio-postgres or mysql_async, whose examples must compile and run.

#[cfg(doctest)]
pub mod _documentation {
    #[doc = include_str!("../../../docs/src/start/diesel.md")]
    pub mod diesel {}
    #[doc = include_str!("../../../docs/src/start/seaorm.md")]
    pub mod seaorm {}
    #[doc = include_str!("../../../docs/src/start/sql-by-hand.md")]
    pub mod sql_by_hand {}
}
