//! The chapters of the guide that need the libraries of object-relational mappers, whose examples must compile and run.

#[cfg(doctest)]
pub mod _documentation {
    #[doc = include_str!("../../../docs/src/start/diesel.md")]
    pub mod diesel {}
    #[doc = include_str!("../../../docs/src/start/seaorm.md")]
    pub mod seaorm {}
}
