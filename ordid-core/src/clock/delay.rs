//! Waiting in a future, on whichever runtime.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    fmt, io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError, TryLockError, Weak,
        mpsc::{self, RecvTimeoutError},
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use crate::entropy::process;

/// A future that is over after a while, on any runtime: a thread of its own, which the first one of the
/// process starts, wakes whoever waits. The child of a fork has another such thread.
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
    /// Waits so long from now on.
    pub fn new(duration: Duration) -> Self {
        Self {
            end: Instant::now().checked_add(duration),
            bell: None,
        }
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

/// The way to a thread that rings.
struct Timer {
    process: u32,
    alarms: mpsc::Sender<Alarm>,
}

impl Timer {
    fn start() -> io::Result<Self> {
        let (alarms, set) = mpsc::channel();
        thread::Builder::new()
            .name("ordid-delay".to_owned())
            .spawn(move || Alarms::default().ring(&set))?;
        Ok(Self {
            process: process(),
            alarms,
        })
    }

    /// Gives an alarm to the thread of this process, which is started where there is none.
    fn set(mut alarm: Alarm) -> io::Result<()> {
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
            if let Some(timer) = &*present
                && timer.process == process()
            {
                match timer.alarms.send(alarm) {
                    Ok(()) => return Ok(()),
                    // The thread is gone: a waker has panicked.
                    Err(mpsc::SendError(unsent)) => alarm = unsent,
                }
            }
            let parents = present.replace(Self::start()?);
            // A fork may have left its channel locked, and to drop it would wait for that.
            std::mem::forget(parents);
        }
        // Held by a thread that a fork left behind: a thread for this alarm alone.
        let alone = Self::start()?;
        alone
            .alarms
            .send(alarm)
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Alarms that have not rung, the next one first.
#[derive(Default)]
struct Alarms {
    waiting: BinaryHeap<Reverse<Alarm>>,
    /// At how many those are thrown away that nobody waits for.
    full: usize,
}

impl Alarms {
    /// Rings until there is no alarm, and nobody left to set one.
    fn ring(mut self, set: &mpsc::Receiver<Alarm>) {
        let mut is_open = true;
        while is_open || !self.waiting.is_empty() {
            let next = match self.ring_due(Instant::now()) {
                None => set.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(left) if is_open => set.recv_timeout(left),
                Some(left) => {
                    thread::sleep(left);
                    Err(RecvTimeoutError::Timeout)
                }
            };
            match next {
                Ok(alarm) => self.add(alarm),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => is_open = false,
            }
        }
    }

    /// Rings what is due, and returns how long the next one has.
    fn ring_due(&mut self, now: Instant) -> Option<Duration> {
        while let Some(Reverse(first)) = self.waiting.peek() {
            let left = first.end.saturating_duration_since(now);
            if !left.is_zero() {
                return Some(left);
            }
            let bell = self.waiting.pop().and_then(|first| first.0.bell.upgrade());
            if let Some(waker) = bell.and_then(|bell| replace(&bell, None)) {
                waker.wake();
            }
        }
        None
    }

    fn add(&mut self, alarm: Alarm) {
        const LEAST: usize = 1_024;

        self.waiting.push(Reverse(alarm));
        if self.waiting.len() > self.full.max(LEAST) {
            self.waiting.retain(|it| it.0.bell.strong_count() > 0);
            self.full = self.waiting.len() * 2;
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
    fn delays_of_many_threads_end_and_not_before() {
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
    fn the_last_who_asked_is_woken() {
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
    fn alarms_that_nobody_waits_for_are_thrown_away() {
        let end = Instant::now() + Duration::from_secs(3_600);
        let mut alarms = Alarms::default();
        let kept: Vec<Arc<Bell>> = (0..100).map(|_| Arc::default()).collect();
        for bell in &kept {
            let bell = Arc::downgrade(bell);
            alarms.add(Alarm { end, bell });
        }
        for _ in 0..100_000 {
            let bell = Weak::new();
            alarms.add(Alarm { end, bell });
            assert!(alarms.waiting.len() <= 1_024);
        }
        let left = |it: &&Reverse<Alarm>| it.0.bell.strong_count() > 0;
        assert_eq!(alarms.waiting.iter().filter(left).count(), 100);
    }

    #[test]
    fn a_thread_that_nobody_can_reach_rings_what_it_has() {
        let timer = Timer::start().unwrap();
        let waker = Unpark::new();
        let bell = Arc::new(Mutex::new(Some(Waker::from(Arc::clone(&waker)))));
        let end = Instant::now() + Duration::from_millis(20);
        let alarm = Alarm {
            end,
            bell: Arc::downgrade(&bell),
        };
        timer.alarms.send(alarm).unwrap();
        drop(timer);
        while !waker.1.load(atomic::Ordering::SeqCst) {
            thread::park();
        }
        assert!(Instant::now() >= end);
    }
}
