//! Begins and ends two-phase commits of all shards: see [`two_phase`](crate::two_phase).

use std::sync::Arc;

use ordid_core::Error;

use super::{ShardFlush, Sharded, WrapsWork};
use crate::{
    EngineProfile, Markers, Work,
    two_phase::{Coordinator, Decision, Part, Stage, check_engine, check_name, check_shards},
};

impl<W: WrapsWork> Sharded<W> {
    /// Commits the rows of all shards together. The name is that of this set of databases.
    pub fn set_two_phase(&mut self, name: &str) {
        self.two_phase = Some(name.to_owned());
    }

    /// Gives each shard with rows its part in a two-phase commit, if there is to be one: that of the last flush, which has
    /// not ended, or a new one.
    ///
    /// # Errors
    ///
    /// Settings or engines that do not go with it, and a unit of work that has changed since a flush that has not ended.
    pub(super) fn begin_two_phase(
        &mut self,
        engines: &[EngineProfile],
    ) -> Result<Option<Arc<Coordinator>>, Error> {
        let Some(name) = self.two_phase.clone() else {
            return Ok(None);
        };
        self.check_two_phase(&name, engines)?;
        if let Some(coordinator) = self.coordinator.clone() {
            if self.is_under_way(&coordinator) {
                self.check_parts()?;
                coordinator.begin(self.participants());
                return Ok(Some(coordinator));
            }
            self.each(Work::part_failed);
            self.coordinator = None;
        }
        let has_rows = |work: &W| !work.work().rows().is_empty();
        let first = self.shards.iter().position(has_rows);
        let count = self.shards.iter().filter(|it| has_rows(it)).count();
        let Some(decides) = first.filter(|_| count > 1) else {
            return Ok(None);
        };
        // A flush of one shard alone was no two-phase commit.
        for work in &self.shards {
            work.work().check_resolved()?;
        }
        let coordinator = Arc::new(Coordinator::new(&name, decides));
        for (shard, work) in self.shards.iter_mut().enumerate() {
            if has_rows(work) {
                work.work_mut().part = Some(Part::new(&coordinator, shard));
            }
        }
        coordinator.begin(self.participants());
        self.coordinator = Some(Arc::clone(&coordinator));
        Ok(Some(coordinator))
    }

    fn check_two_phase(&self, name: &str, engines: &[EngineProfile]) -> Result<(), Error> {
        check_name(name)?;
        check_shards(engines.len())?;
        for (shard, (work, engine)) in self.shards.iter().zip(engines).enumerate() {
            let work = work.work();
            check_engine::<W::Binder>(&work.engine_for(*engine)?, shard)?;
            if work.limits.is_some() {
                return Err(Error::plan(
                    "a flush goes either `in_chunks`, which are committed one after the other, or by a \
                     `two_phase_commit`: leave one of them out",
                ));
            }
            if work.markers == Markers::None {
                return Err(Error::plan(
                    "a `two_phase_commit` cannot be `without_record`: its marker rows are what says whether the flush is \
                     committed",
                ));
            }
        }
        Ok(())
    }

    /// Returns whether the last flush may be committed, or is and has not ended.
    pub(super) fn is_under_way(&self, coordinator: &Coordinator) -> bool {
        match coordinator.decision() {
            Decision::Commit => self.shards.iter().any(|it| {
                let part = it.work().part.as_ref();
                part.is_some_and(|part| !matches!(part.stage, Stage::Vanished))
            }),
            Decision::Unknown => true,
            Decision::Abort => false,
            // It was dropped, perhaps after COMMIT was sent.
            Decision::Open => self.shards.iter().any(|it| {
                let work = it.work();
                work.part.as_ref().is_some_and(Part::decides) && work.unresolved.is_some()
            }),
        }
    }

    /// Refuses rows that were not in the last flush.
    fn check_parts(&self) -> Result<(), Error> {
        let has_changed = |work: &Work<W::Binder>| match &work.part {
            Some(part) => part.has_changed,
            None => !work.rows().is_empty(),
        };
        match self.shards.iter().any(|it| has_changed(it.work())) {
            true => Err(Error::plan(
                "the last `two_phase_commit` has not ended, and the unit of work has changed since: its rows cannot be told \
                 from the others; after such an error, flush again before you add, update or delete; now `clear` the \
                 unit of work, let `recover_prepared` end what is prepared, and add what is missing",
            )),
            false => Ok(()),
        }
    }

    /// Returns the flush of a shard, which tells the others if the library fails before the part of the shard can: it has no
    /// connection, for example.
    pub(super) fn watched<'a, D: Send + 'a>(
        coordinator: &Arc<Coordinator>,
        work: &'a mut W,
        flush: impl FnOnce(&'a mut W) -> ShardFlush<'a, D>,
    ) -> ShardFlush<'a, D> {
        let Some(part) = &work.work().part else {
            return flush(work);
        };
        let coordinator = Arc::clone(coordinator);
        let prepared = match part.stage {
            Stage::Prepared(_) => part.gid(),
            Stage::Working | Stage::Sent | Stage::Vanished => None,
        };
        let may_be_committed = part.decides() || prepared.is_some();
        let flush = flush(work);
        Box::pin(async move {
            let error = match flush.await {
                Ok(flushed) => return Ok(flushed),
                Err(error) => error,
            };
            Err(match (coordinator.failed(may_be_committed), prepared) {
                _ if error.is_commit_unknown() => error,
                (Decision::Commit, Some(gid)) => error.into_unfinished(&gid),
                (Decision::Unknown | Decision::Commit, _) => error.into_unknown(),
                (Decision::Abort | Decision::Open, _) => error,
            })
        })
    }

    fn participants(&self) -> usize {
        let parts = self.shards.iter().filter_map(|it| it.work().part.as_ref());
        parts.filter(|part| !part.decides()).count()
    }
}
