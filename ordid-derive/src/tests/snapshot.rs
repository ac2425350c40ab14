//! Snapshots of expansions, in `snapshots/`.
//!
//! `key_type.rs` and `entity.rs` are the whole expansions of a derive without options. Every other
//! snapshot is stored as its difference from a base, as `diff -U1` writes it. The input stands above
//! the expansion as a comment.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p ordid-derive` writes all of them again; read what changed.

use std::{
    env, fs,
    path::{Path, PathBuf},
    thread,
};

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::expand;

pub(super) type Derive = fn(&DeriveInput) -> TokenStream;

pub(super) fn expanded(derive: Derive, input: &str) -> String {
    let input = syn::parse_str(input).expect("the input is an item");
    let file = syn::parse2(derive(&input)).expect("the expansion is items");
    prettyplease::unparse(&file)
}

/// A snapshot that others are stored as differences from.
#[derive(Clone, Copy)]
pub(super) struct Base {
    name: &'static str,
    derive: Derive,
    input: &'static str,
}

impl Base {
    const fn new(name: &'static str, derive: Derive, input: &'static str) -> Self {
        Self {
            name,
            derive,
            input,
        }
    }

    pub(super) fn assert_snapshot(self) {
        assert_snapshot(self.name, self.derive, self.input);
    }
}

pub(super) const KEY_TYPE: Base =
    Base::new("key_type", expand::key_type, "pub struct OrderId(Uuid);");
/// For `crate = keys`, which changes every path.
pub(super) const KEY_TYPE_OPTIONS: Base = Base::new(
    "key_type_options",
    expand::key_type,
    r#"
    #[ordid(scheme = uuid_v7, prefix = "ord", crate = keys)]
    #[ordid(sqlx(postgres = uuid, mysql = binary16, sqlite = blob))]
    struct OrderId(uuid::Uuid);
    "#,
);
/// For schemes whose keys are integers.
const KEY_TYPE_SCHEME: Base = Base::new(
    "key_type_scheme_default",
    expand::key_type,
    "#[ordid(scheme = snowflake)] struct OrderId(i64);",
);
/// For what is left of a key type after a mistake.
const KEY_TYPE_MISTAKE: Base = Base::new(
    "key_type_mistake",
    expand::key_type,
    "#[ordid(prefx = \"ord\")] struct OrderId { id: Uuid }",
);
const ENTITY: Base = Base::new(
    "entity",
    expand::ordered_key,
    "struct OrderLine { id: OrderLineId, note: String, remark: String }",
);

/// Returns what the snapshot is stored as the difference from, if it is not the base of a derive.
fn base_of(name: &str) -> Option<Base> {
    match name {
        "key_type" | "entity" => None,
        "key_type_node" | "key_type_scheme_preset" => Some(KEY_TYPE_OPTIONS),
        "key_type_adapters"
        | "key_type_scheme_own"
        | "key_type_snowflake_bits"
        | "key_type_snowflake_epoch"
        | "key_type_snowflake_need"
        | "key_type_snowflake_spread"
        | "key_type_snowflake_spread_bits"
        | "key_type_snowflake_spread_need" => Some(KEY_TYPE_SCHEME),
        "key_type_scatter_mistake" | "key_type_without_column" => Some(KEY_TYPE_MISTAKE),
        name if name.starts_with("entity") => Some(ENTITY),
        _ => Some(KEY_TYPE),
    }
}

/// Asserts that the expansion is the one of the snapshot.
#[track_caller]
pub(super) fn assert_snapshot(name: &str, derive: Derive, input: &str) {
    let found = text(derive, input);
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        write(name, &found);
        return;
    }
    match read(name) {
        Ok(expected) => assert!(
            found == expected,
            "the expansion differs from the snapshot `{name}`; UPDATE_SNAPSHOTS=1 accepts it:\n{}",
            difference(&expected, &found)
        ),
        Err(problem) => panic!("{problem}; UPDATE_SNAPSHOTS=1 accepts the expansion:\n{found}"),
    }
}

/// Returns the expansion below its input.
fn text(derive: Derive, input: &str) -> String {
    let input = input.lines().map(str::trim).filter(|line| !line.is_empty());
    let input = input.collect::<Vec<_>>().join("\n");
    let head: String = input.lines().map(|line| format!("// {line}\n")).collect();
    format!("{head}\n{}", expanded(derive, &input))
}

fn path(name: &str, base: Option<Base>) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/snapshots");
    let extension = if base.is_some() { "diff" } else { "rs" };
    folder.join(name).with_extension(extension)
}

/// Returns the expansion that the snapshot stores.
fn read(name: &str) -> Result<String, String> {
    let base = base_of(name);
    let stored = fs::read_to_string(path(name, base))
        .map_err(|error| format!("no snapshot `{name}`: {error}"))?;
    match base {
        None => Ok(stored),
        Some(base) => applied(&stored, &read(base.name)?)
            .ok_or_else(|| format!("`{name}.diff` is no difference from `{}`", base.name)),
    }
}

/// Stores the expansion. The base is expanded again, since its own snapshot may not be written yet.
fn write(name: &str, found: &str) {
    let base = base_of(name);
    let stored = match base {
        None => found.to_owned(),
        Some(base) => difference(&text(base.derive, base.input), found),
    };
    // Another test may be reading the base: the file has to be there whole at any time.
    let file = path(name, base);
    let new = file.with_extension(format!("{:?}", thread::current().id()));
    fs::write(&new, stored).expect("the snapshot can be written");
    fs::rename(new, file).expect("the snapshot can be replaced");
}

/// Returns what `diff -U1` prints, without its head.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    // The most lines that the ends of both have in common, from each pair of places.
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for (i, line) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            common[i][j] = if line == other {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    // Every line of either, with its sign and the lines before it.
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i], i, j));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || i < old.len() && common[i + 1][j] >= common[i][j + 1] {
            lines.push(('-', old[i], i, j));
            i += 1;
        } else {
            lines.push(('+', new[j], i, j));
            j += 1;
        }
    }
    let changed = |at: usize| lines.get(at).is_some_and(|(sign, ..)| *sign != ' ');
    let shown =
        |at: usize| changed(at) || changed(at + 1) || at.checked_sub(1).is_some_and(&changed);
    let mut text = String::new();
    let mut at = 0;
    while at < lines.len() {
        let hunk: Vec<_> = (at..lines.len())
            .take_while(|at| shown(*at))
            .map(|at| lines[at])
            .collect();
        if let Some((_, _, i, j)) = hunk.first() {
            let without = |sign| hunk.iter().filter(|(it, ..)| *it != sign).count();
            text += &format!(
                "@@ -{},{} +{},{} @@\n",
                i + 1,
                without('+'),
                j + 1,
                without('-')
            );
        }
        for (sign, line, ..) in &hunk {
            text += &format!("{sign}{line}\n");
        }
        at += hunk.len().max(1);
    }
    text
}

/// Returns the base with the difference applied, or `None` if it is not a difference from this base.
fn applied(difference: &str, base: &str) -> Option<String> {
    let mut rest = base.lines();
    let mut taken = 0;
    let mut text = String::new();
    for line in difference.lines() {
        if let Some(head) = line.strip_prefix("@@ -") {
            let start: usize = head.split(',').next()?.parse().ok()?;
            while taken + 1 < start {
                text += &format!("{}\n", rest.next()?);
                taken += 1;
            }
        } else if let Some(line) = line.strip_prefix('+') {
            text += &format!("{line}\n");
        } else {
            let kept = rest.next()?;
            taken += 1;
            match line.strip_prefix('-') {
                Some(line) if line == kept => {}
                None if line.strip_prefix(' ') == Some(kept) => text += &format!("{kept}\n"),
                _ => return None,
            }
        }
    }
    text.extend(rest.map(|line| format!("{line}\n")));
    Some(text)
}

/// The bases that are expanded here have the inputs of the tests that assert them.
#[test]
fn bases_are_stored_with_their_inputs() {
    for base in [
        KEY_TYPE,
        KEY_TYPE_OPTIONS,
        KEY_TYPE_SCHEME,
        KEY_TYPE_MISTAKE,
        ENTITY,
    ] {
        assert_snapshot(base.name, base.derive, base.input);
    }
}

#[test]
fn differences_apply_to_their_base_only() {
    let (old, new) = ("a\nb\nc\nd\ne\nf\n", "b\nc\nx\nd\ne\nf\ng\n");
    let stored = difference(old, new);
    assert_eq!(
        stored,
        "@@ -1,4 +1,4 @@\n-a\n b\n c\n+x\n d\n@@ -6,1 +6,2 @@\n f\n+g\n"
    );
    assert_eq!(applied(&stored, old).as_deref(), Some(new));
    assert_eq!(applied(&stored, new), None);
    assert_eq!(difference(old, old), "");
    assert_eq!(applied("", old).as_deref(), Some(old));
}
