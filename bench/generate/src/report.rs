//! From the nanoseconds of rounds to tables.

use std::fmt;

use bench_common::{round::Case, spread::Spread, table::Table};

use crate::generators::{Generator, REFERENCE, Target};

/// The times of one case.
pub(crate) struct Times {
    case: Case,
    generators: Vec<&'static Generator>,
    /// Each round's nanoseconds a key, by generator.
    rounds: Vec<Vec<f64>>,
}

impl Times {
    pub(crate) fn new(
        case: Case,
        generators: Vec<&'static Generator>,
        rounds: Vec<Vec<f64>>,
    ) -> Self {
        Self {
            case,
            generators,
            rounds,
        }
    }

    fn nanos(&self, index: usize) -> Spread {
        Spread::of(self.rounds.iter().map(|round| round[index]))
    }

    /// Returns a generator's times by the reference's, round by round.
    fn ratios(&self, index: usize) -> Option<Spread> {
        let reference = self
            .generators
            .iter()
            .position(|it| it.title == REFERENCE)?;
        let ratios = self
            .rounds
            .iter()
            .map(|round| round[index] / round[reference]);
        Some(Spread::of(ratios))
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([self.case.name(), "ns a key", "ratio", "at most", ""]);
        for (index, generator) in self.generators.iter().enumerate() {
            let ratios = self.ratios(index);
            let target = generator.target(self.case).unwrap_or(Target::None);
            table.row([
                generator.title.to_owned(),
                format!("{:.1}", self.nanos(index)),
                match ratios {
                    Some(_) if generator.title == REFERENCE => "1".to_owned(),
                    Some(ratios) => format!("{ratios:.3}"),
                    None => String::new(),
                },
                target.to_string(),
                verdict(target, ratios).to_owned(),
            ]);
        }
        write!(f, "{table}")
    }
}

fn verdict(target: Target, ratios: Option<Spread>) -> &'static str {
    match target.here().zip(ratios) {
        Some((most, ratios)) if ratios.median <= most => "met",
        Some(_) => "missed",
        None => "",
    }
}

/// Returns what each of the generators promises.
pub(crate) fn promises(generators: &[&Generator]) -> String {
    let mut table = Table::new([
        "promises",
        "the next key keeps secret",
        "strictly rising",
        "clock",
        "keys of a fork's child",
    ]);
    for Generator { title, promise, .. } in generators {
        table.row(
            [
                title,
                promise.secret,
                promise.rises,
                promise.clock,
                promise.fork,
            ]
            .map(str::to_owned),
        );
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::GENERATORS;

    #[test]
    fn ratios_are_taken_round_by_round_and_judged_by_their_median() {
        let ordid = &GENERATORS[0];
        let reference = GENERATORS.iter().find(|it| it.title == REFERENCE).unwrap();
        let rounds = vec![vec![50.0, 100.0], vec![70.0, 100.0], vec![120.0, 200.0]];
        let times = Times::new(Case::OneThread, vec![ordid, reference], rounds);
        assert_eq!(
            times.to_string(),
            "one-thread                  ns a key              ratio                 at most\n\
             ordid strict, system clock  70.0 [50.0..120.0]    0.600 [0.500..0.700]  0.600    met\n\
             uuid now_v7, fast-rng       100.0 [100.0..200.0]  1\n"
        );
    }

    #[test]
    fn a_target_is_missed_by_the_least_excess() {
        let ratios = Some(Spread::of([0.601]));
        assert_eq!(verdict(Target::AtMost(0.6), ratios), "missed");
        assert_eq!(verdict(Target::None, ratios), "");
        assert_eq!(verdict(Target::AtMost(0.6), None), "");
    }
}
