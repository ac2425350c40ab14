//! The tracker's types: keys, rows of the database, and the JSON of requests and answers.

use std::sync::LazyLock;

use async_graphql::SimpleObject;
use ordid::{KeyType, OrderedKey, scheme::UuidMask};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::{Uuid, uuid};

/// The mask of tenants' ids, which [`mask_of`] reads.
pub(crate) static MASK: LazyLock<UuidMask> = LazyLock::new(|| {
    let given = std::env::var("TRACKER_MASK").ok();
    // `main` refuses a mask that cannot be read. If none is set, this one is used, which is no secret.
    let (k0, k1) = given.and_then(|text| mask_of(&text)).unwrap_or((1, 2));
    UuidMask::new(k0, k1)
});

/// Reads a mask of 32 hexadecimal digits.
pub(crate) fn mask_of(text: &str) -> Option<(u64, u64)> {
    let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hex)?;
    Some(Uuid::from_u128(number).as_u64_pair())
}

/// `ten_...`. These ids are masked, so that they do not tell when the customer came. No other key has their scheme, since
/// an unmasked key of the same scheme and millisecond would tell it.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7_unguessable, prefix = "ten", mask = MASK, sqlx)]
pub(crate) struct TenantId(Uuid);

/// `prj_...`
#[derive(KeyType)]
#[ordid(prefix = "prj", sqlx)]
pub(crate) struct ProjectId(Uuid);

/// `iss_...`
#[derive(KeyType)]
#[ordid(prefix = "iss", sqlx)]
pub(crate) struct IssueId(Uuid);

/// `lbl_...`
#[derive(KeyType)]
#[ordid(prefix = "lbl", sqlx)]
pub(crate) struct LabelId(Uuid);

/// `cmt_...`
#[derive(KeyType)]
#[ordid(prefix = "cmt", sqlx)]
pub(crate) struct CommentId(Uuid);

/// `imp_...`. No table has such keys.
#[derive(KeyType)]
#[ordid(prefix = "imp")]
pub(crate) struct ImportId(Uuid);

/// The key of a request or of an imported row. It is made from a name, so such keys have no order.
#[derive(KeyType)]
#[ordid(scheme = uuid_v8_sha256, sqlx(postgres = unordered(uuid), sqlite = unordered(blob)))]
pub(crate) struct RequestId(Uuid);

/// Namespaces of named keys. They are random, and must never change.
const REQUESTS: Uuid = uuid!("b2c1ff83-3e1e-4b25-9a7e-5b9f0f5c1c11");
const IMPORTED: Uuid = uuid!("6a0f7c4e-8f3b-4b0c-8e77-1f0f4b6e2d5a");
const CONTENTS: Uuid = uuid!("f7e0b9d2-61a5-4c3d-8d7f-2a9c6b1e4f03");

impl RequestId {
    /// Makes the key of a request from its header `Idempotency-Key`.
    pub(crate) fn of_header(project: ProjectId, key: &str) -> Self {
        Self::named(REQUESTS, [&*project.to_string(), key])
    }

    /// Makes the key of an imported row from the name that it has at its source.
    pub(crate) fn of_import(project: ProjectId, name: &str) -> Self {
        Self::named(IMPORTED, [&*project.to_string(), name])
    }

    /// Makes a key from what a request asks for, to compare requests by it.
    pub(crate) fn of_contents(new: &NewIssue) -> Self {
        let parent = new.parent.map_or_else(String::new, |id| id.to_string());
        Self::named(CONTENTS, [&*parent, &*new.title, &*new.body])
    }
}

#[derive(OrderedKey, sqlx::FromRow, Serialize, ToSchema)]
#[ordid(table = "tenants")]
pub(crate) struct Tenant {
    pub(crate) id: TenantId,
    pub(crate) name: String,
}

#[derive(OrderedKey, sqlx::FromRow, Serialize, ToSchema)]
#[ordid(table = "projects")]
pub(crate) struct Project {
    pub(crate) id: ProjectId,
    #[ordid(parent)]
    pub(crate) tenant: TenantId,
    pub(crate) name: String,
}

#[derive(OrderedKey, sqlx::FromRow, Serialize, ToSchema, SimpleObject, Clone)]
#[ordid(table = "labels")]
pub(crate) struct Label {
    pub(crate) id: LabelId,
    #[serde(skip)]
    #[graphql(skip)]
    #[ordid(parent)]
    pub(crate) tenant: TenantId,
    pub(crate) name: String,
}

/// A row of `issues`.
#[derive(OrderedKey, sqlx::FromRow, Clone)]
#[ordid(table = "issues", columns)]
pub(crate) struct IssueRow {
    pub(crate) id: IssueId,
    #[ordid(parent)]
    pub(crate) project: ProjectId,
    /// The issue above it in the tree.
    #[ordid(parent)]
    pub(crate) parent: Option<IssueId>,
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) is_closed: bool,
    #[ordid(version)]
    pub(crate) version: i64,
    /// The request that opened the issue, if the request had a key.
    pub(crate) request: Option<RequestId>,
    /// A key made of what this request asked for. The issue may have been edited since, so its text does not say that.
    pub(crate) contents: Option<RequestId>,
}

/// A row of the table between issues and labels. Its key is both of their keys.
#[derive(OrderedKey)]
#[ordid(table = "issue_labels")]
pub(crate) struct IssueLabel {
    #[ordid(key, parent)]
    pub(crate) issue: IssueId,
    #[ordid(key, parent)]
    pub(crate) label: LabelId,
}

#[derive(OrderedKey, sqlx::FromRow, Serialize, ToSchema, Clone)]
#[ordid(table = "comments")]
pub(crate) struct Comment {
    pub(crate) id: CommentId,
    #[ordid(parent)]
    pub(crate) issue: IssueId,
    pub(crate) author: String,
    pub(crate) body: String,
}

/// The JSON of an issue.
#[derive(Serialize, ToSchema, SimpleObject, Clone, Debug)]
pub(crate) struct Issue {
    pub(crate) id: IssueId,
    pub(crate) project: ProjectId,
    pub(crate) parent: Option<IssueId>,
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) is_closed: bool,
    /// The version, which an edit has to name.
    pub(crate) version: i64,
    /// The time in the key. There is no column for it.
    pub(crate) created_at: Option<String>,
    /// The names of its labels.
    pub(crate) labels: Vec<String>,
}

impl From<IssueRow> for Issue {
    fn from(row: IssueRow) -> Self {
        Self {
            id: row.id,
            project: row.project,
            parent: row.parent,
            title: row.title,
            body: row.body,
            is_closed: row.is_closed,
            version: row.version,
            created_at: row.id.timestamp().map(|time| time.to_string()),
            labels: Vec::new(),
        }
    }
}

/// A request for a new tenant, project or label.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    pub(crate) name: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewIssue {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) body: String,
    pub(crate) parent: Option<IssueId>,
}

/// A request for an edit: the version that the client read, and the fields to change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditedIssue {
    pub(crate) version: i64,
    pub(crate) title: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) is_closed: Option<bool>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewComment {
    pub(crate) author: String,
    pub(crate) body: String,
}

/// The path of a project.
#[derive(Deserialize, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) tenant: TenantId,
    pub(crate) project: ProjectId,
}

/// A filter of a project's issues.
#[derive(Default, Clone, Copy)]
pub(crate) struct Filter {
    pub(crate) is_closed: Option<bool>,
    pub(crate) parent: Option<IssueId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_32_hexadecimal_digits() {
        assert_eq!(mask_of("00000000000000010000000000000002"), Some((1, 2)));
        for wrong in [
            "",
            "1",
            "+0000000000000010000000000000002",
            &"g".repeat(32),
            &"0".repeat(33),
        ] {
            assert_eq!(mask_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn requests_of_two_projects_are_two_requests() {
        let [one, two] = [ProjectId::generate(), ProjectId::generate()];
        assert_eq!(
            RequestId::of_header(one, "a"),
            RequestId::of_header(one, "a")
        );
        assert_ne!(
            RequestId::of_header(one, "a"),
            RequestId::of_header(two, "a")
        );
        assert_ne!(
            RequestId::of_header(one, "a"),
            RequestId::of_import(one, "a")
        );
    }
}
