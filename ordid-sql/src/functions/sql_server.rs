//! SQL Server: scalar functions in T-SQL, whose text has not been run here. There are no shifts before version 2022, so
//! powers of two divide and multiply.

use super::{
    One,
    form::{Form, Shell},
    writer::{self, Writer},
};

struct SqlServer;

/// Returns the statements that create and drop a function. A schema is always named, as calls of scalar functions do.
pub(super) fn write(one: &One<'_>) -> (String, String) {
    let writer = &SqlServer;
    let name = match one.name.contains('.') {
        true => one.name.to_owned(),
        false => format!("[dbo].{}", one.name),
    };
    let key_type = one.column.sql_type;
    let create = match one.bounds {
        None => {
            let mut ticks = writer::ticks(writer, one.shape, one.form, "@id");
            if one.shape.last_ticks() == u64::MAX {
                // Those of a value of another scheme may be too many for a `bigint`, and then there is no time.
                let upper = (one.shape.fields[0][0].0, 48);
                let upper = writer::field(writer, one.form, "@id", &[upper]);
                ticks = format!("CASE WHEN {upper} < {} THEN {ticks} END", bigint(1 << 46));
            }
            let mut tests = writer::condition(writer, one.shape, one.form, "@id");
            if one.form.shell == Shell::Number {
                // A quotient is rounded towards zero, so it does not show a sign.
                tests.insert(0, "@id >= 0".to_owned());
            }
            tests.extend(
                one.last_ticks()
                    .map(|last| format!("@ticks BETWEEN 0 AND {}", bigint(last.into()))),
            );
            let time = time(one);
            let body = match tests.is_empty() {
                true => time,
                false => format!("CASE WHEN {} THEN {time} END", tests.join(" AND ")),
            };
            format!(
                "CREATE OR ALTER FUNCTION {name}(@id {key_type}) RETURNS datetime2(7) WITH SCHEMABINDING AS\nBEGIN\n    DECLARE \
                 @ticks bigint = {ticks};\n    RETURN {body};\nEND"
            )
        }
        Some((bounds, is_highest)) => {
            let ticks = one.ticks_of(writer, "@millis", is_highest);
            let key = writer::key(
                writer, one.shape, bounds, one.form, &ticks, "@bucket", is_highest,
            );
            let [first, last] =
                [bounds.first, bounds.last].map(|it| bigint(it.as_unix_millis().into()));
            let mut refusal = one.refusal(bounds);
            let mut test = format!("@millis NOT BETWEEN {first} AND {last}");
            let mut parameter = "";
            if let Some((_, bits)) = one.shape.bucket {
                let last = writer::mask(bits);
                parameter = ", @bucket bigint";
                test = format!("{test} OR @bucket NOT BETWEEN 0 AND {last}");
                refusal = format!("{refusal}, or the bucket is not 0 to {last}");
            }
            format!(
                "CREATE OR ALTER FUNCTION {name}(@moment datetime2(7){parameter}) RETURNS {key_type} WITH SCHEMABINDING AS
BEGIN
    DECLARE @days bigint = DATEDIFF(day, CONVERT(datetime2(7), '1970-01-01', 126), @moment);
    DECLARE @midnight datetime2(7) = CONVERT(date, @moment);
    DECLARE @millis bigint = @days * 86400000 + DATEDIFF(second, @midnight, @moment) * CONVERT(bigint, 1000)
        + DATEPART(nanosecond, @moment) / 1000000;
    -- A function has no THROW: a text that is no number is its message.
    IF {test}
        SET @millis = CONVERT(bigint, '{refusal}');
    RETURN {key};
END"
            )
        }
    };
    (create, format!("DROP FUNCTION IF EXISTS {name}"))
}

/// Returns the time of `@ticks`.
fn time(one: &One<'_>) -> String {
    let plus = |x: &str, epoch: i128| match epoch {
        0 => x.to_owned(),
        epoch if epoch < 0 => format!("({x} - {})", bigint(epoch.unsigned_abs())),
        epoch => format!("({x} + {})", bigint(epoch.unsigned_abs())),
    };
    // `DATEADD` takes 32 bits: days, milliseconds of the day, and what is less than one.
    let epoch = one.epoch_micros() / 1_000;
    let (count, per_milli) = match one.shape.ratio() {
        (1, 1) => (plus("@ticks", epoch), 1_u128),
        (1, millis) => (plus(&format!("(@ticks * {millis})"), epoch), 1),
        (10_000, _) => (plus("@ticks", epoch * 10_000), 10_000),
        _ => (plus("(@ticks * 10000 / 3)", epoch * 1_000), 1_000),
    };
    let day = bigint(86_400_000 * per_milli);
    let of_day = match per_milli {
        1 => format!("{count} % {day}"),
        _ => format!("{count} % {day} / {per_milli}"),
    };
    let time = format!(
        "DATEADD(millisecond, {of_day}, DATEADD(day, {count} / {day}, CONVERT(datetime2(7), '1970-01-01', 126)))"
    );
    match per_milli {
        1 => time,
        _ => format!(
            "DATEADD(nanosecond, {count} % {per_milli} * {}, {time})",
            1_000_000 / per_milli
        ),
    }
}

impl Writer for SqlServer {
    fn shifted(&self, x: &str, bits: u32) -> String {
        match bits {
            0 => x.to_owned(),
            // Twice the greatest power of 64 bits does not fit.
            63 => format!("({x} / {} / 2)", bigint(1 << 62)),
            _ => format!("({x} / {})", bigint(1 << bits)),
        }
    }

    fn masked(&self, x: &str, bits: u32) -> String {
        format!("({x} % {})", bigint(1 << bits))
    }

    fn raised(&self, x: &str, bits: u32) -> String {
        format!("({x} * {})", bigint(1 << bits))
    }

    fn joined(&self, high: &str, bits: u32, low: &str) -> String {
        format!("({high} * {} + {low})", bigint(1 << bits))
    }

    fn quotient(&self, x: &str, by: u64) -> String {
        format!("({x} / {})", bigint(by.into()))
    }

    fn remainder(&self, x: &str, by: u64) -> String {
        format!("({x} % {})", bigint(by.into()))
    }

    fn integer(&self, x: u64) -> String {
        bigint(x.into())
    }

    fn least(&self, x: &str, y: u64) -> String {
        let y = bigint(y.into());
        format!("IIF({x} < {y}, {x}, {y})")
    }

    fn concat(&self, parts: &[String]) -> String {
        parts.join(" + ")
    }

    fn has_length(&self, _: &str, _: &Form) -> Option<String> {
        None
    }

    fn is_digit_of(&self, key: &str, form: &Form, digit: u32, values: &str) -> String {
        let digit = hex_digits(key, form, digit, 1);
        format!("CHARINDEX({digit}, '{}') > 0", values.to_uppercase())
    }

    fn digits(&self, key: &str, form: &Form, first: u32, count: u32) -> String {
        let (from, to) = (first / 2, (first + count).div_ceil(2));
        let bytes = format!(
            "CONVERT(bigint, SUBSTRING({}, {}, {}))",
            binary(key, form),
            from + 1,
            to - from
        );
        let behind = self.shifted(&bytes, (to * 2 - first - count) * 4);
        match first % 2 {
            0 => behind,
            _ => self.masked(&behind, count * 4),
        }
    }

    fn hex(&self, x: &str, count: u32, _: &Form) -> String {
        // Style 2: hex digits without 0x.
        let bytes = count.div_ceil(2);
        let hex = format!(
            "CONVERT(char({}), CONVERT(binary({bytes}), CONVERT(bigint, {x})), 2)",
            bytes * 2
        );
        match count % 2 {
            0 => hex,
            _ => format!("RIGHT({hex}, {count})"),
        }
    }

    fn digit(&self, x: &str, form: &Form) -> String {
        format!("SUBSTRING('{}', CONVERT(int, {x}) + 1, 1)", form.alphabet)
    }

    fn literal(&self, digits: &str, _: &Form) -> String {
        format!("'{digits}'")
    }

    fn stored(&self, text: &str, form: &Form) -> String {
        let bytes = form.count / 2;
        let binary = format!("CONVERT(binary({bytes}), {text}, 2)");
        match form.shell {
            Shell::Uuid => format!("CONVERT(uniqueidentifier, {binary})"),
            _ => binary,
        }
    }
}

/// A number as an integer. What is above 32 bits is a `numeric` in T-SQL, and a quotient of such has decimals.
fn bigint(number: u128) -> String {
    match i32::try_from(number) {
        Ok(number) => number.to_string(),
        Err(_) => format!("CONVERT(bigint, {number})"),
    }
}

fn binary(key: &str, form: &Form) -> String {
    match form.shell {
        Shell::Uuid => format!("CONVERT(binary(16), {key})"),
        _ => key.to_owned(),
    }
}

fn hex_digits(key: &str, form: &Form, first: u32, count: u32) -> String {
    let hex = format!("CONVERT(char({}), {}, 2)", form.count, binary(key, form));
    format!("SUBSTRING({hex}, {}, {count})", first + 1)
}
