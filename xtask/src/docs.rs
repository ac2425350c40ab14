//! `cargo xtask docs`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::links;
use crate::run::{self, Result};

/// The version of mdBook that builds the guide. A later one may have other warnings.
const MDBOOK: &str = "0.4.52";

/// The source of the guide, from the root of the workspace.
const SOURCE: &str = "docs/src";

/// Writes the pictures of the guide, builds it, and prints where it is.
pub(crate) fn docs() -> Result<ExitCode> {
    let bin = ["run", "--quiet", "--locked", "-p", "ordid-tests", "--bin"];
    run::succeed(run::cargo(&bin).arg("pictures"))?;
    let page = build()?;
    println!("\n{}", page.display());
    Ok(ExitCode::SUCCESS)
}

/// Checks the links of all documents, and that the summary lists each chapter.
pub(crate) fn check() -> Result<()> {
    let root = run::root();
    let mut mistakes = links::mistakes(&root)?;
    mistakes.extend(outside_of_summary(&root.join(SOURCE))?);
    match mistakes.is_empty() {
        true => Ok(()),
        false => Err(mistakes.join("\n")),
    }
}

/// Does the same and builds the guide. A warning of mdBook is an error. Returns the first page.
pub(crate) fn build() -> Result<PathBuf> {
    check()?;
    let root = run::root();
    let mdbook = mdbook(&root)?;
    let staged = stage(&root)?;
    let mut command = Command::new(mdbook);
    command.arg("build").arg(&staged);
    let output = command
        .output()
        .map_err(|error| run::cannot_run(&command, &error))?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || log.contains("[WARN]") || log.contains("[ERROR]") {
        return Err(format!("mdbook does not build the guide:\n{log}"));
    }
    Ok(staged.join("book/index.html"))
}

/// Installs mdBook below `target`, unless this version is there, and returns its path.
fn mdbook(root: &Path) -> Result<PathBuf> {
    let tools = root.join("target/ordid-tools");
    let program = tools.join("bin/mdbook");
    let found = Command::new(&program).arg("--version").output();
    let version = found.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if version.is_ok_and(|version| version == format!("mdbook v{MDBOOK}")) {
        return Ok(program);
    }
    println!("== mdbook {MDBOOK}, once");
    let mut install = run::cargo(&["install", "mdbook", "--version", MDBOOK, "--locked"]);
    // The server and the watcher take most of the time to compile and are left out. It runs for a second, so it is not
    // optimized.
    install.args(["--no-default-features", "--features", "search", "--debug"]);
    install.arg("--root").arg(&tools);
    install.arg("--target-dir").arg(tools.join("build"));
    run::succeed(&mut install)?;
    Ok(program)
}

/// Returns the chapters that SUMMARY.md does not list: mdBook leaves them out without a warning.
fn outside_of_summary(source: &Path) -> Result<Vec<String>> {
    let summary = links::read(&source.join("SUMMARY.md"))?;
    let listed: Vec<&str> = links::links(&summary)
        .into_iter()
        .map(|link| link.target)
        .collect();
    let mut mistakes = Vec::new();
    for file in links::documents_below(source)? {
        let name = links::relative(&file, source);
        if name != "SUMMARY.md" && !listed.contains(&&*name) {
            mistakes.push(format!("{SOURCE}/SUMMARY.md: {name} is not listed"));
        }
    }
    Ok(mistakes)
}

/// Copies the guide below `target`. Links to files outside of the guide are written as links to the repository, since
/// the book does not have these files.
fn stage(root: &Path) -> Result<PathBuf> {
    let staged = root.join("target/ordid-docs");
    let failed = |error: io::Error| format!("{}: {error}", staged.display());
    if staged.exists() {
        fs::remove_dir_all(&staged).map_err(failed)?;
    }
    let source = root.join(SOURCE);
    for file in links::files_below(&source)? {
        let copy = staged.join("src").join(links::relative(&file, &source));
        if let Some(folder) = copy.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        if file.extension().is_some_and(|extension| extension == "md") {
            let text = with_links_to_repository(&links::read(&file)?, &file, root);
            fs::write(&copy, text).map_err(failed)?;
        } else {
            fs::copy(&file, &copy).map_err(failed)?;
        }
    }
    fs::copy(root.join("docs/book.toml"), staged.join("book.toml")).map_err(failed)?;
    Ok(staged)
}

/// Writes the links of a chapter that lead out of the guide as links to the repository.
fn with_links_to_repository(text: &str, file: &Path, root: &Path) -> String {
    let source = root.join(SOURCE);
    let mut written = String::with_capacity(text.len());
    let mut from = 0;
    for link in links::links(text) {
        let (path, anchor) = link.target.split_once('#').unwrap_or((link.target, ""));
        let target = links::resolved(file, path);
        if links::is_external(link.target) || path.is_empty() || target.starts_with(&source) {
            continue;
        }
        let kind = if target.is_dir() { "tree" } else { "blob" };
        written.push_str(&text[from..link.start]);
        written.push_str(&format!(
            "{}/{kind}/main/{}",
            env!("CARGO_PKG_REPOSITORY"),
            links::relative(&target, root)
        ));
        if !anchor.is_empty() {
            written.push('#');
            written.push_str(anchor);
        }
        from = link.start + link.target.len();
    }
    written.push_str(&text[from..]);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_guide_lead_to_the_repository() {
        let root = run::root();
        let chapter = root.join("docs/src/engines/sqlite.md");
        let text = "[a](../../../PLATFORM.md#the-matrix), [b](../faq.md), [c](https://example.org), [d](../../../tests/ui)";
        let repository = env!("CARGO_PKG_REPOSITORY");
        assert_eq!(
            with_links_to_repository(text, &chapter, &root),
            format!(
                "[a]({repository}/blob/main/PLATFORM.md#the-matrix), [b](../faq.md), [c](https://example.org), \
                 [d]({repository}/tree/main/tests/ui)"
            )
        );
    }

    #[test]
    fn every_chapter_is_in_the_summary() {
        let mistakes = outside_of_summary(&run::root().join(SOURCE));
        assert_eq!(mistakes, Ok(Vec::new()));
    }
}
