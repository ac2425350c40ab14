//! The expressions: which bits go where is decided here, and how an engine writes it in [`Writer`].

use super::{
    form::{Bit, Form, Shell},
    shape::{Bounds, Piece, Shape, UNITS_A_DAY},
};

/// How an engine writes arithmetic, digits and times. Each argument is an expression that needs no parentheses, and so
/// is each result.
pub(super) trait Writer {
    /// `x` without its lowest bits.
    fn shifted(&self, x: &str, bits: u32) -> String {
        match bits {
            0 => x.to_owned(),
            _ => format!("({x} >> {bits})"),
        }
    }

    /// The lowest bits of `x`.
    fn masked(&self, x: &str, bits: u32) -> String {
        format!("({x} & {})", mask(bits))
    }

    /// `x` above so many zero bits.
    fn raised(&self, x: &str, bits: u32) -> String {
        format!("({x} << {bits})")
    }

    /// `high` above so many bits of `low`.
    fn joined(&self, high: &str, bits: u32, low: &str) -> String {
        format!("(({high} << {bits}) | {low})")
    }

    /// The whole part of a quotient.
    fn quotient(&self, x: &str, by: u64) -> String {
        format!("({x} / {by})")
    }

    /// The remainder of a quotient.
    fn remainder(&self, x: &str, by: u64) -> String {
        format!("({x} % {by})")
    }

    /// The lesser of two.
    fn least(&self, x: &str, y: u64) -> String {
        format!("LEAST({x}, {y})")
    }

    /// An integer of 64 bits.
    fn integer(&self, x: u64) -> String {
        x.to_string()
    }

    /// One text behind the other.
    fn concat(&self, parts: &[String]) -> String;

    /// Whether the key has the length of its column.
    fn has_length(&self, key: &str, form: &Form) -> Option<String>;

    /// Whether a digit of the key is one of these.
    fn is_digit_of(&self, key: &str, form: &Form, digit: u32, values: &str) -> String;

    /// Whether a text has these characters, so many of each in a row, as [`Form::characters_of`] returns them. It depends
    /// on no collation.
    fn has_characters(&self, _key: &str, _runs: &[(String, usize)]) -> String {
        unreachable!("SQL Server and Oracle have no columns of text for keys")
    }

    /// The number that some digits of the key are.
    fn digits(&self, key: &str, form: &Form, first: u32, count: u32) -> String;

    /// The number that an integer column has.
    fn number(&self, key: &str) -> String {
        key.to_owned()
    }

    /// A number as so many hex digits, as they stand in the form.
    fn hex(&self, x: &str, count: u32, form: &Form) -> String;

    /// The digit of a number.
    fn digit(&self, x: &str, form: &Form) -> String;

    /// Some digits that are known.
    fn literal(&self, digits: &str, form: &Form) -> String;

    /// Writes the value that the column stores, from its digits.
    fn stored(&self, text: &str, form: &Form) -> String;

    /// Writes the value that the column stores, from an integer.
    fn stored_number(&self, x: &str) -> String {
        x.to_owned()
    }
}

/// Returns a regular expression for a text of these characters; a class begins with its hyphen.
pub(super) fn pattern(runs: &[(String, usize)]) -> String {
    let parts = runs.iter().map(|(characters, count)| {
        let class = class(characters);
        match count {
            1 => class,
            count => format!("{class}{{{count}}}"),
        }
    });
    format!("^{}$", parts.collect::<String>())
}

/// Returns a class of characters, which regular expressions and `GLOB` read in the same way.
pub(super) fn class(characters: &str) -> String {
    match characters.len() {
        1 => characters.to_owned(),
        _ => format!("[{characters}]"),
    }
}

/// So many ones.
pub(super) fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// Returns the condition that a key is of the scheme; none if each value is.
pub(super) fn condition(writer: &dyn Writer, shape: &Shape, form: &Form, key: &str) -> Vec<String> {
    if form.shell == Shell::Number {
        let tests = shape.fixed.iter().map(|(first, bits, value)| {
            let field = writer.shifted(&writer.number(key), 64 - first - bits);
            format!("{field} = {value}")
        });
        return tests.collect();
    }
    let mut tests: Vec<String> = writer.has_length(key, form).into_iter().collect();
    if let Some(runs) = form.characters_of(shape) {
        tests.push(writer.has_characters(key, &runs));
        return tests;
    }
    let digits = form.fixed_digits(shape);
    tests.extend(
        digits
            .iter()
            .map(|(digit, values)| writer.is_digit_of(key, form, *digit, values)),
    );
    tests
}

/// Returns the ticks of a key.
pub(super) fn ticks(writer: &dyn Writer, shape: &Shape, form: &Form, key: &str) -> String {
    let [days, units] = match shape.fields {
        [days, units] => [days, units],
        fields => return field(writer, form, key, fields[0]),
    };
    let days = field(writer, form, key, days);
    let units = writer.least(&field(writer, form, key, units), UNITS_A_DAY - 1);
    format!("({days} * {UNITS_A_DAY} + {units})")
}

/// Returns a number whose bits are in the key.
pub(super) fn field(writer: &dyn Writer, form: &Form, key: &str, pieces: &[Piece]) -> String {
    if form.shell == Shell::Number {
        let [(first, bits)] = pieces else {
            unreachable!("the time of an integer is one run of bits")
        };
        let shifted = writer.shifted(&writer.number(key), 64 - first - bits);
        return match *first {
            0 => shifted,
            _ => writer.masked(&shifted, *bits),
        };
    }
    let runs = pieces.iter().flat_map(|piece| form.runs(*piece));
    let mut all: Option<String> = None;
    for (first, bits) in runs {
        let (first_digit, last_digit) = (first / form.width, (first + bits - 1) / form.width);
        let digits = writer.digits(key, form, first_digit, last_digit + 1 - first_digit);
        let behind = (last_digit + 1) * form.width - (first + bits);
        let shifted = writer.shifted(&digits, behind);
        let run = match first % form.width {
            0 => shifted,
            _ => writer.masked(&shifted, bits),
        };
        all = Some(match all {
            None => run,
            Some(all) => writer.joined(&all, bits, &run),
        });
    }
    all.expect("a time has bits")
}

/// Returns the lowest or the highest key of a time, given by its ticks.
pub(super) fn key(
    writer: &dyn Writer,
    shape: &Shape,
    bounds: &Bounds,
    form: &Form,
    ticks: &str,
    bucket: &str,
    is_highest: bool,
) -> String {
    let fixed = match is_highest {
        true => &bounds.highest,
        false => &bounds.lowest,
    };
    let bits = form.bits(shape, fixed);
    let fields = match shape.has_days() {
        true => vec![
            writer.quotient(ticks, UNITS_A_DAY),
            writer.remainder(ticks, UNITS_A_DAY),
        ],
        false => vec![ticks.to_owned()],
    };
    let bits_of = |pieces: &&[Piece]| pieces.iter().map(|(_, bits)| bits).sum();
    let text = Digits {
        writer,
        form,
        fields: &fields,
        field_bits: shape.fields.iter().map(bits_of).collect(),
        bucket,
        bucket_bits: shape.bucket.map_or(0, |(_, bits)| bits),
    };
    if form.shell == Shell::Number {
        let sum = text.sum(&bits).unwrap_or_else(|| "0".to_owned());
        return writer.stored_number(&sum);
    }
    writer.stored(&text.all(&bits), form)
}

/// The digits of a key.
struct Digits<'a> {
    writer: &'a dyn Writer,
    form: &'a Form,
    fields: &'a [String],
    /// How many bits each of them has.
    field_bits: Vec<u32>,
    bucket: &'a str,
    bucket_bits: u32,
}

impl Digits<'_> {
    /// Returns the text of all digits.
    fn all(&self, bits: &[Bit]) -> String {
        let width = usize::try_from(self.form.width).expect("a digit is short");
        let digits: Vec<&[Bit]> = bits.chunks(width).collect();
        let mut parts: Vec<String> = Vec::new();
        let mut known = String::new();
        let mut digit = 0;
        while digit < digits.len() {
            if self.form.shell == Shell::Hyphens && [8, 12, 16, 20].contains(&digit) {
                known.push('-');
            }
            let bits = digits[digit];
            if let Some(value) = known_value(bits) {
                known.extend(self.form.alphabet.chars().nth(value));
                digit += 1;
                continue;
            }
            if !known.is_empty() {
                parts.push(self.writer.literal(&known, self.form));
                known.clear();
            }
            let run = self.run(&digits, digit);
            if self.form.width == 4 && run > 0 {
                let flat: Vec<Bit> = digits[digit..digit + run].concat();
                let x = self.sum(&flat).expect("bits of the time");
                let count = u32::try_from(run).expect("a key is short");
                parts.push(self.writer.hex(&x, count, self.form));
                digit += run;
            } else {
                let x = self.sum(bits).expect("bits of the time");
                parts.push(self.writer.digit(&x, self.form));
                digit += 1;
            }
        }
        if !known.is_empty() {
            parts.push(self.writer.literal(&known, self.form));
        }
        self.writer.concat(&parts)
    }

    /// Returns how many digits from one on are but falling bits of one field, up to the next hyphen.
    fn run(&self, digits: &[&[Bit]], first: usize) -> usize {
        let Bit::Field(field, top) = digits[first][0] else {
            return 0;
        };
        let bits = digits[first..].iter().flat_map(|digit| digit.iter());
        let mut expected = i64::from(top);
        let mut count = 0;
        for bit in bits {
            let Bit::Field(of, value) = bit else { break };
            if *of != field || i64::from(*value) != expected {
                break;
            }
            expected -= 1;
            count += 1;
        }
        let whole = count / usize::try_from(self.form.width).expect("a digit is short");
        let hyphen = [8, 12, 16, 20].into_iter().find(|it| *it > first);
        match (self.form.shell, hyphen) {
            (Shell::Hyphens, Some(hyphen)) => whole.min(hyphen - first),
            _ => whole,
        }
    }

    /// Returns the number that some bits are; `None` if all are zero.
    fn sum(&self, bits: &[Bit]) -> Option<String> {
        let total = bits.len();
        let mut terms: Vec<String> = Vec::new();
        let mut constant = 0_u64;
        let mut place = 0;
        while place < total {
            let (x, bits_of_x, top) = match bits[place] {
                Bit::Field(field, top) => (&*self.fields[field], self.field_bits[field], top),
                Bit::Bucket(top) => (self.bucket, self.bucket_bits, top),
                bit => {
                    constant |= u64::from(bit == Bit::One) << (total - 1 - place);
                    place += 1;
                    continue;
                }
            };
            let rest = bits[place..].windows(2);
            let more = rest.take_while(|pair| follows(pair[0], pair[1])).count();
            place += more + 1;
            let count = u32::try_from(more + 1).expect("a key is short");
            let shifted = self.writer.shifted(x, top + 1 - count);
            // The time and the bucket are checked: they have no higher bits.
            let run = match top + 1 == bits_of_x {
                true => shifted,
                false => self.writer.masked(&shifted, count),
            };
            let left = u32::try_from(total - place).expect("a key is short");
            terms.push(match left {
                0 => run,
                _ => self.writer.raised(&run, left),
            });
        }
        if constant != 0 {
            terms.push(self.writer.integer(constant));
        }
        match terms.len() {
            0 => None,
            1 => terms.pop(),
            // No two have a bit in common.
            _ => Some(format!("({})", terms.join(" + "))),
        }
    }
}

/// Returns the number that bits without time are; `None` if there is time in them.
fn known_value(bits: &[Bit]) -> Option<usize> {
    bits.iter().try_fold(0, |value, bit| match bit {
        Bit::Zero => Some(value << 1),
        Bit::One => Some(value << 1 | 1),
        Bit::Field(..) | Bit::Bucket(_) => None,
    })
}

/// Whether a bit is the next lower one of the same number.
fn follows(bit: Bit, next: Bit) -> bool {
    match (bit, next) {
        (Bit::Field(field, value), Bit::Field(of, lower)) => field == of && value == lower + 1,
        (Bit::Bucket(value), Bit::Bucket(lower)) => value == lower + 1,
        _ => false,
    }
}
