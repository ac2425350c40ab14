//! Uses a time of `chrono` as a version without the feature of `ordid`.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
pub struct IssueId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "issues")]
pub struct Issue {
    id: IssueId,
    #[ordid(version)]
    saved: chrono::DateTime<chrono::Utc>,
}
