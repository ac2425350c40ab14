//! A page of a key of several columns is limited by its first values, and by no others.

use ordid::{KeyType, key::CompositeKey, page::Page, uuid::Uuid};

#[derive(KeyType)]
struct TenantId(Uuid);

#[derive(KeyType)]
struct IssueId(Uuid);

fn issues(page: Page<CompositeKey<(TenantId, IssueId)>>, issue: IssueId) {
    let _ = page.within(issue);
}

fn main() {}
