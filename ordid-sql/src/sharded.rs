//! One unit of work over several databases.

mod two_phase;

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use ordid_core::{
    ColumnList, EnsuredKey, Error, Fields, KeyOf, KeyType, OrderedKey, Tracked, entity::Values,
    generator::Generator,
};

use crate::{
    EngineProfile, FlushError, FlushPlan, Flushed, Generators, OnConflict, Progress, Row, Sharding,
    Work,
    spi::{ConnectionSource, ErrorOf, FlushConnection, RowBinder, TransactionScope},
    two_phase::Coordinator,
    work::Register,
};

/// A library's unit of work, which wraps a [`Work`].
pub trait WrapsWork: Default {
    /// The sink that entities write their fields to.
    type Binder: RowBinder;

    /// Returns what it wraps.
    fn work(&self) -> &Work<Self::Binder>;

    /// As [`work`](Self::work).
    fn work_mut(&mut self) -> &mut Work<Self::Binder>;
}

/// A unit of work for each shard of a [`Sharding`]. Adapters wrap it in a type of their own, with the functions
/// that [`sharded_unit_of_work!`](crate::sharded_unit_of_work) writes.
pub struct Sharded<W> {
    sharding: Sharding,
    shards: Vec<W>,
    generators: Generators,
    watch: Option<Arc<Mutex<Watch>>>,
    /// The name under which all shards are committed together, if they are.
    two_phase: Option<String>,
    /// The last such flush, if it has not ended.
    coordinator: Option<Arc<Coordinator>>,
}

/// How far the flushes of all shards are.
struct Watch {
    observer: Box<dyn FnMut(usize, Progress) + Send>,
    /// The rows sent and to send, of each shard.
    rows: Vec<(usize, usize)>,
}

impl Watch {
    fn of(watch: &Mutex<Self>) -> MutexGuard<'_, Self> {
        // An observer that panicked is called again all the same.
        watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A chunk of a shard was sent.
    fn report(&mut self, shard: usize, mut progress: Progress) {
        self.rows[shard] = (progress.done, progress.total);
        progress.done = self.rows.iter().map(|(done, _)| done).sum();
        progress.total = self.rows.iter().map(|(_, total)| total).sum();
        (self.observer)(shard, progress);
    }
}

/// The flush of one shard.
pub(crate) type ShardFlush<'a, D> =
    Pin<Box<dyn Future<Output = Result<Flushed, FlushError<D>>> + Send + 'a>>;

impl<W: WrapsWork> Sharded<W> {
    /// Makes an empty unit of work for as many databases as the sharding has.
    pub fn new(sharding: Sharding) -> Self {
        Self {
            shards: (0..sharding.shards()).map(|_| W::default()).collect(),
            generators: Generators::new(),
            watch: None,
            two_phase: None,
            coordinator: None,
            sharding,
        }
    }

    /// Takes the generator of a key type.
    pub fn set_generator<K: KeyType>(
        &mut self,
        generator: impl Generator<Scheme = K::Scheme> + Send + Sync + 'static,
    ) {
        self.generators.insert::<K>(generator);
    }

    /// Changes a setting of all shards.
    pub fn each(&mut self, mut change: impl FnMut(&mut Work<W::Binder>)) {
        let shards = self.shards.iter_mut();
        shards.for_each(|work| change(work.work_mut()));
    }

    /// Takes a function that is called after each chunk, with the shard's number.
    pub fn set_observer(&mut self, observer: impl FnMut(usize, Progress) + Send + 'static) {
        let watch = Arc::new(Mutex::new(Watch {
            observer: Box::new(observer),
            rows: vec![(0, 0); self.shards.len()],
        }));
        for (shard, work) in self.shards.iter_mut().enumerate() {
            let watch = Arc::clone(&watch);
            let report = move |progress| Watch::of(&watch).report(shard, progress);
            work.work_mut().set_observer(report);
        }
        self.watch = Some(watch);
    }

    /// As [`try_add`](Self::try_add); where no generator was given, the process's makes the key.
    ///
    /// # Errors
    ///
    /// As [`try_add`](Self::try_add).
    ///
    /// # Panics
    ///
    /// As [`OrderedKey::ensure_key`], where no generator was given.
    #[track_caller]
    pub fn add<E: Row<W::Binder> + OrderedKey<Field: EnsuredKey>>(
        &mut self,
        mut entity: E,
        register: Register<W::Binder, E>,
    ) -> Result<KeyOf<E>, Error> {
        self.generators.ensure_key_or_generate(&mut entity)?;
        self.try_add(entity, register)
    }

    /// Adds an entity to its shard or, where its type is everywhere, to all; a missing key is made by the
    /// generator that was given for its type.
    ///
    /// # Errors
    ///
    /// As [`Sharding::shard_of`] and [`Generators::ensure_key`]; the entity is not added.
    pub fn try_add<E: Row<W::Binder>>(
        &mut self,
        mut entity: E,
        register: Register<W::Binder, E>,
    ) -> Result<KeyOf<E>, Error> {
        let key = self.generators.ensure_key(&mut entity)?;
        self.place(entity, |work, entity| {
            work.try_add(entity, register).map(drop)
        })?;
        Ok(key)
    }

    /// Does the same on the entity's shard or, with a copy for each, on all.
    fn place<E: OrderedKey + 'static>(
        &mut self,
        entity: E,
        mut place: impl FnMut(&mut Work<W::Binder>, E) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(copy) = self.sharding.copy_of::<E>() else {
            let shard = self.sharding.shard_of(&entity)?;
            return place(self.shards[shard].work_mut(), entity);
        };
        self.shards
            .iter_mut()
            .try_for_each(|work| place(work.work_mut(), copy(&entity)))
    }

    /// Refuses to update a row of which each shard would write another version.
    fn check_version<E: OrderedKey + 'static>(&self) -> Result<(), Error> {
        match E::VERSION_READS_CLOCK && self.sharding.copy_of::<E>().is_some() {
            false => Ok(()),
            true => Err(Error::plan(format!(
                "rows of {} are on each of the {} shards, and their version is a time, of which each shard would write \
                 another one: use an integer as the version",
                E::TABLE,
                self.sharding.shards()
            ))),
        }
    }

    /// Adds an entity whose row will be updated, on the shard that it belongs to now or on all.
    ///
    /// # Errors
    ///
    /// As [`Sharding::shard_of`]. It is also an error if rows of the type are on all shards and have a version that
    /// [reads a clock](ordid_core::Version::READS_CLOCK).
    pub fn update<E: Row<W::Binder>>(
        &mut self,
        entity: E,
        register: Register<W::Binder, E>,
    ) -> Result<(), Error> {
        self.check_version::<E>()?;
        self.place(entity, |work, entity| {
            work.update(entity, register);
            Ok(())
        })
    }

    /// As [`update`](Self::update), of these columns alone.
    ///
    /// # Errors
    ///
    /// As [`update`](Self::update).
    pub fn update_columns<E: Row<W::Binder>>(
        &mut self,
        entity: E,
        columns: &impl ColumnList<E>,
        register: Register<W::Binder, E>,
    ) -> Result<(), Error> {
        self.check_version::<E>()?;
        self.place(entity, |work, entity| {
            work.update_columns(entity, columns, register);
            Ok(())
        })
    }

    /// Does the same as [`update`](Self::update), but only for the columns that have changed since the row was read.
    /// Returns whether there are some.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`update`](Self::update) and [`Tracked::into_changed`]; the row is not added then.
    pub fn update_changed<E: Row<W::Binder> + Fields<Values>>(
        &mut self,
        row: Tracked<E>,
        register: Register<W::Binder, E>,
    ) -> Result<bool, Error> {
        let (row, changed) = Tracked::into_changed(row)?;
        if changed.is_empty() {
            return Ok(false);
        }
        self.update_columns(row, &changed.as_slice(), register)?;
        Ok(true)
    }

    /// Adds an entity whose row will be inserted, unless it is there, as [`try_add`](Self::try_add) does.
    ///
    /// # Errors
    ///
    /// As [`try_add`](Self::try_add).
    pub fn try_upsert<E: Row<W::Binder>>(
        &mut self,
        mut entity: E,
        on_conflict: OnConflict<E>,
        register: Register<W::Binder, E>,
    ) -> Result<KeyOf<E>, Error> {
        if self.sharding.copy_of::<E>().is_some() && on_conflict.finds_by_others() {
            return Err(Error::plan(format!(
                "rows of {} are on every shard, and one that is found by other columns than its key keeps the key that it \
                 has there: a shard that does not have it yet would get it under another key; upsert it by its key, such \
                 as one that is computed from a name",
                E::TABLE
            )));
        }
        let key = self.generators.ensure_key(&mut entity)?;
        self.place(entity, |work, entity| {
            work.try_upsert(entity, on_conflict.clone(), register)
                .map(drop)
        })?;
        Ok(key)
    }

    /// Adds an entity whose row will be deleted, on the shard that it belongs to or on all.
    ///
    /// # Errors
    ///
    /// As [`Sharding::shard_of`].
    pub fn delete<E: Row<W::Binder>>(
        &mut self,
        entity: &E,
        register: Register<W::Binder, E>,
    ) -> Result<(), Error> {
        if self.sharding.copy_of::<E>().is_some() {
            self.each(|work| work.delete(entity, register));
            return Ok(());
        }
        let shard = self.sharding.shard_of(entity)?;
        self.shards[shard].work_mut().delete(entity, register);
        Ok(())
    }

    /// Returns by what rows are spread.
    pub const fn sharding(&self) -> &Sharding {
        &self.sharding
    }

    /// Returns the units of work of the shards.
    pub fn shards(&self) -> &[W] {
        &self.shards
    }

    /// Returns the number of entities, of all types and shards.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|it| it.work().rows().len()).sum()
    }

    /// Returns whether there is nothing to flush.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all entities of all shards.
    pub fn clear(&mut self) {
        self.coordinator = None;
        self.each(Work::clear);
    }

    /// Returns what a flush would send to each shard.
    ///
    /// # Errors
    ///
    /// As [`Work::plan`], of the first shard that cannot be planned.
    pub fn plan(&mut self, engine: EngineProfile) -> Result<Vec<FlushPlan>, Error> {
        let shards = self.shards.iter_mut();
        shards.map(|it| it.work_mut().plan(engine)).collect()
    }

    /// Flushes each shard that has entities into its own database, each in a transaction of its own. The first shard takes
    /// its connections from the first source.
    ///
    /// # Errors
    ///
    /// If it cannot be planned, or there are not as many databases as shards: then nothing was sent.
    /// Otherwise [`FlushError::shards`] says what became of each.
    pub fn flush<'a, S>(
        &'a mut self,
        sources: impl IntoIterator<Item = S>,
    ) -> impl Future<Output = Result<Vec<Flushed>, FlushError<ErrorOf<S::Connection>>>>
    where
        S: ConnectionSource<Connection: FlushConnection<Binder = W::Binder>> + 'a,
    {
        let mut sources: Vec<_> = sources.into_iter().map(Some).collect();
        let engines = sources.iter().flatten().map(S::engine).collect();
        self.flush_each(engines, move |work, shard| {
            let source = sources[shard].take().expect("a shard is flushed once");
            let work = work.work_mut();
            Box::pin(work.flush(source, TransactionScope::Transaction))
        })
    }

    /// As [`flush`](Self::flush), by a function that gets the shard's number, with the engine of each database.
    ///
    /// All of them are planned before any is sent: what one shard would refuse to plan must not leave the
    /// others done.
    pub(crate) async fn flush_each<'a, D: Send + 'a>(
        &'a mut self,
        engines: Vec<EngineProfile>,
        mut flush: impl FnMut(&'a mut W, usize) -> ShardFlush<'a, D>,
    ) -> Result<Vec<Flushed>, FlushError<D>> {
        let coordinator = self.begin_each(&engines).map_err(|error| {
            let error = FlushError::from(error);
            match self.is_in_doubt() {
                true => error.into_still_unknown(),
                false => error,
            }
        })?;
        let shards = self.shards.iter_mut().enumerate();
        let flushes = shards.map(|(shard, work)| -> ShardFlush<'a, D> {
            match work.work().rows().is_empty() {
                true => Box::pin(std::future::ready(Ok(Flushed::default()))),
                false => match &coordinator {
                    Some(it) => Self::watched(it, work, |work| flush(work, shard)),
                    None => flush(work, shard),
                },
            }
        });
        let version = || coordinator.as_ref().map_or(0, |it| it.version());
        let outcomes = join_all(flushes.collect(), version).await;
        if let Some(coordinator) = &coordinator
            && outcomes.iter().any(Result::is_err)
        {
            let decision = coordinator.decision();
            return Err(FlushError::of_two_phase(outcomes, decision));
        }
        if outcomes.iter().any(Result::is_err) {
            return Err(FlushError::of_shards(outcomes));
        }
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Plans what each shard is sent.
    fn begin_each(&mut self, engines: &[EngineProfile]) -> Result<Option<Arc<Coordinator>>, Error> {
        self.sharding.check_databases(engines.len())?;
        let mut rows = Vec::with_capacity(self.shards.len());
        for (work, engine) in self.shards.iter_mut().zip(engines) {
            rows.push((0, work.work_mut().planned_rows(*engine)?));
        }
        let coordinator = self.begin_two_phase(engines)?;
        if let Some(watch) = &self.watch {
            Watch::of(watch).rows = rows;
        }
        Ok(coordinator)
    }

    /// Returns whether rows of a shard may be committed already.
    fn is_in_doubt(&self) -> bool {
        let is_decided = self.coordinator.as_ref();
        is_decided.is_some_and(|it| self.is_under_way(it))
            || self.shards.iter().any(|it| it.work().is_in_doubt())
    }
}

/// Waits for all of these at once, and returns what each has returned, in their order.
///
/// It polls all that are not done whenever one is woken: shards are few. futures-util has the same, and costs every user
/// of a unit of work 2 s of a clean build (`cargo xtask bench compile`).
///
/// While `version` changes, one of them may go on because of another, so that all are polled again: also where calls
/// block, and a poll is all there is.
async fn join_all<T>(
    mut futures: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>,
    version: impl Fn() -> u64,
) -> Vec<T> {
    let mut outputs: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        loop {
            let (before, mut is_done) = (version(), true);
            for (future, output) in futures.iter_mut().zip(&mut outputs) {
                if output.is_none() {
                    match future.as_mut().poll(context) {
                        Poll::Ready(value) => *output = Some(value),
                        Poll::Pending => is_done = false,
                    }
                }
            }
            if is_done {
                return Poll::Ready(());
            }
            if version() == before {
                return Poll::Pending;
            }
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// The tables of each shard and their numbers of rows.
impl<W: fmt::Debug> fmt::Debug for Sharded<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedUnitOfWork")
            .field("sharding", &self.sharding)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    /// Ends after so many polls, and must not be polled after that.
    fn after(polls: usize) -> Pin<Box<dyn Future<Output = usize> + Send>> {
        let mut left = Some(polls);
        Box::pin(poll_fn(move |_| match left {
            Some(0) => {
                left = None;
                Poll::Ready(polls)
            }
            Some(polls) => {
                left = Some(polls - 1);
                Poll::Pending
            }
            None => panic!("polled after it has ended"),
        }))
    }

    #[test]
    fn all_shards_advance_at_every_poll_and_their_outcomes_keep_their_order() {
        let mut joined = pin!(join_all(vec![after(2), after(0), after(3)], || 0));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert!(joined.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(
            joined.as_mut().poll(&mut context),
            Poll::Ready(vec![2, 0, 3])
        );
    }

    #[test]
    fn no_shards_have_no_outcomes() {
        let joined = pin!(join_all::<usize>(Vec::new(), || 0));
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(joined.poll(&mut context), Poll::Ready(Vec::new()));
    }
}
