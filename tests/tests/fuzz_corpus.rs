//! The fuzz targets without a fuzzer: each file of `fuzz/corpus`, and what is near it.

use std::{
    collections::BTreeSet,
    fs,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
};

use ordid_fuzz_bodies::{SCHEMES, TARGETS, Target};

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

/// The names of what is in a folder, without their endings.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            path.file_stem().unwrap().to_str().unwrap().to_owned()
        })
        .collect()
}

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = fuzz().join("corpus").join(target);
    let seeds: Vec<_> = names(&folder)
        .into_iter()
        .map(|name| {
            let bytes = fs::read(folder.join(&name)).unwrap();
            (name, bytes)
        })
        .collect();
    assert!(!seeds.is_empty(), "{folder:?} is empty");
    seeds
}

/// SplitMix64: the same inputs on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap().max(1);
        usize::try_from(self.next() % end).unwrap()
    }

    /// One that is often at a border, or in an alphabet.
    fn byte(&mut self) -> u8 {
        const AT_BORDERS: &[u8] =
            b"\x00\x01\x0f\x10\x7f\x80\xbf\xe0\xf0\xff-_~0189ABFGOVZabfgilouvz ";
        if self.next().is_multiple_of(4) {
            return self.next().to_le_bytes()[0];
        }
        AT_BORDERS[self.below(AT_BORDERS.len())]
    }

    /// Changes an input in one to three places.
    fn alter(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        for _ in 0..=self.below(3) {
            let at = self.below(input.len());
            match self.below(8) {
                0 => input.insert(at, self.byte()),
                1 => input.truncate(at),
                2 => input.push(self.byte()),
                3 => input.extend_from_slice(&other[self.below(other.len() + 1)..]),
                _ if input.is_empty() => {}
                4 => drop(input.remove(at)),
                5 => input[at] ^= 1 << self.below(8),
                6 => {
                    let to = self.below(input.len());
                    input.swap(at, to);
                }
                _ => input[at] = self.byte(),
            }
        }
    }
}

/// A panic says what was broken; this says by which input.
fn run((name, body): Target, seed: &str, input: &[u8]) {
    if let Err(cause) = panic::catch_unwind(AssertUnwindSafe(|| body(input))) {
        eprintln!("target {name}, near {seed}: b\"{}\"", input.escape_ascii());
        panic::resume_unwind(cause);
    }
}

/// Runs each file, and so many altered inputs of each: few where the body is slow.
fn replay(name: &str, altered: u32) {
    let target = TARGETS
        .into_iter()
        .find(|(known, _)| *known == name)
        .unwrap();
    let seeds = seeds(name);
    for (seed, input) in &seeds {
        run(target, seed, input);
    }
    let mut numbers = Numbers(1);
    for (seed, input) in &seeds {
        for _ in 0..altered {
            let mut input = input.clone();
            let (_, other) = &seeds[numbers.below(seeds.len())];
            numbers.alter(&mut input, other);
            run(target, seed, &input);
        }
    }
}

/// Sources below a folder, without those of tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_scheme_of_core_is_fuzzed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ordid-core/src/scheme");
    let mut files = Vec::new();
    sources(&folder, &mut files);
    let mut expected = BTreeSet::new();
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let (code, _) = source.split_once("mod tests {").unwrap_or((&source, ""));
        let literals = code.lines().filter_map(|line| {
            let name = line
                .trim_start()
                .strip_prefix("const NAME: &'static str = \"")?;
            name.strip_suffix("\";")
        });
        expected.extend(literals.map(str::to_owned));
    }
    // This scheme is defined in a test.
    expected.remove("compact_orders");
    assert!(
        expected.contains("discord"),
        "names are found: {expected:?}"
    );
    let fuzzed: BTreeSet<String> = SCHEMES
        .iter()
        .map(|scheme| scheme.name.to_owned())
        .collect();
    let missing: Vec<_> = expected.difference(&fuzzed).collect();
    assert!(
        missing.is_empty(),
        "without a line in `__for_each_scheme` of ordid-core/src/scheme/catalogue.rs: {missing:?}"
    );
}

macro_rules! replay {
    ($($name:ident: $altered:literal)+) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name), $altered);
        })+

        #[test]
        fn every_target_has_a_binary_a_corpus_and_a_test() {
            let known = BTreeSet::from(TARGETS.map(|(name, _)| name.to_owned()));
            assert_eq!(known, BTreeSet::from([$(stringify!($name).to_owned()),+]));
            assert_eq!(known, names(&fuzz().join("fuzz_targets")));
            assert_eq!(known, names(&fuzz().join("corpus")));
        }
    };
}

replay! {
    columns: 2_000
    convert: 700
    layouts: 100
    parts: 1_000
    scatter: 250
    text: 150
    time: 2_000
}
