use std::{
    cell::RefCell,
    collections::VecDeque,
    sync::{Arc, atomic::AtomicUsize},
};

use ordid_core::storage::dialect::Postgres;

use super::*;
use crate::spi::blocking as ready;

/// A scripted database, whose connections are numbered.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Result<(), Remedy>>>,
    log: Mutex<Vec<usize>>,
    connections: AtomicUsize,
}

impl Script {
    fn says(answers: impl IntoIterator<Item = Result<(), Remedy>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        })
    }

    /// The connection of each question.
    fn log(&self) -> Vec<usize> {
        self.log.lock().unwrap().clone()
    }
}

fn error() -> Error {
    Error::coordination(CoordinationFailure::Unavailable, "as the test asks")
}

thread_local! {
    /// The pauses, in milliseconds.
    static PAUSES: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
}

/// A connection, which knows its script.
type Numbered = (usize, Arc<Script>);

struct Scripted;

impl StoreDriver for Scripted {
    type Dialect = Postgres;
    type Options = Arc<Script>;
    type Connection = Numbered;

    const SURVIVES_FORKS: bool = true;

    async fn connect(script: &Arc<Script>, _: Duration) -> Result<Numbered, Error> {
        let number = script.connections.fetch_add(1, Ordering::Relaxed);
        Ok((number, Arc::clone(script)))
    }

    async fn ask(
        (number, script): &mut Numbered,
        _: &Statement,
        _: &[Value<'_>],
    ) -> Result<Answer, Unanswered> {
        script.log.lock().unwrap().push(*number);
        let answer = script.answers.lock().unwrap().pop_front();
        let answer = answer.unwrap_or(Ok(()));
        answer
            .map(|()| Answer::default())
            .map_err(|remedy| Unanswered {
                error: error(),
                remedy,
            })
    }

    async fn run(_: &mut Numbered, _: String) -> Result<(), Error> {
        std::future::pending().await
    }

    async fn pause(pause: Duration) {
        PAUSES.with_borrow_mut(|pauses| pauses.push(pause.as_millis()));
    }
}

/// A store over a script, with a statement that may be repeated and one that may not.
fn store(script: &Arc<Script>) -> Store<Scripted> {
    Store::new(Arc::clone(script))
}

fn ask(store: &Store<Scripted>, twice: bool) -> Result<(), Error> {
    let statement = Statement::changes::<Postgres>("x", "DELETE FROM {t}");
    let statement = match twice {
        true => statement.repeatable(),
        false => statement,
    };
    ready(store.send(&statement, &[])).map(drop)
}

/// Keeps a connection of this number.
fn keep(store: &Store<Scripted>, number: usize) {
    store.keep((number, Arc::clone(&store.options)));
}

#[test]
fn a_connection_that_answered_is_reused() {
    let script = Script::says([]);
    let store = store(&script);
    for _ in 0..3 {
        ask(&store, false).unwrap();
    }
    assert_eq!(script.log(), [0, 0, 0]);
}

#[test]
fn a_connection_that_failed_is_not_reused() {
    for remedy in [Remedy::None, Remedy::Replace] {
        let script = Script::says([Ok(()), Err(remedy)]);
        let store = store(&script);
        assert_eq!(ask(&store, false), Ok(()));
        let failed = ask(&store, false);
        assert_eq!(failed, Err(error()), "it is not known whether it was done");
        assert_eq!(ask(&store, false), Ok(()));
        assert_eq!(script.log(), [0, 0, 1], "{remedy:?}");
    }
}

#[test]
fn a_statement_that_was_rolled_back_is_repeated_on_the_same_connection() {
    PAUSES.take();
    let script = Script::says([Err(Remedy::Repeat); 12]);
    ask(&store(&script), false).unwrap();
    assert_eq!(script.log(), [0; 13]);
    assert_eq!(PAUSES.take(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10]);
}

#[test]
fn a_statement_that_is_always_rolled_back_is_given_up() {
    let script = Script::says([Err(Remedy::Repeat); 100]);
    assert_eq!(ask(&store(&script), true), Err(error()));
    assert_eq!(script.log().len(), 50);
}

/// All that were idle are as old as the one that was closed, so none of them is tried.
#[test]
fn an_idempotent_statement_is_repeated_if_an_idle_connection_was_closed() {
    let script = Script::says([Ok(()), Ok(()), Err(Remedy::Replace)]);
    let used = store(&script);
    assert!(used.idle().unwrap().is_empty());
    // Two that are used at the same time.
    keep(&used, 7);
    keep(&used, 8);
    for _ in 0..3 {
        ask(&used, true).unwrap();
    }
    assert_eq!(script.log(), [8, 8, 8, 0]);
    // A new connection that is lost was not closed because it was idle.
    let script = Script::says([Err(Remedy::Replace)]);
    assert_eq!(ask(&store(&script), true), Err(error()));
    assert_eq!(script.log(), [0]);
}

/// If a library waits in its calls, nothing is sent again once they have taken too long together.
#[test]
fn a_statement_that_timed_out_is_not_repeated() {
    for remedy in [Remedy::Repeat, Remedy::Replace] {
        let script = Script::says([Err(remedy)]);
        let mut store = store(&script);
        store.set_timeout(Duration::ZERO);
        keep(&store, 7);
        assert_eq!(ask(&store, true), Err(error()));
        assert_eq!(script.log(), [7]);
    }
}

#[test]
fn a_missing_answer_is_reported_as_a_timeout() {
    let mut store = store(&Script::says([]));
    store.set_timeout(Duration::ZERO);
    assert_eq!(
        ready(store.run(String::new())).unwrap_err().to_string(),
        "the store is unavailable: PostgreSQL gave no answer within 0ns"
    );
    // An answer that is there counts, however late it is.
    let there = store.within(std::future::ready(Ok(7)));
    assert_eq!(ready(there), Ok(7));
}

#[test]
fn only_a_few_idle_connections_are_kept() {
    let store = store(&Script::says([]));
    for number in 0..9 {
        keep(&store, number);
    }
    let kept: Vec<usize> = store.idle().unwrap().iter().map(|it| it.0).collect();
    assert_eq!(kept, [0, 1, 2, 3]);
}

/// Each new connection is checked once, and is not used if its answer is refused.
#[test]
fn a_new_connection_is_checked() {
    let script = Script::says([Ok(()), Ok(()), Ok(()), Ok(()), Err(Remedy::Repeat)]);
    let mut store = store(&script);
    let refuses = Arc::new(Mutex::new(Err(error())));
    let said = Arc::clone(&refuses);
    let check = Statement::reads::<Postgres>("x", "SELECT 1");
    store.set_check(check, move |_| said.lock().unwrap().clone());
    assert_eq!(ask(&store, false), Err(error()));
    *refuses.lock().unwrap() = Ok(());
    ask(&store, false).unwrap();
    ask(&store, false).unwrap();
    assert_eq!(script.log(), [0, 1, 1, 1]);
    store.idle().unwrap().clear();
    assert_eq!(ask(&store, false), Err(error()), "of the check itself");
}

/// Makes the store look as a fork's child finds it: its connections belong to another process.
#[test]
fn connections_of_another_process_are_not_used() {
    let script = Script::says([]);
    let parents = || {
        let store = store(&script);
        keep(&store, 7);
        store
            .process
            .store(process().to_bits() + 1, Ordering::Release);
        store
    };
    // A connection that is not closed still holds its script.
    let held = Arc::strong_count(&script);
    let first = parents();
    let refused = first.refuse_forks().unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("where it must not be used"), "{said}");
    assert!(first.idle().unwrap().is_empty(), "they are the parent's");
    first.refuse_forks().unwrap();
    drop(first);
    // Nor are they closed by one that never used them.
    drop(parents());
    // In the child of a fork that was made while somebody had the lock.
    let locked = parents();
    let lock = locked.idle.lock().unwrap();
    assert!(locked.idle().is_none());
    drop(lock);
    drop(locked);
    assert_eq!(Arc::strong_count(&script), held + 3, "one was closed");
}
