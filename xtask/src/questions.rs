//! Fifteen questions that people ask, and how far their answers are from README.md.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::links;
use crate::run;

/// A question, the words by which a reader finds the line of README.md, the page that answers, and its heading there.
type Question = [&'static str; 4];

const QUESTIONS: [Question; 15] = [
    [
        "which key for SQL Server",
        "SQL Server",
        "engines/sql-server.md",
        "## Which key for SQL Server?",
    ],
    [
        "is the order kept in VARCHAR(36)",
        "VARCHAR(36)",
        "engines.md",
        "## Is the order kept in VARCHAR(36)?",
    ],
    [
        "how do I retry a POST",
        "retry a `POST`",
        "retries.md",
        "## A request that is sent twice",
    ],
    [
        "what does is_commit_unknown ask of me",
        "`is_commit_unknown`",
        "retries.md",
        "## What `is_commit_unknown` asks of you",
    ],
    [
        "how do I hide the creation time",
        "hide the creation time",
        "public-ids.md",
        "## Hide the creation time",
    ],
    [
        "ids under 2^53",
        "2^53",
        "public-ids.md",
        "### Numbers below 2^53",
    ],
    [
        "all rows of yesterday",
        "rows of yesterday",
        "pages.md",
        "### The rows of a day",
    ],
    [
        "move 50 million rows from BIGSERIAL",
        "BIGSERIAL",
        "migrate.md",
        "## From BIGSERIAL",
    ],
    [
        "CockroachDB",
        "CockroachDB",
        "beyond-one-machine.md",
        "## Spread keys over machines",
    ],
    [
        "PgBouncer",
        "PgBouncer",
        "engines/postgresql.md",
        "## PgBouncer",
    ],
    [
        "deterministic tests",
        "same keys in every test",
        "testing.md",
        "## The same keys in every test",
    ],
    [
        "composite keys",
        "keys of several columns",
        "entities.md",
        "## Keys of several columns",
    ],
    [
        "a crash in the middle of an import",
        "after a crash",
        "unit-of-work.md",
        "## A crash in the middle of a flush",
    ],
    [
        "what is Rollback::HoldThenFollow for",
        "`Rollback::HoldThenFollow`",
        "choose-a-key.md",
        "### When the clock steps back",
    ],
    [
        "how do I write an adapter",
        "write an adapter",
        "adapters.md",
        "# Write an adapter",
    ],
];

/// Returns the documents that the links of a text lead to.
fn targets(file: &Path, text: &str) -> HashSet<PathBuf> {
    let links = links::links(text).into_iter();
    let paths = links.map(|link| link.target.split('#').next().unwrap_or_default());
    let paths = paths.filter(|path| !links::is_external(path) && path.ends_with(".md"));
    paths.map(|path| links::resolved(file, path)).collect()
}

#[test]
fn every_question_is_answered_two_clicks_from_the_readme_at_most() {
    let root = run::root();
    let readme = root.join("README.md");
    let text = links::read(&readme).unwrap();
    for [question, words, page, heading] in QUESTIONS {
        let page = root.join("docs/src").join(page);
        let answer = links::read(&page).unwrap();
        assert!(
            answer.lines().any(|line| line == heading),
            "{question}: {} does not have the heading {heading:?}",
            page.display()
        );
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(words)).collect();
        assert!(
            !lines.is_empty(),
            "{question}: README.md does not say {words:?}"
        );
        let first: HashSet<PathBuf> = lines
            .into_iter()
            .flat_map(|line| targets(&readme, line))
            .collect();
        let is_near = first.contains(&page)
            || first.iter().any(|chapter| {
                let chapter_text = links::read(chapter).unwrap();
                targets(chapter, &chapter_text).contains(&page)
            });
        assert!(
            is_near,
            "{question}: no line of README.md with {words:?} leads to {} in two links",
            page.display()
        );
    }
}
