//! The GraphQL schema of the tracker: issues by their id, and pages of issues. Each type of id is a scalar.

use async_graphql::{
    Context, EmptyMutation, EmptySubscription, ErrorExtensions as _, Object, Result, Schema,
    SimpleObject,
};
use ordid::page::{Connection, Cursor, ListOrder, Page};

use crate::{
    error::{Error, Kind},
    http::MOST,
    model::{Filter, Issue, IssueId, Label, Place, ProjectId, TenantId},
    store::Store,
};

pub(crate) type TrackerSchema = Schema<Query, EmptyMutation, EmptySubscription>;

pub(crate) fn schema(store: Store) -> TrackerSchema {
    let schema = Schema::build(Query, EmptyMutation, EmptySubscription).data(store);
    schema.limit_depth(10).limit_complexity(2_000).finish()
}

pub(crate) struct Query;

#[Object]
impl Query {
    /// An issue by its id.
    async fn issue(
        &self,
        context: &Context<'_>,
        tenant: TenantId,
        project: ProjectId,
        id: IssueId,
    ) -> Result<Issue> {
        let issue = store(context)?.issue(Place { tenant, project }, id);
        issue.await.map_err(of_tracker)
    }

    /// A page of a project's issues, newest first.
    #[expect(clippy::too_many_arguments, reason = "Relay's four, and which list")]
    async fn issues(
        &self,
        context: &Context<'_>,
        tenant: TenantId,
        project: ProjectId,
        first: Option<u32>,
        after: Option<String>,
        last: Option<u32>,
        before: Option<String>,
        is_closed: Option<bool>,
    ) -> Result<IssueConnection> {
        let cursor =
            |text: Option<String>| text.map(|text| text.parse::<Cursor<IssueId>>()).transpose();
        let page = Page {
            first,
            after: cursor(after)?,
            last,
            before: cursor(before)?,
        };
        let slice = page.slice(ListOrder::Descending, MOST)?;
        let only = Filter {
            is_closed,
            ..Filter::default()
        };
        let found = store(context)?.issues(Place { tenant, project }, slice, only);
        let found = found.await.map_err(of_tracker)?;
        Ok(Connection::new(&slice, found, |issue| issue.id).into())
    }

    /// A tenant's labels.
    async fn labels(&self, context: &Context<'_>, tenant: TenantId) -> Result<Vec<Label>> {
        store(context)?.labels(tenant).await.map_err(of_tracker)
    }
}

fn store<'c>(context: &Context<'c>) -> Result<&'c Store> {
    context.data()
}

/// Returns an error of GraphQL, with a code that corresponds to the status of HTTP.
fn of_tracker(error: Error) -> async_graphql::Error {
    let code = match error.kind() {
        Kind::Unreadable | Kind::Refused => "BAD_REQUEST",
        Kind::NotFound => "NOT_FOUND",
        Kind::Taken | Kind::Stale(_) => "CONFLICT",
        Kind::Busy => "BUSY",
        Kind::Failed => "INTERNAL",
    };
    async_graphql::Error::new(error.for_client())
        .extend_with(|_, extensions| extensions.set("code", code))
}

/// A page of issues in Relay's format.
#[derive(SimpleObject)]
struct IssueConnection {
    edges: Vec<IssueEdge>,
    page_info: PageInfo,
}

#[derive(SimpleObject)]
struct IssueEdge {
    cursor: String,
    node: Issue,
}

#[derive(SimpleObject)]
struct PageInfo {
    has_next_page: bool,
    has_previous_page: bool,
    start_cursor: Option<String>,
    end_cursor: Option<String>,
}

impl From<Connection<IssueId, Issue>> for IssueConnection {
    fn from(page: Connection<IssueId, Issue>) -> Self {
        let edges = page.edges.into_iter().map(|edge| IssueEdge {
            cursor: edge.cursor.to_string(),
            node: edge.node,
        });
        let text = |cursor: Option<Cursor<IssueId>>| cursor.map(|cursor| cursor.to_string());
        Self {
            edges: edges.collect(),
            page_info: PageInfo {
                has_next_page: page.page_info.has_next_page,
                has_previous_page: page.page_info.has_previous_page,
                start_cursor: text(page.page_info.start_cursor),
                end_cursor: text(page.page_info.end_cursor),
            },
        }
    }
}
