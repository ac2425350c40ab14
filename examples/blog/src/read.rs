//! What readers see.

use std::fmt::Write as _;

use anyhow::Context as _;
use ordid::KeyType;
use sea_orm::{
    ColumnTrait as _, DatabaseConnection, EntityLoaderTrait as _, EntityTrait as _,
    QueryFilter as _, QuerySelect as _, QueryTrait as _,
};

use crate::entity::{
    author,
    post::{self, PostId},
    post_tag, tag,
};

/// Lists posts, newest first: a page of those before one.
pub(crate) async fn list(
    db: &DatabaseConnection,
    with_tag: Option<&str>,
    before: Option<PostId>,
    limit: u64,
) -> anyhow::Result<String> {
    let mut posts = post::Entity::load()
        .with(author::Entity)
        .with(tag::Entity)
        .order_by_id_desc();
    if let Some(before) = before {
        posts = posts.filter(post::Column::Id.lt(before));
    }
    if let Some(name) = with_tag {
        let tagged = post_tag::Entity::find()
            .select_only()
            .column(post_tag::Column::PostId)
            .inner_join(tag::Entity)
            .filter(tag::Column::Name.eq(name));
        posts = posts.filter(post::Column::Id.in_subquery(tagged.into_query()));
    }
    let found = posts
        .paginate(db, limit.max(1))
        .fetch_page(0)
        .await
        .context("cannot read posts")?;
    let mut told = String::new();
    for post in &found {
        let author = post.author.as_ref().map_or("", |author| &author.name);
        writeln!(
            told,
            "{}  {}  {}, by {author}{}",
            post.id,
            day(post.id),
            post.title,
            tags(post)
        )?;
    }
    Ok(told)
}

/// Shows a post.
pub(crate) async fn show(db: &DatabaseConnection, post: &str) -> anyhow::Result<String> {
    let found = find(db, post).await?;
    let author = found.author.as_ref().map_or("", |author| &author.name);
    Ok(format!(
        "{}\nby {author}, {}{}\n{}\n\n{}\n",
        found.title,
        day(found.id),
        tags(&found),
        found.id,
        found.body
    ))
}

/// Finds a post by its id, or by its name.
pub(crate) async fn find(db: &DatabaseConnection, post: &str) -> anyhow::Result<post::ModelEx> {
    let query = post::Entity::load().with(author::Entity).with(tag::Entity);
    let query = if post.starts_with("post_") {
        let id: PostId = post.parse().with_context(|| format!("no id {post}"))?;
        query.filter(post::Column::Id.eq(id))
    } else {
        query.filter(post::Column::Slug.eq(post))
    };
    let found = query.one(db).await.context("cannot read posts")?;
    found.with_context(|| format!("no post {post}"))
}

/// Returns the day of a key's time.
fn day(key: impl KeyType) -> String {
    let millis = key.timestamp().map(|time| time.as_unix_millis());
    let time = millis
        .and_then(|millis| i64::try_from(millis).ok())
        .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    time.map_or_else(String::new, |time| time.strftime("%Y-%m-%d").to_string())
}

/// Writes ` #one #two`.
fn tags(post: &post::ModelEx) -> String {
    let mut names: Vec<&str> = post.tags.iter().map(|tag| tag.name.as_str()).collect();
    names.sort_unstable();
    names.iter().map(|name| format!(" #{name}")).collect()
}
