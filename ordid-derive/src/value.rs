//! Literals as the numbers that they say.

use syn::Lit;

/// Returns a whole number that is not negative.
pub(crate) fn number(lit: &Lit) -> Option<u64> {
    match lit {
        Lit::Int(lit) => lit.base10_parse().ok(),
        _ => None,
    }
}

/// Returns milliseconds since 1970 in UTC, of their number or of a date such as "2026-01-01".
pub(crate) fn epoch(lit: &Lit) -> Option<i64> {
    match lit {
        Lit::Str(text) => Some(day(&text.value())? * 86_400_000),
        _ => i64::try_from(number(lit)?).ok(),
    }
}

/// Returns the days of a date since 1970-01-01, where it is no earlier.
fn day(text: &str) -> Option<i64> {
    let is_date = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !is_date {
        return None;
    }
    let part = |from: usize, to: usize| text[from..to].parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(is_leap),
        _ => 31,
    };
    if year < 1970 || !(1..=12).contains(&month) || !(1..=last).contains(&day) {
        return None;
    }
    // Years from March on, so that the day of a leap year is the last: Howard Hinnant,
    // "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`.
    let (year, month) = if month <= 2 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    Some(year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch_of(text: &str) -> Option<i64> {
        epoch(&syn::parse_str(text).expect("a literal"))
    }

    #[test]
    fn a_date_is_the_milliseconds_of_its_start() {
        // `date -u -d 2014-09-01 +%s`, Sonyflake's epoch, and the others.
        for (date, seconds) in [
            ("1970-01-01", 0),
            ("1999-12-31", 946_598_400),
            ("2000-02-29", 951_782_400),
            ("2000-03-01", 951_868_800),
            ("2014-09-01", 1_409_529_600),
            ("2024-12-31", 1_735_603_200),
            ("2026-01-01", 1_767_225_600),
            ("2100-03-01", 4_107_542_400),
        ] {
            assert_eq!(
                epoch_of(&format!("{date:?}")),
                Some(seconds * 1_000),
                "{date}"
            );
        }
        assert_eq!(epoch_of("1_288_834_974_657"), Some(1_288_834_974_657));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "1969-12-31",
            "2026-00-01",
            "2026-13-01",
            "2026-01-00",
            "2026-01-32",
            "2026-04-31",
            "2025-02-29",
            "2100-02-29",
            "2026-1-1",
            "2026-01-01T00:00:00Z",
            "2026/01/01",
            "+026-01-01",
            "",
            "2026-01-\u{e9}",
        ] {
            assert_eq!(epoch_of(&format!("{text:?}")), None, "{text}");
        }
        assert_eq!(epoch_of("18_446_744_073_709_551_615"), None);
        assert_eq!(epoch_of("1.5"), None);
        assert_eq!(epoch_of("true"), None);
    }
}
