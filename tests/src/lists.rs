//! The lists that are made of the catalogue, because they cannot call its macro: what the derive knows
//! of schemes, and the guide's table. `cargo xtask lists` writes them, and a test compares them.

use std::{fs, io, path::PathBuf};

use ordid::scheme::catalogue::CATALOGUE;

/// A line of the catalogue, as it is written there.
struct Line {
    name: &'static str,
    kind: &'static str,
    raw: &'static str,
    scheme: &'static str,
}

macro_rules! lines {
    ($($name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $($text:literal),+;)+) => {
        &[$(Line {
            name: stringify!($name),
            kind: stringify!($($kind)+),
            raw: stringify!($raw),
            scheme: stringify!($scheme),
        }),+]
    };
}

const LINES: &[Line] = ordid_core::__for_each_scheme! { lines };

impl Line {
    /// The kind without its numbers.
    fn kind(&self) -> &str {
        let end = self.kind.find(|c: char| !c.is_alphanumeric() && c != '_');
        &self.kind[..end.unwrap_or(self.kind.len())]
    }

    /// Whether the derive knows it by its name.
    fn is_derived(&self) -> bool {
        !matches!(self.kind(), "layout" | "read_only")
    }

    /// The function of the derive's `options.rs` that makes it.
    fn function(&self) -> &str {
        match (self.kind(), self.raw, self.name) {
            ("random_node" | "random_node_first", ..) => "uuid_of_node",
            ("by_period", ..) => "clustered",
            (.., "snowflake") => "snowflake",
            ("spread", ..) => "spread",
            ("spread_node", ..) => "spread_snowflake",
            (_, "i64", _) => "signed",
            (_, "u64", _) => "unsigned",
            (_, "ObjectId", _) => "object_id",
            (_, "PushId", _) => "push_id",
            (_, "Key192", _) => "key192",
            _ => "uuid",
        }
    }

    /// Whether its keys need something of the user's: a name, a node, or a store.
    fn needs_more(&self) -> bool {
        matches!(
            self.kind(),
            "named" | "snowflake_node" | "spread_node" | "node" | "reserved"
        )
    }
}

fn derived() -> Vec<&'static Line> {
    let mut lines: Vec<_> = LINES.iter().filter(|line| line.is_derived()).collect();
    lines.sort_by_key(|line| line.name);
    lines
}

fn derive_schemes() -> String {
    let lines = derived();
    let mut functions: Vec<&str> = lines.iter().map(|line| line.function()).collect();
    functions.sort_unstable();
    functions.dedup();
    let mut text = format!(
        "//! The catalogue's schemes. `cargo xtask lists` writes this file.\n\n\
         #[rustfmt::skip]\nuse crate::options::{{Scheme, {}}};\n\n\
         /// The schemes, by name.\n#[rustfmt::skip]\npub(crate) const SCHEMES: &[Scheme] = &[\n",
        functions.join(", ")
    );
    for line in lines {
        let (function, name, scheme) = (line.function(), line.name, line.scheme);
        text += &format!("    {function}(\"{name}\", \"{scheme}\"),\n");
    }
    text += "];\n\n/// The layouts of `snowflake`.\n#[rustfmt::skip]\npub(crate) const LAYOUTS: &[&str] = &[\n    \"Twitter\",\n";
    let mut layouts: Vec<_> = LINES
        .iter()
        .filter(|line| line.kind() == "layout")
        .filter_map(|line| line.scheme.rsplit("::").next())
        .map(|name| name.trim_matches(|c: char| !c.is_alphanumeric()))
        .collect();
    layouts.sort_unstable();
    for layout in layouts {
        text += &format!("    \"{layout}\",\n");
    }
    text + "];\n"
}

fn derive_table() -> String {
    let mut text = String::from("| raw key | schemes |\n|---|---|\n");
    for (raw, written) in [
        ("Uuid", "uuid::Uuid"),
        ("ObjectId", "ordid::key::ObjectId"),
        ("PushId", "ordid::key::PushId"),
        ("Key192", "ordid::key::Key192"),
        ("i64", "i64"),
        ("u64", "u64"),
    ] {
        let of_raw = LINES
            .iter()
            .filter(|line| line.raw == raw && line.is_derived());
        let names: Vec<_> = of_raw
            .map(|line| {
                format!(
                    "`{}`{}",
                    line.name,
                    if line.needs_more() { "\\*" } else { "" }
                )
            })
            .collect();
        text += &format!("| `{written}` | {} |\n", names.join(", "));
    }
    text
}

/// A file that is made of the code, as a whole.
#[derive(Debug)]
pub struct List {
    /// Its path in the repository.
    pub path: String,
    /// What it has to say.
    pub text: String,
}

impl List {
    /// Returns where it is.
    pub fn file(&self) -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(&self.path)
    }

    /// Returns what it says now; nothing if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn found(&self) -> io::Result<String> {
        match fs::read_to_string(self.file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read,
        }
    }
}

/// Returns the files that are made of the catalogue.
pub fn lists() -> Vec<List> {
    vec![
        List {
            path: "ordid-derive/src/schemes.rs".to_owned(),
            text: derive_schemes(),
        },
        List {
            path: "ordid-derive/src/schemes.md".to_owned(),
            text: derive_table(),
        },
    ]
}

/// The names of the catalogue that a text does not have.
pub fn missing(text: &str) -> Vec<&'static str> {
    let names = CATALOGUE.iter().map(|entry| entry.name);
    names
        .filter(|name| !text.contains(&format!("`{name}`")))
        .collect()
}
