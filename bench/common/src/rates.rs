//! What inserting costs: from rates to ratios of `flush` to its peers.

use std::fmt;

use crate::{spread::Spread, table::Table};

/// What a case is to `flush`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// `flush` itself.
    Flush,
    /// What `flush` is held to, if it is the best of these.
    Peer,
    /// One row a statement.
    RowByRow,
    /// Shown, and held to nothing.
    Other,
}

/// What `flush` has to reach, in medians of ratios. `None` is shown without a target.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    /// Of the best peer.
    pub best: Option<f64>,
    /// Of row by row.
    pub row_by_row: Option<f64>,
}

/// The rates of each case, rows a second, by round.
#[derive(Debug)]
pub struct Rates {
    cases: Vec<(String, Role)>,
    gate: Gate,
    rates: Vec<Vec<f64>>,
}

impl Rates {
    /// Takes the names of the cases and what they are.
    pub fn new(cases: Vec<(String, Role)>, gate: Gate) -> Self {
        Self {
            rates: vec![Vec::new(); cases.len()],
            cases,
            gate,
        }
    }

    /// Adds the next round's rate of a case. A case may miss the last rounds, never others.
    pub fn add(&mut self, case: usize, rate: f64) {
        self.rates[case].push(rate);
    }

    fn of(&self, role: Role) -> impl Iterator<Item = usize> {
        (0..self.cases.len()).filter(move |&case| self.cases[case].1 == role)
    }

    /// Returns the peer whose median is the best.
    fn best(&self) -> Option<usize> {
        self.of(Role::Peer)
            .max_by(|&a, &b| self.median(a).total_cmp(&self.median(b)))
    }

    fn median(&self, case: usize) -> f64 {
        Spread::of(self.rates[case].iter().copied()).median
    }

    /// Returns the rates of `flush` by those of another case, round by round.
    fn ratios(&self, other: usize) -> Option<Spread> {
        let flush = self.of(Role::Flush).next()?;
        let pairs = self.rates[flush].iter().zip(&self.rates[other]);
        Some(Spread::of(pairs.map(|(flush, other)| flush / other)))
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(["case", "rows a second", "rounds", "flush / this"]);
        for (index, (name, role)) in self.cases.iter().enumerate() {
            let rates = &self.rates[index];
            let ratio = self.ratios(index).filter(|_| *role != Role::Flush);
            table.row([
                name.clone(),
                format!("{:.0}", Spread::of(rates.iter().copied())),
                rates.len().to_string(),
                ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            ]);
        }
        write!(f, "{table}")?;
        if let Some(best) = self.best()
            && let Some(ratio) = self.ratios(best)
        {
            let name = &self.cases[best].0;
            let target = target(ratio, self.gate.best);
            writeln!(f, "flush / best peer ({name}): {ratio:.2}{target}")?;
        }
        if let Some(row_by_row) = self.of(Role::RowByRow).next()
            && let Some(factor) = self.ratios(row_by_row)
        {
            let target = target(factor, self.gate.row_by_row);
            writeln!(f, "flush / row by row: {factor:.1}{target}")?;
        }
        Ok(())
    }
}

fn target(ratio: Spread, at_least: Option<f64>) -> String {
    at_least.map_or_else(String::new, |least| {
        let verdict = if ratio.median >= least {
            "met"
        } else {
            "missed"
        };
        format!(", target at least {least}: {verdict}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(gate: Gate) -> Rates {
        let cases = [
            ("flush", Role::Flush),
            ("worse", Role::Peer),
            ("better", Role::Peer),
            ("one", Role::RowByRow),
            ("server", Role::Other),
        ];
        let mut all = Rates::new(
            cases.map(|(name, role)| (name.to_owned(), role)).into(),
            gate,
        );
        for (case, rates) in [[90.0, 45.0], [50.0, 25.0], [100.0, 50.0]]
            .iter()
            .enumerate()
        {
            rates.iter().for_each(|&rate| all.add(case, rate));
        }
        all.add(3, 10.0);
        all.add(4, 1_000.0);
        all
    }

    #[test]
    fn ratios_are_taken_round_by_round_from_the_best_peer() {
        let text = rates(Gate {
            best: Some(0.9),
            row_by_row: Some(9.5),
        })
        .to_string();
        assert!(
            text.contains("best peer (better): 0.90 [0.90..0.90], target at least 0.9: met\n"),
            "{text}"
        );
        assert!(
            text.contains("row by row: 9.0 [9.0..9.0], target at least 9.5: missed\n"),
            "{text}"
        );
    }

    #[test]
    fn without_a_target_there_is_no_verdict() {
        let text = rates(Gate {
            best: None,
            row_by_row: None,
        })
        .to_string();
        assert!(
            text.ends_with("flush / row by row: 9.0 [9.0..9.0]\n"),
            "{text}"
        );
    }
}
