//! Encoding keys for a column, and decoding what is stored, thousands at a time.
//!
//! A round runs each case and its baseline one after the other, in one program. Binary and integer
//! columns have a bound on what they cost beyond copying the bytes of the keys; text columns on the
//! ratio to the codec that a user would call, which writes the same characters and takes them back.

#[path = "../../arguments.rs"]
mod arguments;

use std::{hint::black_box, time::Instant};

use bench_common::{machine, spread::Spread, table::Table};
use clap::Parser;
use data_encoding::Encoding;
use data_encoding_macro::new_encoding;
use ordid_core::{
    key::{Key192, ObjectId, PushId, RawKey},
    storage::{
        Column, StoredValue, Stores,
        column::{
            BigInt, Binary12, Binary16, Binary16DotNet, Binary16Swapped, Binary24, Char20, Char22,
            Char26, Char32, Char36, UniqueIdentifier, UniqueIdentifierPermuted, Uuid as UuidColumn,
        },
    },
    uuid::Uuid,
};

use crate::arguments::Asked;

/// Keys of a batch: they stay in the cache.
const KEYS: usize = 1_000;
/// Batches of a sample.
const BATCHES: u32 = 200;
/// What a binary column may cost, in ns a key beyond copying.
const BOUND_NS: f64 = 2.0;

// Statics, since a constant would be put together anew with each use.
static CROCKFORD: Encoding = new_encoding! { symbols: "0123456789ABCDEFGHJKMNPQRSTVWXYZ", };
static TILDE: Encoding = new_encoding! {
    symbols: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~",
};
static PUSH: Encoding = new_encoding! {
    symbols: "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz",
};

/// Time the columns in bulk, beside copying and beside the libraries' codecs.
#[derive(Parser)]
#[command(name = "bench-columns")]
struct Arguments {
    #[command(flatten)]
    asked: Asked<21>,
}

/// Something that is timed over [`KEYS`] keys.
type Work = Box<dyn FnMut()>;

/// A column's work, and what it is compared with.
struct Case {
    name: String,
    own: Work,
    baseline: Work,
    /// Whether the baseline does the same, or only copies.
    is_codec: bool,
}

fn main() {
    let arguments = Arguments::parse();
    println!("columns: ns a key, median [min..max] of alternating rounds");
    println!(
        "{}",
        machine::describe(&["ordid-core", "uuid", "data-encoding"])
    );
    println!("timed     {BATCHES} batches of {KEYS} keys, from array to array\n");

    let mut cases = binary();
    cases.extend(text());
    cases.retain(|case| case.name.contains(&arguments.asked.case));
    let mut table = Table::new(["column", "ns", "baseline", "ns", "beyond, or ratio", ""]);
    for case in &mut cases {
        let (mut own, mut baseline) = (Vec::new(), Vec::new());
        for _ in 0..arguments.asked.rounds {
            own.push(ns_a_key(&mut case.own));
            baseline.push(ns_a_key(&mut case.baseline));
        }
        let pairs = own.iter().zip(&baseline);
        let (compared, holds) = if case.is_codec {
            let ratio = Spread::of(pairs.map(|(own, baseline)| own / baseline));
            (format!("{ratio:.2}"), ratio.median <= 1.0)
        } else {
            let beyond = Spread::of(pairs.map(|(own, baseline)| own - baseline));
            (format!("{beyond:.2} ns"), beyond.median <= BOUND_NS)
        };
        table.row([
            case.name.clone(),
            format!("{:.2}", Spread::of(own)),
            if case.is_codec { "codec" } else { "copy" }.to_owned(),
            format!("{:.2}", Spread::of(baseline)),
            compared,
            if holds { "met" } else { "missed" }.to_owned(),
        ]);
    }
    print!("{table}");
    println!("\nat most {BOUND_NS} ns beyond copying; no more than the codec");
}

fn ns_a_key(work: &mut Work) -> f64 {
    let started = Instant::now();
    for _ in 0..BATCHES {
        work();
    }
    let keys = f64::from(BATCHES) * f64::from(u32::try_from(KEYS).expect("few"));
    started.elapsed().as_secs_f64() * 1e9 / keys
}

/// Maps one array to another, over and over.
fn map<A: Copy + 'static, B: Copy + 'static>(from: &[A], map: impl Fn(&A) -> B + 'static) -> Work {
    let from = from.to_vec();
    let mut to: Vec<B> = from.iter().map(&map).collect();
    Box::new(move || {
        for (from, to) in black_box(&from).iter().zip(&mut to) {
            *to = map(from);
        }
        black_box(&mut to);
    })
}

/// Raw keys of any bits.
fn raws<R: RawKey>() -> Vec<R> {
    (0..KEYS)
        .map(|_| {
            let mut bytes = R::Bytes::default();
            for chunk in bytes.as_mut().chunks_mut(8) {
                let random = Uuid::now_v7().into_bytes();
                chunk.copy_from_slice(&random[16 - chunk.len()..]);
            }
            R::from_bytes(bytes)
        })
        .collect()
}

fn name<C: Column>(what: &str) -> String {
    format!("{what} {}", C::NAME)
}

/// Both ways through a column of bytes or integers.
fn both<C, R>(cases: &mut Vec<Case>)
where
    R: RawKey,
    C: Stores<R>,
{
    let raws = raws::<R>();
    let stored: Vec<C::Stored> = raws.iter().map(|raw| C::encode(*raw)).collect();
    cases.push(Case {
        name: name::<C>("encode"),
        own: map(&raws, |raw| C::encode(*raw)),
        baseline: map(&raws, |raw| *raw),
        is_codec: false,
    });
    cases.push(Case {
        name: name::<C>("decode"),
        own: map(&stored, |stored| {
            C::decode(stored.found()).expect("it was stored so")
        }),
        baseline: map(&stored, |stored| *stored),
        is_codec: false,
    });
}

fn binary() -> Vec<Case> {
    let mut cases = Vec::new();
    both::<UuidColumn, Uuid>(&mut cases);
    both::<Binary16, Uuid>(&mut cases);
    both::<Binary16Swapped, Uuid>(&mut cases);
    both::<Binary16DotNet, Uuid>(&mut cases);
    both::<UniqueIdentifier, Uuid>(&mut cases);
    both::<UniqueIdentifierPermuted, Uuid>(&mut cases);
    both::<BigInt, i64>(&mut cases);
    both::<Binary12, ObjectId>(&mut cases);
    both::<Binary24, Key192>(&mut cases);
    cases
}

/// Both ways through a column of text, beside a codec.
fn form<C, R, const N: usize>(
    cases: &mut Vec<Case>,
    encode: impl Fn(&R) -> [u8; N] + 'static,
    decode: impl Fn(&[u8; N]) -> R + 'static,
) where
    R: RawKey,
    C: Stores<R, Stored = [u8; N]>,
{
    let raws = raws::<R>();
    let stored: Vec<[u8; N]> = raws.iter().map(|raw| C::encode(*raw)).collect();
    for (raw, stored) in raws.iter().zip(&stored) {
        assert!(
            encode(raw) == *stored && decode(stored) == *raw,
            "another form"
        );
    }
    cases.push(Case {
        name: name::<C>("encode"),
        own: map(&raws, |raw| C::encode(*raw)),
        baseline: map(&raws, encode),
        is_codec: true,
    });
    cases.push(Case {
        name: name::<C>("decode"),
        own: map(&stored, |stored| {
            C::decode(stored).expect("it was stored so")
        }),
        baseline: map(&stored, decode),
        is_codec: true,
    });
}

fn text() -> Vec<Case> {
    let mut cases = Vec::new();
    form::<Char36, Uuid, 36>(
        &mut cases,
        |raw| {
            let mut text = [0; 36];
            raw.hyphenated().encode_lower(&mut text);
            text
        },
        |text| Uuid::try_parse_ascii(text).expect("a UUID"),
    );
    form::<Char26, Uuid, 26>(
        &mut cases,
        |raw| {
            let mut wide = [0; 20];
            wide[4..].copy_from_slice(raw.as_bytes());
            let mut digits = [0; 32];
            CROCKFORD.encode_mut(&wide, &mut digits);
            *digits.last_chunk().expect("32 are more than 26")
        },
        |text| {
            let mut digits = [b'0'; 32];
            digits[6..].copy_from_slice(text);
            let mut wide = [0; 20];
            CROCKFORD.decode_mut(&digits, &mut wide).expect("base 32");
            Uuid::from_bytes(*wide.last_chunk().expect("20 are more than 16"))
        },
    );
    form::<Char22, Uuid, 22>(
        &mut cases,
        |raw| encoded(&TILDE, raw.as_bytes()),
        |text| Uuid::from_bytes(decoded(&TILDE, text)),
    );
    form::<Char32, Key192, 32>(
        &mut cases,
        |raw| encoded(&TILDE, raw.as_bytes()),
        |text| Key192::from_bytes(decoded(&TILDE, text)),
    );
    form::<Char20, PushId, 20>(
        &mut cases,
        |raw| encoded(&PUSH, raw.as_bytes()),
        |text| PushId::from_bytes(decoded(&PUSH, text)),
    );
    cases
}

fn encoded<const N: usize>(codec: &Encoding, bytes: &[u8]) -> [u8; N] {
    let mut text = [0; N];
    codec.encode_mut(bytes, &mut text);
    text
}

fn decoded<const N: usize>(codec: &Encoding, text: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    codec.decode_mut(text, &mut bytes).expect("of the alphabet");
    bytes
}
