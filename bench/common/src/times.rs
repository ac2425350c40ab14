//! The times of makers in the rounds of a case.

use std::fmt;

use crate::spread::Spread;

/// Why a maker has no times.
#[derive(Clone, Debug, PartialEq)]
pub enum Excuse {
    /// This machine cannot show what the case is about.
    NotMeasured,
    /// Its program failed.
    Failed(String),
}

impl fmt::Display for Excuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotMeasured => "not measured",
            Self::Failed(_) => "failed",
        })
    }
}

/// The nanoseconds a key of some makers, by round.
#[derive(Debug)]
pub struct Times {
    rounds: Vec<Vec<Option<f64>>>,
    excuses: Vec<Option<Excuse>>,
}

impl Times {
    /// Makes times of so many makers, of no round yet.
    pub fn new(makers: usize) -> Self {
        Self {
            rounds: Vec::new(),
            excuses: vec![None; makers],
        }
    }

    /// Begins the next round.
    pub fn begin_round(&mut self) {
        self.rounds.push(vec![None; self.excuses.len()]);
    }

    /// Takes what a maker needed in this round.
    ///
    /// # Panics
    ///
    /// If no round has begun, or there is no such maker.
    pub fn record(&mut self, maker: usize, nanos: f64) {
        let round = self.rounds.last_mut().expect("a round has begun");
        round[maker] = Some(nanos);
    }

    /// Notes that a maker cannot be measured. What it needed before does not count.
    pub fn give_up(&mut self, maker: usize, excuse: Excuse) {
        self.excuses[maker] = Some(excuse);
    }

    /// Returns why a maker has no times.
    pub fn excuse(&self, maker: usize) -> Option<&Excuse> {
        self.excuses[maker].as_ref()
    }

    /// Returns the errors of the programs that failed.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        self.excuses.iter().filter_map(|excuse| match excuse {
            Some(Excuse::Failed(error)) => Some(&**error),
            _ => None,
        })
    }

    /// Returns the nanoseconds a key of a maker.
    pub fn nanos(&self, maker: usize) -> Option<Spread> {
        self.spread(maker, |round| round[maker])
    }

    /// Returns a maker's times by another's, round by round.
    pub fn ratios(&self, maker: usize, to: usize) -> Option<Spread> {
        self.excuses[to].is_none().then_some(())?;
        self.spread(maker, |round| Some(round[maker]? / round[to]?))
    }

    /// Returns `median [min..max]` of a maker's nanoseconds, or why there is none.
    pub fn cell(&self, maker: usize) -> String {
        match (self.nanos(maker), self.excuse(maker)) {
            (Some(nanos), _) => format!("{nanos:.1}"),
            (None, Some(excuse)) => excuse.to_string(),
            (None, None) => String::new(),
        }
    }

    fn spread(
        &self,
        maker: usize,
        value: impl Fn(&[Option<f64>]) -> Option<f64>,
    ) -> Option<Spread> {
        self.excuses[maker].is_none().then_some(())?;
        let values: Vec<_> = self.rounds.iter().filter_map(|it| value(it)).collect();
        (!values.is_empty()).then(|| Spread::of(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let mut times = Times::new(2);
        for (one, other) in [(50.0, 100.0), (70.0, 100.0), (120.0, 200.0)] {
            times.begin_round();
            times.record(0, one);
            times.record(1, other);
        }
        assert_eq!(times.cell(0), "70.0 [50.0..120.0]");
        let ratios = times.ratios(0, 1).unwrap();
        assert_eq!(format!("{ratios:.3}"), "0.600 [0.500..0.700]");
    }

    #[test]
    fn a_maker_that_fails_has_no_times_and_the_others_have() {
        let mut times = Times::new(3);
        times.begin_round();
        times.record(0, 50.0);
        times.record(1, 60.0);
        times.give_up(2, Excuse::NotMeasured);
        times.begin_round();
        times.record(0, 50.0);
        times.give_up(1, Excuse::Failed("it ended".to_owned()));
        assert_eq!(
            [0, 1, 2].map(|it| times.cell(it)),
            ["50.0 [50.0..50.0]", "failed", "not measured"]
        );
        assert_eq!(times.ratios(0, 1), None);
        assert_eq!(times.ratios(1, 0), None);
        assert_eq!(times.failures().collect::<Vec<_>>(), ["it ended"]);
    }
}
