//! A scripted database for tests.

use std::{
    marker::PhantomData,
    sync::{Arc, Mutex},
    time::Duration,
};

use ordid_core::Error;

use super::{
    Remedy, StoreDriver, Unanswered,
    numbers::{Answer, LeaseDialect, Statement, Value},
};

/// Says what it is told, and writes down what it is asked.
#[derive(Default)]
pub(super) struct Script {
    answers: Mutex<Vec<Result<Answer, Error>>>,
    asked: Mutex<Vec<(Arc<str>, Vec<String>)>>,
}

impl Script {
    pub(super) fn new(answers: Vec<Result<Answer, Error>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers),
            ..Self::default()
        })
    }

    /// The texts of what was asked since the last call.
    pub(super) fn texts(&self) -> Vec<Arc<str>> {
        let asked = core::mem::take(&mut *self.asked.lock().unwrap());
        asked.into_iter().map(|(sql, _)| sql).collect()
    }

    /// What was asked since the last call: the first word, and the parameters.
    pub(super) fn asked(&self) -> Vec<(String, Vec<String>)> {
        let asked = core::mem::take(&mut *self.asked.lock().unwrap());
        let word = |sql: &str| sql.split(' ').next().unwrap_or_default().to_string();
        asked
            .into_iter()
            .map(|(sql, it)| (word(&sql), it))
            .collect()
    }
}

/// A database of this dialect, over a script.
pub(super) struct Scripted<D>(PhantomData<fn() -> D>);

impl<D: LeaseDialect> StoreDriver for Scripted<D> {
    type Dialect = D;
    type Options = Arc<Script>;
    type Connection = Arc<Script>;

    const SURVIVES_FORKS: bool = true;

    async fn connect(script: &Arc<Script>, _: Duration) -> Result<Arc<Script>, Error> {
        Ok(Arc::clone(script))
    }

    async fn ask(
        script: &mut Arc<Script>,
        statement: &Statement,
        values: &[Value<'_>],
    ) -> Result<Answer, Unanswered> {
        let values = values.iter().map(|value| match value {
            Value::Number(number) => number.to_string(),
            Value::Text(text) => (*text).to_owned(),
        });
        let asked = (Arc::clone(statement.sql()), values.collect());
        script.asked.lock().unwrap().push(asked);
        let answer = script.answers.lock().unwrap().remove(0);
        answer.map_err(|error| Unanswered {
            error,
            remedy: Remedy::None,
        })
    }

    async fn run(script: &mut Arc<Script>, sql: String) -> Result<(), Error> {
        script.asked.lock().unwrap().push((sql.into(), Vec::new()));
        Ok(())
    }
}

pub(super) fn rows(rows: Vec<Vec<i64>>) -> Result<Answer, Error> {
    Ok(Answer {
        rows,
        ..Answer::default()
    })
}

pub(super) fn changed(changed: u64) -> Result<Answer, Error> {
    Ok(Answer {
        changed,
        ..Answer::default()
    })
}
