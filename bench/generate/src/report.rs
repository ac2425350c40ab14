//! From the nanoseconds of rounds to tables.

use std::fmt;

use bench_common::{round::Case, spread::Spread, table::Table, times::Times};

use crate::generators::{Generator, REFERENCE, Target};

/// The times of one case.
pub(crate) struct CaseTimes {
    case: Case,
    generators: Vec<&'static Generator>,
    times: Times,
}

impl CaseTimes {
    pub(crate) fn new(case: Case, generators: Vec<&'static Generator>, times: Times) -> Self {
        Self {
            case,
            generators,
            times,
        }
    }

    /// Returns a generator's times by the reference's, round by round.
    fn ratios(&self, index: usize) -> Option<Spread> {
        let reference = self
            .generators
            .iter()
            .position(|it| it.title == REFERENCE)?;
        self.times.ratios(index, reference)
    }
}

impl fmt::Display for CaseTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([self.case.name(), "ns a key", "ratio", "at most", ""]);
        for (index, generator) in self.generators.iter().enumerate() {
            let ratios = self.ratios(index);
            let target = generator.target(self.case).unwrap_or(Target::None);
            table.row([
                generator.title.to_owned(),
                self.times.cell(index),
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
    fn a_row_has_times_ratios_and_a_verdict_by_the_median() {
        let ordid = &GENERATORS[0];
        let reference = GENERATORS.iter().find(|it| it.title == REFERENCE).unwrap();
        let mut times = Times::new(2);
        for (own, of_reference) in [(50.0, 100.0), (70.0, 100.0), (120.0, 200.0)] {
            times.begin_round();
            times.record(0, own);
            times.record(1, of_reference);
        }
        let times = CaseTimes::new(Case::OneThread, vec![ordid, reference], times);
        assert_eq!(
            times.to_string(),
            "one-thread                  ns a key              ratio                 at most\n\
             ordid strict, system clock  70.0 [50.0..120.0]    0.600 [0.500..0.700]  0.450    missed\n\
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
