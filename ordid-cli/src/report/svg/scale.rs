//! Numbers in pictures: where they stand, the round ones beside an axis, and their texts.

/// Returns the least and the greatest; 0 and 1 if there are none.
pub(super) fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low > high { (0.0, 1.0) } else { (low, high) }
}

/// Returns where a value stands between two others, from 0 to 1.
pub(super) fn share(value: f64, low: f64, high: f64) -> f64 {
    if high > low {
        ((value - low) / (high - low)).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// Returns about so many round numbers that cover the range from below; the last one covers it from above only if
/// there is nothing between.
pub(super) fn ticks(low: f64, high: f64, wanted: u32) -> Vec<f64> {
    let span = if high > low {
        high - low
    } else {
        high.abs().max(1.0)
    };
    let rough = span / f64::from(wanted);
    let magnitude = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .find(|factor| factor * magnitude >= rough * 0.999)
        .unwrap_or(10.0);
    let step = factor * magnitude;
    let mut ticks = Vec::new();
    let mut count = (low / step).ceil();
    while count * step <= high + step * 1e-6 && ticks.len() < 20 {
        // Not -0.
        ticks.push(count * step + 0.0);
        count += 1.0;
    }
    if ticks.len() < 2 {
        return vec![low, low + span];
    }
    ticks
}

/// Returns the text of a tick, as precise as the others need it.
pub(super) fn tick_text(tick: f64, ticks: &[f64]) -> String {
    let step = ticks.get(1).map_or(1.0, |next| (next - ticks[0]).abs());
    let most = ticks
        .iter()
        .fold(0.0, |most: f64, tick| most.max(tick.abs()));
    let (divisor, unit) = unit_of(most);
    grouped(tick / divisor, decimals_of(step / divisor), unit)
}

/// Returns the text of a bar's length: three digits at least.
pub(super) fn bar_text(length: f64, most: f64) -> String {
    if !length.is_finite() {
        return "no figure".to_owned();
    }
    let decimals = match most.abs() {
        most if most >= 100.0 => 0,
        most if most >= 10.0 => 1,
        most if most >= 1.0 => 2,
        most if most > 0.0 => decimals_of(most / 100.0),
        _ => 0,
    };
    let (divisor, unit) = unit_of(length);
    match unit {
        "" => grouped(length, decimals, ""),
        _ => grouped(length / divisor, 1, unit),
    }
}

fn unit_of(most: f64) -> (f64, &'static str) {
    match most.abs() {
        most if most >= 1e15 => (1e15, " P"),
        most if most >= 1e12 => (1e12, " T"),
        most if most >= 1e10 => (1e9, " G"),
        most if most >= 1e7 => (1e6, " M"),
        _ => (1.0, ""),
    }
}

/// Returns how many digits after the point tell numbers of this step apart.
fn decimals_of(step: f64) -> usize {
    (0..=9)
        .find(|decimals| {
            let scaled = step * 10_f64.powi(*decimals);
            (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1.0) && scaled >= 0.999
        })
        .map_or(2, |decimals| usize::try_from(decimals).unwrap_or(0))
}

/// Returns the number with commas between thousands.
fn grouped(number: f64, decimals: usize, unit: &str) -> String {
    let text = format!("{:.decimals$}", number.abs());
    let (whole, fraction) = text
        .split_once('.')
        .map_or((text.as_str(), ""), |parts| parts);
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    let sign = if number < 0.0 && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
        "\u{2212}"
    } else {
        ""
    };
    format!("{sign}{grouped}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside_the_range() {
        assert_eq!(ticks(0.0, 100.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(0.0, 0.7, 5), [0.0, 0.2, 0.4, 0.6000000000000001]);
        assert_eq!(ticks(3.0, 3.0, 5), [3.0, 6.0]);
        assert_eq!(ticks(-10.0, 10.0, 4), [-10.0, -5.0, 0.0, 5.0, 10.0]);
        for (low, high) in [(0.0, 1e300), (1e-9, 2e-9), (5.0, 1e12)] {
            let ticks = ticks(low, high, 5);
            assert!((2..=20).contains(&ticks.len()), "{ticks:?}");
        }
    }

    #[test]
    fn numbers_are_as_precise_as_their_neighbours_need() {
        let text = |tick, ticks: &[f64]| tick_text(tick, ticks);
        assert_eq!(text(20_000.0, &[0.0, 20_000.0]), "20,000");
        assert_eq!(text(2e7, &[0.0, 1e7, 2e7]), "20 M");
        assert_eq!(text(0.25, &[0.0, 0.25]), "0.25");
        assert_eq!(text(-5.0, &[-5.0, 0.0]), "\u{2212}5");
        assert_eq!(bar_text(12_345.6, 20_000.0), "12,346");
        assert_eq!(bar_text(1.234, 5.0), "1.23");
        assert_eq!(bar_text(0.0, 0.0), "0");
        assert_eq!(bar_text(f64::NAN, 1.0), "no figure");
    }
}
