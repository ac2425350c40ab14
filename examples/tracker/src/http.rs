//! The routes, and the form of their answers.

use axum::{
    Json, Router,
    body::Bytes,
    extract::{
        DefaultBodyLimit, FromRequest, FromRequestParts, State,
        rejection::{JsonRejection, PathRejection, QueryRejection},
    },
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post, put},
};
use ordid::page::{Connection, ListOrder, Page};
use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Kind},
    graphql, import,
    import::{ImportStatus, Imports, Line},
    model::{
        Comment, CommentId, EditedIssue, Filter, ImportId, Issue, IssueId, Label, LabelId, Named,
        NewComment, NewIssue, Place, Project, RequestId, Tenant, TenantId,
    },
    openapi,
    store::Store,
};

/// The largest number of rows in a page.
pub(crate) const MOST: u32 = 100;

/// The state that the routes share.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) store: Store,
    imports: Imports,
    schema: graphql::TrackerSchema,
}

/// Returns the tracker's routes: the page at `/`, the API that `/api/openapi.json` describes, and `/graphql`.
///
/// The body of an error is `{"error": ..}`. The status is 400 if the request cannot be read, and 404 if something does
/// not exist. It is 409 if a unique value is taken, or if the issue has changed since it was read; then the body also
/// has both versions and the current issue. It is 422 if the tracker refuses the request, and 503 if the client may try
/// again.
pub fn router(store: Store) -> Router {
    let project = "/api/tenants/{tenant}/projects/{project}";
    let at = |rest: &str| format!("{project}{rest}");
    let app = App {
        schema: graphql::schema(store.clone()),
        imports: Imports::default(),
        store,
    };
    Router::new()
        .route(
            "/",
            get(async || {
                (
                    [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
                    include_str!("../page/index.html"),
                )
            }),
        )
        .route(
            "/page.js",
            get(async || {
                (
                    [(header::CONTENT_TYPE, "text/javascript; charset=utf-8")],
                    include_str!("../page/page.js"),
                )
            }),
        )
        .route(
            "/page.css",
            get(async || {
                (
                    [(header::CONTENT_TYPE, "text/css; charset=utf-8")],
                    include_str!("../page/page.css"),
                )
            }),
        )
        .route("/api/openapi.json", get(async || Json(openapi::document())))
        .route("/graphql", post(graphql))
        .route("/api/tenants", post(add_tenant))
        .route("/api/tenants/{tenant}", get(tenant))
        .route("/api/tenants/{tenant}/labels", get(labels).post(add_label))
        .route(
            "/api/tenants/{tenant}/projects",
            get(projects).post(add_project),
        )
        .route(project, get(self::project))
        .route(&at("/issues"), get(issues).post(open_issue))
        .route(&at("/issues/{issue}"), get(issue).patch(edit_issue))
        .route(
            &at("/issues/{issue}/labels/{label}"),
            put(put_label).delete(take_label),
        )
        .route(
            &at("/issues/{issue}/comments"),
            get(comments).post(add_comment),
        )
        .route(
            &at("/imports"),
            post(begin_import).layer(DefaultBodyLimit::max(32 << 20)),
        )
        .route(&at("/imports/{import}"), get(import_status))
        .fallback(async || Failure::new(StatusCode::NOT_FOUND, "no such route"))
        .method_not_allowed_fallback(async || {
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "no such method here")
        })
        .with_state(app)
}

type Answer<T> = Result<Json<T>, Failure>;
type Made<T> = Result<(StatusCode, [(header::HeaderName, String); 1], Json<T>), Failure>;

/// Returns a new object, with its path in the header `Location`.
fn made<T>(status: StatusCode, path: String, made: T) -> Made<T> {
    Ok((status, [(header::LOCATION, path)], Json(made)))
}

fn path_of(place: Place, rest: impl std::fmt::Display) -> String {
    format!(
        "/api/tenants/{}/projects/{}{rest}",
        place.tenant, place.project
    )
}

async fn add_tenant(State(app): State<App>, Body(new): Body<Named>) -> Made<Tenant> {
    let tenant = app.store.add_tenant(new).await?;
    made(
        StatusCode::CREATED,
        format!("/api/tenants/{}", tenant.id),
        tenant,
    )
}

async fn tenant(State(app): State<App>, Path(id): Path<TenantId>) -> Answer<Tenant> {
    Ok(Json(app.store.tenant(id).await?))
}

async fn add_label(
    State(app): State<App>,
    Path(tenant): Path<TenantId>,
    Body(new): Body<Named>,
) -> Made<Label> {
    let label = app.store.add_label(tenant, new).await?;
    made(
        StatusCode::CREATED,
        format!("/api/tenants/{tenant}/labels"),
        label,
    )
}

async fn labels(State(app): State<App>, Path(tenant): Path<TenantId>) -> Answer<Vec<Label>> {
    Ok(Json(app.store.labels(tenant).await?))
}

async fn add_project(
    State(app): State<App>,
    Path(tenant): Path<TenantId>,
    Body(new): Body<Named>,
) -> Made<Project> {
    let project = app.store.add_project(tenant, new).await?;
    let place = Place {
        tenant,
        project: project.id,
    };
    made(StatusCode::CREATED, path_of(place, ""), project)
}

async fn projects(State(app): State<App>, Path(tenant): Path<TenantId>) -> Answer<Vec<Project>> {
    Ok(Json(app.store.projects(tenant).await?))
}

async fn project(State(app): State<App>, Path(place): Path<Place>) -> Answer<Project> {
    Ok(Json(app.store.project(place).await?))
}

/// The query of a list of issues: a filter and a page.
#[derive(Deserialize)]
struct WhichIssues {
    is_closed: Option<bool>,
    parent: Option<IssueId>,
    #[serde(flatten)]
    page: Page<IssueId>,
}

/// Lists issues, the newest first.
async fn issues(
    State(app): State<App>,
    Path(place): Path<Place>,
    Query(which): Query<WhichIssues>,
) -> Answer<Connection<IssueId, Issue>> {
    let slice = which
        .page
        .slice(ListOrder::Descending, MOST)
        .map_err(Error::from)?;
    let only = Filter {
        is_closed: which.is_closed,
        parent: which.parent,
    };
    let found = app.store.issues(place, slice, only).await?;
    Ok(Json(Connection::new(&slice, found, |issue| issue.id)))
}

/// The header that identifies a request, so that one that is sent twice is carried out once.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

async fn open_issue(
    State(app): State<App>,
    Path(place): Path<Place>,
    headers: HeaderMap,
    Body(new): Body<NewIssue>,
) -> Made<Issue> {
    let request = match headers.get(IDEMPOTENCY_KEY).map(|key| key.to_str()) {
        None => None,
        Some(Ok(key)) if (1..=200).contains(&key.len()) => {
            Some(RequestId::of_header(place.project, key))
        }
        Some(_) => {
            let message = "Idempotency-Key has from 1 to 200 visible ASCII characters";
            return Err(Failure::new(StatusCode::BAD_REQUEST, message));
        }
    };
    let (issue, is_new) = app.store.open_issue(place, new, request).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    made(
        status,
        path_of(place, format_args!("/issues/{}", issue.id)),
        issue,
    )
}

/// The path of an issue.
#[derive(Deserialize)]
struct IssuePath {
    #[serde(flatten)]
    place: Place,
    issue: IssueId,
}

async fn issue(State(app): State<App>, Path(path): Path<IssuePath>) -> Answer<Issue> {
    Ok(Json(app.store.issue(path.place, path.issue).await?))
}

async fn edit_issue(
    State(app): State<App>,
    Path(path): Path<IssuePath>,
    Body(edited): Body<EditedIssue>,
) -> Answer<Issue> {
    Ok(Json(
        app.store.edit_issue(path.place, path.issue, edited).await?,
    ))
}

#[derive(Deserialize)]
struct LabelPath {
    #[serde(flatten)]
    issue: IssuePath,
    label: LabelId,
}

async fn put_label(State(app): State<App>, Path(path): Path<LabelPath>) -> Answer<Issue> {
    let IssuePath { place, issue } = path.issue;
    Ok(Json(app.store.put_label(place, issue, path.label).await?))
}

async fn take_label(State(app): State<App>, Path(path): Path<LabelPath>) -> Answer<Issue> {
    let IssuePath { place, issue } = path.issue;
    Ok(Json(app.store.take_label(place, issue, path.label).await?))
}

/// Lists comments, the oldest first.
async fn comments(
    State(app): State<App>,
    Path(path): Path<IssuePath>,
    Query(page): Query<Page<CommentId>>,
) -> Answer<Connection<CommentId, Comment>> {
    let slice = page
        .slice(ListOrder::Ascending, MOST)
        .map_err(Error::from)?;
    let found = app.store.comments(path.place, path.issue, slice).await?;
    Ok(Json(Connection::new(&slice, found, |comment| comment.id)))
}

async fn add_comment(
    State(app): State<App>,
    Path(path): Path<IssuePath>,
    Body(new): Body<NewComment>,
) -> Made<Comment> {
    let comment = app.store.add_comment(path.place, path.issue, new).await?;
    let comments = format!("/issues/{}/comments", path.issue);
    made(StatusCode::CREATED, path_of(path.place, comments), comment)
}

/// Begins an import of a JSON array, or of CSV with a line of headers (`text/csv`). The import goes on after the
/// answer.
async fn begin_import(
    State(app): State<App>,
    Path(place): Path<Place>,
    headers: HeaderMap,
    body: Bytes,
) -> Made<ImportStatus> {
    let media_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let unreadable =
        |error: &dyn std::error::Error| Failure::new(StatusCode::BAD_REQUEST, error.to_string());
    let mut lines: Vec<Line> =
        match media_type.map(|value| value.split(';').next().unwrap_or_default().trim()) {
            Some("text/csv") => import::read_csv(&body).map_err(|error| unreadable(&error))?,
            Some("application/json") => {
                serde_json::from_slice(&body).map_err(|error| unreadable(&error))?
            }
            _ => {
                let message = "an import is application/json or text/csv";
                return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
            }
        };
    import::check(&mut lines)?;
    app.store.project(place).await?;
    let status = app.imports.begin(app.store, place, lines);
    made(
        StatusCode::ACCEPTED,
        path_of(place, format_args!("/imports/{}", status.id)),
        status,
    )
}

#[derive(Deserialize)]
struct ImportPath {
    #[serde(flatten)]
    place: Place,
    import: ImportId,
}

async fn import_status(
    State(app): State<App>,
    Path(path): Path<ImportPath>,
) -> Answer<ImportStatus> {
    Ok(Json(app.imports.status(path.place, path.import)?))
}

async fn graphql(
    State(app): State<App>,
    Body(request): Body<async_graphql::Request>,
) -> Json<async_graphql::Response> {
    Json(app.schema.execute(request).await)
}

/// axum's extractor of the same name, with the tracker's error instead of axum's.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Failure))]
struct Path<T>(T);

/// axum's extractor of the same name, with the tracker's error instead of axum's.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Failure))]
struct Query<T>(T);

/// axum's `Json`, with the tracker's error instead of axum's.
#[derive(FromRequest)]
#[from_request(via(axum::Json), rejection(Failure))]
struct Body<T>(T);

/// The answer to a request that failed.
struct Failure {
    status: StatusCode,
    body: Box<FailureBody>,
}

/// The JSON of a failure.
#[derive(Serialize, utoipa::ToSchema, Default)]
pub(crate) struct FailureBody {
    error: String,
    /// The version that was read, if the issue has changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_version: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found_version: Option<i64>,
    /// The current issue, if it has changed since it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    issue: Option<Issue>,
}

impl Failure {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let error = message.into();
        Self {
            status,
            body: Box::new(FailureBody {
                error,
                ..FailureBody::default()
            }),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status, Json(self.body)).into_response()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut failure = Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.for_client());
        failure.status = match error.kind() {
            Kind::Unreadable => StatusCode::BAD_REQUEST,
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Taken => StatusCode::CONFLICT,
            Kind::Stale(stale) => {
                failure.body.read_version = Some(stale.read_version);
                failure.body.found_version = Some(stale.issue.version);
                failure.body.issue = Some(stale.issue.clone());
                StatusCode::CONFLICT
            }
            Kind::Refused => StatusCode::UNPROCESSABLE_ENTITY,
            Kind::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Kind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        failure
    }
}

impl From<PathRejection> for Failure {
    fn from(rejection: PathRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

impl From<QueryRejection> for Failure {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

impl From<JsonRejection> for Failure {
    fn from(rejection: JsonRejection) -> Self {
        let status = match rejection {
            // A value of the wrong type is a bad request. The tracker uses 422 only for requests that it has
            // understood.
            JsonRejection::JsonDataError(_) => StatusCode::BAD_REQUEST,
            _ => rejection.status(),
        };
        Self::new(status, rejection.body_text())
    }
}
