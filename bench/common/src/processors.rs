//! Gives threads logical processors of their own.
//!
//! Two threads that wait for each other by yielding stay on one processor, if they began there: the scheduler has no reason
//! to move either. So the benches put each thread on a processor of its own where the system lets them.

use std::fs;

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where a thread runs, and how often the system has interrupted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The number of the logical processor.
    pub processor: u32,
    /// How often another thread ran in its place, although it did not wait for anything.
    pub interruptions: u64,
}

impl Schedule {
    /// Returns the calling thread's, where the system tells.
    pub fn of_thread() -> Option<Self> {
        let [stat, status] = ["stat", "status"]
            .map(|file| fs::read_to_string(format!("/proc/thread-self/{file}")).ok());
        Some(Self {
            processor: running_on(&stat?)?,
            interruptions: interruptions(&status?)?,
        })
    }
}

/// Returns the 39th field; the second is a name in parentheses that may hold anything.
fn running_on(stat: &str) -> Option<u32> {
    let (_, from_third) = stat.rsplit_once(')')?;
    from_third.split_whitespace().nth(36)?.parse().ok()
}

fn interruptions(status: &str) -> Option<u64> {
    let (_, count) = status.split_once("nonvoluntary_ctxt_switches:")?;
    count.split_whitespace().next()?.parse().ok()
}

/// Two processors for two threads, and where the calling thread was allowed to run before.
#[derive(Debug)]
pub struct Pair {
    #[cfg(target_os = "linux")]
    before: CpuSet,
    #[cfg(target_os = "linux")]
    processors: [usize; 2],
}

impl Pair {
    /// Chooses two of the processors that the calling thread may run on, of two cores where there are two. `None` if the
    /// system does not tell, or allows one only.
    #[cfg(target_os = "linux")]
    pub fn choose() -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        let mut allowed = (0..CpuSet::MAX_CPU).filter(|processor| before.is_set(*processor));
        let first = allowed.next()?;
        let others: Vec<_> = allowed.collect();
        let core = core_of(first);
        let of_other_core = others.iter().find(|other| core_of(**other) != core);
        let second = *of_other_core.or(others.first())?;
        Some(Self {
            before,
            processors: [first, second],
        })
    }

    /// Elsewhere the system decides.
    #[cfg(not(target_os = "linux"))]
    pub fn choose() -> Option<Self> {
        None
    }

    /// Lets the calling thread run on the first or the second alone. If the system refuses, it stays where it is.
    pub fn pin(&self, index: usize) {
        #[cfg(target_os = "linux")]
        {
            let mut one = CpuSet::new();
            one.set(self.processors[index]);
            let _ = sched_setaffinity(None, &one);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = index;
    }

    /// Lets the calling thread run where it could before.
    pub fn release(&self) {
        #[cfg(target_os = "linux")]
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Returns the processors that share a core with this one, as the system writes them.
#[cfg(target_os = "linux")]
fn core_of(processor: usize) -> Option<String> {
    let path = format!("/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_of_a_thread_is_the_39th_field() {
        let from_third: Vec<_> = (3..=52).map(|field| field.to_string()).collect();
        let stat = format!("1 (a) (b c) {}\n", from_third.join(" "));
        assert_eq!(running_on(&stat), Some(39));
        assert_eq!(running_on("1 (a) S 0"), None);
    }

    #[test]
    fn interruptions_are_the_switches_that_the_thread_did_not_ask_for() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t5\n";
        assert_eq!(interruptions(status), Some(5));
        assert_eq!(interruptions("Name:\ta\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pinned_thread_runs_where_it_was_put() {
        // A machine or a test run with one processor has no pair.
        let Some(pair) = Pair::choose() else {
            assert!(std::thread::available_parallelism().is_ok_and(|it| it.get() == 1));
            return;
        };
        for (index, processor) in pair.processors.into_iter().enumerate() {
            pair.pin(index);
            let found = Schedule::of_thread().map(|it| it.processor as usize);
            assert_eq!(found, Some(processor));
        }
        assert_ne!(pair.processors[0], pair.processors[1]);
        pair.release();
        assert_eq!(sched_getaffinity(None).ok(), Some(pair.before));
    }
}
