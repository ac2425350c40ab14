//! From rates to ratios.

use std::fmt;

use bench_common::{spread::Spread, table::Table};

use crate::handwritten::Case;

/// The rates of each case, rows a second, by round.
pub(crate) struct Times<'c> {
    cases: &'c [Case],
    rates: Vec<Vec<f64>>,
}

impl<'c> Times<'c> {
    pub(crate) fn new(cases: &'c [Case]) -> Self {
        Self {
            cases,
            rates: vec![Vec::new(); cases.len()],
        }
    }

    /// Adds the next round's rate of a case. A case may miss the last rounds, never others.
    pub(crate) fn add(&mut self, case: usize, rate: f64) {
        self.rates[case].push(rate);
    }

    /// Returns the rates of the peer whose median is the best.
    fn best(&self) -> Option<usize> {
        let peers = (0..self.cases.len()).filter(|&index| self.cases[index].is_peer());
        peers.max_by(|&a, &b| self.median(a).total_cmp(&self.median(b)))
    }

    fn median(&self, case: usize) -> f64 {
        Spread::of(self.rates[case].iter().copied()).median
    }

    /// Returns the rates of `flush` by those of another case, round by round.
    fn ratios(&self, other: usize) -> Option<Spread> {
        let flush = self.cases.iter().position(|case| *case == Case::Flush)?;
        let pairs = self.rates[flush].iter().zip(&self.rates[other]);
        Some(Spread::of(pairs.map(|(flush, other)| flush / other)))
    }
}

impl fmt::Display for Times<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(["case", "rows a second", "rounds", "flush / this"]);
        for (index, case) in self.cases.iter().enumerate() {
            let rates = &self.rates[index];
            let ratio = self.ratios(index).filter(|_| *case != Case::Flush);
            table.row([
                case.name(),
                format!("{:.0}", Spread::of(rates.iter().copied())),
                rates.len().to_string(),
                ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            ]);
        }
        write!(f, "{table}")?;
        if let Some(best) = self.best()
            && let Some(ratio) = self.ratios(best)
        {
            let name = self.cases[best].name();
            writeln!(
                f,
                "flush / best by hand ({name}): {ratio:.2}, target at least 0.90 on SQLite, PostgreSQL"
            )?;
        }
        let row_by_row = self.cases.iter().position(|case| *case == Case::RowByRow);
        if let Some(factor) = row_by_row.and_then(|index| self.ratios(index)) {
            writeln!(
                f,
                "flush / row by row: {factor:.1}, target at least 3 on PostgreSQL"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_round_by_round_from_the_best_peer() {
        let cases = [
            Case::Flush,
            Case::PushValues(1),
            Case::Prebuilt(1),
            Case::RowByRow,
        ];
        let mut times = Times::new(&cases);
        for (case, rates) in [[90.0, 45.0], [50.0, 25.0], [100.0, 50.0]]
            .iter()
            .enumerate()
        {
            rates.iter().for_each(|&rate| times.add(case, rate));
        }
        times.add(3, 10.0);
        let text = times.to_string();
        assert!(
            text.contains("best by hand (prebuilt text, 1 rows): 0.90 [0.90..0.90]"),
            "{text}"
        );
        assert!(text.contains("row by row: 9.0 [9.0..9.0]"), "{text}");
    }
}
