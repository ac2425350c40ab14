//! One commit over several databases: what the parts of a flush know of each other.
//!
//! ```text
//! participants   BEGIN .. rows, marker row .. PREPARE TRANSACTION --- vote ---+         +-- COMMIT PREPARED
//! (at once)                                                                   v         |
//! decision shard                                        BEGIN .. rows, markers D, F .. COMMIT: the decision
//! ```
//!
//! The first shard with rows decides, when all others are prepared. Its transaction is an ordinary one, retried and
//! resolved like any other. It inserts two marker rows: D says that the flush is committed, and F is its *fence*. Who
//! recovers prepared transactions without D inserts F alone: from then on no transaction with that F can be committed.
//! So D alone is the journal, and anybody who reaches the databases can recover, also beside a living process.
//!
//! Preparing is an ordinary flush, too, with another COMMIT: what a probe looks for is the prepared transaction. Its
//! marker row keeps two attempts apart, and says later whether a prepared transaction that is gone was committed.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use ordid_core::{Error, uuid::Uuid};

use crate::{EngineProfile, Flushed, in_chunks::marker_of, spi::RowBinder};

pub(crate) mod recover;
mod statements;

pub use self::statements::TwoPhase;

/// What the ids of prepared transactions begin with.
pub(crate) const PREFIX: &str = "ordid";

/// The longest name of a set of databases. An id then has less than 64 bytes, as XA allows.
const MAX_NAME: usize = 16;

/// The most databases, for the same reason.
const MAX_SHARDS: usize = 1_000;

/// The id of a prepared transaction: `ordid:<name>:<flush>:<decision shard>:<shard>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gid {
    pub(crate) name: String,
    /// The key of the marker row that decides.
    pub(crate) flush: Uuid,
    pub(crate) decides: usize,
    pub(crate) shard: usize,
}

impl Gid {
    pub(crate) fn text(&self) -> String {
        let Self {
            name,
            flush,
            decides,
            shard,
        } = self;
        format!("{PREFIX}:{name}:{}:{decides}:{shard}", flush.simple())
    }

    /// Reads an id; `None` if it is not one of ordid's.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let mut next = || parts.next();
        if next()? != PREFIX {
            return None;
        }
        let gid = Self {
            name: next()?.to_owned(),
            flush: next()?.parse().ok()?,
            decides: next()?.parse().ok()?,
            shard: next()?.parse().ok()?,
        };
        (gid.text() == text).then_some(gid)
    }
}

/// Refuses a name that could not stand in an id.
///
/// # Errors
///
/// An error that [`is_plan`](Error::is_plan).
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-');
    match (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(Error::plan(format!(
            "the name {name:?} of a set of databases has to have 1 to {MAX_NAME} letters, digits, `_` or `-`"
        ))),
    }
}

/// Refuses an engine that cannot take part in a two-phase commit, and a library that cannot over XA.
///
/// # Errors
///
/// An error that [`is_plan`](Error::is_plan).
pub(crate) fn check_engine<B: RowBinder>(
    engine: &EngineProfile,
    shard: usize,
) -> Result<(), Error> {
    let (name, guide) = (engine.name, engine.guide);
    match engine.two_phase {
        TwoPhase::None => Err(Error::plan(format!(
            "shard {shard} is {name}, which has no two-phase commit here: leave `two_phase_commit` out, or use PostgreSQL, \
             MySQL or MariaDB (see {guide})"
        ))),
        TwoPhase::Xa if !B::BEGINS_XA => Err(Error::plan(format!(
            "shard {shard} is {name}, whose transactions are prepared by XA, and this library begins its transactions \
             itself, so that `XA START` cannot be sent: leave `two_phase_commit` out, or use SQLx (`ordid-sqlx`), \
             mysql_async (`ordid-mysql-async`) or, on MariaDB, Diesel (`ordid-diesel`) for these databases"
        ))),
        TwoPhase::PrepareTransaction | TwoPhase::Xa => Ok(()),
    }
}

/// Refuses more databases than ids can name.
///
/// # Errors
///
/// An error that [`is_plan`](Error::is_plan).
pub(crate) fn check_shards(shards: usize) -> Result<(), Error> {
    match shards <= MAX_SHARDS {
        true => Ok(()),
        false => Err(Error::plan(format!(
            "a two-phase commit takes at most {MAX_SHARDS} databases, not {shards}"
        ))),
    }
}

/// Whether a two-phase commit is to be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// That is open.
    Open,
    /// The decision shard is committed.
    Commit,
    /// It is not, and will not be.
    Abort,
    /// The answer to its COMMIT was lost, and it could not be found out.
    Unknown,
}

/// What the parts of one flush share.
#[derive(Debug)]
pub(crate) struct Coordinator {
    name: String,
    /// The key of the marker row that decides.
    id: Uuid,
    decides: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How many participants have not voted.
    waits_for: usize,
    decision: Decision,
    /// How often this has changed.
    version: u64,
}

impl Coordinator {
    pub(crate) fn new(name: &str, decides: usize) -> Self {
        Self {
            name: name.to_owned(),
            id: crate::flush_run::new_id(),
            decides,
            state: Mutex::new(State {
                waits_for: 0,
                decision: Decision::Open,
                version: 0,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        state.version += 1;
    }

    pub(crate) fn decision(&self) -> Decision {
        self.state().decision
    }

    /// Returns a number that rises when a part may go on. No part is woken: whoever polls one part polls all of them
    /// until this number stays the same.
    pub(crate) fn version(&self) -> u64 {
        self.state().version
    }

    /// Begins with so many participants, perhaps once more.
    pub(crate) fn begin(&self, participants: usize) {
        self.change(|state| {
            state.waits_for = participants;
            if state.decision == Decision::Unknown {
                state.decision = Decision::Open;
            }
        });
    }

    /// Says that a participant is prepared.
    pub(crate) fn vote(&self) {
        self.change(|state| state.waits_for = state.waits_for.saturating_sub(1));
    }

    pub(crate) fn decide(&self, decision: Decision) {
        self.change(|state| state.decision = decision);
    }

    /// Says that a part has failed, and returns the decision. If it is open so far, the part has not said how it failed,
    /// and the others must not wait for it. `may_be_committed` says whether an earlier flush may have decided.
    pub(crate) fn failed(&self, may_be_committed: bool) -> Decision {
        if self.decision() == Decision::Open {
            self.decide(match may_be_committed {
                true => Decision::Unknown,
                false => Decision::Abort,
            });
        }
        self.decision()
    }

    /// Returns whether all participants are prepared, once they are or one of them has failed.
    pub(crate) async fn are_prepared(&self) -> bool {
        self.until(|state| match state {
            State {
                decision: Decision::Abort | Decision::Unknown,
                ..
            } => Some(false),
            State { waits_for: 0, .. } => Some(true),
            _ => None,
        })
        .await
    }

    /// Returns the decision, once there is one.
    pub(crate) async fn decided(&self) -> Decision {
        self.until(|state| (state.decision != Decision::Open).then_some(state.decision))
            .await
    }

    async fn until<T>(&self, ready: impl Fn(&State) -> Option<T>) -> T {
        poll_fn(|_| match ready(&self.state()) {
            Some(value) => Poll::Ready(value),
            None => Poll::Pending,
        })
        .await
    }
}

/// The part of one shard in a two-phase commit.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) coordinator: Arc<Coordinator>,
    shard: usize,
    pub(crate) stage: Stage,
    /// Whether the unit of work has changed since the flush.
    pub(crate) has_changed: bool,
}

/// How far a participant is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Nothing is prepared.
    Working,
    /// PREPARE was sent.
    Sent,
    /// The transaction is prepared, and has written this.
    Prepared(Flushed),
    /// The flush is committed, and somebody has rolled back what was prepared. The rows can only be written alone.
    Vanished,
}

impl Part {
    pub(crate) fn new(coordinator: &Arc<Coordinator>, shard: usize) -> Self {
        Self {
            coordinator: Arc::clone(coordinator),
            shard,
            stage: Stage::Working,
            has_changed: false,
        }
    }

    /// Returns whether this is the part that decides.
    pub(crate) fn decides(&self) -> bool {
        self.coordinator.decides == self.shard
    }

    /// Returns the key of the part's marker row.
    pub(crate) fn marker(&self) -> Uuid {
        match self.decides() {
            true => self.coordinator.id,
            false => marker_of(self.coordinator.id, 2 + self.shard as u64),
        }
    }

    /// Returns the key of the marker row that only one transaction can insert: the one that decides to commit, or the
    /// one of a recovery.
    pub(crate) fn fence(&self) -> Option<Uuid> {
        self.decides().then(|| fence_of(self.coordinator.id))
    }

    /// Returns the id of the prepared transaction of a participant.
    pub(crate) fn gid(&self) -> Option<String> {
        let gid = || Gid {
            name: self.coordinator.name.clone(),
            flush: self.coordinator.id,
            decides: self.coordinator.decides,
            shard: self.shard,
        };
        (!self.decides()).then(|| gid().text())
    }

    /// Returns the id of a transaction that may be prepared.
    pub(crate) fn prepared_gid(&self) -> Option<String> {
        match self.stage {
            Stage::Working | Stage::Vanished => None,
            Stage::Sent | Stage::Prepared(_) => self.gid(),
        }
    }
}

/// Returns the key of the fence of a flush.
pub(crate) fn fence_of(flush: Uuid) -> Uuid {
    marker_of(flush, 1)
}

#[cfg(test)]
mod tests {
    use ordid_core::KeyType as _;

    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written_and_fits_into_xa() {
        let gid = Gid {
            name: "a".repeat(MAX_NAME),
            flush: Uuid::generate(),
            decides: MAX_SHARDS - 1,
            shard: MAX_SHARDS - 1,
        };
        assert!(gid.text().len() < 64, "{}", gid.text());
        assert_eq!(Gid::parse(&gid.text()), Some(gid.clone()));
        for other in [
            "",
            "ordid",
            "other:a:0:0:1",
            &format!("{}:1", gid.text()),
            &gid.text().to_uppercase(),
            &gid.text()[..60],
        ] {
            assert_eq!(Gid::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_needs_no_quotes() {
        for name in ["a", "Shop-2_b", &"x".repeat(16)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "a:b", "a'b", "ä", &"x".repeat(17)] {
            assert!(check_name(name).unwrap_err().is_plan(), "{name}");
        }
        assert!(check_shards(1_000).is_ok() && check_shards(1_001).is_err());
    }

    #[test]
    fn all_marker_rows_of_a_flush_have_keys_of_their_own() {
        let coordinator = Arc::new(Coordinator::new("a", 0));
        let parts: Vec<_> = (0..MAX_SHARDS)
            .map(|shard| Part::new(&coordinator, shard))
            .collect();
        let mut keys: Vec<_> = parts.iter().map(Part::marker).collect();
        keys.extend(parts.iter().filter_map(Part::fence));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), MAX_SHARDS + 1);
    }
}
