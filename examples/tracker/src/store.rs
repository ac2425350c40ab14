//! The database behind the tracker, PostgreSQL or SQLite. The address says which.
//!
//! The types of SQLx's queries name the database, so `store/queries.rs` is compiled once for each database.

mod postgres;
mod sqlite;

use ordid::page::Slice;

use crate::{
    error::Error,
    import::{Imported, Line, Observer},
    model::{
        Comment, CommentId, EditedIssue, Filter, Issue, IssueId, Label, LabelId, Named, NewComment,
        NewIssue, Place, Project, RequestId, Tenant, TenantId,
    },
};

/// The tracker's database, with its tables. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct Store(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Postgres(postgres::Database),
    Sqlite(sqlite::Database),
}

impl Store {
    /// Connects to a PostgreSQL server if the address begins with `postgres://`, otherwise to the SQLite file of this
    /// name, and creates missing tables.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no connection, or if the tables cannot be created.
    pub async fn open(address: &str) -> Result<Self, Error> {
        let server = ["postgres://", "postgresql://"];
        Ok(Self(
            if server.iter().any(|scheme| address.starts_with(scheme)) {
                Inner::Postgres(postgres::open(address).await?)
            } else {
                let file = ["sqlite://", "sqlite:"]
                    .iter()
                    .find_map(|scheme| address.strip_prefix(scheme));
                let file = file.unwrap_or(address);
                Inner::Sqlite(sqlite::open(file).await?)
            },
        ))
    }

    /// Closes all connections.
    pub async fn close(&self) {
        match &self.0 {
            Inner::Postgres(database) => database.pool.close().await,
            Inner::Sqlite(database) => database.pool.close().await,
        }
    }
}

macro_rules! ask {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl Store {
            $(
                pub(crate) async fn $name(&self $(, $argument: $type)*) -> Result<$answer, Error> {
                    match &self.0 {
                        Inner::Postgres(database) => database.$name($($argument),*).await,
                        Inner::Sqlite(database) => database.$name($($argument),*).await,
                    }
                }
            )*
        }
    };
}

ask! {
    add_tenant(new: Named) -> Tenant;
    tenant(id: TenantId) -> Tenant;
    add_project(tenant: TenantId, new: Named) -> Project;
    project(place: Place) -> Project;
    projects(tenant: TenantId) -> Vec<Project>;
    add_label(tenant: TenantId, new: Named) -> Label;
    labels(tenant: TenantId) -> Vec<Label>;
    issues(place: Place, slice: Slice<IssueId>, only: Filter) -> Vec<Issue>;
    issue(place: Place, id: IssueId) -> Issue;
    open_issue(place: Place, new: NewIssue, request: Option<RequestId>) -> (Issue, bool);
    edit_issue(place: Place, id: IssueId, edited: EditedIssue) -> Issue;
    put_label(place: Place, id: IssueId, label: LabelId) -> Issue;
    take_label(place: Place, id: IssueId, label: LabelId) -> Issue;
    comments(place: Place, id: IssueId, slice: Slice<CommentId>) -> Vec<Comment>;
    add_comment(place: Place, id: IssueId, new: NewComment) -> Comment;
    import(place: Place, lines: Vec<Line>, observer: Observer) -> Imported;
}

/// Checks a text that a client has sent.
fn checked(what: &str, text: String, most: usize) -> Result<String, Error> {
    match text.trim().is_empty() {
        true => Err(Error::refused(format_args!("{what} is empty"))),
        false if text.chars().count() > most => Err(Error::refused(format_args!(
            "{what} has more than {most} characters"
        ))),
        // PostgreSQL cannot store such a text.
        false if text.contains('\0') => Err(Error::refused(format_args!("{what} has a NUL"))),
        false => Ok(text),
    }
}

/// Does the same as [`checked`] for the title of an issue.
pub(crate) fn checked_title(text: String) -> Result<String, Error> {
    checked("the title", text, 200)
}

/// Does the same as [`checked`] for the name of a label.
pub(crate) fn checked_label(text: String) -> Result<String, Error> {
    checked("the name of a label", text, 100)
}

/// Does the same as [`checked`] for the body of an issue, which may be empty.
pub(crate) fn checked_body(text: String) -> Result<String, Error> {
    if text.is_empty() {
        Ok(text)
    } else {
        checked("the body", text, 20_000)
    }
}
