//! The bounds on what was counted.

use bench_common::table::Table;

use crate::report::Report;

/// A bound on a figure of one case, or on its ratio to that of another.
pub(crate) struct Gate {
    pub(crate) case: &'static str,
    pub(crate) figure: &'static str,
    /// The case whose figure this one's is divided by.
    pub(crate) to: Option<&'static str>,
    pub(crate) bound: Bound,
}

pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Gate {
    /// Returns what is bounded; `None` if one of the cases was not run.
    fn value(&self, report: &Report) -> Option<f64> {
        let value = report.figure(self.case, self.figure)?;
        match self.to {
            Some(other) => Some(value / report.figure(other, self.figure)?),
            None => Some(value),
        }
    }
}

impl Bound {
    fn holds(&self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= *bound,
            Self::AtMost(bound) => value <= *bound,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::AtLeast(bound) => format!("at least {bound}"),
            Self::AtMost(bound) => format!("at most {bound}"),
        }
    }
}

/// Prints how each gate came out, and returns whether all were passed. Those whose cases were not
/// run, or not with enough rows to tell, are not judged.
pub(crate) fn print(report: &Report, gates: &[Gate], judged: bool) -> bool {
    let mut table = Table::new(["gate", "bound", "seen", ""]);
    let mut passed = true;
    for gate in gates {
        let Some(value) = gate.value(report) else {
            continue;
        };
        let to = gate.to.map_or_else(String::new, |to| format!(" / {to}"));
        let holds = gate.bound.holds(value);
        passed &= holds || !judged;
        let verdict = match (judged, holds) {
            (false, _) => "too few rows to judge",
            (true, true) => "passed",
            (true, false) => "MISSED",
        };
        table.row([
            format!("{}: {}{to}", gate.figure, gate.case),
            gate.bound.text(),
            format!("{value:.3}"),
            verdict.to_owned(),
        ]);
    }
    print!("\n{table}");
    passed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Line;

    #[test]
    fn a_missed_gate_fails_the_run_where_it_can_be_judged() {
        let mut report = Report::new("x", String::new(), ["pages", "b", "c"]);
        for (name, pages) in [("auto", 100.0), ("v7", 120.0)] {
            report.push(Line {
                name: name.to_owned(),
                rate: 1.0,
                last: 1.0,
                figures: [pages, 0.0, 0.0],
            });
        }
        let gate = |bound| Gate {
            case: "v7",
            figure: "pages",
            to: Some("auto"),
            bound,
        };
        assert!(print(&report, &[gate(Bound::AtMost(1.2))], true));
        assert!(!print(&report, &[gate(Bound::AtMost(1.1))], true));
        assert!(!print(&report, &[gate(Bound::AtLeast(1.3))], true));
        assert!(print(&report, &[gate(Bound::AtMost(1.1))], false));
    }
}
