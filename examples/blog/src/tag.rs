//! More tags for a post.

use anyhow::Context as _;
use ordid_seaorm::insert_or_skip;
use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait as _, DatabaseConnection, EntityTrait as _, QueryFilter as _,
    TransactionTrait as _,
};

use crate::{
    entity::{post_tag, tag},
    read::find,
};

/// Gives a post tags, those that it does not have.
pub(crate) async fn tag(
    db: &DatabaseConnection,
    post: &str,
    names: &[String],
) -> anyhow::Result<String> {
    let post = find(db, post).await?;
    let transaction = db.begin().await.context("cannot begin")?;
    let mut tags: Vec<_> = names
        .iter()
        .map(|name| tag::ActiveModel {
            id: NotSet,
            name: Set(name.clone()),
        })
        .collect();
    let made = insert_or_skip(&transaction, &mut tags)
        .await
        .context("cannot add tags")?;
    // Those that were there have another key than the one that was tried.
    let tags = tag::Entity::find()
        .filter(tag::Column::Name.is_in(names))
        .all(&transaction)
        .await
        .context("cannot read tags")?;
    let mut links: Vec<_> = tags
        .iter()
        .map(|tag| post_tag::ActiveModel {
            id: NotSet,
            post_id: Set(post.id),
            tag_id: Set(tag.id),
        })
        .collect();
    let linked = insert_or_skip(&transaction, &mut links)
        .await
        .context("cannot tag the post")?;
    transaction.commit().await.context("cannot commit")?;
    let count = |new: &[bool]| new.iter().filter(|new| **new).count();
    Ok(format!(
        "{} has {} tags more, of which {} are new\n",
        post.slug,
        count(&linked),
        count(&made)
    ))
}
