//! Rows that have the whole key in common are one row, and no list.

use ordid::{KeyType, key::CompositeKey, page::Page, uuid::Uuid};

#[derive(KeyType)]
struct TenantId(Uuid);

#[derive(KeyType)]
struct IssueId(Uuid);

fn issue(page: Page<CompositeKey<(TenantId, IssueId)>>, tenant: TenantId, issue: IssueId) {
    let _ = page.within((tenant, issue));
}

fn main() {}
