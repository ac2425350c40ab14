//! The OpenAPI document at `/api/openapi.json`.

use utoipa::{OpenApi, ToSchema, openapi};

use crate::{
    http::FailureBody,
    import::{ImportStatus, Line},
    model::{
        Comment, EditedIssue, ImportId, Issue, IssueId, Label, LabelId, Named, NewComment,
        NewIssue, Project, ProjectId, Tenant, TenantId,
    },
};

/// Returns the description of the API.
pub(crate) fn document() -> openapi::OpenApi {
    Api::openapi()
}

#[derive(OpenApi)]
#[openapi(
    info(title = "tracker", description = "Issues of many tenants"),
    paths(
        add_tenant,
        tenant,
        add_project,
        projects,
        project,
        add_label,
        labels,
        issues,
        open_issue,
        issue,
        edit_issue,
        put_label,
        take_label,
        comments,
        add_comment,
        begin_import,
        import_status,
    ),
    components(schemas(FailureBody))
)]
struct Api;

/// A page in Relay's format.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "a schema")]
struct IssuePage {
    edges: Vec<IssueEdge>,
    page_info: PageInfo,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema")]
struct IssueEdge {
    cursor: String,
    node: Issue,
}

/// A page in Relay's format.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "a schema")]
struct CommentPage {
    edges: Vec<CommentEdge>,
    page_info: PageInfo,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "a schema")]
struct CommentEdge {
    cursor: String,
    node: Comment,
}

#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "a schema")]
struct PageInfo {
    has_next_page: bool,
    has_previous_page: bool,
    start_cursor: Option<String>,
    end_cursor: Option<String>,
}

/// Adds a tenant.
#[utoipa::path(post, path = "/api/tenants",
    request_body = Named,
    responses((status = 201, body = Tenant), (status = 422, body = FailureBody), (status = 400, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn add_tenant() {}

/// A tenant.
#[utoipa::path(get, path = "/api/tenants/{tenant}",
    params(("tenant" = TenantId, Path)),
    responses((status = 200, body = Tenant), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn tenant() {}

/// Adds a project.
#[utoipa::path(post, path = "/api/tenants/{tenant}/projects",
    params(("tenant" = TenantId, Path)),
    request_body = Named,
    responses((status = 201, body = Project), (status = 409, body = FailureBody), (status = 422, body = FailureBody), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn add_project() {}

/// The projects of a tenant.
#[utoipa::path(get, path = "/api/tenants/{tenant}/projects",
    params(("tenant" = TenantId, Path)),
    responses((status = 200, body = Vec<Project>), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn projects() {}

/// A project.
#[utoipa::path(get, path = "/api/tenants/{tenant}/projects/{project}",
    params(("tenant" = TenantId, Path), ("project" = ProjectId, Path)),
    responses((status = 200, body = Project), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn project() {}

/// Adds a label.
#[utoipa::path(post, path = "/api/tenants/{tenant}/labels",
    params(("tenant" = TenantId, Path)),
    request_body = Named,
    responses((status = 201, body = Label), (status = 409, body = FailureBody), (status = 422, body = FailureBody), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn add_label() {}

/// The labels of a tenant.
#[utoipa::path(get, path = "/api/tenants/{tenant}/labels",
    params(("tenant" = TenantId, Path)),
    responses((status = 200, body = Vec<Label>), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn labels() {}

/// A page of issues, newest first.
#[utoipa::path(get, path = "/api/tenants/{tenant}/projects/{project}/issues",
    params(("tenant" = TenantId, Path), ("project" = ProjectId, Path), ("is_closed" = Option<bool>, Query), ("parent" = Option<IssueId>, Query), ("first" = Option<u32>, Query), ("after" = Option<String>, Query), ("last" = Option<u32>, Query), ("before" = Option<String>, Query)),
    responses((status = 200, body = IssuePage), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn issues() {}

/// Opens an issue. A request with the header `Idempotency-Key` opens one issue, however often it is sent.
#[utoipa::path(post, path = "/api/tenants/{tenant}/projects/{project}/issues",
    params(("tenant" = TenantId, Path), ("project" = ProjectId, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = NewIssue,
    responses((status = 201, body = Issue), (status = 200, body = Issue), (status = 422, body = FailureBody), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn open_issue() {}

/// An issue.
#[utoipa::path(get, path = "/api/tenants/{tenant}/projects/{project}/issues/{issue}",
    params(("tenant" = TenantId, Path), ("project" = ProjectId, Path), ("issue" = IssueId, Path)),
    responses((status = 200, body = Issue), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn issue() {}

/// Changes the given fields, unless the issue has changed since it was read.
#[utoipa::path(patch, path = "/api/tenants/{tenant}/projects/{project}/issues/{issue}",
    params(("tenant" = TenantId, Path), ("project" = ProjectId, Path), ("issue" = IssueId, Path)),
    request_body = EditedIssue,
    responses((status = 200, body = Issue), (status = 409, body = FailureBody), (status = 422, body = FailureBody), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn edit_issue() {}

/// Labels an issue.
#[utoipa::path(put, path = "/api/tenants/{tenant}/projects/{project}/issues/{issue}/labels/{label}",
    params(("tenant" = TenantId, Path), ("project" = ProjectId, Path), ("issue" = IssueId, Path), ("label" = LabelId, Path)),
    responses((status = 200, body = Issue), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn put_label() {}

/// Takes a label off an issue.
#[utoipa::path(delete, path = "/api/tenants/{tenant}/projects/{project}/issues/{issue}/labels/{label}",
    params(("tenant" = TenantId, Path), ("project" = ProjectId, Path), ("issue" = IssueId, Path), ("label" = LabelId, Path)),
    responses((status = 200, body = Issue), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn take_label() {}

/// A page of comments, oldest first.
#[utoipa::path(get, path = "/api/tenants/{tenant}/projects/{project}/issues/{issue}/comments",
    params(("tenant" = TenantId, Path), ("project" = ProjectId, Path), ("issue" = IssueId, Path), ("first" = Option<u32>, Query), ("after" = Option<String>, Query), ("last" = Option<u32>, Query), ("before" = Option<String>, Query)),
    responses((status = 200, body = CommentPage), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn comments() {}

/// Adds a comment.
#[utoipa::path(post, path = "/api/tenants/{tenant}/projects/{project}/issues/{issue}/comments",
    params(("tenant" = TenantId, Path), ("project" = ProjectId, Path), ("issue" = IssueId, Path)),
    request_body = NewComment,
    responses((status = 201, body = Comment), (status = 422, body = FailureBody), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn add_comment() {}

/// Begins an import of JSON, or of CSV with a line of headers (`text/csv`).
#[utoipa::path(post, path = "/api/tenants/{tenant}/projects/{project}/imports",
    params(("tenant" = TenantId, Path), ("project" = ProjectId, Path)),
    request_body = Vec<Line>,
    responses((status = 202, body = ImportStatus), (status = 415, body = FailureBody), (status = 422, body = FailureBody), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn begin_import() {}

/// Returns the progress and the outcome of an import.
#[utoipa::path(get, path = "/api/tenants/{tenant}/projects/{project}/imports/{import}",
    params(("tenant" = TenantId, Path), ("project" = ProjectId, Path), ("import" = ImportId, Path)),
    responses((status = 200, body = ImportStatus), (status = 400, body = FailureBody), (status = 404, body = FailureBody)))]
#[expect(dead_code, reason = "a description")]
fn import_status() {}
