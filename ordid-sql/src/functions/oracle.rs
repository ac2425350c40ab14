//! Oracle: functions in PL/SQL, whose text has not been run here.

use super::{
    One,
    form::{Form, Shell},
    writer::{self, Writer},
};

struct Oracle;

/// Returns the statements that create and drop a function.
pub(super) fn write(one: &One<'_>) -> (String, String) {
    let writer = &Oracle;
    let name = one.name;
    // Parameters have no length.
    let key_type = one.column.sql_type.split('(').next().unwrap_or_default();
    let create = match one.bounds {
        None => {
            let ticks = writer::ticks(writer, one.shape, one.form, "id");
            let mut tests = writer::condition(writer, one.shape, one.form, "id");
            tests.extend(
                one.last_ticks()
                    .map(|last| format!("ticks BETWEEN 0 AND {last}")),
            );
            let time = time(one);
            let test = match tests.is_empty() {
                true => String::new(),
                false => format!(
                    "    IF NOT ({}) THEN\n        RETURN NULL;\n    END IF;\n",
                    tests.join(" AND ")
                ),
            };
            format!(
                "CREATE OR REPLACE FUNCTION {name}(id {key_type}) RETURN TIMESTAMP DETERMINISTIC IS\n    ticks NUMBER;\n\
                 BEGIN\n    ticks := {ticks};\n{test}    RETURN {time};\nEND;"
            )
        }
        Some((bounds, is_highest)) => {
            let ticks = one.ticks_of(writer, "millis", is_highest);
            let key = writer::key(
                writer, one.shape, bounds, one.form, &ticks, "bucket", is_highest,
            );
            let (first, last) = (bounds.first.as_unix_millis(), bounds.last.as_unix_millis());
            let refusal = one.refusal(bounds);
            let (parameter, test) = match one.shape.bucket {
                None => ("", String::new()),
                Some((_, bits)) => {
                    let last = writer::mask(bits);
                    let test = format!(
                        "    IF bucket NOT BETWEEN 0 AND {last} THEN\n        RAISE_APPLICATION_ERROR(-20001, 'the bucket is \
                         not 0 to {last}');\n    END IF;\n"
                    );
                    (", bucket NUMBER", test)
                }
            };
            format!(
                "CREATE OR REPLACE FUNCTION {name}(moment TIMESTAMP{parameter}) RETURN {key_type} DETERMINISTIC IS
    since CONSTANT INTERVAL DAY(9) TO SECOND(9) := moment - TIMESTAMP '1970-01-01 00:00:00';
    millis CONSTANT NUMBER := EXTRACT(DAY FROM since) * 86400000 + EXTRACT(HOUR FROM since) * 3600000
        + EXTRACT(MINUTE FROM since) * 60000 + FLOOR(EXTRACT(SECOND FROM since) * 1000);
BEGIN
    IF moment IS NULL THEN
        RETURN NULL;
    END IF;
    IF millis NOT BETWEEN {first} AND {last} THEN
        RAISE_APPLICATION_ERROR(-20001, '{refusal}');
    END IF;
{test}    RETURN {key};
END;"
            )
        }
    };
    (create, format!("DROP FUNCTION {name}"))
}

/// Returns the time of `ticks`.
fn time(one: &One<'_>) -> String {
    let epoch = one.epoch_micros() / 1_000;
    let millis = match one.shape.ratio() {
        (1, 1) => "ticks".to_owned(),
        (1, millis) => format!("ticks * {millis}"),
        (10_000, _) => "FLOOR(ticks / 10) / 1000".to_owned(),
        _ => "FLOOR(ticks * 10000 / 3) / 1000".to_owned(),
    };
    let millis = match epoch {
        0 => millis,
        epoch if epoch < 0 => format!("({millis} - {})", epoch.unsigned_abs()),
        epoch => format!("({millis} + {epoch})"),
    };
    // Days apart: an interval of seconds alone has too few digits for far times.
    format!(
        "TIMESTAMP '1970-01-01 00:00:00' + NUMTODSINTERVAL(FLOOR({millis} / 86400000), 'DAY')\n        + \
         NUMTODSINTERVAL(({millis} - FLOOR({millis} / 86400000) * 86400000) / 1000, 'SECOND')"
    )
}

impl Writer for Oracle {
    fn shifted(&self, x: &str, bits: u32) -> String {
        match bits {
            0 => x.to_owned(),
            _ => format!("FLOOR({x} / {})", 1_u64 << bits),
        }
    }

    fn masked(&self, x: &str, bits: u32) -> String {
        format!("MOD({x}, {})", u128::from(writer::mask(bits)) + 1)
    }

    fn raised(&self, x: &str, bits: u32) -> String {
        format!("({x} * {})", 1_u64 << bits)
    }

    fn joined(&self, high: &str, bits: u32, low: &str) -> String {
        format!("({high} * {} + {low})", 1_u64 << bits)
    }

    fn quotient(&self, x: &str, by: u64) -> String {
        format!("FLOOR({x} / {by})")
    }

    fn remainder(&self, x: &str, by: u64) -> String {
        format!("MOD({x}, {by})")
    }

    fn concat(&self, parts: &[String]) -> String {
        parts.join(" || ")
    }

    fn has_length(&self, key: &str, form: &Form) -> Option<String> {
        match form.shell {
            Shell::Number => None,
            _ => Some(format!("LENGTH(RAWTOHEX({key})) = {}", form.count)),
        }
    }

    fn is_digit_of(&self, key: &str, _: &Form, digit: u32, values: &str) -> String {
        let digit = format!("SUBSTR(RAWTOHEX({key}), {}, 1)", digit + 1);
        format!("INSTR('{}', {digit}) > 0", values.to_uppercase())
    }

    fn digits(&self, key: &str, _: &Form, first: u32, count: u32) -> String {
        let digits = format!("SUBSTR(RAWTOHEX({key}), {}, {count})", first + 1);
        let format = "X".repeat(usize::try_from(count).expect("a key is short"));
        format!("TO_NUMBER({digits}, '{format}')")
    }

    fn hex(&self, x: &str, count: u32, _: &Form) -> String {
        // A zero in front asks for leading zeros.
        let zero = if count == 1 { "" } else { "0" };
        let digits = usize::try_from(count).expect("a key is short") - zero.len();
        format!("TO_CHAR({x}, 'FM{zero}{}')", "X".repeat(digits))
    }

    fn digit(&self, x: &str, form: &Form) -> String {
        format!("SUBSTR('{}', {x} + 1, 1)", form.alphabet)
    }

    fn literal(&self, digits: &str, _: &Form) -> String {
        format!("'{digits}'")
    }

    fn stored(&self, text: &str, _: &Form) -> String {
        format!("HEXTORAW({text})")
    }
}
