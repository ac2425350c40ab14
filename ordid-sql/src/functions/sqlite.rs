//! SQLite: expressions. They are deterministic, so that generated columns and indexes can have them.

use super::{
    One,
    form::{Form, Shell},
    writer::{self, Writer},
};

struct Sqlite;

/// Returns the expression of the column `id`, or of `moment` and `bucket`.
pub(super) fn write(one: &One<'_>) -> String {
    let writer = &Sqlite;
    let Some((bounds, is_highest)) = one.bounds else {
        let ticks = writer::ticks(writer, one.shape, one.form, "id");
        // A column takes values of any type.
        let type_of = match one.form.shell {
            Shell::Number => "integer",
            Shell::Bytes => "blob",
            _ => "text",
        };
        let mut tests = vec![format!("typeof(id) = '{type_of}'")];
        tests.extend(writer::condition(writer, one.shape, one.form, "id"));
        tests.extend(
            one.last_ticks()
                .map(|last| format!("{ticks} BETWEEN 0 AND {last}")),
        );
        let time = time(one, &ticks);
        return format!("CASE WHEN {} THEN {time} END", tests.join(" AND "));
    };
    // SQLite keeps the nearest millisecond of a second, which a number of days has exactly when it is rounded. `%s` and `%f` do
    // not fit together in older versions: `%s` of 12:59:59.9999 is that of 13:00:00, and `%f` is 59.999.
    let millis = "CAST(round((julianday(moment) - 2440587.5) * 86400000) AS INTEGER)".to_owned();
    let ticks = one.ticks_of(writer, &millis, is_highest);
    let key = writer::key(
        writer, one.shape, bounds, one.form, &ticks, "bucket", is_highest,
    );
    let (first, last) = (bounds.first.as_unix_millis(), bounds.last.as_unix_millis());
    let mut test = format!("{millis} NOT BETWEEN {first} AND {last}");
    let mut known = format!("{millis} IS NOT NULL");
    if let Some((_, bits)) = one.shape.bucket {
        test = format!("{test} OR bucket NOT BETWEEN 0 AND {}", writer::mask(bits));
        known = format!("{known} AND bucket IS NOT NULL");
    }
    // The only function of SQLite that fails: there is no message to give. `printf` takes NULL for zero.
    format!("CASE WHEN {test} THEN abs(-9223372036854775807 - 1) WHEN {known} THEN {key} END")
}

/// Returns the time of ticks, as a text with milliseconds.
fn time(one: &One<'_>, ticks: &str) -> String {
    let (per_milli, millis) = one.shape.ratio();
    let since = match (per_milli, millis) {
        (1, 1) => ticks.to_owned(),
        (1, millis) => format!("{ticks} * {millis}"),
        (10_000, _) => format!("{ticks} / 10000"),
        _ => format!("{ticks} * 10 / 3"),
    };
    let millis = match one.epoch_micros() / 1_000 {
        0 => since,
        epoch if epoch < 0 => format!("({since} - {})", epoch.unsigned_abs()),
        epoch => format!("({since} + {epoch})"),
    };
    format!("strftime('%Y-%m-%d %H:%M:%f', {millis} / 1000.0, 'unixepoch')")
}

/// The hex digits as `hex()` writes them.
const UPPER_HEX: &str = "0123456789ABCDEF";

impl Sqlite {
    /// Returns a digit of a key, and the alphabet that it is of.
    fn digit_of(key: &str, form: &Form, digit: u32) -> (String, &'static str) {
        match form.shell {
            Shell::Bytes => {
                let byte = format!("hex(substr({key}, {}, 1))", digit / 2 + 1);
                (format!("substr({byte}, {}, 1)", digit % 2 + 1), UPPER_HEX)
            }
            Shell::Hyphens => {
                let hyphens = [8, 12, 16, 20].into_iter().filter(|it| *it <= digit);
                let at = digit + 1 + u32::try_from(hyphens.count()).expect("four hyphens");
                (format!("substr({key}, {at}, 1)"), form.alphabet)
            }
            _ => (format!("substr({key}, {}, 1)", digit + 1), form.alphabet),
        }
    }
}

impl Writer for Sqlite {
    fn least(&self, x: &str, y: u64) -> String {
        format!("min({x}, {y})")
    }

    fn concat(&self, parts: &[String]) -> String {
        parts.join(" || ")
    }

    fn has_length(&self, key: &str, form: &Form) -> Option<String> {
        match form.shell {
            Shell::Number => None,
            Shell::Bytes => Some(format!("length({key}) = {}", form.count / 2)),
            // Bytes: the length of a text ends at a NUL.
            _ => Some(format!(
                "length(CAST({key} AS BLOB)) = {}",
                form.characters()
            )),
        }
    }

    /// `GLOB` compares by bytes, whatever the collation.
    fn has_characters(&self, key: &str, runs: &[(String, usize)]) -> String {
        let classes = runs
            .iter()
            .map(|(characters, count)| writer::class(characters).repeat(*count));
        format!("{key} GLOB '{}'", classes.collect::<String>())
    }

    fn is_digit_of(&self, key: &str, form: &Form, digit: u32, values: &str) -> String {
        let (character, alphabet) = Self::digit_of(key, form, digit);
        let values = match alphabet == UPPER_HEX {
            true => values.to_uppercase(),
            false => values.to_owned(),
        };
        match values.len() {
            1 => format!("{character} = '{values}'"),
            _ => format!("instr('{values}', {character}) > 0"),
        }
    }

    /// There is no function that reads hex digits as a number.
    fn digits(&self, key: &str, form: &Form, first: u32, count: u32) -> String {
        let places = (first..first + count).zip((0..count).rev());
        let terms = places.map(|(digit, place)| {
            let (character, alphabet) = Self::digit_of(key, form, digit);
            let value = format!("(instr('{alphabet}', {character}) - 1)");
            match place {
                0 => value,
                _ => format!("({value} << {})", place * form.width),
            }
        });
        format!("({})", terms.collect::<Vec<_>>().join(" | "))
    }

    fn hex(&self, x: &str, count: u32, _: &Form) -> String {
        format!("printf('%0{count}x', {x})")
    }

    fn digit(&self, x: &str, form: &Form) -> String {
        format!("substr('{}', {x} + 1, 1)", form.alphabet)
    }

    fn literal(&self, digits: &str, _: &Form) -> String {
        format!("'{digits}'")
    }

    fn stored(&self, text: &str, form: &Form) -> String {
        match form.shell {
            Shell::Bytes => format!("unhex({text})"),
            _ => text.to_owned(),
        }
    }
}
