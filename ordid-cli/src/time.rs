//! Times, as users write them.

use jiff::{Span, Timestamp as Instant, civil::DateTime, tz::TimeZone};
use ordid_core::clock::Timestamp;

/// The help of an option that takes a time: what it is for, and which forms a time has.
macro_rules! help {
    ($what:literal) => {
        concat!(
            $what,
            ". A time is RFC 3339 (2026-01-31T12:00:00+01:00), the same without a zone or a date alone (in UTC), `now`, \
             a span from now (`-90m`, `-P1D`, `3 days ago`), or `@` and seconds since 1970"
        )
    };
}
pub(crate) use help;

/// Reads a time.
///
/// # Errors
///
/// Says which forms there are; or the time is before 1970, or beyond 48 bits of milliseconds.
pub(crate) fn parse(text: &str) -> Result<Timestamp, String> {
    let instant = instant(text, Instant::now()).ok_or_else(|| {
        format!(
            "{text:?} is no time: write 2026-01-31, 2026-01-31T12:00:00Z, now, -90m, or @1767225600"
        )
    })?;
    let millis = u64::try_from(instant.as_millisecond())
        .map_err(|_| format!("{text:?} is before 1970, when the times of keys begin"))?;
    Timestamp::from_unix_millis(millis).map_err(|error| error.to_string())
}

fn instant(text: &str, now: Instant) -> Option<Instant> {
    if text == "now" {
        return Some(now);
    }
    if let Some(seconds) = text.strip_prefix('@') {
        let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
        if whole.trim_start_matches('-').is_empty()
            || !fraction.bytes().all(|it| it.is_ascii_digit())
        {
            return None;
        }
        let millis = format!("{:0<3}", fraction.get(..fraction.len().min(3))?);
        return Instant::from_millisecond(format!("{whole}{millis}").parse().ok()?).ok();
    }
    if let Ok(instant) = text.parse() {
        return Some(instant);
    }
    let zoned = |civil: DateTime| civil.to_zoned(TimeZone::UTC).ok();
    // Behind a time, the name of a zone would be passed over.
    if !text.contains('[')
        && let Ok(civil) = text.parse::<DateTime>()
    {
        return zoned(civil).map(|zoned| zoned.timestamp());
    }
    let span: Span = text.parse().ok()?;
    let moved = now.to_zoned(TimeZone::UTC).checked_add(span).ok()?;
    Some(moved.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_time_is_read() {
        let now: Instant = "2026-03-01T00:00:00Z".parse().unwrap();
        for (text, read) in [
            ("2026-01-31T12:00:00+01:00", "2026-01-31T11:00:00Z"),
            ("2026-01-31T12:00:00", "2026-01-31T12:00:00Z"),
            ("2026-01-31", "2026-01-31T00:00:00Z"),
            ("now", "2026-03-01T00:00:00Z"),
            ("-90m", "2026-02-28T22:30:00Z"),
            ("-P1D", "2026-02-28T00:00:00Z"),
            ("3 days ago", "2026-02-26T00:00:00Z"),
            ("@1767225600", "2026-01-01T00:00:00Z"),
            ("@1767225600.25", "2026-01-01T00:00:00.25Z"),
        ] {
            assert_eq!(instant(text, now), Some(read.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused_by_name() {
        assert!(parse("yesterdaay").unwrap_err().contains("yesterdaay"));
        assert!(parse("1969-12-31").unwrap_err().contains("before 1970"));
        for zoned in ["2026-01-31T12:00:00[Europe/Berlin]", "2026-01-31[UTC]"] {
            assert!(parse(zoned).unwrap_err().contains(zoned));
        }
        assert!(parse("@").is_err() && parse("@1.é").is_err() && parse("").is_err());
    }
}
