//! Days, weeks, months and years in UTC.

use ordid_core::clock::Timestamp;

const DAY: u64 = 86_400_000;

/// The period that a partition covers, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Period {
    /// A day from midnight to midnight: `orders_20261125`.
    Day,
    /// A week from Monday to Monday, named after the Monday on which it begins: `orders_20261123`.
    Week,
    /// A month from its first day to the first day of the next month: `orders_202611`.
    Month,
    /// A year from its first day to the first day of the next year: `orders_2026`.
    Year,
}

impl Period {
    /// Returns the beginning and the end of the period that contains a time. The last period ends with the last
    /// timestamp.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::clock::Timestamp;
    /// use ordid_sql::partitions::Period;
    ///
    /// let time = Timestamp::from_unix_millis(1_795_577_122_000)?; // 2026-11-25T03:25:22Z, a Wednesday
    /// let texts = |period: Period| {
    ///     let (from, to) = period.around(time);
    ///     [from, to].map(|it| it.to_string()[..10].to_owned())
    /// };
    /// assert_eq!(texts(Period::Day), ["2026-11-25", "2026-11-26"]);
    /// assert_eq!(texts(Period::Week), ["2026-11-23", "2026-11-30"]);
    /// assert_eq!(texts(Period::Month), ["2026-11-01", "2026-12-01"]);
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    pub fn around(self, time: Timestamp) -> (Timestamp, Timestamp) {
        let day = time.as_unix_millis() / DAY;
        let (from, to) = match self {
            Self::Day => (day, day + 1),
            Self::Week => {
                // 1970-01-01 was a Thursday.
                let of_week = (day + 3) % 7;
                (day.saturating_sub(of_week), day + 7 - of_week)
            }
            Self::Month => {
                let from = first_of_month(day);
                (from, first_of_month(from + 31))
            }
            Self::Year => {
                let from = first_of_year(day);
                (from, first_of_year(from + 366))
            }
        };
        (at(from), at(to))
    }

    /// Returns the date in the name of the partition that begins at this time.
    pub(super) fn name(self, from: Timestamp) -> String {
        let text = from.to_string();
        let date = text.split('T').next().unwrap_or_default();
        let digits: String = date.chars().filter(char::is_ascii_digit).collect();
        match self {
            Self::Day | Self::Week => digits,
            // The day, which has two digits, is left out.
            Self::Month => digits[..digits.len() - 2].to_owned(),
            Self::Year => digits[..digits.len() - 4].to_owned(),
        }
    }
}

fn at(day: u64) -> Timestamp {
    Timestamp::saturating_from_unix_millis(day * DAY)
}

/// Returns the first day of the month of a day. It reads the text of a timestamp, since that code has the only calendar
/// arithmetic.
fn first_of_month(day: u64) -> u64 {
    let (_, of_month) = month_and_day(day);
    day - (of_month - 1)
}

/// Returns the first day of the year of a day.
fn first_of_year(day: u64) -> u64 {
    let mut first = first_of_month(day);
    while month_and_day(first).0 > 1 {
        first = first_of_month(first - 1);
    }
    first
}

/// Returns the month of a day, and the day of the month.
fn month_and_day(day: u64) -> (u64, u64) {
    let text = at(day).to_string();
    let date = text.split('T').next().unwrap_or_default();
    let mut parts = date.rsplit('-').map(|it| it.parse().unwrap_or(1));
    let of_month = parts.next().unwrap_or(1);
    (parts.next().unwrap_or(1), of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_meet_and_begin_where_they_are_named() {
        for (period, count) in [
            (Period::Day, 50_000),
            (Period::Week, 7_100),
            (Period::Month, 1_640),
            (Period::Year, 137),
        ] {
            let mut time = Timestamp::MIN;
            // The loop reaches the year 2106.
            for _ in 0..count {
                let (from, to) = period.around(time);
                assert_eq!(from, time);
                let text = from.to_string();
                assert!(text.ends_with("T00:00:00.000Z"), "{text}");
                let digits: String = text.chars().filter(char::is_ascii_digit).collect();
                assert!(digits.starts_with(&period.name(from)), "{text}");
                match period {
                    Period::Month => assert_eq!(&text[8..10], "01"),
                    Period::Year => assert_eq!(&text[5..10], "01-01"),
                    _ => {}
                }
                let last = Timestamp::from_unix_millis(to.as_unix_millis() - 1).unwrap();
                assert_eq!(period.around(last), (from, to));
                time = to;
            }
            assert!(time.to_string().starts_with("210"), "{time}");
        }
        let (from, to) = Period::Month.around(Timestamp::MAX);
        assert!(from < Timestamp::MAX && to == Timestamp::MAX);
        let monday = Timestamp::from_unix_millis(1_795_392_000_000).unwrap();
        assert_eq!(monday.to_string().get(..10), Some("2026-11-23"));
        assert_eq!(Period::Week.around(monday).0, monday);
    }
}
