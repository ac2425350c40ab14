//! Text forms as users meet them: `Display` into a buffer that is there already, `to_string` and
//! `parse` of key types, and beside each the fastest call of the library behind it, in the same
//! place: of a newtype's `Display`, or of a parser. Where a crate is made for the form, it is that crate. A maker's "key" is
//! the number of texts so far.

use std::{
    fmt::{self, Display, Write as _},
    hint::black_box,
    process::ExitCode,
    str::FromStr,
};

use bench_common::round::{self, Maker};
use data_encoding::Encoding;
use data_encoding_macro::new_encoding;
use mti::prelude::MagicTypeId;
use ordid::{
    KeyType,
    key::{Key192, ObjectId, PushId},
    uuid::{Uuid, Variant},
};
use type_safe_id::{StaticType, TypeSafeId};

// Statics, since a constant would be put together anew with each use.
static TILDE: Encoding = new_encoding! {
    symbols: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~",
};
static PUSH: Encoding = new_encoding! {
    symbols: "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz",
};

/// Keys and texts of a run: they stay in the cache.
const POOL: u64 = 1_024;

#[derive(KeyType)]
#[ordid(scheme = uuid_v7)]
struct Hyphenated(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "user")]
struct TypeId(Uuid);

/// The prefix of [`TypeId`], for another crate.
#[derive(Default)]
struct User;

impl StaticType for User {
    const TYPE: &'static str = "user";
}

#[derive(KeyType)]
#[ordid(scheme = ulid)]
struct Ulid(Uuid);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_22)]
struct Ordered22(Uuid);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32)]
struct Ordered32(Key192);

#[derive(KeyType)]
#[ordid(scheme = push_id)]
struct Push(PushId);

#[derive(KeyType)]
#[ordid(scheme = object_id)]
struct Object(ObjectId);

#[derive(KeyType)]
#[ordid(scheme = snowflake)]
struct Decimal(i64);

fn main() -> ExitCode {
    let mut makers = Vec::new();
    form(
        &mut makers,
        ["hyphenated", "hyphenated-library"],
        |_| Hyphenated::generate(),
        Hyphenated::to_string,
        |key: &Uuid, f| f.write_str(key.hyphenated().encode_lower(&mut Uuid::encode_buffer())),
        Uuid::try_parse,
    );
    let texts: &[String] = (0..POOL)
        .map(|_| Hyphenated::generate().to_string())
        .collect::<Vec<_>>()
        .leak();
    makers.extend([
        reader("parse-hyphenated-strict", texts, str::parse::<Hyphenated>),
        reader("parse-hyphenated-strict-library", texts, strict),
    ]);
    let texts = own(
        &mut makers,
        "typeid",
        |_| TypeId::generate(),
        TypeId::to_string,
    );
    let ids: &[TypeSafeId<User>] = parsed(texts);
    // It keeps its text.
    let with_texts: &[MagicTypeId] = parsed(texts);
    makers.extend([
        displayer("display-typeid-library", ids, |id| id),
        stringer(
            "to-string-typeid-library",
            with_texts,
            MagicTypeId::to_string,
        ),
        reader(
            "parse-typeid-library",
            texts,
            str::parse::<TypeSafeId<User>>,
        ),
    ]);
    let texts = own(&mut makers, "ulid", |_| Ulid::generate(), Ulid::to_string);
    let ids: &[ulid::Ulid] = parsed(texts);
    makers.extend([
        displayer("display-ulid-library", ids, |id| id),
        stringer("to-string-ulid-library", ids, ulid::Ulid::to_string),
        reader("parse-ulid-library", texts, str::parse::<ulid::Ulid>),
    ]);
    let texts = own(
        &mut makers,
        "object-id",
        |_| Object::generate(),
        Object::to_string,
    );
    let ids: &[bson::oid::ObjectId] = parsed(texts);
    makers.extend([
        displayer("display-object-id-library", ids, |id| id),
        stringer("to-string-object-id-library", ids, |id| id.to_hex()),
        reader(
            "parse-object-id-library",
            texts,
            str::parse::<bson::oid::ObjectId>,
        ),
    ]);
    form(
        &mut makers,
        ["ordered-22", "ordered-22-library"],
        |_| Ordered22::generate(),
        Ordered22::to_string,
        |key: &Uuid, f| encode::<22>(&TILDE, key.as_bytes(), f),
        |text| decode::<22, 16>(&TILDE, text),
    );
    form(
        &mut makers,
        ["ordered-32", "ordered-32-library"],
        |_| Ordered32::generate(),
        Ordered32::to_string,
        |key: &Key192, f| encode::<32>(&TILDE, key.as_bytes(), f),
        |text| decode::<32, 24>(&TILDE, text),
    );
    form(
        &mut makers,
        ["push-id", "push-id-library"],
        |_| Push::generate(),
        Push::to_string,
        |key: &PushId, f| encode::<20>(&PUSH, key.as_bytes(), f),
        |text| decode::<20, 15>(&PUSH, text),
    );
    form(
        &mut makers,
        ["decimal", "decimal-library"],
        // All of 18 digits.
        |number| Decimal(759_517_997_340_696_579 + (number.cast_signed() << 22)),
        Decimal::to_string,
        |key: &i64, f| Display::fmt(key, f),
        str::parse::<i64>,
    );
    round::run(&makers)
}

fn encode<const LENGTH: usize>(
    encoding: &Encoding,
    bytes: &[u8],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    f.write_str(encoding.encode_mut_str(bytes, &mut [0; LENGTH]))
}

fn decode<const LENGTH: usize, const BYTES: usize>(
    encoding: &Encoding,
    text: &str,
) -> Result<[u8; BYTES], Refused> {
    // It panics where the lengths do not fit.
    if text.len() != LENGTH {
        return Err(Refused);
    }
    let mut bytes = [0; BYTES];
    match encoding.decode_mut(text.as_bytes(), &mut bytes) {
        Ok(_) => Ok(bytes),
        Err(_) => Err(Refused),
    }
}

/// What a user of `uuid` writes who wants what ordid refuses to be refused.
fn strict(text: &str) -> Result<Uuid, Refused> {
    let uuid = Uuid::try_parse(text).map_err(|_| Refused)?;
    let is_canonical = text.len() == 36 && !text.bytes().any(|byte| byte.is_ascii_uppercase());
    if is_canonical && uuid.get_version_num() == 7 && uuid.get_variant() == Variant::RFC4122 {
        return Ok(uuid);
    }
    Err(Refused)
}

/// A text that stands for no key.
#[derive(Debug)]
struct Refused;

/// A raw key that a function writes.
struct By<'k, R, W>(&'k R, W);

impl<R, W: Fn(&R, &mut fmt::Formatter<'_>) -> fmt::Result> Display for By<'_, R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.1)(self.0, f)
    }
}

fn form<K, P, E>(
    makers: &mut Vec<Maker>,
    [name, library]: [&'static str; 2],
    key: impl Fn(u64) -> K,
    to_text: impl Fn(&K) -> String + Copy + Sync + 'static,
    write: impl Fn(&K::Raw, &mut fmt::Formatter<'_>) -> fmt::Result + Copy + Sync + 'static,
    parse: impl Fn(&str) -> Result<P, E> + Copy + Sync + 'static,
) where
    K: KeyType + FromStr,
{
    let texts = own(makers, name, key, to_text);
    let keys: &[K] = parsed(texts);
    let raws: &'static [K::Raw] = keys
        .iter()
        .map(|key| key.to_raw())
        .collect::<Vec<_>>()
        .leak();
    for (raw, text) in raws.iter().zip(texts) {
        assert_eq!(By(raw, write).to_string(), *text);
        assert!(parse(text).is_ok());
    }
    makers.extend([
        displayer(named("display", library), raws, move |raw| By(raw, write)),
        stringer(named("to-string", library), raws, move |raw| {
            By(raw, write).to_string()
        }),
        reader(named("parse", library), texts, parse),
    ]);
}

/// Adds the makers of ordid's own texts, and returns the texts. `to_text` is the key type's own `to_string`, which generic
/// code does not see.
fn own<K: KeyType + FromStr>(
    makers: &mut Vec<Maker>,
    name: &'static str,
    key: impl Fn(u64) -> K,
    to_text: impl Fn(&K) -> String + Copy + Sync + 'static,
) -> &'static [String] {
    let keys: &'static [K] = (0..POOL).map(key).collect::<Vec<_>>().leak();
    let texts: &'static [String] = keys.iter().map(to_text).collect::<Vec<_>>().leak();
    for (key, text) in keys.iter().zip(texts) {
        assert!(
            text.parse::<K>()
                .is_ok_and(|read| read.to_raw() == key.to_raw())
        );
        assert_eq!(format!("{key}"), *text);
    }
    makers.extend([
        displayer(named("display", name), keys, |key| *key),
        stringer(named("to-string", name), keys, to_text),
        reader(named("parse", name), texts, str::parse::<K>),
    ]);
    texts
}

fn named(what: &str, name: &str) -> &'static str {
    format!("{what}-{name}").leak()
}

/// Reads all texts, which are canonical.
fn parsed<T: FromStr>(texts: &[String]) -> &'static [T] {
    let values = texts.iter().filter_map(|text| text.parse().ok());
    let values: &'static [T] = values.collect::<Vec<_>>().leak();
    assert_eq!(values.len(), texts.len());
    values
}

/// A text of at most 64 bytes.
#[derive(Clone)]
struct Text([u8; 64], usize);

impl fmt::Write for Text {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.1 + text.len();
        self.0
            .get_mut(self.1..end)
            .ok_or(fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.1 = end;
        Ok(())
    }
}

fn displayer<K: Sync, D: Display>(
    name: &'static str,
    keys: &'static [K],
    display: impl Fn(&'static K) -> D + Copy + Sync + 'static,
) -> Maker {
    let mut text = Text([0; 64], 0);
    looking(name, keys, move |key| {
        text.1 = 0;
        write!(text, "{}", display(key)).expect("it fits");
        black_box(&text);
    })
}

fn stringer<K: Sync>(
    name: &'static str,
    keys: &'static [K],
    to_text: impl Fn(&K) -> String + Copy + Sync + 'static,
) -> Maker {
    looking(name, keys, move |key| {
        black_box(to_text(key));
    })
}

fn reader<P, E>(
    name: &'static str,
    texts: &'static [String],
    parse: impl Fn(&str) -> Result<P, E> + Copy + Sync + 'static,
) -> Maker {
    looking(name, texts, move |text: &String| {
        // As it came: a copy of what is inside would wait for what was just stored.
        black_box(&parse(black_box(text)));
    })
}

/// Looks at each in turn, over and over.
fn looking<T: Sync>(
    name: &'static str,
    pool: &'static [T],
    look: impl FnMut(&'static T) + Clone + Sync + 'static,
) -> Maker {
    Maker::new(
        name,
        |count: &u64| u128::from(*count),
        move || {
            let mut look = look.clone();
            let mut count = 0;
            let mut around = pool.iter().cycle();
            move || {
                look(around.next().expect("it has no end"));
                count += 1;
                count
            }
        },
    )
}
