//! `ordid convert`: a key in another form.
//!
//! JSON Lines, one object a key: `key`, `to` (the form), `converted`.

use clap::{Args, ValueEnum};
use ordid_core::{
    clock::{Clock as _, SystemClock},
    layout::Comparison,
    scheme::catalogue,
};
use serde::Serialize;

use crate::{
    commands::new,
    failure::{Failure, Outcome},
    input,
    output::Output,
    spelling::{self, Reading, bytes_of_hex, hex_of},
};

/// Arguments of `ordid convert`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The form to write
    #[arg(long, value_name = "FORM")]
    to: Form,
    /// The form to read; without it, every form but `dotnet`, `sql-server` and `swapped` is told by its look. 16 digits
    /// without a letter may be a number or 8 bytes in hex, so they need `integer` or `hex`
    #[arg(long, value_name = "FORM")]
    from: Option<Form>,
    /// The prefix of a TypeID
    #[arg(long, value_parser = new::prefix)]
    prefix: Option<String>,
    /// Keys, or `-` for the lines of stdin
    #[arg(required = true, allow_negative_numbers = true)]
    keys: Vec<String>,
}

/// A way to write a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The canonical text of its length: hyphenated of 16 bytes, digits of 8, hex of 12, 20 characters of 15, 32 of 24
    Canonical,
    /// The bytes in hex, the most significant first
    Hex,
    /// A TypeID: the prefix, `_` and 26 characters; without a prefix these alone
    Typeid,
    /// The 26 characters of a ULID
    Ulid,
    /// 22 characters that sort as the 16 bytes do
    Text22,
    /// The same in the alphabet of push ids
    Text22Push,
    /// 32 characters that sort as the 24 bytes do
    Text32,
    /// The same in the alphabet of push ids
    Text32Push,
    /// `Guid.ToByteArray` of .NET, in hex
    Dotnet,
    /// The bytes in the order in which SQL Server compares them, in hex
    SqlServer,
    /// `UUID_TO_BIN(x, 1)` of MySQL, in hex
    Swapped,
    /// A number: of 8 bytes if it fits, and else of 16
    Integer,
}

impl Form {
    /// Returns the scheme whose text it is, and which takes each value.
    const fn scheme(self) -> Option<&'static str> {
        match self {
            Self::Ulid | Self::Typeid => Some("ulid"),
            Self::Text22 => Some("ordered_text_22_time64"),
            Self::Text22Push => Some("ordered_text_22_time64_push"),
            Self::Text32 => Some("ordered_text_32"),
            Self::Text32Push => Some("ordered_text_32_push"),
            _ => None,
        }
    }

    /// Returns the order in which it has the bytes.
    const fn order(self) -> Option<Comparison> {
        match self {
            Self::Dotnet => Some(Comparison::DotNetBytes),
            Self::SqlServer => Some(Comparison::SqlServer),
            Self::Swapped => Some(Comparison::UuidToBin),
            _ => None,
        }
    }

    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn read(self, prefix: Option<&str>, text: &str) -> Result<Vec<u8>, String> {
        if let Some(scheme) = self.scheme() {
            let scheme = catalogue::find(scheme).expect("the catalogue has it");
            let prefix = match self {
                Self::Typeid => Some(prefix.unwrap_or("")),
                _ => None,
            };
            let key = scheme.parse(prefix, text);
            return key
                .map(|key| key.as_bytes().to_vec())
                .map_err(|error| error.to_string());
        }
        let wrong = || format!("{text:?} is not of the form `{}`", self.name());
        match (self, self.order()) {
            (_, Some(order)) => {
                let bytes = bytes_of_hex(text).and_then(|bytes| bytes.try_into().ok());
                bytes
                    .map(|bytes| order.from_sort_key(&bytes).to_vec())
                    .ok_or_else(wrong)
            }
            (Self::Hex, _) => bytes_of_hex(text).ok_or_else(wrong),
            (Self::Integer, _) => integer(text).ok_or_else(wrong),
            _ => any(text),
        }
    }

    fn write(self, prefix: Option<&str>, bytes: &[u8]) -> Result<String, String> {
        let wrong = || {
            format!(
                "a key of {} bytes has no form `{}`",
                bytes.len(),
                self.name()
            )
        };
        if let Some(scheme) = self.scheme() {
            let scheme = catalogue::find(scheme).expect("the catalogue has it");
            let key = scheme.key_of(bytes).map_err(|_| wrong())?;
            return Ok(match self {
                Self::Typeid => key.text(Some(prefix.unwrap_or(""))),
                _ => key.text(None),
            });
        }
        match (self, self.order(), bytes.len()) {
            (_, Some(order), _) => {
                let bytes = bytes.try_into().map_err(|_| wrong())?;
                Ok(hex_of(&order.sort_key(bytes)))
            }
            (Self::Hex, ..) => Ok(hex_of(bytes)),
            (Self::Integer, ..) | (_, _, 8) => number(bytes).ok_or_else(wrong),
            (_, _, 12) => Ok(hex_of(bytes)),
            (_, _, 16) => {
                let uuid = uuid::Uuid::from_slice(bytes).map_err(|_| wrong())?;
                Ok(uuid.to_string())
            }
            (_, _, length) => {
                let scheme = catalogue::find(match length {
                    15 => "push_id",
                    _ => "ordered_text_32",
                });
                let key = scheme.and_then(|scheme| scheme.key_of(bytes).ok());
                key.map(|key| key.to_string()).ok_or_else(wrong)
            }
        }
    }
}

fn integer(text: &str) -> Option<Vec<u8>> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.to_be_bytes().to_vec());
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.to_be_bytes().to_vec());
    }
    text.parse::<u128>()
        .ok()
        .map(|number| number.to_be_bytes().to_vec())
}

fn number(bytes: &[u8]) -> Option<String> {
    match bytes.len() {
        8 => bytes
            .try_into()
            .ok()
            .map(|bytes| u64::from_be_bytes(bytes).to_string()),
        16 => bytes
            .try_into()
            .ok()
            .map(|bytes| u128::from_be_bytes(bytes).to_string()),
        _ => None,
    }
}

/// Reads a key by its look.
fn any(text: &str) -> Result<Vec<u8>, String> {
    bytes_of(&spelling::read(text, SystemClock.now()), text)
}

/// Returns the bytes of a key that has been read by its look.
fn bytes_of(reading: &Reading, text: &str) -> Result<Vec<u8>, String> {
    if let Some(bytes) = reading.bytes() {
        return Ok(bytes.to_vec());
    }
    let mut keys = reading.detection.candidates.iter();
    // UUIDs that no scheme makes are UUIDs.
    let key = keys.find_map(|found| reading.key_of(found.scheme));
    let key = key.map(|key| key.as_bytes().to_vec());
    let uuid = || {
        reading
            .canonical()
            .parse()
            .ok()
            .map(|uuid: uuid::Uuid| uuid.as_bytes().to_vec())
    };
    key.or_else(uuid)
        .or_else(|| integer(text))
        .ok_or_else(|| format!("{text:?} is no key in a known form: if it is of `dotnet`, `sql-server` or `swapped`, say so by --from"))
}

/// Whether a text is as long as 8 bytes in hex, and has no letter by which they differ from a number.
fn is_number_or_hex(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A key, in JSON.
#[derive(Serialize)]
struct Converted<'a> {
    key: &'a str,
    to: String,
    converted: &'a str,
}

impl Arguments {
    /// Prints the keys in the other form.
    ///
    /// # Errors
    ///
    /// A key is not of the form that is read, or has no form that is written.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let given = self.prefix.as_deref();
        if given.is_some() && self.to != Form::Typeid && self.from != Some(Form::Typeid) {
            return Err(Failure::wrong(
                "--prefix is for TypeIDs: write --to typeid, or --from typeid",
            ));
        }
        let keys = input::keys(self.keys)?;
        let is_list = matches!(keys, input::Keys::Lines(_));
        for (number, key) in keys.enumerate() {
            let key = key?;
            let (bytes, own) = match self.from {
                Some(form) => (form.read(given, &key), None),
                None => {
                    let reading = spelling::read(&key, SystemClock.now());
                    let bytes = match is_number_or_hex(&key) {
                        true => Err(format!(
                            "{key:?} may be a number or 8 bytes in hex: say which by --from integer or --from hex"
                        )),
                        false => bytes_of(&reading, &key),
                    };
                    (bytes, reading.prefix)
                }
            };
            // A TypeID keeps its prefix.
            let prefix = given.or(own.as_deref());
            let converted = bytes.and_then(|bytes| self.to.write(prefix, &bytes));
            let converted = converted.map_err(|error| match is_list {
                true => Failure::wrong(format_args!("key {}: {error}", number + 1)),
                false => Failure::wrong(error),
            })?;
            match output.is_json() {
                true => output.json_line(&Converted {
                    key: &key,
                    to: self.to.name(),
                    converted: &converted,
                })?,
                false => output.line(&converted)?,
            }
        }
        Ok(Outcome::Fine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9562's example of version 7, in all forms.
    #[test]
    fn a_key_is_written_in_each_form_and_read_back() {
        let bytes = bytes_of_hex("017f22e279b07cc398c4dc0c0c07398f").unwrap();
        for (form, text) in [
            (Form::Canonical, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"),
            (Form::Hex, "017f22e279b07cc398c4dc0c0c07398f"),
            (Form::Typeid, "line_item_01fwhe4ydgfk1shh6w1g60eecf"),
            (Form::Ulid, "01FWHE4YDGFK1SHH6W1G60EECF"),
            (Form::Dotnet, "e2227f01b079c37c98c4dc0c0c07398f"),
            (Form::SqlServer, "dc0c0c07398f98c4c37cb079e2227f01"),
            (Form::Swapped, "7cc379b0017f22e298c4dc0c0c07398f"),
            (Form::Integer, "1989357241971137676463954034883508623"),
        ] {
            let prefix = Some("line_item");
            assert_eq!(form.write(prefix, &bytes).as_deref(), Ok(text));
            assert_eq!(form.read(prefix, text).as_ref(), Ok(&bytes), "{text}");
        }
        for form in [Form::Text22, Form::Text22Push] {
            let text = form.write(None, &bytes).unwrap();
            assert_eq!(text.len(), 22);
            assert_eq!(form.read(None, &text).as_ref(), Ok(&bytes));
        }
        let long: Vec<u8> = (0..24).collect();
        for form in [Form::Text32, Form::Text32Push, Form::Hex] {
            let text = form.write(None, &long).unwrap();
            assert_eq!(form.read(None, &text).as_ref(), Ok(&long));
        }
    }

    #[test]
    fn integers_are_numbers_of_64_bits_where_they_fit() {
        assert_eq!(integer("-1").unwrap(), [0xff; 8]);
        assert_eq!(integer("18446744073709551615").unwrap(), [0xff; 8]);
        assert_eq!(integer("18446744073709551616").unwrap().len(), 16);
        assert_eq!(
            Form::Canonical
                .write(None, &[0, 0, 0, 0, 0, 0, 1, 0])
                .unwrap(),
            "256"
        );
        assert_eq!(any("759517997340696579").unwrap().len(), 8);
    }

    #[test]
    fn a_key_without_the_form_is_refused_by_its_length() {
        assert_eq!(
            Form::Ulid.write(None, &[0; 8]).unwrap_err(),
            "a key of 8 bytes has no form `ulid`"
        );
        assert!(any("no key").unwrap_err().contains("--from"));
        assert!(Form::Dotnet.read(None, "00").is_err());
    }
}
