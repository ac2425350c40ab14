//! Keeps a generator's grant alive: asks for more time before the grant ends, and for another node when the grant
//! is lost.

use std::{
    fmt,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use super::{AtCeiling, GrantedGenerator};
use crate::{
    clock::{Clock, Timestamp},
    coordination::{AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms, NodeAllocator},
    entropy::{Entropy, Process, process},
    error::Error,
    generator::{Policy, Slotted, observe},
};

/// How often a release that the store did not answer is asked for again: a program that ends waits for it.
const RELEASES: u32 = 2;

/// The next call that a [`LeaseKeeper`] has to make to a [`NodeAllocator`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseRequest {
    /// Call [`NodeAllocator::renew`].
    Renew {
        /// The grant that the generator holds.
        grant: Grant,
        /// The time of the generator's clock.
        now: Timestamp,
    },
    /// Call [`NodeAllocator::acquire`], because the last grant was lost to another holder.
    Acquire {
        /// The time of the generator's clock.
        now: Timestamp,
        /// The newest time in the generator's keys.
        last: Option<Timestamp>,
    },
    /// Call [`NodeAllocator::release`], and then end.
    Release {
        /// The grant that the generator held.
        grant: Grant,
        /// The newest time in the generator's keys.
        last: Option<Timestamp>,
    },
}

/// Keeps the grant of a [`GrantedGenerator`]. It is a state machine without I/O, with two loops that run it: on a
/// thread ([`start`](Self::start)) or on an async runtime ([`run`](Self::run)).
///
/// It renews when a third of the window is over, give or take a random tenth of that, so that holders that began
/// together do not ask together. After a failure it asks again after a tenth of the window; meanwhile the generator
/// goes on up to its ceiling. If another holder has the grant, the keeper acquires a new one. If the store has lost
/// some or all of its state, the keeper stops: going on might repeat keys, so somebody has to look. If the store's
/// ceiling went back, the generator stops at once, too.
///
/// # Example: on a runtime
///
/// ```no_run
/// # async fn example<A: ordid_core::coordination::AsyncNodeAllocator + 'static>(allocator: A)
/// # -> Result<(), ordid_core::Error> {
/// use std::{sync::Arc, time::Duration};
/// use ordid_core::{
///     clock::SystemClock, entropy::ThreadEntropy,
///     generator::{AtCeiling, Generator, LeaseKeeper, Policy}, scheme::Snowflake,
/// };
///
/// let allocator = Arc::new(allocator); // of Redis, ZooKeeper, a database
/// let keeper = LeaseKeeper::<Snowflake, _, _>::acquire(
///     &*allocator, SystemClock, ThreadEntropy, Policy::DEFAULT, AtCeiling::Error).await?;
/// let keys = keeper.generator();
/// // tokio::spawn(keeper.run(allocator, tokio::time::sleep))
/// # let sleep = |_: Duration| std::future::ready(());
/// let running = keeper.run(allocator, sleep);
/// let key = keys.try_generate()?;
/// keys.close(); // the keeper gives the node back, and ends
/// running.await
/// # }
/// ```
pub struct LeaseKeeper<S: Slotted, C, E> {
    generator: Arc<GrantedGenerator<S, C, E>>,
    terms: LeaseTerms,
    /// The grant is another's.
    is_fenced: bool,
    has_failed: bool,
    /// How often the release was asked for again.
    releases: u32,
    /// Acquired, and refused by the generator.
    refused: Option<Grant>,
}

impl<S, C, E> LeaseKeeper<S, C, E>
where
    S: Slotted<Node: TryFrom<u64>>,
    C: Clock,
    E: Entropy,
{
    /// Makes a keeper for a grant that was acquired under these terms, and its generator.
    ///
    /// # Errors
    ///
    /// As [`GrantedGenerator::new`]. After an error the caller has to [release](NodeAllocator::release) the grant.
    pub fn new(
        grant: Grant,
        terms: LeaseTerms,
        clock: C,
        entropy: E,
        policy: Policy,
        at_ceiling: AtCeiling,
    ) -> Result<Self, Error> {
        let generator = GrantedGenerator::new(grant, clock, entropy, policy, at_ceiling)?;
        observe::lease_acquired(&grant);
        Ok(Self {
            generator: Arc::new(generator),
            terms,
            is_fenced: false,
            has_failed: false,
            releases: 0,
            refused: None,
        })
    }

    /// Acquires a node, and makes a generator with it. If the generator refuses the node, it is given back.
    ///
    /// # Errors
    ///
    /// As [`NodeAllocator::acquire`] and [`GrantedGenerator::new`].
    pub async fn acquire<A: AsyncNodeAllocator>(
        allocator: &A,
        clock: C,
        entropy: E,
        policy: Policy,
        at_ceiling: AtCeiling,
    ) -> Result<Self, Error> {
        let grant = allocator.acquire(clock.now(), None).await?;
        let terms = allocator.terms().clone();
        let kept = Self::new(grant, terms, clock, entropy, policy, at_ceiling);
        if kept.is_err() {
            given_back(&grant, allocator.release(&grant, None).await);
        }
        kept
    }

    /// As [`acquire`](Self::acquire), for a store with a blocking API.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    pub fn acquire_sync<A: NodeAllocator>(
        allocator: &A,
        clock: C,
        entropy: E,
        policy: Policy,
        at_ceiling: AtCeiling,
    ) -> Result<Self, Error> {
        let grant = allocator.acquire(clock.now(), None)?;
        let terms = allocator.terms().clone();
        let kept = Self::new(grant, terms, clock, entropy, policy, at_ceiling);
        if kept.is_err() {
            given_back(&grant, allocator.release(&grant, None));
        }
        kept
    }

    /// Returns the generator.
    pub fn generator(&self) -> Arc<GrantedGenerator<S, C, E>> {
        Arc::clone(&self.generator)
    }

    /// Returns how long to wait before the next [`request`](Self::request).
    ///
    /// # Errors
    ///
    /// If the operating system has no entropy.
    pub fn pause(&self) -> Result<Duration, Error> {
        let whole = if self.has_failed {
            self.terms.window() / 10
        } else {
            self.terms.window() / 3
        };
        let tenth = whole / 10;
        let chance = f64::from(self.generator.keys.entropy().next_u32()?) / f64::from(u32::MAX);
        Ok(whole - tenth + tenth.mul_f64(2.0 * chance))
    }

    /// Returns the next call to make to the allocator.
    pub fn request(&mut self) -> LeaseRequest {
        let now = self.generator.clock().now();
        match self.generator.closed() {
            Some((grant, last)) => LeaseRequest::Release { grant, last },
            None if self.is_fenced => LeaseRequest::Acquire {
                now,
                last: self.generator.newest(),
            },
            None => LeaseRequest::Renew {
                grant: self.generator.grant(),
                now,
            },
        }
    }

    /// As [`request`](Self::request), unless the grant is of the process that was forked: who keeps it is there.
    fn next_request(&mut self) -> Result<LeaseRequest, Error> {
        self.generator.keys.check_process()?;
        Ok(self.request())
    }

    /// Takes the allocator's answer. Whatever this returns, call [`refused`](Self::refused) afterwards.
    ///
    /// # Errors
    ///
    /// Returns an error after which the allocator must not be asked again:
    /// [`StateLost`](CoordinationFailure::StateLost), [`CeilingRegressed`](CoordinationFailure::CeilingRegressed),
    /// [`Mismatch`](CoordinationFailure::Mismatch), and any other error except those that may pass, which are
    /// [`Fenced`](CoordinationFailure::Fenced), [`Unavailable`](CoordinationFailure::Unavailable),
    /// [`NoFreeNode`](CoordinationFailure::NoFreeNode), [`TooFarAhead`](CoordinationFailure::TooFarAhead) and errors
    /// of the clock. The generator then goes on up to its ceiling. After `CeilingRegressed` it is closed at once,
    /// because the store may have granted the same node and times to another holder.
    pub fn answer(&mut self, answer: Result<Grant, Error>) -> Result<(), Error> {
        let mut granted = None;
        let renewed = answer.and_then(|grant| {
            granted = Some(grant);
            self.generator.renew(grant)?;
            Ok(grant)
        });
        if self.generator.closed().is_some() {
            return Ok(());
        }
        self.has_failed = renewed.is_err();
        match renewed {
            Ok(grant) => {
                if self.is_fenced {
                    observe::lease_acquired(&grant);
                } else {
                    observe::lease_renewed(&grant);
                }
                self.is_fenced = false;
                Ok(())
            }
            Err(error) => {
                // One that was renewed stays with the generator.
                self.refused = granted.filter(|_| self.is_fenced);
                observe::lease_not_renewed(&error);
                self.generator.not_renewed(error.clone());
                match error.coordination_failure() {
                    Some(CoordinationFailure::Fenced) => self.is_fenced = true,
                    Some(
                        CoordinationFailure::Unavailable
                        | CoordinationFailure::NoFreeNode
                        | CoordinationFailure::TooFarAhead,
                    ) => {}
                    // The clock may come back.
                    _ if error.is_clock() => {}
                    Some(CoordinationFailure::CeilingRegressed) => {
                        self.generator.close();
                        return Err(error);
                    }
                    _ => return Err(error),
                }
                Ok(())
            }
        }
    }

    /// Returns whether to ask for a release again, after a [`pause`](Self::pause). A release may be repeated, and afterwards
    /// nobody asks the store any more.
    fn releases_again(&mut self, released: &Result<(), Error>) -> bool {
        let failure = released
            .as_ref()
            .err()
            .and_then(Error::coordination_failure);
        if failure != Some(CoordinationFailure::Unavailable) || self.releases == RELEASES {
            return false;
        }
        self.releases += 1;
        self.has_failed = true;
        true
    }

    /// Returns a grant that was acquired, but that the generator did not take, for example because its clock is too
    /// far behind. Give the grant to [`NodeAllocator::release`]; otherwise nobody can have its node until its holder
    /// counts as silent. Each such grant is returned once.
    pub fn refused(&mut self) -> Option<Grant> {
        self.refused.take()
    }
}

impl<S, C, E> LeaseKeeper<S, C, E>
where
    S: Slotted<Node: TryFrom<u64>>,
    C: Clock,
    E: Entropy,
{
    /// Keeps the grant until the generator is closed, and then gives it back. Spawn the future. `sleep` is the
    /// runtime's, such as `tokio::time::sleep`, or [`Delay::new`](crate::clock::Delay::new). A closed generator is
    /// noticed after about a third of the window.
    ///
    /// If the future is dropped earlier, the generator goes on up to its ceiling.
    ///
    /// # Errors
    ///
    /// Returns an error after which [`answer`](Self::answer) does not go on, or the error of the release, which is repeated
    /// twice if the store does not answer. In the child of a fork, where there is nothing to keep, the error
    /// [`is_forked`](Error::is_forked).
    pub async fn run<A, F>(
        mut self,
        allocator: A,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<(), Error>
    where
        A: std::ops::Deref<Target: AsyncNodeAllocator>,
        F: Future,
    {
        loop {
            if self.generator.closed().is_none() {
                sleep(self.pause()?).await;
            }
            match self.next_request()? {
                LeaseRequest::Renew { grant, now } => {
                    self.answer(allocator.renew(&grant, now).await)?;
                }
                LeaseRequest::Acquire { now, last } => {
                    let answered = self.answer(allocator.acquire(now, last).await);
                    if let Some(refused) = self.refused() {
                        given_back(&refused, allocator.release(&refused, None).await);
                    }
                    answered?;
                }
                LeaseRequest::Release { grant, last } => {
                    let released = allocator.release(&grant, last).await;
                    if self.releases_again(&released) {
                        sleep(self.pause()?).await;
                        continue;
                    }
                    released?;
                    observe::lease_released(&grant);
                    return Ok(());
                }
            }
        }
    }

    /// As [`run`](Self::run), on the calling thread, which closing the generator does not wake.
    fn run_sync(mut self, allocator: &impl NodeAllocator) -> Result<(), Error> {
        loop {
            if self.generator.closed().is_none() {
                thread::park_timeout(self.pause()?);
            }
            match self.next_request()? {
                LeaseRequest::Renew { grant, now } => self.answer(allocator.renew(&grant, now))?,
                LeaseRequest::Acquire { now, last } => {
                    let answered = self.answer(allocator.acquire(now, last));
                    if let Some(refused) = self.refused() {
                        given_back(&refused, allocator.release(&refused, None));
                    }
                    answered?;
                }
                LeaseRequest::Release { grant, last } => {
                    let released = allocator.release(&grant, last);
                    if self.releases_again(&released) {
                        thread::sleep(self.pause()?);
                        continue;
                    }
                    released?;
                    observe::lease_released(&grant);
                    return Ok(());
                }
            }
        }
    }
}

impl<S, C, E> LeaseKeeper<S, C, E>
where
    S: Slotted<Node: TryFrom<u64>>,
    C: Clock + 'static,
    E: Entropy + 'static,
{
    /// Keeps the grant on a new thread, until the returned value is dropped.
    ///
    /// # Errors
    ///
    /// Returns [`Unavailable`](CoordinationFailure::Unavailable) if the system cannot start a thread. The node is
    /// then given back.
    pub fn start<A>(self, allocator: A) -> Result<LeaseThread<S, C, E>, Error>
    where
        A: NodeAllocator + 'static,
    {
        let generator = self.generator();
        let allocator = Arc::new(allocator);
        let kept = Arc::clone(&allocator);
        let spawned = thread::Builder::new()
            .name("ordid-lease".to_owned())
            .spawn(move || self.run_sync(&kept));
        match spawned {
            Ok(thread) => Ok(LeaseThread {
                generator,
                thread: Some(thread),
                process: process(),
            }),
            Err(error) => {
                let (grant, last) = generator.close();
                allocator.release(&grant, last)?;
                Err(Error::coordination(
                    CoordinationFailure::Unavailable,
                    format!("no thread to renew {grant} on: {error}"),
                ))
            }
        }
    }
}

/// Reports that a grant without a generator was given back. If that failed, its node is free when its holder counts as
/// silent, and the error that matters is why the generator refused it.
fn given_back(grant: &Grant, released: Result<(), Error>) {
    if released.is_ok() {
        observe::lease_released(grant);
    }
}

impl<S: Slotted, C, E> fmt::Debug for LeaseKeeper<S, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseKeeper")
            .field("terms", &self.terms)
            .field("is_fenced", &self.is_fenced)
            .field("has_failed", &self.has_failed)
            .finish_non_exhaustive()
    }
}

/// A thread that keeps a generator's grant. Dropping this value closes the generator and gives the node back, which
/// waits for the store, for three answers at most. In the child of a fork there is no such thread, and dropping does nothing.
pub struct LeaseThread<S, C, E>
where
    S: Slotted<Node: TryFrom<u64>>,
    C: Clock,
    E: Entropy,
{
    generator: Arc<GrantedGenerator<S, C, E>>,
    thread: Option<JoinHandle<Result<(), Error>>>,
    process: Process,
}

impl<S, C, E> LeaseThread<S, C, E>
where
    S: Slotted<Node: TryFrom<u64>>,
    C: Clock,
    E: Entropy,
{
    /// Returns the generator.
    pub fn generator(&self) -> Arc<GrantedGenerator<S, C, E>> {
        Arc::clone(&self.generator)
    }

    /// Closes the generator and gives the node back, as dropping does, and returns how the keeper ended.
    ///
    /// # Errors
    ///
    /// As [`LeaseKeeper::run`]. Returns [`Unavailable`](CoordinationFailure::Unavailable) if the keeper's thread
    /// panicked.
    pub fn stop(mut self) -> Result<(), Error> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        if self.process != process() {
            // Joining would wait for a thread that the fork left behind.
            std::mem::forget(thread);
            return Ok(());
        }
        self.generator.close();
        thread.thread().unpark();
        match thread.join() {
            Ok(ended) => ended,
            Err(_) => Err(Error::coordination(
                CoordinationFailure::Unavailable,
                "the thread that renewed the lease panicked; its node is free when it was silent long \
                 enough",
            )),
        }
    }
}

impl<S, C, E> Drop for LeaseThread<S, C, E>
where
    S: Slotted<Node: TryFrom<u64>>,
    C: Clock,
    E: Entropy,
{
    fn drop(&mut self) {
        // It was told to `tracing`; the ceiling keeps others away.
        let _ = self.end();
    }
}

impl<S, C, E> fmt::Debug for LeaseThread<S, C, E>
where
    S: Slotted<Node: TryFrom<u64>>,
    C: Clock,
    E: Entropy,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseThread").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
