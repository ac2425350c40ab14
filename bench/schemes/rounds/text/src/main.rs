//! Text forms: what ordid writes and reads, and beside it the call of the library behind it, in the
//! same place of a `Display` and of a parser. A maker's "key" is the number of texts so far.

use std::{
    fmt::{self, Write as _},
    hint::black_box,
    process::ExitCode,
};

use bench_common::round::{self, Maker};
use data_encoding::{Encoding, HEXLOWER};
use data_encoding_macro::new_encoding;
use ordid::{
    Scheme,
    entropy::ThreadEntropy,
    generator::{DefaultNode, Generator, OrderedGenerator, Policy, Slotted},
    scheme::{FirebasePushId, ObjectIdScheme, OrderedText22, OrderedText32, Ulid, UuidV7},
    uuid::Uuid,
};

const CROCKFORD: Encoding = new_encoding! { symbols: "0123456789ABCDEFGHJKMNPQRSTVWXYZ", };
const CROCKFORD_LOWER: Encoding = new_encoding! { symbols: "0123456789abcdefghjkmnpqrstvwxyz", };
const TILDE: Encoding = new_encoding! {
    symbols: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~",
};
const PUSH: Encoding = new_encoding! {
    symbols: "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz",
};

/// Keys and texts of a run: they stay in the cache.
const POOL: usize = 1_024;

fn main() -> ExitCode {
    let mut makers = Vec::new();
    form::<UuidV7>(
        &mut makers,
        ["hyphenated", "hyphenated-library"],
        None,
        |key, f| f.write_str(key.hyphenated().encode_lower(&mut Uuid::encode_buffer())),
        |text| Uuid::try_parse_ascii(text.as_bytes()).ok(),
    );
    form::<UuidV7>(
        &mut makers,
        ["typeid", "typeid-library"],
        Some("user"),
        |key, f| {
            f.write_str("user_")?;
            base32(&CROCKFORD_LOWER, key, f)
        },
        |text| from_base32(&CROCKFORD_LOWER, text.strip_prefix("user_")?),
    );
    form::<Ulid>(
        &mut makers,
        ["ulid", "ulid-library"],
        None,
        |key, f| base32(&CROCKFORD, key, f),
        |text| from_base32(&CROCKFORD, text),
    );
    form::<OrderedText22>(
        &mut makers,
        ["ordered-22", "ordered-22-library"],
        None,
        |key, f| encode::<22>(&TILDE, key.as_bytes(), f),
        |text| decode::<16>(&TILDE, text),
    );
    form::<OrderedText32>(
        &mut makers,
        ["ordered-32", "ordered-32-library"],
        None,
        |key, f| encode::<32>(&TILDE, key.as_bytes(), f),
        |text| decode::<24>(&TILDE, text),
    );
    form::<FirebasePushId>(
        &mut makers,
        ["push-id", "push-id-library"],
        None,
        |key, f| encode::<20>(&PUSH, key.as_bytes(), f),
        |text| decode::<15>(&PUSH, text),
    );
    form::<ObjectIdScheme>(
        &mut makers,
        ["object-id", "object-id-library"],
        None,
        |key, f| encode::<24>(&HEXLOWER, key.as_bytes(), f),
        |text| decode::<12>(&HEXLOWER, text),
    );
    round::run(&makers)
}

fn encode<const LENGTH: usize>(
    encoding: &Encoding,
    bytes: &[u8],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let mut text = [0; LENGTH];
    encoding.encode_mut(bytes, &mut text);
    f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
}

fn decode<const BYTES: usize>(encoding: &Encoding, text: &str) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let length = encoding.decode_mut(text.as_bytes(), &mut bytes).ok()?;
    (length == BYTES).then_some(bytes)
}

/// 26 digits are no whole groups of the library's, hence the zeros in front.
fn base32(encoding: &Encoding, key: &Uuid, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (mut wide, mut digits) = ([0; 20], [0; 32]);
    wide[4..].copy_from_slice(key.as_bytes());
    encoding.encode_mut(&wide, &mut digits);
    f.write_str(std::str::from_utf8(&digits[6..]).map_err(|_| fmt::Error)?)
}

fn from_base32(encoding: &Encoding, text: &str) -> Option<Uuid> {
    let (mut wide, mut digits) = ([0; 20], *b"00000000000000000000000000000000");
    if text.len() != 26 {
        return None;
    }
    digits[6..].copy_from_slice(text.as_bytes());
    encoding.decode_mut(&digits, &mut wide).ok()?;
    wide.last_chunk().copied().map(Uuid::from_bytes)
}

/// A key that is written by a function.
struct By<'k, S: Scheme, W>(&'k S::Raw, W);

impl<S: Scheme, W: Fn(&S::Raw, &mut fmt::Formatter<'_>) -> fmt::Result> fmt::Display
    for By<'_, S, W>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.1)(self.0, f)
    }
}

fn form<S: Form + Slotted<Node: DefaultNode>>(
    makers: &mut Vec<Maker>,
    [own, library]: [&'static str; 2],
    prefix: Option<&'static str>,
    write: impl Fn(&S::Raw, &mut fmt::Formatter<'_>) -> fmt::Result + Copy + Sync + 'static,
    parse: impl Fn(&str) -> Option<Parsed<S>> + Copy + Sync + 'static,
) {
    let by_own = move |key: &S::Raw, f: &mut fmt::Formatter<'_>| S::write_text(*key, prefix, f);
    let texts: &'static [String] = pool::<S>()
        .iter()
        .map(|key| By::<S, _>(key, by_own).to_string())
        .collect::<Vec<_>>()
        .leak();
    let named = |name: &str, what: &str| &*format!("{what}-{name}").leak();
    makers.push(writer::<S, _>(named(own, "format"), by_own));
    makers.push(writer::<S, _>(named(library, "format"), write));
    makers.push(reader(named(own, "parse"), texts, move |text| {
        S::parse_text(prefix, text).ok()
    }));
    makers.push(reader(named(library, "parse"), texts, parse));
}

/// What the library's call reads a text as.
trait Form: Scheme {
    type Parsed;
}

type Parsed<S> = <S as Form>::Parsed;

impl Form for UuidV7 {
    type Parsed = Uuid;
}

impl Form for Ulid {
    type Parsed = Uuid;
}

impl Form for OrderedText22 {
    type Parsed = [u8; 16];
}

impl Form for OrderedText32 {
    type Parsed = [u8; 24];
}

impl Form for FirebasePushId {
    type Parsed = [u8; 15];
}

impl Form for ObjectIdScheme {
    type Parsed = [u8; 12];
}

fn pool<S: Slotted<Node: DefaultNode>>() -> &'static [S::Raw] {
    let clock = ordid::clock::SystemClock;
    let keys = OrderedGenerator::<S, _, _>::with_node(
        S::Node::DEFAULT,
        clock,
        ThreadEntropy,
        Policy::DEFAULT,
    );
    let next = || keys.try_generate().expect("the clock runs").into_raw();
    (0..POOL).map(|_| next()).collect::<Vec<_>>().leak()
}

/// A text of at most 64 bytes.
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

fn writer<S: Slotted<Node: DefaultNode>, W>(name: &'static str, write: W) -> Maker
where
    W: Fn(&S::Raw, &mut fmt::Formatter<'_>) -> fmt::Result + Copy + Sync + 'static,
{
    let keys = pool::<S>();
    Maker::new(
        name,
        |count: &u64| u128::from(*count),
        move || {
            let mut count = 0;
            let mut text = Text([0; 64], 0);
            let mut around = keys.iter().cycle();
            move || {
                text.1 = 0;
                let key = around.next().expect("it has no end");
                write!(text, "{}", By::<S, _>(key, write)).expect("it fits");
                black_box(&text);
                count += 1;
                count
            }
        },
    )
}

fn reader<P: 'static>(
    name: &'static str,
    texts: &'static [String],
    parse: impl Fn(&str) -> Option<P> + Copy + Sync + 'static,
) -> Maker {
    Maker::new(
        name,
        |count: &u64| u128::from(*count),
        move || {
            let mut count = 0;
            let mut around = texts.iter().cycle();
            move || {
                let text = around.next().expect("it has no end");
                // By reference: a copy would wait for what was just stored.
                black_box(&parse(black_box(text)).expect("ordid wrote it"));
                count += 1;
                count
            }
        },
    )
}
