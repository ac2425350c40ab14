//! One program's part of a round of `bench-generate`: it times one maker in one case and prints
//! the nanoseconds a key took.
//!
//! Each program of a round is this code around other generators. A key that was made alone is read
//! as a 128-bit number, which is stored for [`black_box`] and compared with the one before; every
//! maker pays for that. Keys that do not rise as bytes do (random ones, and those that rise in another
//! order) are compared too, but not judged.
//!
//! The number is in two registers. A copy of the key's 16 bytes in memory, as `black_box` of the key
//! itself would make it, waits until the halves that the generator has just stored have left the
//! processor's store buffer: a few nanoseconds, which are not the generator's.

use std::{
    fmt,
    hint::{self, black_box},
    panic,
    process::ExitCode,
    sync::{
        Barrier,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    processors::{Pair, Schedule},
    spread::Spread,
};

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Case {
    /// One key at a time on one thread.
    OneThread,
    /// One key at a time on each of two threads, which run on two processors: wall time over all
    /// keys.
    TwoThreads,
    /// One key at a time on each of 64 threads, which run where the system puts them: wall time over all keys.
    ManyThreads,
    /// A million keys into a `Vec` that is there already.
    Fill,
    /// 24 keys in a row on one thread, then none for longer than any layout's unit of time, which is
    /// not timed: for layouts that hold so few keys a second that anything else would time their
    /// waiting.
    Bursts,
}

impl Case {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::OneThread,
        Self::TwoThreads,
        Self::ManyThreads,
        Self::Fill,
        Self::Bursts,
    ];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneThread => "one-thread",
            Self::TwoThreads => "two-threads",
            Self::ManyThreads => "64-threads",
            Self::Fill => "fill",
            Self::Bursts => "bursts",
        }
    }
}

/// What is timed in a sample, and how many samples are behind the median of a round.
pub const METHOD: &str = "one key at a time: 101 x 10,000; two threads: at most 11 x 20,000 each, where both ran; 64 threads: 5 x 20,000 each; fill: 5 x 1,000,000; bursts: 41 x 24";
/// A program prints this in the place of a time that the machine cannot measure.
pub const NOT_MEASURED: &str = "not measured: two threads do not run at once here";
/// Keys of a sample that each of two threads makes.
const BESIDE: u32 = 20_000;
/// Threads of the case of many, and the keys of a sample that each of them makes.
const MANY: (u32, u32) = (64, 20_000);
/// Samples of one key at a time, of which the median counts.
const SAMPLES: usize = 101;
/// Keys of such a sample: they are made before the system gives the processor to another program, which would be timed
/// along with them. Most samples are then undisturbed on a busy machine, too.
const SINGLE: u32 = 10_000;
/// Keys of a sample of a fill.
const FILL: u32 = 1_000_000;
/// Keys of a burst: yitter's layout holds 32 in its unit of time, which is the fewest.
const BURST: u32 = 24;
/// How long no keys are made around a burst: longer than Sonyflake's unit of time of 10 ms.
const PAUSE: Duration = Duration::from_millis(11);

/// A generator under test, with a name for the command line.
pub struct Maker {
    name: &'static str,
    /// Whether its keys rise as their numbers do.
    rises: bool,
    time: Box<dyn Fn(Case, bool) -> Option<f64>>,
}

impl Maker {
    /// Names a generator that makes one key at a time; a fill of it is a loop.
    ///
    /// `number` reads a key as a number in the order of keys.
    ///
    /// `on_thread` is called once on each thread, before anything is timed, and returns what that
    /// thread calls for a key. So a generator that all threads share lives outside, and one that a
    /// thread owns is made inside.
    ///
    /// # Example: a shared one and an owned one
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use bench_common::round::Maker;
    ///
    /// static NEXT: AtomicU64 = AtomicU64::new(0);
    /// Maker::new("shared", |key| u128::from(*key), || || NEXT.fetch_add(1, Ordering::Relaxed));
    /// Maker::new("owned", |key| *key, || {
    ///     let mut next = 0_u128;
    ///     move || {
    ///         next += 1;
    ///         next
    ///     }
    /// });
    /// ```
    pub fn new<K, M>(
        name: &'static str,
        number: impl Fn(&K) -> u128 + Copy + Sync + 'static,
        on_thread: impl Fn() -> M + Sync + 'static,
    ) -> Self
    where
        K: Copy + Ord,
        M: FnMut() -> K,
    {
        Self::with(name, number, on_thread, |make: &mut M, keys: &mut [K]| {
            for key in keys {
                *key = make();
            }
        })
    }

    /// As [`Maker::new`], for a generator that has a call for many keys.
    pub fn filling<K, M>(
        name: &'static str,
        number: impl Fn(&K) -> u128 + Copy + Sync + 'static,
        on_thread: impl Fn() -> M + Sync + 'static,
        fill: impl Fn(&mut [K]) + 'static,
    ) -> Self
    where
        K: Copy + Ord,
        M: FnMut() -> K,
    {
        let fill = move |_: &mut M, keys: &mut [K]| fill(keys);
        Self::with(name, number, on_thread, fill)
    }

    /// Does not judge the keys, which do not rise as their numbers do.
    #[must_use]
    pub fn unordered(mut self) -> Self {
        self.rises = false;
        self
    }

    fn with<K, M>(
        name: &'static str,
        number: impl Fn(&K) -> u128 + Copy + Sync + 'static,
        on_thread: impl Fn() -> M + Sync + 'static,
        fill: impl Fn(&mut M, &mut [K]) + 'static,
    ) -> Self
    where
        K: Copy + Ord,
        M: FnMut() -> K,
    {
        let time = move |case, rises| match case {
            Case::OneThread => {
                let mut make = on_thread();
                median(SAMPLES, SINGLE, || {
                    one_by_one(SINGLE, rises, number, &mut make)
                })
            }
            Case::ManyThreads => median(5, MANY.0 * MANY.1, || {
                on_many_threads(MANY, rises, number, &on_thread)
            }),
            Case::TwoThreads => on_two_threads(BESIDE, rises, number, &on_thread),
            Case::Bursts => {
                let mut make = on_thread();
                median(41, BURST, || {
                    // Awake, so that the processor stays as fast and as warm as it was.
                    let paused = Instant::now();
                    while paused.elapsed() < PAUSE {
                        hint::spin_loop();
                    }
                    one_by_one(BURST, rises, number, &mut make)
                })
            }
            Case::Fill => {
                let mut make = on_thread();
                let mut keys = vec![make(); FILL as usize];
                median(5, FILL, || {
                    filled(&mut keys, rises, |keys| fill(&mut make, keys))
                })
            }
        };
        Self {
            name,
            rises: true,
            time: Box::new(time),
        }
    }
}

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Maker")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Times the maker and the case that the command line names; with neither, prints the makers, one
/// a line.
///
/// A maker that this machine cannot run is left out of the list.
pub fn run(makers: &[Maker]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match answer(makers, &arguments) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(usage) => {
            eprintln!("{usage}");
            ExitCode::from(2)
        }
    }
}

fn answer(makers: &[Maker], arguments: &[String]) -> Result<String, String> {
    let names: Vec<_> = makers.iter().map(|maker| maker.name).collect();
    if arguments.is_empty() {
        return Ok(names.join("\n"));
    }
    if let [maker, case] = arguments
        && let Some(maker) = makers.iter().find(|found| found.name == maker)
        && let Some(case) = Case::ALL.into_iter().find(|found| found.name() == case)
    {
        let nanos = (maker.time)(case, maker.rises);
        return Ok(nanos.map_or_else(|| NOT_MEASURED.to_owned(), |it| it.to_string()));
    }
    let cases = Case::ALL.map(Case::name).join(", ");
    Err(format!(
        "usage: MAKER CASE, of {} and {cases}",
        names.join(", ")
    ))
}

/// Returns the median nanoseconds a key over some samples, after one that warms up.
fn median(samples: usize, keys: u32, mut sample: impl FnMut() -> Duration) -> Option<f64> {
    sample();
    let times = (0..samples).map(|_| sample().as_secs_f64());
    Some(Spread::of(times).median * 1e9 / f64::from(keys))
}

fn one_by_one<K>(
    count: u32,
    rises: bool,
    number: impl Fn(&K) -> u128,
    make: &mut impl FnMut() -> K,
) -> Duration {
    // Below every key that has a time.
    let mut last = 0;
    let mut rising = true;
    let started = Instant::now();
    for _ in 0..count {
        let key = number(&make());
        black_box(key);
        rising &= last < key;
        last = key;
    }
    let elapsed = started.elapsed();
    assert!(rising || !rises, "keys of one thread do not rise");
    elapsed
}

/// Returns the median nanoseconds a key of two threads that run at once, on two processors; `None` if they do not.
///
/// Taking turns, they would meet each other's writes a few times a second instead of with every key. So a sample does not
/// count if they shared a processor or if the system interrupted one of them. On a busy machine most samples do not.
fn on_two_threads<K, M>(
    count: u32,
    rises: bool,
    number: impl Fn(&K) -> u128 + Copy + Sync,
    on_thread: &(impl Fn() -> M + Sync),
) -> Option<f64>
where
    M: FnMut() -> K,
{
    const SAMPLES: usize = 11;
    const FEWEST: usize = 3;
    const PATIENCE: Duration = Duration::from_secs(2);
    let pair = Pair::choose();
    if cfg!(target_os = "linux") && pair.is_none() {
        return None;
    }
    let started = Instant::now();
    let mut times = Vec::new();
    while times.len() < SAMPLES && started.elapsed() < PATIENCE {
        let time = at_once(pair.as_ref(), count, rises, number, on_thread);
        times.extend(time.map(|it| it.as_secs_f64()));
    }
    (times.len() >= FEWEST).then(|| Spread::of(times).median * 1e9 / f64::from(2 * count))
}

/// Returns the wall time of two threads, unless they are known to have waited for a processor.
fn at_once<K, M>(
    pair: Option<&Pair>,
    count: u32,
    rises: bool,
    number: impl Fn(&K) -> u128 + Copy + Sync,
    on_thread: &(impl Fn() -> M + Sync),
) -> Option<Duration>
where
    M: FnMut() -> K,
{
    let ready = AtomicU32::new(0);
    let thread = |index| {
        if let Some(pair) = pair {
            pair.pin(index);
        }
        let mut make = on_thread();
        // What the thread's first key sets up is not timed, and both start at once: they wait
        // awake, since the fastest makers are done before a sleeper has woken.
        black_box(make());
        let before = Schedule::of_thread();
        ready.fetch_add(1, Ordering::SeqCst);
        while ready.load(Ordering::SeqCst) < 2 {
            match pair {
                // Each has a processor: to yield it would be to wait for others.
                Some(_) => hint::spin_loop(),
                None => thread::yield_now(),
            }
        }
        let started = Instant::now();
        one_by_one(count, rises, number, &mut make);
        let ended = Instant::now();
        (started, ended, before.zip(Schedule::of_thread()))
    };
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(|| thread(1));
        let one = thread(0);
        if let Some(pair) = pair {
            pair.release();
        }
        (
            one,
            other.join().unwrap_or_else(|it| panic::resume_unwind(it)),
        )
    });
    let (one_started, one_ended, of_one) = one;
    let (other_started, other_ended, of_other) = other;
    let may_have_waited = match of_one.zip(of_other) {
        Some(((one, one_after), (other, other_after))) => {
            one != one_after || other != other_after || one.processor == other.processor
        }
        // Linux tells, unless a sandbox hides it.
        None => cfg!(target_os = "linux"),
    };
    (!may_have_waited).then(|| one_ended.max(other_ended) - one_started.min(other_started))
}

/// Returns the wall time of many threads, from when all are there to the end of the last.
fn on_many_threads<K, M>(
    (threads, count): (u32, u32),
    rises: bool,
    number: impl Fn(&K) -> u128 + Copy + Sync,
    on_thread: &(impl Fn() -> M + Sync),
) -> Duration
where
    M: FnMut() -> K,
{
    let start = Barrier::new(threads as usize + 1);
    let thread = || {
        let mut make = on_thread();
        black_box(make());
        start.wait();
        one_by_one(count, rises, number, &mut make);
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(thread)).collect();
        // Before the barrier opens: this thread may run last.
        let started = Instant::now();
        start.wait();
        for thread in all {
            thread.join().unwrap_or_else(|it| panic::resume_unwind(it));
        }
        started.elapsed()
    })
}

fn filled<K: Copy + Ord>(keys: &mut [K], rises: bool, fill: impl FnOnce(&mut [K])) -> Duration {
    let before = keys.last().copied();
    let started = Instant::now();
    fill(black_box(keys));
    let elapsed = started.elapsed();
    if !rises {
        return elapsed;
    }
    assert!(
        keys.is_sorted_by(|a, b| a < b),
        "keys of a fill do not rise"
    );
    assert!(
        before < keys.first().copied(),
        "a fill does not rise above the last"
    );
    elapsed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each thread counts by itself.
    fn counter() -> impl FnMut() -> u32 {
        let mut next = 0;
        move || {
            next += 1;
            next
        }
    }

    fn number(key: &u32) -> u128 {
        u128::from(*key)
    }

    fn answer_to(arguments: &[&str]) -> Result<String, String> {
        let makers = [
            Maker::new("one", number, counter),
            Maker::filling("other", number, counter, |_| ()),
        ];
        let arguments: Vec<_> = arguments.iter().map(|&text| text.to_owned()).collect();
        answer(&makers, &arguments)
    }

    #[test]
    fn a_program_lists_its_makers() {
        assert_eq!(answer_to(&[]).as_deref(), Ok("one\nother"));
    }

    #[test]
    fn a_program_says_what_it_can_be_asked() {
        let usage = "usage: MAKER CASE, of one, other and one-thread, two-threads, 64-threads, fill, bursts";
        for wrong in [
            &["one"][..],
            &["three", "fill"],
            &["one", "four"],
            &["one", "fill", "x"],
        ] {
            assert_eq!(answer_to(wrong), Err(usage.to_owned()));
        }
    }

    #[test]
    fn every_case_takes_time_or_says_why_not() {
        for case in Case::ALL {
            let nanos = answer_to(&["one", case.name()]).unwrap();
            if case == Case::TwoThreads && nanos == NOT_MEASURED {
                continue;
            }
            assert!(nanos.parse::<f64>().unwrap() > 0.0, "{case:?}: {nanos}");
        }
    }

    #[test]
    #[should_panic(expected = "keys of one thread do not rise")]
    fn keys_that_fall_are_found() {
        let mut keys = [1, 2, 2].into_iter();
        one_by_one(3, true, number, &mut || keys.next().unwrap());
    }

    #[test]
    #[should_panic(expected = "keys of one thread do not rise")]
    fn keys_that_fall_on_one_of_many_threads_are_found() {
        let threads = AtomicU32::new(0);
        on_many_threads((3, 2), true, number, &|| {
            let falls = threads.fetch_add(1, Ordering::SeqCst) == 1;
            let mut count = counter();
            move || if falls { 1 } else { count() }
        });
    }

    #[test]
    #[should_panic(expected = "a fill does not rise above the last")]
    fn a_fill_that_does_not_go_on_is_found() {
        filled(&mut [1, 2], true, |keys| keys.copy_from_slice(&[2, 3]));
    }
}
