//! Medians with what is around them.

use std::fmt;

use serde::Serialize;

/// The median of some measurements, and their extremes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Spread {
    /// The middle one; of an even number, the mean of the middle two.
    pub(super) median: f64,
    /// The least.
    pub(super) min: f64,
    /// The greatest.
    pub(super) max: f64,
}

impl Spread {
    /// Returns the spread of these values; of none it is zero.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (values.first(), values.last()) else {
            return Self {
                median: 0.0,
                min: 0.0,
                max: 0.0,
            };
        };
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Self {
            median: f64::midpoint(low, high),
            min: *min,
            max: *max,
        }
    }
}

/// `median [min..max]`, with commas between thousands.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = usize::from(self.median < 100.0);
        let [median, min, max] = [self.median, self.min, self.max].map(|it| number(it, decimals));
        write!(f, "{median} [{min}..{max}]")
    }
}

/// Returns a number with commas between thousands.
pub(super) fn number(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, format!(".{fraction}")),
        None => (text.as_str(), String::new()),
    };
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + &fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_says_the_middle_and_the_ends() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]).to_string(), "2.0 [1.0..3.0]");
        assert_eq!(
            Spread::of([4e5, 1e5, 2e5, 3e5]).to_string(),
            "250,000 [100,000..400,000]"
        );
    }
}
