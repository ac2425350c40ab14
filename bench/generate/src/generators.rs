//! The generators that are timed: ordid's modes with their targets, and the fastest peers with
//! what they promise instead.
//!
//! To add one, add its maker to a program in `rounds` and an entry here.

use std::fmt;

use bench_common::{
    machine,
    round::Case::{self, Fill, ManyThreads, OneThread, TwoThreads},
};

/// The one that ratios refer to, case by case.
pub(crate) const REFERENCE: &str = "uuid now_v7, fast-rng";

/// A generator, and the cases that it has an interface for.
#[derive(Debug)]
pub(crate) struct Generator {
    pub(crate) title: &'static str,
    pub(crate) program: &'static str,
    pub(crate) maker: &'static str,
    pub(crate) cases: &'static [(Case, Target)],
    pub(crate) promise: Promise,
}

/// What a faster generator may have given up. Read in the peers' sources and documentation: the
/// bench does not test it.
#[derive(Debug)]
pub(crate) struct Promise {
    /// What somebody who has seen a key does not know of the next one of the same millisecond.
    pub(crate) secret: &'static str,
    /// Whose keys rise strictly.
    pub(crate) rises: &'static str,
    /// Where the time comes from.
    pub(crate) clock: &'static str,
    /// What the child of a fork makes.
    pub(crate) fork: &'static str,
}

/// The greatest ratio that ordid may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    /// None is set.
    None,
    /// The same on every machine.
    AtMost(f64),
    /// As the processor has AES instructions or not.
    ByAes { with: f64, without: f64 },
}

impl Target {
    /// Returns the greatest ratio on this machine.
    pub(crate) fn here(self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::AtMost(most) => Some(most),
            Self::ByAes { with, .. } if machine::has_aes() => Some(with),
            Self::ByAes { without, .. } => Some(without),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::AtMost(most) => write!(f, "{most:.3}"),
            Self::ByAes { with, without } => {
                write!(f, "{with:.3} with AES, {without:.3} without")
            }
        }
    }
}

const RANDOM_32: &str = "32 bits, CSPRNG";
const NOTHING: &str = "nothing: it is the last + 1";
const SYSTEM: &str = "system";
const COARSE: &str = "system, coarse: a tick late";
const COUNTER: &str = "time-stamp counter, set by system";
const TICKER: &str = "own thread; steps never followed";
const ALL_THREADS: &str = "all threads'";
const A_THREAD: &str = "each thread's";
const NOBODY: &str = "nobody's";
const AN_OWNER: &str = "its owner's";
const REPEATS: &str = "repeats its parent's";
const RENEWED: &str = "new ones: a load a key";
const RENEWED_BY_CALL: &str = "new ones: a system call a key";

/// The greatest ratio of a fill.
const FILL: Target = Target::ByAes {
    with: 0.040,
    without: 0.070,
};

/// Makes a case without a target.
const fn shown(case: Case) -> (Case, Target) {
    (case, Target::None)
}

const EVERYWHERE: &[(Case, Target)] = &[
    shown(OneThread),
    shown(TwoThreads),
    shown(ManyThreads),
    shown(Fill),
];
const ONE_BY_ONE: &[(Case, Target)] = &[shown(OneThread), shown(TwoThreads), shown(ManyThreads)];
const BY_ONE_OWNER: &[(Case, Target)] = &[shown(OneThread), shown(Fill)];

/// One of ordid's modes.
const fn ordid(
    mode: [&'static str; 2],
    cases: &'static [(Case, Target)],
    rises: &'static str,
    clock: &'static str,
) -> Generator {
    let promise = [RANDOM_32, rises, clock, RENEWED];
    generator("round-ordid", mode, cases, promise)
}

/// A generator of other crates.
const fn peer(
    names: [&'static str; 2],
    cases: &'static [(Case, Target)],
    promise: [&'static str; 4],
) -> Generator {
    generator("round-peers", names, cases, promise)
}

/// Lists what a program makes: title and maker of each case, with the parts of its promise in order.
const fn generator(
    program: &'static str,
    [title, maker]: [&'static str; 2],
    cases: &'static [(Case, Target)],
    [secret, rises, clock, fork]: [&'static str; 4],
) -> Generator {
    let promise = Promise {
        secret,
        rises,
        clock,
        fork,
    };
    Generator {
        title,
        program,
        maker,
        cases,
        promise,
    }
}

/// All of them: ordid's first, then the parts that no key of theirs does without, as floors. Those are
/// not generators: what they make has no layout and, across a clock that steps back, no order.
pub(crate) const GENERATORS: &[Generator] = &[
    ordid(
        ["ordid strict, system clock", "strict-system"],
        &[
            (OneThread, Target::AtMost(0.45)),
            (TwoThreads, Target::AtMost(0.14)),
            (ManyThreads, Target::AtMost(0.45)),
            (Fill, FILL),
        ],
        ALL_THREADS,
        SYSTEM,
    ),
    ordid(
        ["ordid strict, exact by counter", "strict-tsc"],
        &[
            (OneThread, Target::AtMost(0.33)),
            (TwoThreads, Target::AtMost(0.14)),
        ],
        ALL_THREADS,
        COUNTER,
    ),
    ordid(
        ["ordid strict, coarse clock", "strict-coarse"],
        &[
            (OneThread, Target::AtMost(0.16)),
            (TwoThreads, Target::AtMost(0.14)),
            (ManyThreads, Target::AtMost(0.16)),
        ],
        ALL_THREADS,
        COARSE,
    ),
    ordid(
        ["ordid per thread, exact by counter", "local-tsc"],
        &[(OneThread, Target::AtMost(0.27))],
        A_THREAD,
        COUNTER,
    ),
    ordid(
        ["ordid per thread, coarse clock", "local-coarse"],
        &[(OneThread, Target::AtMost(0.095))],
        A_THREAD,
        COARSE,
    ),
    ordid(
        ["ordid local blocks, coarse clock", "local-block-coarse"],
        &[
            shown(OneThread),
            (TwoThreads, Target::AtMost(0.03)),
            shown(ManyThreads),
        ],
        A_THREAD,
        COARSE,
    ),
    ordid(
        [
            "ordid local blocks as thread_local, coarse clock",
            "local-block-static-coarse",
        ],
        &[
            (OneThread, Target::AtMost(0.11)),
            (TwoThreads, Target::AtMost(0.03)),
        ],
        A_THREAD,
        COARSE,
    ),
    generator(
        "round-ordid",
        ["floor: ordid's coarse clock alone", "floor-coarse"],
        ONE_BY_ONE,
        ["no key is made", NOBODY, COARSE, "no key is made"],
    ),
    ordid(
        [
            "floor: ordid's coarse clock, 32 random bits",
            "floor-coarse-draw",
        ],
        ONE_BY_ONE,
        NOBODY,
        COARSE,
    ),
    ordid(
        [
            "floor: the same, one atomic addition",
            "floor-coarse-draw-addition",
        ],
        ONE_BY_ONE,
        NOBODY,
        COARSE,
    ),
    generator(
        "round-uuid-fast-rng",
        [REFERENCE, "now-v7"],
        EVERYWHERE,
        [RANDOM_32, ALL_THREADS, SYSTEM, REPEATS],
    ),
    generator(
        "round-uuid-default",
        ["uuid now_v7, default", "now-v7"],
        EVERYWHERE,
        [
            "32 bits, a system call a key",
            ALL_THREADS,
            SYSTEM,
            "other random bits",
        ],
    ),
    peer(
        ["uuid7 uuid7()", "uuid7"],
        EVERYWHERE,
        [RANDOM_32, ALL_THREADS, SYSTEM, RENEWED_BY_CALL],
    ),
    peer(
        ["scru128 new()", "scru128"],
        EVERYWHERE,
        [RANDOM_32, ALL_THREADS, SYSTEM, RENEWED_BY_CALL],
    ),
    peer(
        ["ulid Generator", "ulid-generator"],
        BY_ONE_OWNER,
        [NOTHING, AN_OWNER, SYSTEM, REPEATS],
    ),
    peer(
        ["ulid Generator in a Mutex", "ulid-generator-in-mutex"],
        &[shown(TwoThreads), shown(ManyThreads)],
        [NOTHING, ALL_THREADS, SYSTEM, REPEATS],
    ),
    peer(
        ["ferroid BasicMonoUlidGenerator", "ferroid-basic-mono"],
        BY_ONE_OWNER,
        [NOTHING, AN_OWNER, TICKER, REPEATS],
    ),
    peer(
        ["ferroid LockMonoUlidGenerator", "ferroid-lock-mono"],
        ONE_BY_ONE,
        [NOTHING, ALL_THREADS, TICKER, REPEATS],
    ),
    peer(
        ["fast-uuid-v7 gen_id_with_count", "fast-uuid-v7-with-count"],
        ONE_BY_ONE,
        ["56 bits, no CSPRNG", A_THREAD, COUNTER, REPEATS],
    ),
    peer(
        [
            "fast-uuid-v7 SequentialGenerator",
            "fast-uuid-v7-sequential",
        ],
        BY_ONE_OWNER,
        ["56 bits, no CSPRNG", AN_OWNER, COUNTER, REPEATS],
    ),
];

impl Generator {
    /// Returns the target in this case, if the generator takes part in it.
    pub(crate) fn target(&self, case: Case) -> Option<Target> {
        let found = self.cases.iter().find(|(of, _)| *of == case);
        found.map(|(_, target)| *target)
    }
}

/// What is timed here: no generator of UUIDs needs bursts.
pub(crate) const CASES: [Case; 4] = [OneThread, TwoThreads, ManyThreads, Fill];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_case_has_the_reference_and_a_target() {
        for case in CASES {
            let in_case = || GENERATORS.iter().filter(|it| it.target(case).is_some());
            assert_eq!(in_case().filter(|it| it.title == REFERENCE).count(), 1);
            assert!(in_case().any(|it| it.target(case) != Some(Target::None)));
        }
    }

    #[test]
    fn no_generator_stands_here_twice() {
        let titles: HashSet<_> = GENERATORS.iter().map(|it| it.title).collect();
        let makers: HashSet<_> = GENERATORS.iter().map(|it| (it.program, it.maker)).collect();
        assert_eq!(
            (titles.len(), makers.len()),
            (GENERATORS.len(), GENERATORS.len())
        );
    }

    #[test]
    fn targets_say_what_they_depend_on() {
        assert_eq!(Target::AtMost(0.6).to_string(), "0.600");
        let by_aes = Target::ByAes {
            with: 0.04,
            without: 0.07,
        };
        assert_eq!(by_aes.to_string(), "0.040 with AES, 0.070 without");
        let here = if machine::has_aes() { 0.04 } else { 0.07 };
        assert_eq!(by_aes.here(), Some(here));
    }
}
