//! Columns of text, compared byte by byte: `COLLATE "C"`, ascii_bin, `BINARY`.

use data_encoding::HEXLOWER;

use super::*;

/// One canonical form per raw key: its length, what it is, how it is written and read.
macro_rules! stores_text {
    ($type:ident: $($raw:ty = $length:literal, $expected:literal, $encode:expr, $parse:expr);+) => {
        $(impl Stores<$raw> for $type {
            type Stored = [u8; $length];
            type SortKey = [u8; $length];

            #[inline]
            fn encode(raw: $raw) -> [u8; $length] {
                let encode: fn($raw) -> [u8; $length] = $encode;
                encode(raw)
            }

            #[inline]
            fn decode<'a>(found: impl Into<Found<'a>>) -> Result<$raw, Error> {
                let parse: fn(&[u8]) -> Result<$raw, Error> = $parse;
                match found.into() {
                    Found::Bytes(text) if text.len() == $length => parse(text),
                    found => {
                        let raw = size_of::<<$raw as RawKey>::Bytes>();
                        Err(wrong_form(Self::NAME, $expected, raw, found))
                    }
                }
            }

            fn sort_key(raw: $raw) -> [u8; $length] {
                <Self as Stores<$raw>>::encode(raw)
            }

            fn from_sort_key(key: [u8; $length]) -> Result<$raw, Error> {
                <Self as Stores<$raw>>::decode(&key)
            }
        })+
    };
}

#[inline]
fn encode_hex(raw: ObjectId) -> [u8; 24] {
    let mut stored = [0; 24];
    HEXLOWER.encode_mut(raw.as_bytes(), &mut stored);
    stored
}

#[inline]
fn parse_hex(stored: &[u8]) -> Result<ObjectId, Error> {
    match core::str::from_utf8(stored) {
        Ok(text) => ObjectId::parse_text(None, text),
        Err(_) => Err(wrong_form("text", "ASCII", 12, Found::Bytes(stored))),
    }
}

#[inline]
fn encode_push_id(raw: PushId) -> [u8; text::PUSH_ID] {
    text::ordered::<text::Push, 15, { text::PUSH_ID }>(raw.as_bytes())
}

#[inline]
fn parse_push_id(stored: &[u8]) -> Result<PushId, Error> {
    text::parse_ordered::<text::Push, 15, { text::PUSH_ID }>(stored).map(PushId::from_bytes)
}

#[inline]
fn encode_ordered32(raw: Key192) -> [u8; text::ORDERED_32] {
    text::ordered::<text::Tilde, 24, { text::ORDERED_32 }>(raw.as_bytes())
}

#[inline]
fn parse_ordered32(stored: &[u8]) -> Result<Key192, Error> {
    text::parse_ordered::<text::Tilde, 24, { text::ORDERED_32 }>(stored).map(Key192::from_bytes)
}

const POSTGRES: &str = "PostgreSQL manual, \"Collation Support\": C compares by byte values";
const MYSQL: &str =
    "MySQL 8.4 manual, section 12.8.5, \"The binary Collation Compared to _bin Collations\"";
const MARIADB: &str = "MariaDB documentation, \"Supported Character Sets and Collations\"";
const SQLITE: &str = "SQLite, \"Datatypes In SQLite\", section 7, \"Collating Sequences\"";

column! {
    /// The key's text as text of any length: PostgreSQL under `COLLATE "C"`, SQLite under its default `BINARY`. A key
    /// of 128 bits has the hyphenated form.
    ///
    /// On SQLite the declared type must be `TEXT`. A column declared as `UUID` has NUMERIC affinity, which converts
    /// text of digits to a number.
    ///
    /// Ordered text has the alphabet `0-9A-Z_a-z~` here, whatever the scheme is; see [`Char22`].
    Text = "text", Bytes;
    Postgres: "text COLLATE \"C\"", STRING, POSTGRES;
    Sqlite: "TEXT COLLATE BINARY", STRING, SQLITE;
}
stores_text!(
    Text: uuid::Uuid = 36, "a UUID as 36 characters",
        text::encode_hyphenated, text::parse_hyphenated;
    ObjectId = 24, "an ObjectId as 24 characters", encode_hex, parse_hex;
    PushId = 20, "a push id as 20 characters", encode_push_id, parse_push_id;
    Key192 = 32, "32 characters of ordered text", encode_ordered32, parse_ordered32
);

column! {
    /// `CHAR(36)` with a binary collation: a UUID in the hyphenated form.
    Char36 = "char36", Bytes;
    MySql: "CHAR(36) CHARACTER SET ascii COLLATE ascii_bin", STRING, MYSQL;
    MariaDb: "CHAR(36) CHARACTER SET ascii COLLATE ascii_bin", STRING, MARIADB;
}
stores_text!(
    Char36: uuid::Uuid = 36, "a UUID as 36 characters",
        text::encode_hyphenated, text::parse_hyphenated
);

/// A column of so many characters with a binary collation, and what it stores.
macro_rules! char_column {
    (
        $(#[$doc:meta])*
        $type:ident = $name:literal, $ddl:literal;
        $raw:ty = $length:literal, $expected:literal, $encode:expr, $parse:expr
    ) => {
        column! {
            $(#[$doc])*
            $type = $name, Bytes;
            Postgres: "text COLLATE \"C\"", STRING, POSTGRES;
            MySql: $ddl, STRING, MYSQL;
            MariaDb: $ddl, STRING, MARIADB;
            Sqlite: "TEXT COLLATE BINARY", STRING, SQLITE;
        }
        stores_text!($type: $raw = $length, $expected, $encode, $parse);
    };
}

char_column! {
    /// 32 characters with a binary collation: the ordered text of a key of 192 bits. For alphabet and collation see
    /// [`Char22`].
    Char32 = "char32", "CHAR(32) CHARACTER SET ascii COLLATE ascii_bin";
    Key192 = 32, "32 characters of ordered text", encode_ordered32, parse_ordered32
}

char_column! {
    /// 26 characters with a binary collation: 128 bits as a ULID, in upper-case base 32.
    Char26 = "char26", "CHAR(26) CHARACTER SET ascii COLLATE ascii_bin";
    uuid::Uuid = 26, "a ULID as 26 characters", text::ulid, text::parse_ulid
}

char_column! {
    /// 22 characters with a binary collation: the [ordered text](crate::scheme::ordered_text) of 128 bits.
    ///
    /// Its alphabet is `0-9A-Z_a-z~`, whatever the scheme is. A scheme that writes its keys in the alphabet of push
    /// ids, such as `ordered_text_22_push`, has another text in messages and interfaces than in the database. So
    /// compare the column with keys, not with their text. If another program has written text in that alphabet into
    /// the table, it is refused here; in [`Char32`] and [`Text`] it would be read as other keys.
    ///
    /// Under any other collation, even a case-sensitive one, keys lose their order. Under a case-insensitive one, two
    /// different keys can be equal.
    Char22 = "char22", "CHAR(22) CHARACTER SET ascii COLLATE ascii_bin";
    uuid::Uuid = 22, "22 characters of ordered text",
        text::encode_ordered22::<text::Tilde>, text::parse_ordered22::<text::Tilde>
}

char_column! {
    /// 20 characters with a binary collation: a push id. For the collation see [`Char22`].
    Char20 = "char20", "CHAR(20) CHARACTER SET ascii COLLATE ascii_bin";
    PushId = 20, "a push id as 20 characters", encode_push_id, parse_push_id
}
