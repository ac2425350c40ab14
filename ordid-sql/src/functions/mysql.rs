//! MySQL and MariaDB: functions, deterministic and without SQL. Those that make keys refuse a time by `SIGNAL`.

use super::{
    Engine, One,
    form::{Form, Shell},
    writer::{self, Writer},
};

struct MySql {
    /// The key's parameter as a text, of a type that is none.
    is_mariadb: bool,
}

/// Returns the statements that create and drop a function.
pub(super) fn write(one: &One<'_>) -> (String, String) {
    let writer = &MySql {
        is_mariadb: one.engine == Engine::MariaDb,
    };
    let name = one.name;
    let key_type = one.column.sql_type;
    let create = match one.bounds {
        None => {
            let ticks = writer::ticks(writer, one.shape, one.form, "id");
            let mut tests = writer::condition(writer, one.shape, one.form, "id");
            tests.extend(
                one.last_ticks()
                    .map(|last| format!("{ticks} BETWEEN 0 AND {last}")),
            );
            let time = time(one, &ticks);
            let body = match tests.is_empty() {
                true => time,
                false => format!("CASE WHEN {} THEN {time} END", tests.join(" AND ")),
            };
            // A parameter of the column's type would refuse what is too long, and fill up bytes that are too few.
            let any_length = match one.form.shell {
                Shell::Bytes => "LONGBLOB",
                Shell::Hyphens | Shell::Text => {
                    "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
                }
                Shell::Number | Shell::Uuid => key_type,
            };
            let digits = if one.is_fine() { 6 } else { 3 };
            format!(
                "CREATE FUNCTION {name}(id {any_length}) RETURNS DATETIME({digits}) DETERMINISTIC NO SQL\n    RETURN {body}"
            )
        }
        Some((bounds, is_highest)) => {
            let ticks = one.ticks_of(writer, "millis", is_highest);
            let key = writer::key(
                writer, one.shape, bounds, one.form, "ticks", "bucket", is_highest,
            );
            let (first, last) = (bounds.first.as_unix_millis(), bounds.last.as_unix_millis());
            let refusal = one.refusal(bounds);
            let (parameter, test) = match one.shape.bucket {
                None => ("", String::new()),
                Some((_, bits)) => {
                    let last = writer::mask(bits);
                    let test = format!(
                        "    IF bucket NOT BETWEEN 0 AND {last} THEN\n        SIGNAL SQLSTATE '22003' SET MESSAGE_TEXT = \
                         'the bucket is not 0 to {last}';\n    END IF;\n"
                    );
                    (", bucket INT", test)
                }
            };
            format!(
                "CREATE FUNCTION {name}(moment DATETIME(6){parameter}) RETURNS {key_type} DETERMINISTIC NO SQL
BEGIN
    DECLARE millis BIGINT DEFAULT FLOOR(TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', moment) / 1000);
    DECLARE ticks BIGINT;
    IF millis NOT BETWEEN {first} AND {last} THEN
        SIGNAL SQLSTATE '22003' SET MESSAGE_TEXT = '{refusal}';
    END IF;
{test}    SET ticks = {ticks};
    RETURN {key};
END"
            )
        }
    };
    (create, format!("DROP FUNCTION IF EXISTS {name}"))
}

/// Returns the time of ticks.
fn time(one: &One<'_>, ticks: &str) -> String {
    let (per_milli, millis) = one.shape.ratio();
    let ticks = format!("CAST({ticks} AS SIGNED)");
    let micros = match (per_milli, millis) {
        (1, millis) => format!("{ticks} * {}", millis * 1_000),
        (10_000, _) => format!("{ticks} DIV 10"),
        _ => format!("{ticks} * 10000 DIV 3"),
    };
    let micros = match one.epoch_micros() {
        0 => micros,
        epoch if epoch < 0 => format!("{micros} - {}", epoch.unsigned_abs()),
        epoch => format!("{micros} + {epoch}"),
    };
    format!("TIMESTAMPADD(MICROSECOND, {micros}, TIMESTAMP '1970-01-01 00:00:00')")
}

impl MySql {
    /// Returns some digits of a key, as a text.
    fn slice(&self, key: &str, form: &Form, first: u32, count: u32) -> String {
        match form.shell {
            Shell::Bytes => {
                // Whole bytes, of which the digits are some.
                let (from, to) = (first / 2, (first + count).div_ceil(2));
                let hex = format!("HEX(SUBSTR({key}, {}, {}))", from + 1, to - from);
                match (to - from) * 2 == count {
                    true => hex,
                    false => format!("SUBSTR({hex}, {}, {count})", first % 2 + 1),
                }
            }
            Shell::Text => format!("SUBSTR({key}, {}, {count})", first + 1),
            _ if self.is_mariadb && form.shell == Shell::Uuid => {
                let text = format!("REPLACE(CAST({key} AS CHAR(36)), '-', '')");
                format!("SUBSTR({text}, {}, {count})", first + 1)
            }
            _ => format!("SUBSTR(REPLACE({key}, '-', ''), {}, {count})", first + 1),
        }
    }
}

/// Returns the place of a character. MySQL takes capital letters and small ones for the same unless the text that is
/// searched is binary, whatever the character is.
fn located(character: &str, alphabet: &str) -> String {
    format!("LOCATE({character}, _binary'{alphabet}')")
}

impl Writer for MySql {
    fn quotient(&self, x: &str, by: u64) -> String {
        format!("({x} DIV {by})")
    }

    fn concat(&self, parts: &[String]) -> String {
        match parts {
            [one] => one.clone(),
            _ => format!("CONCAT({})", parts.join(", ")),
        }
    }

    fn has_length(&self, key: &str, form: &Form) -> Option<String> {
        match form.shell {
            Shell::Number | Shell::Uuid => None,
            Shell::Bytes => Some(format!("OCTET_LENGTH({key}) = {}", form.count / 2)),
            _ => Some(format!("CHAR_LENGTH({key}) = {}", form.characters())),
        }
    }

    fn is_digit_of(&self, key: &str, form: &Form, digit: u32, values: &str) -> String {
        let slice = self.slice(key, form, digit, 1);
        let values = match form.shell {
            Shell::Bytes => values.to_uppercase(),
            _ => values.to_owned(),
        };
        match values.len() {
            1 => format!("{slice} = '{values}'"),
            _ => format!("{} > 0", located(&slice, &values)),
        }
    }

    /// The parameter has a binary collation, by which both engines tell capital letters from small ones here.
    fn has_characters(&self, key: &str, runs: &[(String, usize)]) -> String {
        format!("{key} REGEXP '{}'", writer::pattern(runs))
    }

    fn digits(&self, key: &str, form: &Form, first: u32, count: u32) -> String {
        if form.width == 4 {
            let slice = self.slice(key, form, first, count);
            return format!("CAST(CONV({slice}, 16, 10) AS UNSIGNED)");
        }
        let places = (first..first + count).zip((0..count).rev());
        let terms = places.map(|(digit, place)| {
            let character = format!("SUBSTR({key}, {}, 1)", digit + 1);
            let value = format!("({} - 1)", located(&character, form.alphabet));
            match place {
                0 => value,
                _ => format!("({value} << {})", place * form.width),
            }
        });
        format!("({})", terms.collect::<Vec<_>>().join(" | "))
    }

    fn hex(&self, x: &str, count: u32, form: &Form) -> String {
        let hex = format!("LPAD(HEX({x}), {count}, '0')");
        match form.shell {
            Shell::Bytes => hex,
            _ => format!("LOWER({hex})"),
        }
    }

    fn digit(&self, x: &str, form: &Form) -> String {
        format!("SUBSTR('{}', {x} + 1, 1)", form.alphabet)
    }

    fn literal(&self, digits: &str, _: &Form) -> String {
        format!("'{digits}'")
    }

    fn stored(&self, text: &str, form: &Form) -> String {
        match form.shell {
            Shell::Bytes => format!("UNHEX({text})"),
            _ => text.to_owned(),
        }
    }
}
