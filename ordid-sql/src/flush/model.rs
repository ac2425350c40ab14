//! A search through every order of events around a flush: commits that are lost, late or refused, probes that are
//! stale or hidden, several attempts that are alive at once, and another flush after an unknown outcome.
//!
//! In each state that can be reached, [`World::judge`] holds the outcome against the database: law 6. The last tests
//! show that the search finds the lies of rules that were in use before.

use std::collections::HashSet;

use super::{
    Failure::{Duplicate, Lost, Refused, Transient},
    *,
};
use crate::Action;

/// When the database compares the keys of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Compared {
    /// By each statement.
    AtOnce,
    /// At COMMIT: `DEFERRABLE INITIALLY DEFERRED`.
    AtCommit,
    /// Never: no unique index holds the key alone.
    Never,
}

/// A server, or a cluster, and the flush that runs there.
#[derive(Debug, Clone, Copy)]
struct Setting {
    keys: Compared,
    /// Whether a lock holds on all servers. Where it does not, conflicts are found at COMMIT.
    has_global_locks: bool,
    /// Whether a probe may ask a server that is behind.
    is_stale: bool,
    /// Whether the row that a probe looks for cannot be seen.
    is_hidden: bool,
    /// Whether the flush writes a marker row.
    records: bool,
    /// Whether it reads rows before its COMMIT.
    reads: bool,
    /// Whether the flush updates rows and writes no marker row, so that nothing refuses them a second time.
    is_unmarked: bool,
    /// Whether the flush does not learn what it has to know of its server, to show why it has to.
    untold: bool,
    /// Whether a probe reads what is not committed.
    is_dirty: bool,
    /// A rule that is not true, to show that the search finds its lies.
    rule: Option<Rule>,
}

/// A rule that was in use before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// A COMMIT that is refused resolves an older one, since the database took all rows.
    RefusedCommit,
    /// A duplicate, and then a probe that finds nothing, say that nothing was written.
    DuplicateAndNothingFound,
    /// Updates without a marker row are sent again where a probe finds nothing.
    UnmarkedChangesAreRepeated,
    /// The flush after an unknown outcome writes a marker row although the first one wrote none.
    MarkedLater,
}

impl Setting {
    const PLAIN: Self = Self {
        keys: Compared::AtOnce,
        has_global_locks: true,
        is_stale: false,
        is_hidden: false,
        records: false,
        reads: false,
        is_unmarked: false,
        untold: false,
        is_dirty: false,
        rule: None,
    };

    /// All settings that a flush has to survive.
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for keys in [Compared::AtOnce, Compared::AtCommit, Compared::Never] {
            // A failure while rows are read has the same effect under all of these.
            let all_bits = match keys {
                Compared::AtOnce => 32,
                Compared::AtCommit | Compared::Never => 16,
            };
            for bits in 0..all_bits {
                let bit = |number: u8| bits & (1 << number) != 0;
                all.push(Self {
                    keys,
                    has_global_locks: bit(0),
                    is_stale: bit(1),
                    is_hidden: bit(2),
                    records: bit(3),
                    reads: bit(4),
                    ..Self::PLAIN
                });
            }
        }
        all
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Status {
    Open,
    /// Its client is gone; no COMMIT was sent.
    Abandoned,
    /// The COMMIT is on its way, and nobody waits for the answer.
    Committing,
    Committed,
    RolledBack,
}

/// The transaction of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Transaction {
    status: Status,
    /// The number of its server, of two.
    server: u8,
    /// Whether it has inserted the marker row, and rows.
    holds: [bool; 2],
}

const MARKER: usize = 0;
const ROWS: usize = 1;
/// The most attempts that are followed, over all flushes.
const ATTEMPTS: usize = 3;

/// The database, and the flush that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    transactions: Vec<Transaction>,
    state: State,
    records: bool,
    is_unresolved: bool,
    has_global_locks: bool,
    may_repeat: bool,
    failures: u32,
    /// Whether another flush was begun after an unknown outcome.
    resumed: bool,
}

#[derive(Debug, Clone, Copy)]
enum Report {
    Succeeded,
    Failed(Failure),
    Probed(bool),
    /// The deadline has come.
    TimeIsOver,
}

use Report::{Failed, Probed, Succeeded, TimeIsOver};

/// The conflict that a statement of a transaction meets.
enum Conflict {
    None,
    /// Another transaction has committed the key.
    Taken,
    /// Another transaction holds the key, and has not ended.
    Held,
}

/// Everything that a search has found.
#[derive(Debug, Default)]
struct Found {
    seen: HashSet<World>,
    outcomes: HashSet<Outcome>,
    lie: Option<String>,
}

struct Search {
    setting: Setting,
    template: Flush,
}

impl Search {
    /// Goes through all states. Stops at the first lie.
    fn run(setting: Setting) -> Found {
        Self::with(setting, |_| ())
    }

    fn with(setting: Setting, change: impl Fn(&mut Flush)) -> Found {
        let action = match setting.is_unmarked {
            true => Action::Update,
            false => Action::Insert,
        };
        let plan = Plan::of_rows(&[(action, 0, 1)], 1);
        let retry = Retry::DEFAULT.with_attempts(4).with_jitter(false);
        let mut template = Flush::new(plan).with_retry(retry);
        if setting.records {
            template = template.with_record();
        }
        if setting.reads {
            template = template.with_reading();
        }
        if setting.is_unmarked {
            template = template.without_record();
            template.can_probe = setting.rule == Some(Rule::UnmarkedChangesAreRepeated);
        }
        change(&mut template);
        let search = Self { setting, template };
        let mut found = Found::default();
        let mut open = vec![World::of(&search.template)];
        while let Some(world) = open.pop() {
            if found.lie.is_some() || !found.seen.insert(world.clone()) {
                continue;
            }
            if let State::Over(outcome) = world.state {
                found.outcomes.insert(outcome);
            }
            if let Err(lie) = search.judge(&world) {
                found.lie = Some(format!("{lie} under {setting:?}: {world:?}"));
            }
            open.extend(search.next(&world));
        }
        found
    }

    /// Law 6, and that nothing is written twice.
    fn judge(&self, world: &World) -> Result<(), &'static str> {
        let count = |status| {
            let with = world.transactions.iter();
            with.filter(|it| it.status == status).count()
        };
        let committed = count(Status::Committed);
        let may_follow = world.transactions.iter().any(|it| {
            it.status == Status::Committing
                && !matches!(self.conflict_at_commit(world, it), Conflict::Taken)
        });
        if committed > 1 {
            return Err("written twice");
        }
        match world.state {
            State::Over(Outcome::Committed) if committed == 0 => Err("not committed"),
            State::Over(Outcome::Committed) if may_follow => Err("a second commit may follow"),
            State::Over(Outcome::Nothing) if committed > 0 => Err("committed"),
            State::Over(Outcome::Nothing) if may_follow => Err("a commit may follow"),
            _ => Ok(()),
        }
    }

    /// Returns all states that may follow.
    fn next(&self, world: &World) -> Vec<World> {
        let mut next = Vec::new();
        // The server ends transactions by itself.
        for (number, transaction) in world.transactions.iter().enumerate() {
            let mut ends = |status| {
                let mut world = world.clone();
                world.transactions[number].status = status;
                next.push(world);
            };
            match transaction.status {
                Status::Abandoned => ends(Status::RolledBack),
                Status::Committing => {
                    ends(Status::RolledBack);
                    if matches!(self.conflict_at_commit(world, transaction), Conflict::None) {
                        ends(Status::Committed);
                    }
                }
                Status::Open | Status::Committed | Status::RolledBack => {}
            }
        }
        let flush = world.flush(&self.template);
        let step = flush.step();
        if !matches!(step, Step::Done { .. }) {
            next.push(self.after(world, TimeIsOver, |transactions| {
                if let Some(newest) = transactions.last_mut()
                    && newest.status == Status::Open
                {
                    newest.status = match step {
                        Step::Commit => Status::Committing,
                        _ => Status::Abandoned,
                    };
                }
            }));
        }
        match step {
            Step::Begin => {
                next.push(self.after(world, Failed(Lost), |_| ()));
                let servers = if self.setting.has_global_locks { 1 } else { 2 };
                for server in 0..servers {
                    if world.transactions.len() < ATTEMPTS {
                        next.push(self.after(world, Succeeded, |transactions| {
                            transactions.push(Transaction {
                                status: Status::Open,
                                server,
                                holds: [false; 2],
                            });
                        }));
                    }
                }
            }
            Step::Record => self.inserts(world, MARKER, &mut next),
            Step::Send(_) => self.inserts(world, ROWS, &mut next),
            Step::Read => self.reads(world, &mut next),
            Step::Commit => self.commits(world, &mut next),
            Step::Rollback => next.push(self.ends(world, Succeeded, Status::RolledBack)),
            Step::Sleep(_) => next.push(self.after(world, Succeeded, |_| ())),
            Step::Probe => self.probes(world, &mut next),
            Step::Done { outcome } => {
                if outcome == Outcome::Unknown && !world.resumed {
                    let mut resumed = Flush::resumed(self.template.plan.clone());
                    if self.setting.is_unmarked && self.setting.rule.is_none() {
                        resumed = resumed.without_record();
                    }
                    if world.records || self.setting.rule == Some(Rule::MarkedLater) {
                        resumed = resumed.with_record();
                    }
                    let mut again = World::of(&resumed);
                    again.transactions.clone_from(&world.transactions);
                    again.resumed = true;
                    next.push(again);
                }
            }
        }
        next
    }

    /// Reports an answer, after a change to the transactions.
    fn after(
        &self,
        world: &World,
        report: Report,
        change: impl FnOnce(&mut Vec<Transaction>),
    ) -> World {
        let mut flush = world.flush(&self.template);
        match report {
            Succeeded => flush.succeeded(),
            TimeIsOver => flush.time_is_over(),
            Failed(failure) => {
                let is_refused = flush.step() == Step::Commit && failure != Lost;
                if is_refused && self.setting.rule == Some(Rule::RefusedCommit) {
                    flush.is_unresolved = false;
                }
                flush.failed(failure);
            }
            Probed(false)
                if self.setting.rule == Some(Rule::DuplicateAndNothingFound)
                    && matches!(
                        flush.state,
                        State::Probing {
                            if_absent: Absent::Wait
                        }
                    ) =>
            {
                flush.state = State::Over(Outcome::Nothing);
            }
            Probed(found) => {
                // The executor asks for these before rows are sent again.
                if !found && !self.setting.untold {
                    if !self.setting.has_global_locks {
                        flush.locks_are_local();
                    }
                    // The marker row cannot be inserted twice.
                    if self.setting.keys == Compared::Never && !flush.records() {
                        flush.cannot_repeat();
                    }
                }
                flush.probed(found);
            }
        }
        let mut next = World {
            resumed: world.resumed,
            transactions: world.transactions.clone(),
            ..World::of(&flush)
        };
        change(&mut next.transactions);
        next
    }

    /// As [`after`](Self::after), as the newest transaction ends.
    fn ends(&self, world: &World, report: Report, status: Status) -> World {
        self.after(world, report, |transactions| {
            if let Some(newest) = transactions.last_mut() {
                newest.status = status;
            }
        })
    }

    fn inserts(&self, world: &World, what: usize, next: &mut Vec<World>) {
        next.push(self.ends(world, Failed(Lost), Status::Abandoned));
        next.push(self.after(world, Failed(Transient), |_| ()));
        next.push(self.after(world, Failed(Refused), |_| ()));
        let Some(newest) = world.transactions.last() else {
            return;
        };
        let is_compared = what == MARKER || self.setting.keys == Compared::AtOnce;
        let conflict = match is_compared {
            true => self.conflict(world, newest, what, true),
            false => Conflict::None,
        };
        match conflict {
            // It waits; the wait may end as `Transient`, or the other transaction ends first.
            Conflict::Held => {}
            Conflict::Taken => next.push(self.after(world, Failed(Duplicate), |_| ())),
            Conflict::None => next.push(self.after(world, Succeeded, |transactions| {
                if let Some(newest) = transactions.last_mut() {
                    newest.holds[what] = true;
                }
            })),
        }
        if what == ROWS {
            // Another unique value than the key is taken, by someone else.
            next.push(self.after(world, Failed(Duplicate), |_| ()));
            // A server that is not behind any more has the row.
            let others = world.transactions.iter();
            let has_others = others
                .filter(|it| it.server != newest.server)
                .any(|it| it.status == Status::Committed);
            if is_compared && has_others {
                next.push(self.after(world, Failed(Duplicate), |_| ()));
            }
        }
    }

    fn reads(&self, world: &World, next: &mut Vec<World>) {
        next.push(self.ends(world, Failed(Lost), Status::Abandoned));
        for failure in [Transient, Refused] {
            next.push(self.after(world, Failed(failure), |_| ()));
        }
        next.push(self.after(world, Succeeded, |_| ()));
    }

    fn commits(&self, world: &World, next: &mut Vec<World>) {
        let Some(newest) = world.transactions.last() else {
            return;
        };
        // Its answer is lost: before the server reads it, or with it.
        next.push(self.ends(world, Failed(Lost), Status::Committing));
        next.push(self.ends(world, Failed(Lost), Status::RolledBack));
        // A constraint that is checked last, or an abort that surfaces late.
        for failure in [Refused, Transient] {
            next.push(self.ends(world, Failed(failure), Status::RolledBack));
        }
        match self.conflict_at_commit(world, newest) {
            Conflict::None => {
                next.push(self.ends(world, Succeeded, Status::Committed));
                next.push(self.ends(world, Failed(Lost), Status::Committed));
            }
            Conflict::Taken => {
                for failure in [Duplicate, Transient] {
                    next.push(self.ends(world, Failed(failure), Status::RolledBack));
                }
            }
            Conflict::Held => {}
        }
    }

    fn probes(&self, world: &World, next: &mut Vec<World>) {
        next.push(self.after(world, Failed(Lost), |_| ()));
        let is_there = |status| world.transactions.iter().any(|it| it.status == status);
        let is_seen = self.setting.records || !self.setting.is_hidden;
        let committed = is_there(Status::Committed) && is_seen;
        let is_dirty = self.setting.is_dirty
            && is_seen
            && (is_there(Status::Abandoned) || is_there(Status::Committing));
        if committed || is_dirty {
            next.push(self.after(world, Probed(true), |_| ()));
        }
        let may_be_behind = self.setting.is_stale || !self.setting.has_global_locks;
        if !committed || may_be_behind {
            next.push(self.after(world, Probed(false), |_| ()));
        }
    }

    /// Returns the conflict of one transaction with the keys of the others, on its own server or, at COMMIT, on all.
    fn conflict(&self, world: &World, of: &Transaction, what: usize, only_there: bool) -> Conflict {
        let is_local = only_there && !self.setting.has_global_locks;
        let others = world.transactions.iter().filter(|other| {
            !std::ptr::eq(*other, of)
                && other.holds[what]
                && !(is_local && other.server != of.server)
        });
        let mut conflict = Conflict::None;
        for other in others {
            match other.status {
                Status::Committed => return Conflict::Taken,
                // At COMMIT the first one wins where locks are local.
                Status::Open | Status::Abandoned | Status::Committing
                    if only_there || self.setting.has_global_locks =>
                {
                    conflict = Conflict::Held;
                }
                _ => {}
            }
        }
        conflict
    }

    /// What COMMIT finds: a key that is compared only there, or one of another server.
    fn conflict_at_commit(&self, world: &World, of: &Transaction) -> Conflict {
        let is_compared = |what| what == MARKER || self.setting.keys != Compared::Never;
        for what in [MARKER, ROWS] {
            if !of.holds[what] || !is_compared(what) {
                continue;
            }
            let was_compared = what == MARKER || self.setting.keys == Compared::AtOnce;
            if was_compared && self.setting.has_global_locks {
                // Whoever holds the key is alone.
                continue;
            }
            match self.conflict(world, of, what, false) {
                Conflict::None => {}
                found => return found,
            }
        }
        Conflict::None
    }
}

impl World {
    fn of(flush: &Flush) -> Self {
        Self {
            transactions: Vec::new(),
            state: flush.state,
            records: flush.records,
            is_unresolved: flush.is_unresolved,
            has_global_locks: flush.has_global_locks,
            may_repeat: flush.may_repeat,
            failures: flush.failures,
            resumed: false,
        }
    }

    fn flush(&self, template: &Flush) -> Flush {
        Flush {
            state: self.state,
            records: self.records,
            is_unresolved: self.is_unresolved,
            has_global_locks: self.has_global_locks,
            may_repeat: self.may_repeat,
            failures: self.failures,
            ..template.clone()
        }
    }
}

#[test]
fn no_order_of_events_makes_a_flush_lie() {
    let mut states = 0;
    for setting in Setting::all() {
        let found = Search::run(setting);
        assert_eq!(found.lie, None);
        let all = [Outcome::Committed, Outcome::Nothing, Outcome::Unknown];
        assert_eq!(
            found.outcomes,
            all.into(),
            "each end is reached: {setting:?}"
        );
        states += found.seen.len();
    }
    println!("{states} states");
}

/// Nobody can ask what became of its COMMIT, so it is carried out once at most.
#[test]
fn a_flush_without_a_marker_row_does_not_lie() {
    for has_global_locks in [true, false] {
        let setting = Setting {
            keys: Compared::Never,
            has_global_locks,
            is_unmarked: true,
            ..Setting::PLAIN
        };
        let found = Search::run(setting);
        assert_eq!(found.lie, None);
        assert_eq!(found.outcomes.len(), 3, "each end is reached");
        let found = Search::with(setting, |flush| flush.scope = Scope::Connection);
        assert_eq!(found.lie, None);
    }
    let found = Search::run(Setting {
        keys: Compared::Never,
        is_unmarked: true,
        untold: true,
        rule: Some(Rule::UnmarkedChangesAreRepeated),
        ..Setting::PLAIN
    });
    assert!(found.lie.is_some());
}

#[test]
fn a_flush_on_one_connection_does_not_lie() {
    for setting in Setting::all() {
        let found = Search::with(setting, |flush| flush.scope = Scope::Connection);
        assert_eq!(found.lie, None);
    }
}

/// Each is a reason for a question of the executor.
#[test]
fn a_flush_lies_if_it_is_not_told_of_its_server() {
    let untold = Setting {
        untold: true,
        ..Setting::PLAIN
    };
    assert_eq!(Search::run(untold).lie, None);
    for setting in [
        Setting {
            keys: Compared::Never,
            ..untold
        },
        Setting {
            has_global_locks: false,
            records: true,
            ..untold
        },
    ] {
        assert!(Search::run(setting).lie.is_some(), "{setting:?}");
    }
}

#[test]
fn the_search_finds_the_lies_of_earlier_rules() {
    let lies = |rule, change: fn(&mut Setting)| {
        let mut setting = Setting {
            rule: Some(rule),
            ..Setting::PLAIN
        };
        change(&mut setting);
        assert!(Search::run(setting).lie.is_some(), "{setting:?}");
    };
    let rule = Rule::RefusedCommit;
    lies(rule, |it| it.keys = Compared::AtCommit);
    lies(rule, |it| it.has_global_locks = false);
    let rule = Rule::DuplicateAndNothingFound;
    lies(rule, |it| it.is_stale = true);
    lies(rule, |it| it.is_hidden = true);
    // The duplicate may be another value than the key.
    lies(rule, |_| ());
    lies(Rule::MarkedLater, |it| it.keys = Compared::Never);
}

#[test]
fn a_flush_lies_if_a_probe_reads_what_is_not_committed() {
    let found = Search::run(Setting {
        is_dirty: true,
        ..Setting::PLAIN
    });
    assert!(found.lie.is_some_and(|it| it.contains("not committed")));
}
