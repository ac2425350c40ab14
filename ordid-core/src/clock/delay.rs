//! Waiting in a future, on whichever runtime.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    fmt,
    future::poll_fn,
    io,
    panic::{self, AssertUnwindSafe},
    pin::{Pin, pin},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, Weak},
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use crate::entropy::{Process, process};

/// A future that completes after a given time, on any async runtime. The first one of a process starts a thread that
/// wakes the waiting tasks. The child of a fork starts another such thread.
///
/// # Example: what keeps a lease, on a runtime that has no timer
///
/// ```no_run
/// # async fn example<A: ordid_core::coordination::AsyncNodeAllocator + 'static>(
/// #     keeper: ordid_core::generator::LeaseKeeper<ordid_core::scheme::Snowflake,
/// #         ordid_core::clock::SystemClock, ordid_core::entropy::ThreadEntropy>,
/// #     allocator: std::sync::Arc<A>,
/// # ) -> Result<(), ordid_core::Error> {
/// use ordid_core::clock::Delay;
///
/// keeper.run(allocator, Delay::new).await
/// # }
/// ```
#[must_use = "it waits when it is awaited"]
pub struct Delay {
    /// `None`: never.
    end: Option<Instant>,
    bell: Option<Arc<Bell>>,
}

/// Whom to wake.
type Bell = Mutex<Option<Waker>>;

fn replace(bell: &Bell, waker: Option<Waker>) -> Option<Waker> {
    let mut present = bell.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut present, waker)
}

impl Delay {
    /// Makes a future that completes when this time has passed.
    pub fn new(duration: Duration) -> Self {
        Self {
            end: Instant::now().checked_add(duration),
            bell: None,
        }
    }

    /// Waits for a future, but at most this long. Returns the future's output, or `None` after the time; the future
    /// is then dropped.
    ///
    /// # Example
    ///
    /// ```
    /// # use std::{future::{pending, ready}, pin::pin, task::{Context, Poll, Waker}, time::Duration};
    /// use ordid_core::clock::Delay;
    ///
    /// # let mut context = Context::from_waker(Waker::noop());
    /// let soon = pin!(Delay::within(Duration::from_secs(1), ready(7)));
    /// assert_eq!(soon.poll(&mut context), Poll::Ready(Some(7)));
    /// let never = pin!(Delay::within(Duration::ZERO, pending::<u8>()));
    /// assert_eq!(never.poll(&mut context), Poll::Ready(None));
    /// ```
    pub async fn within<T>(duration: Duration, future: impl Future<Output = T>) -> Option<T> {
        let (mut future, mut end) = (pin!(future), Self::new(duration));
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending => Pin::new(&mut end).poll(context).map(|()| None),
        })
        .await
    }
}

impl Future for Delay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(end) = self.end else {
            return Poll::Pending;
        };
        if Instant::now() >= end {
            return Poll::Ready(());
        }
        let waker = Some(context.waker().clone());
        match &self.bell {
            Some(bell) => {
                replace(bell, waker);
            }
            None => {
                let bell = Arc::new(Mutex::new(waker));
                let alarm = Alarm {
                    end,
                    bell: Arc::downgrade(&bell),
                };
                match Timer::set(alarm) {
                    Ok(()) => self.bell = Some(bell),
                    // There is no thread to be had: ask again, and again.
                    Err(_) => context.waker().wake_by_ref(),
                }
            }
        }
        // It may have rung for the waker before this one.
        if Instant::now() >= end {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl fmt::Debug for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delay")
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

/// When to ring which bell. Ordered by time.
struct Alarm {
    end: Instant,
    bell: Weak<Bell>,
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.end == other.end
    }
}

impl Eq for Alarm {}

impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> Ordering {
        self.end.cmp(&other.end)
    }
}

/// A thread that rings, and what it rings for.
struct Timer {
    process: Process,
    alarms: Arc<Alarms>,
}

impl Timer {
    /// Starts the thread. One that does not last ends with its last alarm.
    fn start(alarms: Alarms, lasts: bool) -> io::Result<Self> {
        let alarms = Arc::new(alarms);
        let rung = Arc::clone(&alarms);
        thread::Builder::new()
            .name("ordid-delay".to_owned())
            .spawn(move || rung.ring(lasts))?;
        Ok(Self {
            process: process(),
            alarms,
        })
    }

    /// Gives an alarm to the thread of this process, which is started where there is none.
    fn set(alarm: Alarm) -> io::Result<()> {
        static PRESENT: Mutex<Option<Timer>> = Mutex::new(None);
        const TRIES: u32 = 100;

        for _ in 0..TRIES {
            let mut present = match PRESENT.try_lock() {
                Ok(present) => present,
                Err(TryLockError::Poisoned(present)) => present.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    // Another thread is here, for a moment.
                    thread::yield_now();
                    continue;
                }
            };
            let alarms = match &*present {
                Some(timer) if timer.process == process() => Arc::clone(&timer.alarms),
                _ => {
                    let timer = Self::start(Alarms::default(), true)?;
                    let alarms = Arc::clone(&timer.alarms);
                    // What a fork has left may be locked by a thread that is not here.
                    std::mem::forget(present.replace(timer));
                    alarms
                }
            };
            drop(present);
            alarms.set(alarm);
            return Ok(());
        }
        // Held by a thread that a fork left behind: a thread for this alarm alone.
        let alarms = Alarms::default();
        alarms.set(alarm);
        Self::start(alarms, false).map(drop)
    }
}

/// Alarms that have not rung.
#[derive(Default)]
struct Alarms {
    waiting: Mutex<Waiting>,
    /// Tells the thread of one that is before all others.
    earlier: Condvar,
}

impl Alarms {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread sleeps on, unless the alarm is before all others: to wake it takes as long as some of the
    /// answers that alarms are set for, and most are answered before.
    fn set(&self, alarm: Alarm) {
        let mut waiting = self.lock();
        let next = waiting.alarms.peek();
        let is_next = next.is_none_or(|Reverse(next)| alarm.end < next.end);
        waiting.add(alarm);
        drop(waiting);
        if is_next {
            self.earlier.notify_one();
        }
    }

    fn ring(&self, lasts: bool) {
        let mut waiting = self.lock();
        loop {
            match waiting.next(Instant::now()) {
                Next::Ring(waker) => {
                    drop(waiting);
                    // A waker that panics is its runtime's affair, and not that of all who wait.
                    let _ = panic::catch_unwind(AssertUnwindSafe(|| waker.wake()));
                    waiting = self.lock();
                }
                Next::Sleep(left) => {
                    let woken = self.earlier.wait_timeout(waiting, left);
                    (waiting, _) = woken.unwrap_or_else(PoisonError::into_inner);
                }
                Next::Nothing if lasts => {
                    let woken = self.earlier.wait(waiting);
                    waiting = woken.unwrap_or_else(PoisonError::into_inner);
                }
                Next::Nothing => return,
            }
        }
    }
}

/// What the thread does next.
enum Next {
    Ring(Waker),
    Sleep(Duration),
    Nothing,
}

/// Those that have not rung, the next one first.
#[derive(Default)]
struct Waiting {
    alarms: BinaryHeap<Reverse<Alarm>>,
    /// At how many those are thrown away that nobody waits for.
    full: usize,
}

impl Waiting {
    /// Takes the next alarm out if it is due, and those before it that nobody waits for.
    fn next(&mut self, now: Instant) -> Next {
        while let Some(Reverse(next)) = self.alarms.peek() {
            let left = next.end.saturating_duration_since(now);
            if !left.is_zero() && next.bell.strong_count() > 0 {
                return Next::Sleep(left);
            }
            let bell = self.alarms.pop().and_then(|next| next.0.bell.upgrade());
            if let Some(waker) = bell.and_then(|bell| replace(&bell, None)) {
                return Next::Ring(waker);
            }
        }
        Next::Nothing
    }

    fn add(&mut self, alarm: Alarm) {
        const LEAST: usize = 1_024;

        self.alarms.push(Reverse(alarm));
        if self.alarms.len() > self.full.max(LEAST) {
            self.alarms.retain(|it| it.0.bell.strong_count() > 0);
            self.full = self.alarms.len() * 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, sync::atomic, task::Wake};

    use super::*;

    /// Wakes a thread, and tells that it did.
    struct Unpark(thread::Thread, atomic::AtomicBool);

    impl Unpark {
        fn new() -> Arc<Self> {
            Arc::new(Self(thread::current(), atomic::AtomicBool::new(false)))
        }
    }

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.1.store(true, atomic::Ordering::SeqCst);
            self.0.unpark();
        }
    }

    fn wait(delay: Delay) {
        let waker = Waker::from(Unpark::new());
        let mut delay = pin!(delay);
        while delay
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
        {
            thread::park();
        }
    }

    #[test]
    fn no_delay_of_many_threads_ends_early() {
        thread::scope(|scope| {
            for millis in [30, 5, 60, 0, 20, 1, 45, 10] {
                scope.spawn(move || {
                    for _ in 0..3 {
                        let (start, duration) = (Instant::now(), Duration::from_millis(millis));
                        wait(Delay::new(duration));
                        assert!(start.elapsed() >= duration);
                    }
                });
            }
        });
    }

    #[test]
    fn only_the_last_waker_is_woken() {
        let (first, last) = (Unpark::new(), Unpark::new());
        let mut delay = pin!(Delay::new(Duration::from_millis(100)));
        for asks in [&first, &last] {
            let waker = Waker::from(Arc::clone(asks));
            let mut context = Context::from_waker(&waker);
            assert!(delay.as_mut().poll(&mut context).is_pending());
        }
        while !last.1.load(atomic::Ordering::SeqCst) {
            thread::park();
        }
        assert!(!first.1.load(atomic::Ordering::SeqCst));
    }

    #[test]
    fn dropped_alarms_are_discarded() {
        let end = Instant::now() + Duration::from_secs(3_600);
        let mut waiting = Waiting::default();
        let kept: Vec<Arc<Bell>> = (0..100).map(|_| Arc::default()).collect();
        for bell in &kept {
            let bell = Arc::downgrade(bell);
            waiting.add(Alarm { end, bell });
        }
        for _ in 0..100_000 {
            let bell = Weak::new();
            waiting.add(Alarm { end, bell });
            assert!(waiting.alarms.len() <= 1_024);
        }
        let left = |it: &&Reverse<Alarm>| it.0.bell.strong_count() > 0;
        assert_eq!(waiting.alarms.iter().filter(left).count(), 100);
    }

    #[test]
    fn an_alarm_earlier_than_all_others_rings_on_time() {
        let waker = Waker::from(Unpark::new());
        let mut later = pin!(Delay::new(Duration::from_secs(3_600)));
        let mut context = Context::from_waker(&waker);
        assert!(later.as_mut().poll(&mut context).is_pending());
        let start = Instant::now();
        wait(Delay::new(Duration::from_millis(20)));
        assert!(start.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_waker_that_panics_leaves_the_others_their_delays() {
        struct Panics;

        impl Wake for Panics {
            fn wake(self: Arc<Self>) {
                panic!("as a waker should not");
            }
        }

        let waker = Waker::from(Arc::new(Panics));
        let mut context = Context::from_waker(&waker);
        let mut time = Duration::from_millis(5);
        // On a busy machine it may be over before it is polled.
        let _panics = loop {
            let mut delay = Box::pin(Delay::new(time));
            if delay.as_mut().poll(&mut context).is_pending() {
                break delay;
            }
            time *= 2;
        };
        wait(Delay::new(time + Duration::from_millis(25)));
    }

    #[test]
    fn a_thread_for_one_alarm_rings_and_ends() {
        let waker = Unpark::new();
        let bell = Arc::new(Mutex::new(Some(Waker::from(Arc::clone(&waker)))));
        let end = Instant::now() + Duration::from_millis(20);
        let alarms = Alarms::default();
        alarms.set(Alarm {
            end,
            bell: Arc::downgrade(&bell),
        });
        let timer = Timer::start(alarms, false).unwrap();
        while !waker.1.load(atomic::Ordering::SeqCst) {
            thread::park();
        }
        assert!(Instant::now() >= end);
        // The thread has its own count of them, until it ends.
        while Arc::strong_count(&timer.alarms) > 1 {
            thread::yield_now();
        }
    }
}
