//! Medians with what is around them.

use std::fmt;

/// The median of some measurements, and their extremes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one; of an even number, the mean of the middle two.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of these values.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Self {
            median: f64::midpoint(low, high),
            min: values[0],
            max: values[values.len() - 1],
        }
    }
}

/// `median [min..max]`, with the precision that the formatter asks for.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, min, max } = self;
        let digits = f.precision().unwrap_or(0);
        write!(f, "{median:.digits$} [{min:.digits$}..{max:.digits$}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_says_the_middle_and_the_ends() {
        assert_eq!(
            format!("{:.1}", Spread::of([3.0, 1.0, 2.0])),
            "2.0 [1.0..3.0]"
        );
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }
}
