//! The SQL of the guide: its blocks, on which server each one runs, and what a block needs to run and to be tried.
//!
//! A block of a page in `docs/src/engines` runs on the engine of its page. It begins with ```` ```sql ````, or with
//! ```` ```sql,sql_server ```` and the like if the engine cannot run here: then its test is ignored, with the reason,
//! unless a variable names a server. Blocks of other chapters have a title, and each title has a test of its own.

use std::{fs, io, path::Path};

use ordid::uuid::Uuid;

/// A block of SQL.
#[derive(Debug, Clone)]
pub struct Snippet {
    /// The chapter, below `docs/src`.
    pub page: String,
    /// Its place among the blocks of the page, from 1 on.
    pub number: usize,
    /// What follows `sql,`: the engine, if it is one that cannot run here.
    pub mark: Option<String>,
    /// What it says.
    pub text: String,
}

impl Snippet {
    /// Returns the block's title, which is a comment in its first line.
    pub fn title(&self) -> Option<&str> {
        self.text.lines().next()?.strip_prefix("-- ")
    }

    /// Returns the statements one by one, without their comments.
    pub fn statements(&self) -> Vec<String> {
        statements(&self.text)
    }

    /// Returns the table with a key and a foreign key that the block makes, if it makes one.
    pub fn tables(&self) -> Option<Tables> {
        let (_, target) = self.text.split_once("REFERENCES ")?;
        let (parent, rest) = target.split_once(" (")?;
        let (parent_key, _) = rest.split_once(')')?;
        let (_, table) = self.text.split_once("CREATE TABLE ")?;
        let (table, _) = table.split_once(" (")?;
        let mut lines = self.text.lines().map(str::trim);
        let key = lines.find(|line| line.contains(" NOT NULL PRIMARY KEY"))?;
        let (key, declared) = key.split_once(' ')?;
        let (kind, _) = declared.trim().split_once(" NOT NULL")?;
        let foreign = lines.find(|line| line.contains(" NOT NULL"))?;
        let (foreign, _) = foreign.split_once(' ')?;
        Some(Tables {
            table: table.to_owned(),
            key: key.to_owned(),
            foreign: foreign.to_owned(),
            parent: parent.to_owned(),
            parent_key: parent_key.to_owned(),
            kind: kind.to_owned(),
        })
    }
}

/// A table that refers to another one, as the guide declares it.
#[derive(Debug, Clone)]
pub struct Tables {
    /// The table's name, quoted as it is in the block.
    pub table: String,
    key: String,
    foreign: String,
    parent: String,
    parent_key: String,
    /// The type of the keys.
    kind: String,
}

impl Tables {
    /// Returns the statement that makes the table that the block refers to.
    pub fn create_parent(&self) -> String {
        let Self {
            parent,
            parent_key,
            kind,
            ..
        } = self;
        format!("CREATE TABLE {parent} ({parent_key} {kind} NOT NULL PRIMARY KEY)")
    }

    /// Returns statements that insert rows with these keys, each with a parent of the same key.
    pub fn insert(&self, keys: &[Uuid]) -> Vec<String> {
        let Self {
            table,
            key: column,
            foreign,
            parent,
            parent_key,
            ..
        } = self;
        let mut statements = Vec::new();
        for key in keys {
            let key = self.literal(*key);
            statements.push(format!(
                "INSERT INTO {parent} ({parent_key}) VALUES ({key})"
            ));
            statements.push(format!(
                "INSERT INTO {table} ({column}, {foreign}) VALUES ({key}, {key})"
            ));
        }
        statements
    }

    /// Returns a statement that inserts a row whose parent is not there.
    pub fn insert_orphan(&self, key: Uuid) -> String {
        let Self {
            table,
            key: column,
            foreign,
            ..
        } = self;
        let key = self.literal(key);
        format!("INSERT INTO {table} ({column}, {foreign}) VALUES ({key}, {key})")
    }

    /// Returns what counts the rows below a key, behind `SELECT COUNT(*) FROM`.
    pub fn below(&self, key: Uuid) -> String {
        format!("{} WHERE {} < {}", self.table, self.key, self.literal(key))
    }

    fn literal(&self, key: Uuid) -> String {
        let hex = key.simple();
        match &*self.kind {
            "uuid" | "UUID" => format!("'{key}'"),
            "uniqueidentifier" => format!("CAST('{key}' AS uniqueidentifier)"),
            "BINARY(16)" | "BLOB" => format!("X'{hex}'"),
            "RAW(16)" => format!("HEXTORAW('{hex:X}')"),
            other => panic!("how is a key of the type {other} written?"),
        }
    }
}

/// Returns the statements of a script, without their comments.
pub fn statements(script: &str) -> Vec<String> {
    let lines = script.lines();
    let lines = lines.map(|line| line.split_once("--").map_or(line, |(sql, _)| sql).trim());
    let sql = lines.collect::<Vec<_>>().join(" ");
    let statements = sql.split(';').map(str::trim).filter(|it| !it.is_empty());
    statements.map(str::to_owned).collect()
}

/// Returns all blocks of the guide.
///
/// # Errors
///
/// If the guide cannot be read.
pub fn all() -> io::Result<Vec<Snippet>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src");
    let mut snippets = Vec::new();
    read_folder(&source, "", &mut snippets)?;
    Ok(snippets)
}

/// Returns the blocks of the page of an engine, such as `postgresql`.
///
/// # Errors
///
/// If the guide cannot be read.
pub fn of_engine(engine: &str) -> io::Result<Vec<Snippet>> {
    let page = format!("engines/{engine}.md");
    let mut snippets = all()?;
    snippets.retain(|snippet| snippet.page == page);
    Ok(snippets)
}

fn read_folder(folder: &Path, prefix: &str, snippets: &mut Vec<Snippet>) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{prefix}{}", entry.file_name().display());
        if entry.file_type()?.is_dir() {
            read_folder(&entry.path(), &format!("{name}/"), snippets)?;
        } else if name.ends_with(".md") {
            blocks(&name, &fs::read_to_string(entry.path())?, snippets);
        }
    }
    Ok(())
}

fn blocks(page: &str, text: &str, snippets: &mut Vec<Snippet>) {
    let mut number = 0;
    let mut rest = text;
    while let Some((_, block)) = rest.split_once("```sql") {
        let (info, block) = block.split_once('\n').unwrap_or_default();
        let (block, after) = block.split_once("```").unwrap_or((block, ""));
        number += 1;
        snippets.push(Snippet {
            page: page.to_owned(),
            number,
            mark: info.strip_prefix(',').map(str::to_owned),
            text: block.to_owned(),
        });
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_marks_and_titles() {
        let text = "a\n```sql\n-- a title\nSELECT 1; -- one\nSELECT 2;\n```\nb\n```sql,oracle\nSELECT 3;\n```\n";
        let mut found = Vec::new();
        blocks("page.md", text, &mut found);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].title(), Some("a title"));
        assert_eq!(found[0].statements(), ["SELECT 1", "SELECT 2"]);
        assert_eq!(
            (found[1].number, found[1].mark.as_deref()),
            (2, Some("oracle"))
        );
    }

    #[test]
    fn the_tables_of_a_block_are_found() {
        for engine in [
            "postgresql",
            "mysql",
            "mariadb",
            "sqlite",
            "sql-server",
            "babelfish",
            "oracle",
        ] {
            let snippets = of_engine(engine).unwrap();
            let tables = snippets[0].tables().expect(engine);
            let orphan = tables.insert_orphan(Uuid::from_u128(1)).to_lowercase();
            assert!(orphan.contains("customer"), "{orphan}");
            assert!(tables.create_parent().to_lowercase().contains("customers"));
        }
    }
}
