//! The generators that are timed: ordid's modes with their targets, and the fastest peers with
//! what they promise instead.
//!
//! To add one, add its maker to a program in `rounds` and an entry here.

use std::fmt;

use bench_common::{
    machine,
    round::Case::{self, Fill, OneThread, TwoThreads},
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

/// All of them: ordid's first, then the parts that no key of theirs does without, as floors. Those are
/// not generators: what they make has no layout and, across a clock that steps back, no order.
pub(crate) const GENERATORS: &[Generator] = &[
    Generator {
        title: "ordid strict, system clock",
        program: "round-ordid",
        maker: "strict-system",
        cases: &[
            (OneThread, Target::AtMost(0.60)),
            (TwoThreads, Target::AtMost(0.26)),
            (
                Fill,
                Target::ByAes {
                    with: 0.040,
                    without: 0.070,
                },
            ),
        ],
        promise: Promise {
            secret: RANDOM_32,
            rises: ALL_THREADS,
            clock: SYSTEM,
            fork: RENEWED,
        },
    },
    Generator {
        title: "ordid strict, exact by counter",
        program: "round-ordid",
        maker: "strict-tsc",
        cases: &[
            (OneThread, Target::AtMost(0.41)),
            (TwoThreads, Target::AtMost(0.26)),
        ],
        promise: Promise {
            secret: RANDOM_32,
            rises: ALL_THREADS,
            clock: COUNTER,
            fork: RENEWED,
        },
    },
    Generator {
        title: "ordid strict, coarse clock",
        program: "round-ordid",
        maker: "strict-coarse",
        cases: &[
            (OneThread, Target::AtMost(0.16)),
            (TwoThreads, Target::AtMost(0.26)),
        ],
        promise: Promise {
            secret: RANDOM_32,
            rises: ALL_THREADS,
            clock: COARSE,
            fork: RENEWED,
        },
    },
    Generator {
        title: "ordid per thread, exact by counter",
        program: "round-ordid",
        maker: "local-tsc",
        cases: &[(OneThread, Target::AtMost(0.27))],
        promise: Promise {
            secret: RANDOM_32,
            rises: A_THREAD,
            clock: COUNTER,
            fork: RENEWED,
        },
    },
    Generator {
        title: "ordid per thread, coarse clock",
        program: "round-ordid",
        maker: "local-coarse",
        cases: &[(OneThread, Target::AtMost(0.11))],
        promise: Promise {
            secret: RANDOM_32,
            rises: A_THREAD,
            clock: COARSE,
            fork: RENEWED,
        },
    },
    Generator {
        title: "ordid local blocks, coarse clock",
        program: "round-ordid",
        maker: "local-block-coarse",
        cases: &[(TwoThreads, Target::AtMost(0.03))],
        promise: Promise {
            secret: RANDOM_32,
            rises: A_THREAD,
            clock: COARSE,
            fork: RENEWED,
        },
    },
    Generator {
        title: "floor: ordid's coarse clock alone",
        program: "round-ordid",
        maker: "floor-coarse",
        cases: &[(OneThread, Target::None), (TwoThreads, Target::None)],
        promise: Promise {
            secret: "no key is made",
            rises: NOBODY,
            clock: COARSE,
            fork: "no key is made",
        },
    },
    Generator {
        title: "floor: ordid's coarse clock, 32 random bits",
        program: "round-ordid",
        maker: "floor-coarse-draw",
        cases: &[(OneThread, Target::None), (TwoThreads, Target::None)],
        promise: Promise {
            secret: RANDOM_32,
            rises: NOBODY,
            clock: COARSE,
            fork: RENEWED,
        },
    },
    Generator {
        title: "floor: the same, one atomic addition",
        program: "round-ordid",
        maker: "floor-coarse-draw-addition",
        cases: &[(OneThread, Target::None), (TwoThreads, Target::None)],
        promise: Promise {
            secret: RANDOM_32,
            rises: NOBODY,
            clock: COARSE,
            fork: RENEWED,
        },
    },
    Generator {
        title: REFERENCE,
        program: "round-uuid-fast-rng",
        maker: "now-v7",
        cases: &[
            (OneThread, Target::None),
            (TwoThreads, Target::None),
            (Fill, Target::None),
        ],
        promise: Promise {
            secret: RANDOM_32,
            rises: ALL_THREADS,
            clock: SYSTEM,
            fork: REPEATS,
        },
    },
    Generator {
        title: "uuid now_v7, default",
        program: "round-uuid-default",
        maker: "now-v7",
        cases: &[
            (OneThread, Target::None),
            (TwoThreads, Target::None),
            (Fill, Target::None),
        ],
        promise: Promise {
            secret: "32 bits, a system call a key",
            rises: ALL_THREADS,
            clock: SYSTEM,
            fork: "other random bits",
        },
    },
    Generator {
        title: "uuid7 uuid7()",
        program: "round-peers",
        maker: "uuid7",
        cases: &[
            (OneThread, Target::None),
            (TwoThreads, Target::None),
            (Fill, Target::None),
        ],
        promise: Promise {
            secret: RANDOM_32,
            rises: ALL_THREADS,
            clock: SYSTEM,
            fork: RENEWED_BY_CALL,
        },
    },
    Generator {
        title: "scru128 new()",
        program: "round-peers",
        maker: "scru128",
        cases: &[
            (OneThread, Target::None),
            (TwoThreads, Target::None),
            (Fill, Target::None),
        ],
        promise: Promise {
            secret: RANDOM_32,
            rises: ALL_THREADS,
            clock: SYSTEM,
            fork: RENEWED_BY_CALL,
        },
    },
    Generator {
        title: "ulid Generator",
        program: "round-peers",
        maker: "ulid-generator",
        cases: &[(OneThread, Target::None), (Fill, Target::None)],
        promise: Promise {
            secret: NOTHING,
            rises: AN_OWNER,
            clock: SYSTEM,
            fork: REPEATS,
        },
    },
    Generator {
        title: "ulid Generator in a Mutex",
        program: "round-peers",
        maker: "ulid-generator-in-mutex",
        cases: &[(TwoThreads, Target::None)],
        promise: Promise {
            secret: NOTHING,
            rises: ALL_THREADS,
            clock: SYSTEM,
            fork: REPEATS,
        },
    },
    Generator {
        title: "ferroid BasicMonoUlidGenerator",
        program: "round-peers",
        maker: "ferroid-basic-mono",
        cases: &[(OneThread, Target::None), (Fill, Target::None)],
        promise: Promise {
            secret: NOTHING,
            rises: AN_OWNER,
            clock: TICKER,
            fork: REPEATS,
        },
    },
    Generator {
        title: "ferroid LockMonoUlidGenerator",
        program: "round-peers",
        maker: "ferroid-lock-mono",
        cases: &[(OneThread, Target::None), (TwoThreads, Target::None)],
        promise: Promise {
            secret: NOTHING,
            rises: ALL_THREADS,
            clock: TICKER,
            fork: REPEATS,
        },
    },
    Generator {
        title: "fast-uuid-v7 gen_id_with_count",
        program: "round-peers",
        maker: "fast-uuid-v7-with-count",
        cases: &[(OneThread, Target::None), (TwoThreads, Target::None)],
        promise: Promise {
            secret: "56 bits, no CSPRNG",
            rises: A_THREAD,
            clock: COUNTER,
            fork: REPEATS,
        },
    },
    Generator {
        title: "fast-uuid-v7 SequentialGenerator",
        program: "round-peers",
        maker: "fast-uuid-v7-sequential",
        cases: &[(OneThread, Target::None), (Fill, Target::None)],
        promise: Promise {
            secret: "56 bits, no CSPRNG",
            rises: AN_OWNER,
            clock: COUNTER,
            fork: REPEATS,
        },
    },
];

impl Generator {
    /// Returns the target in this case, if the generator takes part in it.
    pub(crate) fn target(&self, case: Case) -> Option<Target> {
        let found = self.cases.iter().find(|(of, _)| *of == case);
        found.map(|(_, target)| *target)
    }
}

/// What is timed here: no generator of UUIDs needs bursts.
pub(crate) const CASES: [Case; 3] = [OneThread, TwoThreads, Fill];

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
