//! Posts from text files, with their authors and tags, in one unit of work.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::OsStr,
    fmt::Write as _,
    fs,
    path::Path,
};

use anyhow::{Context as _, bail};
use ordid::{KeyType as _, clock::Timestamp};
use ordid_seaorm::UnitOfWork;
use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait as _, DatabaseConnection, EntityTrait as _, QueryFilter as _, QuerySelect as _,
};

use crate::entity::{
    author::{self, AuthorId},
    post::{self, PostId},
    post_tag,
    tag::{self, TagId},
};

/// The posts that come with the program, by name.
const POSTS: [(&str, &str); 5] = [
    ("a-ledger", include_str!("../posts/a-ledger.txt")),
    ("at-the-end", include_str!("../posts/at-the-end.txt")),
    ("four-fields", include_str!("../posts/four-fields.txt")),
    ("the-clock", include_str!("../posts/the-clock.txt")),
    ("two-shelves", include_str!("../posts/two-shelves.txt")),
];

/// What a file says.
struct Draft {
    slug: String,
    title: String,
    author: String,
    published: Timestamp,
    tags: Vec<String>,
    body: String,
}

/// Adds the posts of a folder, or those that come with the program, unless they are there: posts,
/// authors and tags are known by their names.
pub(crate) async fn seed(db: &DatabaseConnection, folder: Option<&Path>) -> anyhow::Result<String> {
    let drafts = match folder {
        Some(folder) => read(folder)?,
        None => POSTS
            .iter()
            .map(|(slug, text)| parse(slug, text).with_context(|| (*slug).to_owned()))
            .collect::<Result<_, _>>()?,
    };
    let all = drafts.len();
    let slugs: Vec<&str> = drafts.iter().map(|draft| draft.slug.as_str()).collect();
    let there: Vec<String> = post::Entity::find()
        .select_only()
        .column(post::Column::Slug)
        .filter(post::Column::Slug.is_in(slugs))
        .into_tuple()
        .all(db)
        .await
        .context("cannot read posts")?;
    let there: HashSet<String> = there.into_iter().collect();
    let mut authors: HashMap<String, AuthorId> = author::Entity::find()
        .select_only()
        .columns([author::Column::Name, author::Column::Id])
        .into_tuple()
        .all(db)
        .await
        .context("cannot read authors")?
        .into_iter()
        .collect();
    let mut tags: HashMap<String, TagId> = tag::Entity::find()
        .select_only()
        .columns([tag::Column::Name, tag::Column::Id])
        .into_tuple()
        .all(db)
        .await
        .context("cannot read tags")?
        .into_iter()
        .collect();

    let mut work = UnitOfWork::new();
    for draft in drafts.into_iter().filter(|it| !there.contains(&it.slug)) {
        let author = *authors.entry(draft.author).or_insert_with_key(|name| {
            work.add(author::ActiveModel {
                id: NotSet,
                name: Set(name.clone()),
            })
        });
        // Of the time at which it was published: old posts take their place among the others.
        let id = PostId::generate_at(draft.published).with_context(|| draft.slug.clone())?;
        work.add(post::ActiveModel {
            id: Set(id),
            author_id: Set(author),
            slug: Set(draft.slug),
            title: Set(draft.title),
            body: Set(draft.body),
        });
        for name in draft.tags {
            let tag = *tags.entry(name).or_insert_with_key(|name| {
                work.add(tag::ActiveModel {
                    id: NotSet,
                    name: Set(name.clone()),
                })
            });
            work.add(post_tag::ActiveModel {
                id: NotSet,
                post_id: Set(id),
                tag_id: Set(tag),
            });
        }
    }
    let flushed = work.flush(db).await.context("cannot add the posts")?;

    let mut told = format!("{} of {all} posts were there\n", there.len());
    for table in &flushed.tables {
        let (name, rows, statements) = (table.table, table.rows, table.statements);
        writeln!(told, "{name:<9} {rows:>5} rows in {statements} statements")?;
    }
    Ok(told)
}

/// Reads the posts of a folder, in the order of their names.
fn read(folder: &Path) -> anyhow::Result<Vec<Draft>> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let file = entry.with_context(cannot)?.path();
        if file.extension() == Some(OsStr::new("txt")) {
            files.push(file);
        }
    }
    if files.is_empty() {
        bail!("no *.txt in {}", folder.display());
    }
    files.sort_unstable();
    let read = |file: &std::path::PathBuf| {
        let slug = file.file_stem().unwrap_or_default().to_string_lossy();
        fs::read_to_string(file)
            .context("cannot read it")
            .and_then(|text| parse(&slug, &text))
            .with_context(|| file.display().to_string())
    };
    files.iter().map(read).collect()
}

/// Reads a post: lines with a name, a colon and a value, an empty line, and the text.
fn parse(slug: &str, text: &str) -> anyhow::Result<Draft> {
    let (head, body) = text
        .split_once("\n\n")
        .context("no empty line between its head and its text")?;
    let value = |name: &str| {
        head.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(|value| value.trim().to_owned())
            .with_context(|| format!("no line `{name}:`"))
    };
    let date: jiff::Timestamp = value("date")?.parse().context("date")?;
    let millis = u64::try_from(date.as_millisecond()).context("date before 1970")?;
    let tags: BTreeSet<String> = value("tags")?
        .split(',')
        .map(|tag| tag.trim().to_owned())
        .filter(|tag| !tag.is_empty())
        .collect();
    Ok(Draft {
        slug: slug.to_owned(),
        title: value("title")?,
        author: value("author")?,
        published: Timestamp::from_unix_millis(millis)?,
        tags: tags.into_iter().collect(),
        body: body.trim_end().to_owned(),
    })
}
