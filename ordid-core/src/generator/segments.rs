//! A generator of keys from numbers that a store has reserved. The next numbers are fetched before the present ones
//! run out.

use std::{
    collections::VecDeque,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use super::{Events, Generator};
use crate::{
    clock::Timestamp,
    coordination::{
        AsyncSegmentSource, CoordinationFailure, Segment, SegmentOrder, SegmentSource,
        SegmentValues,
    },
    entropy::{Entropy, Process, ThreadEntropy, process},
    error::{Error, ErrorKind},
    key::{Generated, Scheme as _},
    scheme::counted::Counted,
};

/// How long a source is left alone after it failed.
const RETRY: Duration = Duration::from_millis(100);

/// How many numbers to reserve at a time. The step is doubled when the numbers do not last, and halved when they last
/// long, as in Meituan's Leaf.
///
/// A process that ends leaves the numbers that it had reserved unused: at most the rest of one segment and the next
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// The smallest step, and the first one.
    pub min: NonZeroU32,
    /// The largest step. A batch that needs more numbers may exceed it.
    pub max: NonZeroU32,
    /// If a step lasted less than this, the next one is doubled.
    pub double_below: Duration,
    /// If a step lasted longer than this, the next one is halved.
    pub halve_above: Duration,
}

impl Steps {
    /// From 1,000 to 100,000 numbers. Doubles a step that lasted less than 15 minutes, and halves one that lasted
    /// more than 30.
    pub const DEFAULT: Self = Self {
        min: NonZeroU32::new(1_000).unwrap(),
        max: NonZeroU32::new(100_000).unwrap(),
        double_below: Duration::from_secs(15 * 60),
        halve_above: Duration::from_secs(30 * 60),
    };

    /// Reserves the same count every time.
    pub const fn fixed(step: NonZeroU32) -> Self {
        Self {
            min: step,
            max: step,
            ..Self::DEFAULT
        }
    }

    /// The step after one that lasted so long.
    fn after(&self, step: u32, lasted: Duration) -> u32 {
        let next = if lasted < self.double_below {
            step.saturating_mul(2)
        } else if lasted > self.halve_above {
            step / 2
        } else {
            step
        };
        // Not `clamp`, which panics where the least is above the most.
        next.min(self.max.get()).max(self.min.get())
    }
}

impl Default for Steps {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What happens when no reserved number is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenEmpty {
    /// Fails with the error of the source, or with [`Unavailable`](CoordinationFailure::Unavailable) if no answer has
    /// come yet.
    Error,
    /// Blocks the thread until the next segment comes, for at most `max`; then fails. Do not use it on the threads of
    /// an async runtime, where the feeder may need the very thread that waits. There, use [`Error`](Self::Error), and
    /// reserve enough numbers in advance.
    Wait {
        /// The longest wait.
        max: Duration,
    },
}

/// Makes keys from reserved numbers: from one [`Segment`], or from a stream of them that a [`SegmentFeeder`] reserves
/// in advance.
///
/// It asks for the next segment when half of the present one is used up. If the source is
/// [`Ordered`](crate::coordination::Ordered), keys rise strictly over all threads; otherwise they rise within a
/// segment. In the child of a fork the generator refuses to work, because the numbers belong to the parent
/// ([`is_forked`](Error::is_forked)).
///
/// # Example: one segment for one unit of work
///
/// ```
/// use std::num::NonZeroU32;
/// use ordid_core::{
///     coordination::{Ordered, Segment},
///     generator::{Generator, SegmentGenerator},
/// };
///
/// // In one round trip: source.reserve(NonZeroU32::new(2).unwrap())?
/// let segment = Segment::<Ordered>::new(1_001, 2, 1)?;
/// let keys = SegmentGenerator::of(segment);
/// assert_eq!(keys.try_generate()?.into_raw(), 1_001);
/// assert_eq!(keys.try_generate()?.into_raw(), 1_002);
/// assert!(keys.try_generate().is_err());
/// # Ok::<(), ordid_core::Error>(())
/// ```
///
/// # Example: as many as come
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// use std::time::Duration;
/// use ordid_core::{
///     coordination::MemoryCounter,
///     generator::{Generator, SegmentGenerator, Steps, WhenEmpty},
/// };
///
/// let wait = WhenEmpty::Wait { max: Duration::from_secs(5) };
/// let (keys, feeder) = SegmentGenerator::fed(Steps::DEFAULT, wait);
/// feeder.start(MemoryCounter::starting_at(1))?; // ends with `keys`
/// for number in 1..10_000 {
///     assert_eq!(keys.try_generate()?.into_raw(), number);
/// }
/// # }
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[doc(alias("sequence", "nextval", "autoincrement", "hilo"))]
pub struct SegmentGenerator<O: SegmentOrder> {
    shared: Arc<Shared<O>>,
    when_empty: WhenEmpty,
    owner: Owner,
}

/// Whose numbers are: the process that reserved them. Its number is asked for only where the epoch has
/// changed, which it may without a fork, too.
#[derive(Debug, Clone, Copy)]
struct Owner {
    epoch: u32,
    process: Process,
}

impl Owner {
    fn of_this_process() -> Self {
        Self {
            epoch: ThreadEntropy.epoch(),
            process: process(),
        }
    }

    fn is_this_process(self) -> bool {
        self.epoch == ThreadEntropy.epoch() || self.process == process()
    }

    fn check<O: SegmentOrder>(self) -> Result<(), Error> {
        if self.is_this_process() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Forked {
            scheme: Counted::<O>::NAME,
        }))
    }
}

struct Shared<O> {
    buffer: Mutex<Buffer<O>>,
    /// A segment has come, or none will.
    filled: Condvar,
}

struct Buffer<O> {
    segments: VecDeque<Segment<O>>,
    /// How many numbers the newest segment had.
    newest: u32,
    steps: Steps,
    step: u32,
    /// When the newest segment came.
    filled_at: Option<Instant>,
    /// What a batch waits for, above the step.
    wanted: u32,
    feeder: Feeder,
    failure: Option<Error>,
}

/// Whom to wake when numbers are wanted.
enum Feeder {
    /// There never was one, or it has ended.
    Gone,
    /// It looks by itself.
    Awake,
    Thread(Thread),
    Task(Waker),
    /// The generator is gone: the feeder shall go, too.
    Dismissed,
}

impl<O: SegmentOrder> Buffer<O> {
    /// Numbers that are there.
    fn left(&self) -> u64 {
        self.segments.iter().map(|it| u64::from(it.len())).sum()
    }

    /// How many to reserve now, if any.
    fn needs(&self) -> Option<NonZeroU32> {
        if self.wanted > 0 {
            return NonZeroU32::new(self.wanted.max(self.step));
        }
        let is_low = self.left() <= u64::from(self.newest / 2);
        is_low.then(|| NonZeroU32::new(self.step))?
    }

    fn wake_feeder(&mut self) {
        match &self.feeder {
            Feeder::Thread(thread) => thread.unpark(),
            Feeder::Task(task) => task.wake_by_ref(),
            Feeder::Gone | Feeder::Awake | Feeder::Dismissed => return,
        }
        if !matches!(self.feeder, Feeder::Thread(_)) {
            self.feeder = Feeder::Awake;
        }
    }

    fn next(&mut self) -> Option<i64> {
        let segment = self.segments.front_mut()?;
        let number = segment.split_to(1).first();
        if segment.is_empty() {
            self.segments.pop_front();
        }
        if self.needs().is_some() {
            self.wake_feeder();
        }
        number
    }

    /// Takes `count` numbers: over the segments where they rise, out of one where they do not.
    fn batch(&mut self, count: u32) -> Option<VecDeque<Segment<O>>> {
        let mut taken = VecDeque::new();
        if O::RISES {
            if self.left() < u64::from(count) {
                self.wanted = count - u32::try_from(self.left()).unwrap_or(u32::MAX);
                self.wake_feeder();
                return None;
            }
            let mut left = count;
            while let Some(segment) = self.segments.front_mut().filter(|_| left > 0) {
                let head = segment.split_to(left);
                left -= head.len();
                taken.push_back(head);
                if segment.is_empty() {
                    self.segments.pop_front();
                }
            }
        } else {
            let Some(segment) = self.segments.iter_mut().find(|it| it.len() >= count) else {
                self.wanted = count;
                self.wake_feeder();
                return None;
            };
            taken.push_back(segment.split_to(count));
            self.segments.retain(|segment| !segment.is_empty());
        }
        if self.needs().is_some() {
            self.wake_feeder();
        }
        Some(taken)
    }
}

impl<O> Shared<O> {
    fn buffer(&self) -> MutexGuard<'_, Buffer<O>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O: SegmentOrder> SegmentGenerator<O> {
    fn new(steps: Steps, when_empty: WhenEmpty, feeder: Feeder) -> Self {
        let buffer = Buffer {
            segments: VecDeque::new(),
            newest: 0,
            steps,
            step: steps.min.get(),
            filled_at: None,
            wanted: 0,
            feeder,
            failure: None,
        };
        Self {
            shared: Arc::new(Shared {
                buffer: Mutex::new(buffer),
                filled: Condvar::new(),
            }),
            when_empty,
            owner: Owner::of_this_process(),
        }
    }

    /// Makes keys from the numbers of this segment, and no others.
    pub fn of(segment: Segment<O>) -> Self {
        let keys = Self::new(Steps::DEFAULT, WhenEmpty::Error, Feeder::Gone);
        keys.shared.buffer().segments.push_back(segment);
        keys
    }

    /// Makes a generator and its feeder. Nothing is reserved before the feeder runs.
    pub fn fed(steps: Steps, when_empty: WhenEmpty) -> (Self, SegmentFeeder<O>) {
        let keys = Self::new(steps, when_empty, Feeder::Awake);
        let feeder = SegmentFeeder {
            shared: Arc::clone(&keys.shared),
        };
        (keys, feeder)
    }

    /// Returns how many reserved numbers are left.
    pub fn left(&self) -> u64 {
        self.shared.buffer().left()
    }

    /// Takes something out of the buffer, waiting for it as the policy says.
    fn take<T>(&self, mut of: impl FnMut(&mut Buffer<O>) -> Option<T>) -> Result<T, Error> {
        // Before the lock, which a fork may have left locked.
        self.owner.check::<O>()?;
        let mut buffer = self.shared.buffer();
        let mut until = None;
        loop {
            if let Some(taken) = of(&mut buffer) {
                return Ok(taken);
            }
            buffer.wake_feeder();
            let left = match self.when_empty {
                WhenEmpty::Error => Duration::ZERO,
                WhenEmpty::Wait { max } => {
                    let now = Instant::now();
                    let until = *until.get_or_insert_with(|| now.checked_add(max));
                    until.map_or(max, |until| until.saturating_duration_since(now))
                }
            };
            if left.is_zero() || matches!(buffer.feeder, Feeder::Gone) {
                return Err(buffer.failure.clone().unwrap_or_else(|| {
                    let why = match buffer.feeder {
                        Feeder::Gone => "all reserved numbers are used; reserve more",
                        _ => "the next numbers are not reserved yet; wait for them",
                    };
                    Error::coordination(CoordinationFailure::Unavailable, why)
                }));
            }
            let waited = self.shared.filled.wait_timeout(buffer, left);
            buffer = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<O: SegmentOrder> Generator for SegmentGenerator<O> {
    type Scheme = Counted<O>;
    type Reserved<'g>
        = SegmentBatch<O>
    where
        Self: 'g;

    fn try_generate(&self) -> Result<Generated<Counted<O>>, Error> {
        self.take(Buffer::next).map(Generated::new)
    }

    /// Fails always, because the keys have no time. The error [`is_unsupported`](Error::is_unsupported).
    fn generate_at(&self, _: Timestamp) -> Result<Generated<Counted<O>>, Error> {
        Err(Error::unsupported(format!(
            "a key of scheme {} has no time: it is a number that was reserved",
            Counted::<O>::NAME
        )))
    }

    fn try_fill_with(
        &self,
        count: usize,
        put: impl FnMut(Generated<Counted<O>>),
    ) -> Result<(), Error> {
        let batch = self.reserve(count)?;
        batch.numbers().map(Generated::new).for_each(put);
        Ok(())
    }

    /// Where the numbers are not there, so many are reserved in one round trip.
    fn reserve(&self, count: usize) -> Result<SegmentBatch<O>, Error> {
        let Ok(count) = u32::try_from(count) else {
            return Err(Error::new(ErrorKind::ReservationTooLarge {
                asked: count as u64,
                max: u64::from(u32::MAX),
            }));
        };
        let segments = match count {
            0 => VecDeque::new(),
            count => self.take(|buffer| buffer.batch(count))?,
        };
        Ok(SegmentBatch {
            segments,
            owner: self.owner,
        })
    }

    /// Returns zeros: without a clock, no policy acts.
    fn events(&self) -> Events {
        Events::default()
    }
}

fn at_most(count: NonZeroU32, most: Option<NonZeroU32>) -> NonZeroU32 {
    most.map_or(count, |most| count.min(most))
}

impl<O: SegmentOrder> Drop for SegmentGenerator<O> {
    fn drop(&mut self) {
        if self.owner.is_this_process() {
            let mut buffer = self.shared.buffer();
            buffer.wake_feeder();
            buffer.feeder = Feeder::Dismissed;
        }
    }
}

impl<O: SegmentOrder> fmt::Debug for SegmentGenerator<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentGenerator")
            .field("scheme", &Counted::<O>::NAME)
            .field("when_empty", &self.when_empty)
            .finish_non_exhaustive()
    }
}

/// Keys of numbers that were taken together; the iterator yields them one by one. Keys that are not taken are never
/// used.
#[derive(Debug)]
pub struct SegmentBatch<O: SegmentOrder> {
    segments: VecDeque<Segment<O>>,
    owner: Owner,
}

impl<O: SegmentOrder> SegmentBatch<O> {
    fn numbers(self) -> impl Iterator<Item = i64> {
        self.segments
            .into_iter()
            .flat_map(|segment| -> SegmentValues<O> { segment.values() })
    }
}

impl<O: SegmentOrder> Iterator for SegmentBatch<O> {
    type Item = Result<Generated<Counted<O>>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let segment = self.segments.front_mut()?;
        if let Err(forked) = self.owner.check::<O>() {
            return Some(Err(forked));
        }
        let number = segment.split_to(1).first()?;
        if segment.is_empty() {
            self.segments.pop_front();
        }
        Some(Ok(Generated::new(number)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left: u64 = self.segments.iter().map(|it| u64::from(it.len())).sum();
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl<O: SegmentOrder> ExactSizeIterator for SegmentBatch<O> {}

/// Reserves segments in advance for a [`SegmentGenerator`]: on a thread ([`start`](Self::start)) or on an async
/// runtime ([`run`](Self::run)). It ends when the generator is dropped.
///
/// If the source is [`Unavailable`](CoordinationFailure::Unavailable), the feeder asks again after a tenth of a
/// second. Any other failure ends the feeder, and calls fail with it once the reserved numbers are used up.
pub struct SegmentFeeder<O: SegmentOrder> {
    shared: Arc<Shared<O>>,
}

/// What a feeder has to do.
enum Task {
    Reserve(NonZeroU32),
    Sleep,
    End,
}

impl<O: SegmentOrder> SegmentFeeder<O> {
    /// What to do now; `sleeper` is woken when there is something.
    fn task(&self, sleeper: impl FnOnce() -> Feeder) -> Task {
        let mut buffer = self.shared.buffer();
        if matches!(buffer.feeder, Feeder::Dismissed) {
            return Task::End;
        }
        match buffer.needs() {
            Some(count) => Task::Reserve(count),
            None => {
                buffer.feeder = sleeper();
                Task::Sleep
            }
        }
    }

    /// Takes what the source answered, and returns whether it is to be left alone for a while.
    fn answer(&self, answer: Result<Segment<O>, Error>) -> Result<bool, Error> {
        let mut buffer = self.shared.buffer();
        let outcome = match answer {
            Ok(segment) => {
                let now = Instant::now();
                if let Some(before) = buffer.filled_at.replace(now) {
                    let lasted = now.saturating_duration_since(before);
                    buffer.step = buffer.steps.after(buffer.step, lasted);
                }
                buffer.newest = segment.len();
                // The source may give less at once than a batch needs.
                buffer.wanted = match O::RISES {
                    true => buffer.wanted.saturating_sub(segment.len()),
                    false => 0,
                };
                buffer.failure = None;
                buffer.segments.push_back(segment);
                Ok(false)
            }
            Err(error) => {
                buffer.failure = Some(error.clone());
                match error.coordination_failure() {
                    Some(CoordinationFailure::Unavailable) => Ok(true),
                    _ => Err(error),
                }
            }
        };
        drop(buffer);
        self.shared.filled.notify_all();
        outcome
    }

    /// Reserves segments until the generator is dropped. Spawn the future. `sleep` is the runtime's, such as
    /// `tokio::time::sleep`, or [`Delay::new`](crate::clock::Delay::new).
    ///
    /// # Errors
    ///
    /// Returns the first error of the source that is not [`Unavailable`](CoordinationFailure::Unavailable).
    pub async fn run<S, F>(
        self,
        source: impl std::ops::Deref<Target = S>,
        sleep: impl Fn(Duration) -> F,
    ) -> Result<(), Error>
    where
        S: AsyncSegmentSource<Order = O>,
        F: Future,
    {
        loop {
            let task = std::future::poll_fn(|context| {
                match self.task(|| Feeder::Task(context.waker().clone())) {
                    Task::Reserve(count) => Poll::Ready(Some(count)),
                    Task::Sleep => Poll::Pending,
                    Task::End => Poll::Ready(None),
                }
            });
            let Some(count) = task.await else {
                return Ok(());
            };
            let count = at_most(count, source.most());
            if self.answer(source.reserve(count).await)? {
                sleep(RETRY).await;
            }
        }
    }

    /// Reserves segments on a new thread until the generator is dropped.
    ///
    /// # Errors
    ///
    /// Returns [`Unavailable`](CoordinationFailure::Unavailable) if the system cannot start a thread.
    pub fn start(self, source: impl SegmentSource<Order = O> + 'static) -> Result<(), Error> {
        let run = move || {
            loop {
                match self.task(|| Feeder::Thread(thread::current())) {
                    Task::Reserve(count) => {
                        match self.answer(source.reserve(at_most(count, source.most()))) {
                            Ok(false) => {}
                            Ok(true) => thread::sleep(RETRY),
                            Err(_) => return,
                        }
                    }
                    Task::Sleep => thread::park(),
                    Task::End => return,
                }
            }
        };
        let spawned = thread::Builder::new()
            .name("ordid-segments".to_owned())
            .spawn(run);
        match spawned {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::coordination(
                CoordinationFailure::Unavailable,
                format!("no thread to reserve numbers on: {error}"),
            )),
        }
    }
}

/// Whoever waits shall not wait for a feeder that has ended.
impl<O: SegmentOrder> Drop for SegmentFeeder<O> {
    fn drop(&mut self) {
        let mut buffer = self.shared.buffer();
        if !matches!(buffer.feeder, Feeder::Dismissed) {
            buffer.feeder = Feeder::Gone;
        }
        drop(buffer);
        self.shared.filled.notify_all();
    }
}

impl<O: SegmentOrder> fmt::Debug for SegmentFeeder<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentFeeder").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
