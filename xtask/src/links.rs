//! The links of the documents: each one has to lead to a file of the repository, and to a heading of that file.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::run::Result;

/// A link of a document.
#[derive(Debug, PartialEq)]
pub(crate) struct Link<'a> {
    /// Where the target begins in the text.
    pub(crate) start: usize,
    pub(crate) target: &'a str,
}

/// Returns the links that lead nowhere, of the documents in the root, the guide, and the README.md of each package.
pub(crate) fn mistakes(root: &Path) -> Result<Vec<String>> {
    let mut mistakes = Vec::new();
    for file in documents(root)? {
        let text = read(&file)?;
        for link in links(&text) {
            if let Some(mistake) = mistake(root, &file, link.target) {
                let line = text[..link.start].matches('\n').count() + 1;
                let name = relative(&file, root);
                mistakes.push(format!("{name}:{line}: {}: {mistake}", link.target));
            }
        }
    }
    Ok(mistakes)
}

fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let mut documents = documents_below(&root.join("docs"))?;
    for folder in [root.to_owned(), root.join("examples")] {
        for entry in entries(&folder)? {
            if is_document(&entry) && folder == root {
                documents.push(entry);
            } else if entry.join("Cargo.toml").exists() && entry.join("README.md").exists() {
                documents.push(entry.join("README.md"));
            }
        }
    }
    Ok(documents)
}

/// Says what is wrong with a link, if anything is.
fn mistake(root: &Path, file: &Path, target: &str) -> Option<&'static str> {
    if is_external(target) {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let found = if path.is_empty() {
        file.to_owned()
    } else {
        resolved(file, path)
    };
    if !found.starts_with(root) {
        return Some("it leads out of the repository");
    }
    if !found.exists() {
        return Some("there is no such file");
    }
    if anchor.is_empty() || !is_document(&found) {
        return None;
    }
    let text = fs::read_to_string(&found).ok()?;
    (!anchors(&text).contains(anchor)).then_some("there is no such heading")
}

/// Returns whether a link is to another site, which nobody visits here.
pub(crate) fn is_external(target: &str) -> bool {
    ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| target.starts_with(scheme))
}

/// Returns the links and pictures of a text, without what only looks like one in its code.
pub(crate) fn links(text: &str) -> Vec<Link<'_>> {
    let prose = without_code(text);
    let mut links = Vec::new();
    for (at, _) in prose.match_indices("](") {
        let start = at + 2;
        // The blanks that stand for code have the length of the code, so that places are the same.
        if let Some(length) = prose[start..].find(')') {
            let target = &text[start..start + length];
            if !target.contains(char::is_whitespace) {
                links.push(Link { start, target });
            }
        }
    }
    // The pictures of the guide are HTML, since Markdown has none in two themes.
    for attribute in [" src=\"", " srcset=\""] {
        for (at, _) in prose.match_indices(attribute) {
            let start = at + attribute.len();
            if let Some(length) = prose[start..].find('"') {
                let target = &text[start..start + length];
                links.push(Link { start, target });
            }
        }
    }
    links.sort_by_key(|link| link.start);
    links
}

/// Returns the text with a blank for each byte of code.
fn without_code(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        let marks = &trimmed[..trimmed.len() - trimmed.trim_start_matches('`').len()];
        match fence {
            Some(open) => {
                if marks.len() >= open.len() && trimmed.trim_end() == marks {
                    fence = None;
                }
                prose.push_str(&blank(line));
            }
            None if marks.len() >= 3 => {
                fence = Some(marks);
                prose.push_str(&blank(line));
            }
            None => prose.push_str(line),
        }
    }
    without_spans(&prose)
}

/// Returns the text with a blank for each byte of a code span. A span ends with as many marks as it begins with.
fn without_spans(text: &str) -> String {
    let mut prose = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find('`') {
        let behind = &rest[begin..];
        let marks = behind.len() - behind.trim_start_matches('`').len();
        let inside = &behind[marks..];
        // A span does not go on in the next paragraph.
        let paragraph = inside.find("\n\n").map_or(inside, |end| &inside[..end]);
        let end = paragraph
            .match_indices(&behind[..marks])
            .map(|(at, _)| at)
            .find(|at| !inside[at + marks..].starts_with('`') && !inside[..*at].ends_with('`'));
        let length = end.map_or(marks, |end| marks + end + marks);
        prose.push_str(&rest[..begin]);
        prose.push_str(&blank(&behind[..length]));
        rest = &behind[length..];
    }
    prose.push_str(rest);
    prose
}

fn blank(code: &str) -> String {
    code.bytes()
        .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
        .collect()
}

/// Returns the anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    let mut count: HashMap<String, usize> = HashMap::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if is_code || !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let anchor: String = heading
            .trim()
            .chars()
            .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
            .map(|letter| if letter == ' ' { '-' } else { letter })
            .collect::<String>()
            .to_lowercase();
        let earlier = count.entry(anchor.clone()).or_default();
        anchors.insert(match earlier {
            0 => anchor,
            _ => format!("{anchor}-{earlier}"),
        });
        *earlier += 1;
    }
    anchors
}

/// Returns the path that a link of this file leads to.
pub(crate) fn resolved(file: &Path, target: &str) -> PathBuf {
    let mut path = file.parent().unwrap_or(Path::new("")).to_owned();
    for component in Path::new(target).components() {
        match component {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

/// Returns the path from a folder to a file below it, with slashes.
pub(crate) fn relative(file: &Path, folder: &Path) -> String {
    let path = file.strip_prefix(folder).unwrap_or(file);
    path.to_string_lossy().replace('\\', "/")
}

/// Returns the Markdown files below a folder.
pub(crate) fn documents_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = files_below(folder)?;
    files.retain(|file| is_document(file));
    Ok(files)
}

/// Returns all files below a folder.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in entries(folder)? {
        if entry.is_dir() {
            files.extend(files_below(&entry)?);
        } else {
            files.push(entry);
        }
    }
    Ok(files)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| format!("{}: {error}", folder.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    Ok(entries)
}

fn is_document(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "md") && file.is_file()
}

pub(crate) fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    #[test]
    fn all_links_lead_somewhere() {
        assert_eq!(mistakes(&run::root()), Ok(Vec::new()));
    }

    /// Errors of the compiler and answers of the command name pages by their addresses.
    #[test]
    fn addresses_in_sources_lead_somewhere() {
        const PAGES: &str = "https://github.com/ordid/ordid/blob/main/";

        let (root, mut seen) = (run::root(), 0);
        for folder in entries(&root).expect("readable") {
            let sources = folder.join("src");
            if !folder.join("Cargo.toml").exists() || !sources.is_dir() {
                continue;
            }
            for file in files_below(&sources).expect("readable") {
                let text = read(&file).expect("readable");
                for (_, behind) in text
                    .match_indices(PAGES)
                    .map(|(at, it)| text.split_at(at + it.len()))
                {
                    let is_end = |it: char| it.is_whitespace() || "\"'`);".contains(it);
                    let target = behind.split(is_end).next().unwrap_or_default();
                    let mistake = mistake(&root, &root.join("README.md"), target);
                    // A text that ends here is a beginning for others.
                    assert!(
                        target.is_empty() || mistake.is_none(),
                        "{}: {target}: {mistake:?}",
                        file.display()
                    );
                    seen += usize::from(!target.is_empty());
                }
            }
        }
        assert!(seen > 10, "{seen} addresses");
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let root = run::root();
        let file = root.join("README.md");
        for (target, expected) in [
            ("LICENCE.md", Some("there is no such file")),
            (
                "DESIGN.md#no-such-heading",
                Some("there is no such heading"),
            ),
            ("../../etc", Some("it leads out of the repository")),
            ("DESIGN.md#laws", None),
            ("xtask", None),
            ("https://example.org/nothing", None),
        ] {
            assert_eq!(mistake(&root, &file, target), expected, "{target}");
        }
    }

    #[test]
    fn code_has_no_links() {
        let text = "a [b](c) `d[0](e)` [`f`](g#h)\n```rust\n#[x](y)\n```\n[z](z), ``a ` [b](c)``\n";
        let found: Vec<_> = links(text).into_iter().map(|link| link.target).collect();
        assert_eq!(found, ["c", "g#h", "z"]);
        assert!(
            links(text)
                .iter()
                .all(|link| text[link.start..].starts_with(link.target))
        );
    }

    #[test]
    fn pictures_are_links() {
        let text =
            "<source srcset=\"a.svg\"> [b](b) <img alt=\"c\" src=\"c.svg\"> `<img src=\"d.svg\">`";
        let found: Vec<_> = links(text).into_iter().map(|link| link.target).collect();
        assert_eq!(found, ["a.svg", "b", "c.svg"]);
    }

    #[test]
    fn anchors_are_those_of_github() {
        let text = "# From EF Core's and ABP's GUIDs\n## `COPY`, or not\n```sh\n# no heading\n```\n## A\n## A\n#tag\n";
        let mut found: Vec<_> = anchors(text).into_iter().collect();
        found.sort();
        assert_eq!(
            found,
            ["a", "a-1", "copy-or-not", "from-ef-cores-and-abps-guids"]
        );
    }
}
