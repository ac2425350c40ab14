use std::{
    collections::VecDeque,
    pin::pin,
    sync::atomic::AtomicUsize,
    task::{Context, Poll, Waker},
};

use super::*;

/// A database that says what it was told to, over connections that have numbers.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Result<(), Remedy>>>,
    log: Mutex<Vec<usize>>,
    connections: AtomicUsize,
    pauses: Mutex<Vec<u128>>,
}

impl Script {
    fn says(answers: impl IntoIterator<Item = Result<(), Remedy>>) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        }
    }

    /// The connection of each question.
    fn log(&self) -> Vec<usize> {
        self.log.lock().unwrap().clone()
    }
}

fn error() -> Error {
    Error::coordination(CoordinationFailure::Unavailable, "as the test asks")
}

impl Exchange for Script {
    type Connection = usize;
    type Answer = ();

    async fn connect(&self) -> Result<usize, Error> {
        Ok(self.connections.fetch_add(1, Ordering::Relaxed))
    }

    async fn ask(&self, connection: &mut usize) -> Result<(), Unanswered> {
        self.log.lock().unwrap().push(*connection);
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or(Ok(()));
        answer.map_err(|remedy| Unanswered {
            error: error(),
            remedy,
        })
    }

    async fn pause(&self, pause: Duration) {
        self.pauses.lock().unwrap().push(pause.as_millis());
    }
}

/// Of futures that do not wait.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

#[test]
fn a_connection_that_answered_is_reused() {
    let connections = Connections::new();
    let script = Script::default();
    for _ in 0..3 {
        ready(connections.exchange(&script, false)).unwrap();
    }
    assert_eq!(script.log(), [0, 0, 0]);
}

#[test]
fn a_connection_that_failed_is_not_reused() {
    let connections = Connections::new();
    for remedy in [Remedy::None, Remedy::Replace] {
        let script = Script::says([Ok(()), Err(remedy)]);
        let ask = || ready(connections.exchange(&script, false));
        assert_eq!(ask(), Ok(()));
        assert_eq!(ask(), Err(error()), "it is not known whether it was done");
        assert_eq!(ask(), Ok(()));
        assert_eq!(script.log(), [0, 0, 1], "{remedy:?}");
        connections.idle().unwrap().clear();
    }
}

#[test]
fn a_statement_that_was_rolled_back_is_repeated_on_the_same_connection() {
    let connections = Connections::new();
    let script = Script::says([Err(Remedy::Repeat); 12]);
    ready(connections.exchange(&script, false)).unwrap();
    assert_eq!(script.log(), [0; 13]);
    let pauses = script.pauses.lock().unwrap().clone();
    assert_eq!(pauses, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10]);
}

#[test]
fn a_statement_that_is_always_rolled_back_is_given_up() {
    let connections = Connections::new();
    let script = Script::says([Err(Remedy::Repeat); 100]);
    assert_eq!(ready(connections.exchange(&script, true)), Err(error()));
    assert_eq!(script.log().len(), 50);
}

/// All that were idle are as old as the one that was closed, so none of them is tried.
#[test]
fn an_idempotent_statement_is_repeated_if_an_idle_connection_was_closed() {
    let connections = Connections::new();
    let script = Script::says([Ok(()), Ok(()), Err(Remedy::Replace)]);
    // Two that are used at the same time.
    let held = connections.idle().unwrap().pop();
    assert_eq!(held, None);
    connections.keep(7);
    connections.keep(8);
    ready(connections.exchange(&script, true)).unwrap();
    ready(connections.exchange(&script, true)).unwrap();
    ready(connections.exchange(&script, true)).unwrap();
    assert_eq!(script.log(), [8, 8, 8, 0]);
    // A new one that is lost is no accident of age.
    let connections = Connections::new();
    let script = Script::says([Err(Remedy::Replace)]);
    assert_eq!(ready(connections.exchange(&script, true)), Err(error()));
    assert_eq!(script.log(), [0]);
}

/// A library that waits in its calls is asked no more once they have taken too long together.
#[test]
fn a_statement_that_timed_out_is_not_repeated() {
    let mut connections = Connections::new();
    connections.set_timeout(Duration::ZERO);
    for remedy in [Remedy::Repeat, Remedy::Replace] {
        connections.keep(7);
        let script = Script::says([Err(remedy)]);
        assert_eq!(ready(connections.exchange(&script, true)), Err(error()));
        assert_eq!(script.log(), [7]);
    }
}

#[test]
fn a_missing_answer_is_reported_as_a_timeout() {
    let mut connections = Connections::<usize>::new();
    connections.set_timeout(Duration::ZERO);
    let never = connections.within("the database", std::future::pending::<Result<(), Error>>());
    assert_eq!(
        ready(never).unwrap_err().to_string(),
        "the store is unavailable: the database gave no answer within 0ns"
    );
    // One that is there is taken, whatever the time.
    let there = connections.within("the database", std::future::ready(Ok(7)));
    assert_eq!(ready(there), Ok(7));
}

#[test]
fn only_a_few_idle_connections_are_kept() {
    let connections = Connections::new();
    for number in 0..9 {
        connections.keep(number);
    }
    assert_eq!(*connections.idle().unwrap(), [0, 1, 2, 3]);
}

/// What a fork leaves behind, without the fork: of another process.
#[test]
fn connections_of_another_process_are_not_used() {
    struct Closed<'t>(&'t AtomicUsize);

    impl Drop for Closed<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    let closed = AtomicUsize::new(0);
    let parents = || {
        let connections = Connections::new();
        connections.keep(Closed(&closed));
        connections.process.store(process() + 1, Ordering::Release);
        connections
    };
    let connections = parents();
    let refused = connections.refuse_forks("the database").unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("where it must not be used"), "{said}");
    assert!(
        connections.idle().unwrap().is_empty(),
        "they are the parent's"
    );
    connections.refuse_forks("the database").unwrap();
    drop(connections);
    // Nor are they closed by one that never used them.
    drop(parents());
    // In the child of a fork that was made while somebody had the lock.
    let connections = parents();
    let lock = connections.idle.lock().unwrap();
    assert!(connections.idle().is_none());
    drop(lock);
    drop(connections);
    assert_eq!(closed.load(Ordering::Relaxed), 0);
}
