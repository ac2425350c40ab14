//! PostgreSQL: SQL functions. A body that begins with `RETURN` is parsed once, so that no `search_path` changes it.
//!
//! The planner writes the time of a key into the query, as its body is one expression. They are not `STRICT`: a `STRICT`
//! function with a `CASE` would not be written into the query. All the same, NULL gives NULL. A key of a time is computed
//! once by the planner, as its parameter is a constant, or once for a scan.

use super::{
    One,
    form::{Form, HEX, Shell},
    writer::{self, Writer},
};

struct Postgres;

/// Returns the statements that create and drop a function.
pub(super) fn write(one: &One<'_>) -> (String, String) {
    let writer = &Postgres;
    let name = one.name;
    let key_type = one.column.sql_type.split(' ').next().unwrap_or_default();
    let (parameters, types, returned, body) = match one.bounds {
        None => {
            // A column of the user's may have a collation that takes one character for another.
            let id = match one.form.shell {
                Shell::Hyphens | Shell::Text => "(id COLLATE \"C\")",
                _ => "id",
            };
            let ticks = writer::ticks(writer, one.shape, one.form, id);
            let mut tests = writer::condition(writer, one.shape, one.form, id);
            tests.extend(
                one.last_ticks()
                    .map(|last| format!("{ticks} BETWEEN 0 AND {last}")),
            );
            let time = time(one, &ticks);
            let body = match tests.is_empty() {
                true => time,
                false => format!("CASE WHEN {} THEN {time} END", tests.join(" AND ")),
            };
            let parameters = format!("id {key_type}");
            (parameters, key_type.to_owned(), "timestamptz", body)
        }
        Some((bounds, is_highest)) => {
            let ticks = one.ticks_of(writer, "millis", is_highest);
            let key = writer::key(
                writer, one.shape, bounds, one.form, &ticks, "bucket", is_highest,
            );
            let first = bounds.first.as_unix_millis();
            let last = bounds.last.as_unix_millis();
            let mut refusal = one.refusal(bounds);
            let mut tests = format!("millis NOT BETWEEN {first} AND {last}");
            let (mut parameters, mut types) =
                ("moment timestamptz".to_owned(), "timestamptz".to_owned());
            if let Some((_, bits)) = one.shape.bucket {
                let last = writer::mask(bits);
                parameters.push_str(", bucket integer");
                types.push_str(", integer");
                tests = format!("{tests} OR bucket NOT BETWEEN 0 AND {last}");
                refusal = format!("{refusal}, or the bucket is not 0 to {last}");
            }
            // A text that is no number is the only way for an expression to fail with a message. It depends on the
            // parameter, or the planner would fail before it looks at the condition.
            let failure = format!("('{refusal}' || left(millis::text, 0))::bigint");
            let failure = match one.form.shell {
                Shell::Number => failure,
                Shell::Uuid => format!("({failure})::text::uuid"),
                Shell::Bytes => format!("({failure})::text::bytea"),
                _ => format!("({failure})::text"),
            };
            let body = format!(
                "(SELECT CASE WHEN {tests} THEN {failure}\n        ELSE {key} END\n        FROM (SELECT \
                 floor(extract(epoch FROM moment AT TIME ZONE 'UTC') * 1000)::bigint AS millis) AS given)"
            );
            (parameters, types, key_type, body)
        }
    };
    let create = format!(
        "CREATE OR REPLACE FUNCTION {name}({parameters}) RETURNS {returned}\n    LANGUAGE sql IMMUTABLE PARALLEL SAFE\n    \
         RETURN {body}"
    );
    (create, format!("DROP FUNCTION IF EXISTS {name}({types})"))
}

/// Returns the time of ticks. `timestamptz` plus an interval would not be immutable, and a number of seconds not exact.
fn time(one: &One<'_>, ticks: &str) -> String {
    let (per_milli, millis) = one.shape.ratio();
    let epoch = one.epoch_micros();
    let plus = |x: String, epoch: i128| match epoch {
        0 => x,
        epoch if epoch < 0 => format!("({x} - {})", epoch.unsigned_abs()),
        epoch => format!("({x} + {epoch})"),
    };
    let (count, day) = match (per_milli, millis) {
        (1, 1) => (plus(ticks.to_owned(), epoch / 1_000), 86_400_000_u64),
        (1, millis) => (
            plus(format!("({ticks} * {millis})"), epoch / 1_000),
            86_400_000,
        ),
        (10_000, _) => (plus(format!("({ticks} / 10)"), epoch), 86_400_000_000),
        _ => (
            plus(format!("({ticks} * 10000 / 3)"), epoch),
            86_400_000_000,
        ),
    };
    let second = day / 86_400;
    format!(
        "(timestamp '1970-01-01' + make_interval(days => ({count} / {day})::int, \
         secs => ({count} % {day}) / {second}::float8)) AT TIME ZONE 'UTC'"
    )
}

impl Postgres {
    /// Returns some digits of a key, as a text.
    fn slice(key: &str, form: &Form, first: u32, count: u32) -> String {
        if form.shell == Shell::Text {
            return format!("substr({key}, {}, {count})", first + 1);
        }
        let text = match form.shell {
            Shell::Uuid => format!("{key}::text"),
            _ => key.to_owned(),
        };
        // The digits up to each hyphen.
        let mut parts = Vec::new();
        let (mut at, end) = (first, first + count);
        while at < end {
            let before = [8, 12, 16, 20].into_iter();
            let hyphens = before.clone().filter(|hyphen| *hyphen <= at).count();
            let to = before.clone().find(|it| *it > at).unwrap_or(32).min(end);
            let from = at + 1 + u32::try_from(hyphens).expect("four hyphens");
            parts.push(format!("substr({text}, {from}, {})", to - at));
            at = to;
        }
        parts.join(" || ")
    }
}

impl Writer for Postgres {
    fn concat(&self, parts: &[String]) -> String {
        parts.join(" || ")
    }

    fn has_length(&self, key: &str, form: &Form) -> Option<String> {
        match form.shell {
            Shell::Number | Shell::Uuid => None,
            Shell::Bytes => Some(format!("octet_length({key}) = {}", form.count / 2)),
            _ => Some(format!("length({key}) = {}", form.characters())),
        }
    }

    fn is_digit_of(&self, key: &str, form: &Form, digit: u32, values: &str) -> String {
        let slice = match form.shell {
            Shell::Bytes => {
                let byte = format!("encode(substr({key}, {}, 1), 'hex')", digit / 2 + 1);
                format!("substr({byte}, {}, 1)", digit % 2 + 1)
            }
            _ => Self::slice(key, form, digit, 1),
        };
        match values.len() {
            1 => format!("{slice} = '{values}'"),
            _ => format!("strpos('{values}', {slice}) > 0"),
        }
    }

    fn has_characters(&self, key: &str, runs: &[(String, usize)]) -> String {
        format!("{key} ~ '{}'", writer::pattern(runs))
    }

    fn digits(&self, key: &str, form: &Form, first: u32, count: u32) -> String {
        if form.width != 4 {
            let places = (first..first + count).zip((0..count).rev());
            let terms = places.map(|(digit, place)| {
                let character = format!("substr({key}, {}, 1)", digit + 1);
                let value = format!("(strpos('{}', {character}) - 1)::bigint", form.alphabet);
                match place {
                    0 => value,
                    _ => format!("({value} << {})", place * form.width),
                }
            });
            return format!("({})", terms.collect::<Vec<_>>().join(" | "));
        }
        let bits = count * 4;
        match form.shell {
            Shell::Bytes => {
                // Whole bytes, of which the digits are some.
                let (from, to) = (first / 2, (first + count).div_ceil(2));
                let bytes = to - from;
                let hex = format!("encode(substr({key}, {}, {bytes}), 'hex')", from + 1);
                let hex = match bytes * 2 == count {
                    true => hex,
                    false => format!("substr({hex}, {}, {count})", first % 2 + 1),
                };
                format!("('x' || {hex})::bit({bits})::bigint")
            }
            _ => {
                let slice = Self::slice(key, form, first, count);
                format!("('x' || {slice})::bit({bits})::bigint")
            }
        }
    }

    fn hex(&self, x: &str, count: u32, _: &Form) -> String {
        format!("lpad(to_hex({x}), {count}, '0')")
    }

    fn digit(&self, x: &str, form: &Form) -> String {
        let alphabet = form.alphabet;
        format!("substr('{alphabet}', ({x})::int + 1, 1)")
    }

    fn literal(&self, digits: &str, _: &Form) -> String {
        format!("'{digits}'")
    }

    fn stored(&self, text: &str, form: &Form) -> String {
        debug_assert!(form.width != 4 || form.alphabet == HEX);
        match form.shell {
            Shell::Uuid => format!("({text})::uuid"),
            Shell::Bytes => format!("decode({text}, 'hex')"),
            _ => text.to_owned(),
        }
    }

    fn raised(&self, x: &str, bits: u32) -> String {
        format!("({x}::bigint << {bits})")
    }
}
