//! The types of values, as far as clients send them: [MS-TDS] section 2.2.5.

use std::io;

use super::wire::{Reader, utf16, wrong};

/// A type as it stands on the wire, before parameters and in the description of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Type {
    /// Its bytes: the type's number, and what follows of length, precision, scale and collation.
    pub bytes: Vec<u8>,
    /// How the length of a value is written.
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The type of NULL, which has no value.
    Null,
    /// No length: always so many bytes.
    Fixed(usize),
    /// One byte of length; zero is NULL.
    Byte,
    /// Two bytes of length; 0xFFFF is NULL.
    Short,
    /// `max` types: eight bytes of length or "unknown", then chunks.
    Partial,
}

const COLLATION: [u8; 5] = [0x09, 0x04, 0xd0, 0x00, 0x34];

impl Type {
    /// `uniqueidentifier`.
    pub fn uniqueidentifier() -> Self {
        Self::byte(&[0x24, 16])
    }

    /// `bit`, `tinyint`, `smallint`, `int`, `bigint` that can be NULL: of 1, 2, 4, 8 bytes.
    pub fn int(bytes: u8) -> Self {
        Self::byte(&[0x26, bytes])
    }

    /// `bit` that can be NULL.
    pub fn bit() -> Self {
        Self::byte(&[0x68, 1])
    }

    /// `real` or `float`, of 4 or 8 bytes.
    pub fn float(bytes: u8) -> Self {
        Self::byte(&[0x6d, bytes])
    }

    /// `bigint NOT NULL`.
    pub fn bigint_not_null() -> Self {
        Self {
            bytes: vec![0x7f],
            form: Form::Fixed(8),
        }
    }

    /// `decimal(precision, scale)`.
    pub fn decimal(precision: u8, scale: u8) -> Self {
        Self::byte(&[0x6a, 17, precision, scale])
    }

    /// `datetime2(scale)`.
    pub fn datetime2(scale: u8) -> Self {
        Self::byte(&[0x2a, scale])
    }

    /// `date`.
    pub fn date() -> Self {
        Self::byte(&[0x28])
    }

    /// `nvarchar(characters)`.
    pub fn nvarchar(characters: u16) -> Self {
        Self::short(0xe7, characters * 2, true)
    }

    /// `varchar(characters)` in Windows-1252.
    pub fn varchar(characters: u16) -> Self {
        Self::short(0xa7, characters, true)
    }

    /// `nvarchar(max)`.
    pub fn nvarchar_max() -> Self {
        Self {
            form: Form::Partial,
            ..Self::short(0xe7, u16::MAX, true)
        }
    }

    /// `binary(length)`.
    pub fn binary(length: u16) -> Self {
        Self::short(0xad, length, false)
    }

    /// `varbinary(length)`.
    pub fn varbinary(length: u16) -> Self {
        Self::short(0xa5, length, false)
    }

    fn byte(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            form: Form::Byte,
        }
    }

    fn short(number: u8, length: u16, collated: bool) -> Self {
        let mut bytes = vec![number];
        bytes.extend(length.to_le_bytes());
        if collated {
            bytes.extend(COLLATION);
        }
        Self {
            bytes,
            form: Form::Short,
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> io::Result<Self> {
        let start = reader.position();
        let number = reader.u8()?;
        let form = match number {
            0x1f => Form::Null,
            0x30 | 0x32 => Form::Fixed(1),
            0x34 => Form::Fixed(2),
            0x38 | 0x3a | 0x3b | 0x7a => Form::Fixed(4),
            0x3c..=0x3e | 0x7f => Form::Fixed(8),
            // date: no length either in the type.
            0x28 => Form::Byte,
            0x24 | 0x26 | 0x68 | 0x6d..=0x6f | 0x29..=0x2b => {
                reader.skip(1)?;
                Form::Byte
            }
            0x6a | 0x6c => {
                reader.skip(3)?;
                Form::Byte
            }
            0xa5 | 0xa7 | 0xad | 0xaf | 0xe7 | 0xef => {
                let length = reader.u16()?;
                if matches!(number, 0xa7 | 0xaf | 0xe7 | 0xef) {
                    reader.skip(COLLATION.len())?;
                }
                if length == u16::MAX {
                    Form::Partial
                } else {
                    Form::Short
                }
            }
            _ => return Err(wrong(format!("unknown type {number:#04x}"))),
        };
        Ok(Self {
            bytes: reader.since(start).to_vec(),
            form,
        })
    }

    /// Reads a value; `None` is NULL.
    pub(crate) fn read_value(&self, reader: &mut Reader<'_>) -> io::Result<Option<Vec<u8>>> {
        let length = match self.form {
            Form::Null => return Ok(None),
            Form::Fixed(length) => length,
            Form::Byte => match reader.u8()? {
                0 => return Ok(None),
                length => length.into(),
            },
            Form::Short => match reader.u16()? {
                u16::MAX => return Ok(None),
                length => length.into(),
            },
            Form::Partial => {
                if reader.u64()? == u64::MAX {
                    return Ok(None);
                }
                let mut value = Vec::new();
                loop {
                    let length = reader.u32()? as usize;
                    if length == 0 {
                        return Ok(Some(value));
                    }
                    value.extend(reader.bytes(length)?);
                }
            }
        };
        Ok(Some(reader.bytes(length)?.to_vec()))
    }

    /// Writes a value for an answer.
    pub(crate) fn write_value(&self, value: Option<&[u8]>, out: &mut Vec<u8>) {
        match (self.form, value) {
            (Form::Null, _) => {}
            (Form::Fixed(length), value) => {
                out.extend(value.map_or_else(|| vec![0; length], <[u8]>::to_vec));
            }
            (Form::Byte, None) => out.push(0),
            (Form::Byte, Some(value)) => {
                out.push(u8::try_from(value.len()).expect("a short value"));
                out.extend(value);
            }
            (Form::Short, None) => out.extend(u16::MAX.to_le_bytes()),
            (Form::Short, Some(value)) => {
                let length = u16::try_from(value.len()).expect("a value under 64 KB");
                out.extend(length.to_le_bytes());
                out.extend(value);
            }
            (Form::Partial, None) => out.extend(u64::MAX.to_le_bytes()),
            (Form::Partial, Some(value)) => {
                out.extend((value.len() as u64).to_le_bytes());
                if !value.is_empty() {
                    let length = u32::try_from(value.len()).expect("a value under 4 GB");
                    out.extend(length.to_le_bytes());
                    out.extend(value);
                }
                out.extend(0_u32.to_le_bytes());
            }
        }
    }

    /// Returns whether values are UTF-16.
    pub(crate) fn is_utf16(&self) -> bool {
        matches!(self.bytes.first(), Some(0xe7 | 0xef))
    }

    /// Reads a value of this type as text, where it is UTF-16.
    pub(crate) fn text(&self, value: &[u8]) -> Option<String> {
        self.is_utf16().then(|| utf16(value))
    }
}
