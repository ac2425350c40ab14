//! Finds transactions that were prepared and that nobody ends any more, and ends them as was decided.
//!
//! An orphan is committed if the marker row D of its flush is on the shard that decides. Otherwise its fence is inserted
//! there first, so that the flush can never be committed, and only then the orphan is rolled back. Two recoveries at
//! once do the same thing, and so does one beside a flush that is still under way.

use std::time::Duration;

use ordid_core::{
    clock::{Clock as _, SystemClock},
    uuid::Uuid,
};

use super::{Gid, TwoPhase, check_engine, check_name, fence_of};
use crate::{
    DriverError, EngineProfile, Failure, FlushError, Retry,
    executor::two_phase::{Ended, check_alone, end_prepared, is_committed},
    lock_waits, marker,
    spi::{
        Begin, ConnectionSource, ErrorOf, FlushConnection, FlushTransaction, RowBinder, Statement,
        TransactionScope,
    },
    text::Writer,
};

/// A transaction that a flush with `two_phase_commit` has prepared and not ended: its program has died or cannot reach
/// the database, or it is about to end it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreparedOrphan {
    /// The number of the database that it is prepared in.
    pub shard: usize,
    /// Its id there.
    pub gid: String,
    /// How long ago its flush began, by the clocks of the flushing program and of this one.
    pub age: Duration,
    /// What was decided.
    pub decision: OrphanDecision,
}

/// What becomes of a prepared transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OrphanDecision {
    /// Its flush is committed. A recovery commits it.
    Committed,
    /// Its flush is not committed so far. A recovery sees to it that it never is, and rolls it back.
    NotCommitted,
    /// Nobody knows: it is more than half a day old and there is no marker row, which `remove_old_markers` may have removed,
    /// or removes soon. A recovery leaves it to a person, who looks for other rows of the flush.
    Unknown,
}

/// What a recovery has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// The ids of the transactions that it has committed.
    pub committed: Vec<String>,
    /// The ids of the transactions that it has rolled back.
    pub rolled_back: Vec<String>,
    /// Those that it has left alone: they are too young, or nobody knows what was decided.
    pub left: Vec<PreparedOrphan>,
}

const ORDER: &str = "give the databases of the flush, in its order";

type Result<T, S> =
    std::result::Result<T, FlushError<ErrorOf<<S as ConnectionSource>::Connection>>>;
type Binder<S> = <<S as ConnectionSource>::Connection as FlushConnection>::Binder;

/// Lists the prepared transactions of the flushes under a name. For adapters.
///
/// # Errors
///
/// The library's; a name that is none; and databases in another order than that of the flush, as far as a prepared
/// transaction or a marker row shows it.
#[expect(
    clippy::manual_async_fn,
    reason = "it is found to be `Send` here, for any source, as a flush is"
)]
pub fn prepared_orphans<S: ConnectionSource>(
    mut sources: Vec<S>,
    name: &str,
) -> impl Future<Output = Result<Vec<PreparedOrphan>, S>> + Send + use<'_, S> {
    async move {
        let mut orphans = Vec::new();
        let mut unseen = None;
        for (gid, text, decision) in judged(&mut sources, name, &mut unseen).await? {
            orphans.push(orphan(&gid, text, decision?));
        }
        unseen.map_or(Ok(orphans), Err)
    }
}

/// Ends the prepared transactions of the flushes under a name that began so long ago. For adapters.
///
/// # Errors
///
/// As [`prepared_orphans`], and what the databases refuse: the first such error, after what can be ended was.
#[expect(
    clippy::manual_async_fn,
    reason = "it is found to be `Send` here, for any source, as a flush is"
)]
pub fn recover_prepared<S: ConnectionSource>(
    mut sources: Vec<S>,
    name: &str,
    older_than: Duration,
) -> impl Future<Output = Result<Recovered, S>> + Send + use<'_, S> {
    async move {
        let (mut recovered, mut failed) = (Recovered::default(), None);
        // What is prepared in one database may be ended though another one is down.
        for (gid, text, decision) in judged(&mut sources, name, &mut failed).await? {
            let ended = match decision {
                Ok(decision) => {
                    let recovered = &mut recovered;
                    end(&mut sources, &gid, text, decision, older_than, recovered).await
                }
                Err(error) => Err(error),
            };
            // What cannot be ended holds its locks. The others need not.
            if let Err(error) = ended {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(recovered), Err)
    }
}

/// Ends an orphan as was decided, unless it is too young or nobody knows what was.
async fn end<S: ConnectionSource>(
    sources: &mut [S],
    gid: &Gid,
    text: String,
    mut decision: OrphanDecision,
    older_than: Duration,
    recovered: &mut Recovered,
) -> Result<(), S> {
    let is_young = age(gid.flush) < older_than;
    if !is_young && decision == OrphanDecision::NotCommitted {
        decision = fence(&mut sources[gid.decides], gid.flush).await?;
    }
    if is_young || decision == OrphanDecision::Unknown {
        recovered.left.push(orphan(gid, text, decision));
        return Ok(());
    }
    let commits = decision == OrphanDecision::Committed;
    let values = || Binder::<S>::of_marker(Uuid::nil());
    let source = &mut sources[gid.shard];
    let ended = end_prepared(source, &text, commits, Retry::DEFAULT, None, &values).await?;
    match (ended, commits) {
        // Somebody else has ended it, in the same way.
        (Ended::Gone, _) => {}
        (Ended::Now, true) => recovered.committed.push(text),
        (Ended::Now, false) => recovered.rolled_back.push(text),
    }
    Ok(())
}

fn orphan(gid: &Gid, text: String, decision: OrphanDecision) -> PreparedOrphan {
    PreparedOrphan {
        shard: gid.shard,
        gid: text,
        age: age(gid.flush),
        decision,
    }
}

/// Returns how old the key of a marker row is.
fn age(flush: Uuid) -> Duration {
    let made = u64::try_from(flush.as_u128() >> 80).unwrap_or(u64::MAX);
    Duration::from_millis(SystemClock.now().as_unix_millis().saturating_sub(made))
}

/// Returns the prepared transactions of the databases that can be asked. `unseen` gets the first error of the others.
async fn found<S: ConnectionSource>(
    sources: &mut [S],
    name: &str,
    unseen: &mut Option<FlushError<ErrorOf<S::Connection>>>,
) -> Result<Vec<(Gid, String)>, S> {
    check_name(name)?;
    let shards = sources.len();
    let (mut found, mut elsewhere) = (Vec::new(), Vec::new());
    for (shard, source) in sources.iter_mut().enumerate() {
        check_engine::<Binder<S>>(&source.engine(), shard)?;
        for text in texts(source, name, unseen).await {
            match Gid::parse(&text).filter(|gid| gid.name == name) {
                Some(gid) if gid.shard == shard && gid.decides < shards => found.push((gid, text)),
                Some(gid) => elsewhere.push((shard, gid, text)),
                None => {}
            }
        }
    }
    // Shards that are schemas of one database, or databases of one server of MySQL, all see the transactions of that. So
    // each is looked for where it should be, and may be prepared or ended meanwhile.
    let is_found = |text: &String| found.iter().any(|(_, it)| it == text);
    elsewhere.retain(|(_, _, text)| !is_found(text));
    for (shard, gid, text) in elsewhere {
        if gid.shard < shards && gid.decides < shards {
            let here = texts(&mut sources[gid.shard], name, unseen).await;
            if here.contains(&text) {
                if !found.iter().any(|(_, it)| *it == text) {
                    found.push((gid, text));
                }
                continue;
            }
        }
        if unseen.is_none()
            && texts(&mut sources[shard], name, unseen)
                .await
                .contains(&text)
        {
            return Err(FlushError::database(
                format!("{text} is prepared in database {shard} of the {shards} that were given"),
                ORDER,
            ));
        }
    }
    Ok(found)
}

/// Returns the prepared transactions of all databases with what was decided so far, or why that could not be asked.
async fn judged<S: ConnectionSource>(
    sources: &mut [S],
    name: &str,
    unseen: &mut Option<FlushError<ErrorOf<S::Connection>>>,
) -> Result<Vec<(Gid, String, Result<OrphanDecision, S>)>, S> {
    let mut judged = Vec::new();
    for (gid, text) in found(sources, name, unseen).await? {
        let decision = match decision(&mut sources[gid.decides], gid.flush).await {
            Ok(OrphanDecision::Committed) => Ok(OrphanDecision::Committed),
            Ok(decision) => check_order(sources, &gid, &text).await.map(|()| decision),
            Err(error) => Err(error),
        };
        match decision {
            // Nothing is ended where the databases are not those of the flush.
            Err(error) if error.is_wrong_database() => return Err(error),
            decision => judged.push((gid, text, decision)),
        }
    }
    Ok(judged)
}

/// Refuses databases of which another one has the decision to commit than the one that decides by its number: a fence
/// there would keep nothing from being committed.
async fn check_order<S: ConnectionSource>(
    sources: &mut [S],
    gid: &Gid,
    text: &str,
) -> Result<(), S> {
    let others = sources.iter_mut().enumerate();
    for (shard, source) in others.filter(|(shard, _)| *shard != gid.decides) {
        match decision(source, gid.flush).await {
            Ok(OrphanDecision::Committed) => {
                return Err(FlushError::database(
                    format!(
                        "the flush of {text} is committed in database {shard} of those that were given, and not in {}",
                        gid.decides
                    ),
                    ORDER,
                ));
            }
            // Nothing was ever decided there.
            Err(error) if !error.is_flushes_table_missing() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the ids of prepared transactions, those under this name among them. If the database cannot be asked, there are
/// none, and `unseen` has why, unless it has an error already.
async fn texts<S: ConnectionSource>(
    source: &mut S,
    name: &str,
    unseen: &mut Option<FlushError<ErrorOf<S::Connection>>>,
) -> Vec<String> {
    listed(source, name).await.unwrap_or_else(|error| {
        unseen.get_or_insert(error);
        Vec::new()
    })
}

async fn listed<S: ConnectionSource>(source: &mut S, name: &str) -> Result<Vec<String>, S> {
    let two_phase = source.engine().two_phase;
    let mut open = begin(source).await?;
    let values = Binder::<S>::of_marker(Uuid::nil());
    let query = Statement::query(two_phase.list(name));
    let rows = open.read(&query, values).await;
    let _ = open.rollback(rows.is_err()).await;
    let rows = rows.map_err(|error| FlushError::not_listed(two_phase, error))?;
    let mut texts: Vec<_> = rows.into_iter().map(|row| row.text).collect();
    texts.sort_unstable();
    Ok(texts)
}

/// Returns the profile of the engine. PostgreSQL's statements are not prepared by name, as a pooler may be in between. Those
/// of MySQL are: SQLx closes one that it does not keep, and the packet behind that waits up to 40 ms.
fn engine_of<S: ConnectionSource>(source: &S) -> EngineProfile {
    let engine = source.engine();
    EngineProfile {
        prepares: engine.prepares && engine.two_phase == TwoPhase::Xa,
        ..engine
    }
}

/// Begins a transaction.
async fn begin<S: ConnectionSource>(
    source: &mut S,
) -> Result<<S::Connection as FlushConnection>::Transaction<'_>, S> {
    let engine = source.engine();
    let (connection, _) = source.get(false).await?;
    check_alone(connection).await?;
    connection
        .begin(Begin::of(TransactionScope::Transaction, &engine))
        .await
}

/// Gives up a connection that is lost: other orphans are still to be ended.
fn discard_lost<S: ConnectionSource>(
    source: &mut S,
    error: Option<&DriverError<ErrorOf<S::Connection>>>,
) {
    if error.is_some_and(|error| error.failure == Failure::Lost) {
        source.discard();
    }
}

/// Finds out on the shard that decides what was decided so far.
async fn decision<S: ConnectionSource>(source: &mut S, flush: Uuid) -> Result<OrphanDecision, S> {
    let engine = engine_of(source);
    let mut open = begin(source).await?;
    let found = marker::exists(&mut open, Writer::of::<Binder<S>>(&engine), flush).await;
    let _ = open.rollback(found.is_err()).await;
    told(source, &engine, flush, found)
}

/// As [`decision`], where nothing else keeps a standby that is behind from answering.
async fn decision_of_primary<S: ConnectionSource>(
    source: &mut S,
    flush: Uuid,
) -> Result<OrphanDecision, S> {
    let engine = engine_of(source);
    let mut open = begin(source).await?;
    let values = || Binder::<S>::of_marker(Uuid::nil());
    let bound = lock_waits::bound(&mut open, &engine, lock_waits::IN_DOUBT, values).await;
    let own_waits = bound.map_err(FlushError::begin)?;
    let found = is_committed(&mut open, Writer::of::<Binder<S>>(&engine), flush, values).await;
    let given_back = lock_waits::give_back(&mut open, own_waits.as_ref(), values).await;
    let _ = open.rollback(found.is_err()).await;
    if given_back.is_err() {
        source.discard();
    }
    told(source, &engine, flush, found)
}

fn told<S: ConnectionSource>(
    source: &mut S,
    engine: &EngineProfile,
    flush: Uuid,
    found: std::result::Result<bool, DriverError<ErrorOf<S::Connection>>>,
) -> Result<OrphanDecision, S> {
    discard_lost(source, found.as_ref().err());
    let found = found.map_err(|error| FlushError::record(S::Connection::ADAPTER, engine, error))?;
    Ok(match found {
        true => OrphanDecision::Committed,
        false if marker::may_be_removed(flush) => OrphanDecision::Unknown,
        false => OrphanDecision::NotCommitted,
    })
}

/// Sees to it that a flush that is not committed never is. It may be committed before this succeeds.
async fn fence<S: ConnectionSource>(source: &mut S, flush: Uuid) -> Result<OrphanDecision, S> {
    let engine = engine_of(source);
    let writer = Writer::of::<Binder<S>>(&engine);
    let mut open = begin(source).await?;
    let durable = engine.two_phase.durable();
    let values = || Binder::<S>::of_marker(Uuid::nil());
    let bound = lock_waits::bound(&mut open, &engine, lock_waits::IN_DOUBT, values).await;
    let own_waits = bound.map_err(FlushError::begin)?;
    if let Some(setting) = durable {
        let set = open.execute(&Statement::query(setting), values()).await;
        set.map_err(|failed| FlushError::begin(failed.error))?;
    }
    let fenced = marker::insert(&mut open, writer, fence_of(flush)).await;
    let given_back = lock_waits::give_back(&mut open, own_waits.as_ref(), values).await;
    let has_own = given_back.is_ok();
    let ended = match fenced.and_then(|kept| given_back.map(|()| kept)) {
        Ok(true) => Ok(Some(open.commit().await)),
        Ok(false) => {
            let _ = open.rollback(false).await;
            Ok(None)
        }
        Err(error) => {
            let _ = open.rollback(error.failure == Failure::Lost).await;
            Err(error)
        }
    };
    if !has_own {
        source.discard();
    }
    match ended {
        Ok(None) => Err(FlushError::marker_left_out(S::Connection::ADAPTER)),
        Ok(Some(committed)) => {
            discard_lost(source, committed.as_ref().err());
            committed.map_err(FlushError::commit)?;
            Ok(OrphanDecision::NotCommitted)
        }
        Err(error) if error.failure == Failure::Duplicate => {
            // It is the row of the flush, which is committed then, or of another recovery.
            decision_of_primary(source, flush).await
        }
        Err(error) => {
            discard_lost(source, Some(&error));
            Err(FlushError::record(S::Connection::ADAPTER, &engine, error))
        }
    }
}
