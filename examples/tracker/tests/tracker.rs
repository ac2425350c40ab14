//! Tests the tracker as its clients use it. They call its routes in this process, with an SQLite file and with a
//! PostgreSQL server. They also run the program and talk to it over TCP, and open its page in a browser.
//!
//! `ordid_harness` starts a private PostgreSQL server, or takes that of `ORDID_TEST_POSTGRES_URL`. Without a server its
//! tests are ignored, and without Chromium the tests of the page are.

#[path = "tracker/api.rs"]
mod api;
#[path = "tracker/browser.rs"]
mod browser;
#[path = "tracker/edits.rs"]
mod edits;
#[path = "tracker/program.rs"]
mod program;

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode, header},
};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use ordid_harness::Access;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tower::ServiceExt as _;
use tracker::{Store, router};

type Result<T = ()> = std::result::Result<T, Failed>;

fn main() -> std::result::Result<ExitCode, ordid_harness::Error> {
    if std::env::var_os(browser::ABORTS).is_some() {
        browser::abort();
    }
    let arguments = Arguments::from_args();
    let mut trials = program::trials();
    trials.extend(browser::trials());
    let access = if arguments.list {
        Access::Skip("only listed".to_owned())
    } else {
        ordid_harness::access("postgres")?
    };
    let access = Arc::new(access);
    macro_rules! on_both {
        ($($module:ident::$test:ident),+ $(,)?) => {
            $(
                trials.push(Trial::test(concat!("sqlite::", stringify!($test)), || {
                    let folder = tempfile::tempdir()?;
                    let file = folder.path().join("tracker.sqlite");
                    block_on(with_client(&file.to_string_lossy(), $module::$test))
                }));
                trials.push({
                    let access = Arc::clone(&access);
                    Trial::ignorable_test(concat!("postgres::", stringify!($test)), move || {
                        on_postgres(&access, $module::$test)
                    })
                });
            )+
        };
    }
    on_both!(
        api::what_is_made_can_be_found,
        api::ids_that_cannot_be_are_told,
        api::what_is_against_the_rules_is_told,
        api::a_tenant_sees_its_own_alone,
        api::lists_are_newest_first_page_by_page,
        api::every_operation_of_the_description_is_there,
        api::graphql_finds_issues_and_pages,
        edits::a_request_that_is_sent_again_opens_one_issue,
        edits::requests_with_one_key_at_once_open_one_issue,
        edits::an_edit_writes_what_it_names,
        edits::of_edits_of_one_version_one_is_saved,
        edits::labels_come_and_go,
        edits::an_import_is_all_or_nothing_and_can_be_sent_again,
        edits::an_import_says_how_far_it_is,
        edits::an_import_that_cannot_be_is_refused,
    );
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn block_on<T>(test: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(test)
}

async fn with_client(address: &str, test: impl AsyncFnOnce(Client) -> Result) -> Result {
    let store = Store::open(address).await?;
    let outcome = test(Client::of(router(store.clone()))).await;
    store.close().await;
    outcome
}

/// Runs a test in a new database.
fn on_postgres(access: &Access, test: impl AsyncFnOnce(Client) -> Result) -> Result<Completion> {
    static COUNT: AtomicU32 = AtomicU32::new(0);

    let Some(url) = access.url() else {
        let reason = match access {
            Access::Skip(reason) => reason.as_str(),
            _ => "no address",
        };
        return Ok(Completion::ignored_with(reason));
    };
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("ordid_tracker_{}_{number}", std::process::id());
    let admin = |sql: String| {
        block_on(async {
            let mut admin = PgConnection::connect(&url).await?;
            sqlx::raw_sql(AssertSqlSafe(sql))
                .execute(&mut admin)
                .await?;
            Ok(admin.close().await?)
        })
    };
    admin(format!("CREATE DATABASE {name}"))?;
    let (server, _) = url.rsplit_once('/').ok_or("an address names a database")?;
    let address = format!("{server}/{name}");
    let tested = || block_on(with_client(&address, test));
    let outcome = catch_unwind(AssertUnwindSafe(tested));
    admin(format!("DROP DATABASE {name} WITH (FORCE)"))?;
    match outcome {
        Ok(outcome) => outcome.map(|()| Completion::Completed),
        Err(panic) => resume_unwind(panic),
    }
}

/// A client that calls the routes in this process.
#[derive(Clone)]
struct Client(Router);

/// The path of a project.
#[derive(Clone)]
struct Place {
    tenant: String,
    project: String,
}

impl Place {
    fn path(&self) -> String {
        format!("/api/tenants/{}/projects/{}", self.tenant, self.project)
    }
}

impl Client {
    fn of(router: Router) -> Self {
        Self(router)
    }

    async fn send(&self, request: Request<Body>) -> Result<(StatusCode, Option<String>, Value)> {
        let answer = self.0.clone().oneshot(request).await?;
        let (parts, body) = answer.into_parts();
        let body = to_bytes(body, 10 << 20).await?;
        let location = parts.headers.get(header::LOCATION);
        let location = location
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let value =
            serde_json::from_slice(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body)));
        Ok((parts.status, location, value))
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<(StatusCode, Value)> {
        let request = Request::builder().method(method).uri(path);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let (status, _, value) = self
            .send(request.body(Body::from(body.to_string()))?)
            .await?;
        Ok((status, value))
    }

    async fn get(&self, path: &str) -> Result<(StatusCode, Value)> {
        let (status, _, value) = self.send(Request::get(path).body(Body::empty())?).await?;
        Ok((status, value))
    }

    async fn found(&self, path: &str) -> Result<Value> {
        let (status, value) = self.get(path).await?;
        assert_eq!(status, 200, "{path}: {value}");
        Ok(value)
    }

    /// Creates an object, and checks that it can be read at the path that the answer names.
    async fn made(&self, path: &str, body: &Value) -> Result<Value> {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        let (status, location, value) = self
            .send(request.body(Body::from(body.to_string()))?)
            .await?;
        assert_eq!(status, 201, "{path}: {value}");
        self.found(&location.ok_or("no location")?).await?;
        Ok(value)
    }

    /// Sends a request that is refused with this status, and returns the reason.
    async fn refused(&self, method: &str, path: &str, body: &Value, status: u16) -> Result<String> {
        let (found, value) = self.ask(method, path, body).await?;
        assert_eq!(found, status, "{method} {path} {body}: {value}");
        Ok(value["error"].as_str().ok_or("no reason")?.to_owned())
    }

    /// Creates a tenant with a project.
    async fn place(&self, name: &str) -> Result<Place> {
        let tenant = self.made("/api/tenants", &json!({ "name": name })).await?;
        let tenant = text(&tenant["id"]).to_owned();
        let path = format!("/api/tenants/{tenant}/projects");
        let project = self.made(&path, &json!({ "name": "Engine" })).await?;
        Ok(Place {
            tenant,
            project: text(&project["id"]).to_owned(),
        })
    }

    async fn issue(&self, place: &Place, title: &str) -> Result<Value> {
        self.made(
            &format!("{}/issues", place.path()),
            &json!({ "title": title }),
        )
        .await
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the titles of the issues of a page.
fn titles(page: &Value) -> Vec<&str> {
    let edges = page["edges"].as_array().into_iter().flatten();
    edges.map(|edge| text(&edge["node"]["title"])).collect()
}
