//! Asks the shop as a client does: its routes in this process, on SQLite in a file and on a PostgreSQL
//! server, and the program itself over TCP.
//!
//! The server is that of `ordid_harness`: a private one, that of `ORDID_TEST_POSTGRES_URL`, or none;
//! then its tests count as ignored.

#[path = "shop/program.rs"]
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
use libtest_mimic::{Arguments, Failed, Trial};
use ordid_harness::Access;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use web_shop::{Store, router};

type Result<T = ()> = std::result::Result<T, Failed>;

fn main() -> std::result::Result<ExitCode, ordid_harness::Error> {
    let arguments = Arguments::from_args();
    let mut trials = program::trials();
    let access = if arguments.list {
        Access::Skip("only listed".to_owned())
    } else {
        ordid_harness::access("postgres")?
    };
    let access = Arc::new(access);
    macro_rules! on_both {
        ($($test:ident),+ $(,)?) => {
            $(
                trials.push(Trial::test(concat!("sqlite::", stringify!($test)), || {
                    let folder = tempfile::tempdir()?;
                    let file = folder.path().join("shop.sqlite");
                    block_on(async { $test(Client::open(&file.to_string_lossy()).await?).await })
                }));
                trials.push({
                    let access = Arc::clone(&access);
                    Trial::ignorable_test(concat!("postgres::", stringify!($test)), move || {
                        on_postgres(&access, async |client| $test(client).await)
                    })
                });
            )+
        };
    }
    on_both!(
        what_is_made_can_be_found,
        ids_that_cannot_be_are_told,
        what_the_database_refuses_is_told,
        a_cart_that_is_sent_again_is_ordered_once,
        carts_with_one_id_at_once_are_one_order,
        lists_are_newest_first_page_by_page,
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

/// Runs a test in a database of its own.
fn on_postgres(
    access: &Access,
    test: impl AsyncFnOnce(Client) -> Result,
) -> Result<libtest_mimic::Completion> {
    use diesel::{Connection as _, connection::SimpleConnection as _};

    static COUNT: AtomicU32 = AtomicU32::new(0);

    let Some(url) = access.url() else {
        let reason = match access {
            Access::Skip(reason) => reason.as_str(),
            _ => "no address",
        };
        return Ok(libtest_mimic::Completion::ignored_with(reason));
    };
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("ordid_web_shop_{}_{number}", std::process::id());
    let mut admin = diesel::PgConnection::establish(&url)?;
    admin.batch_execute(&format!("CREATE DATABASE {name}"))?;
    let (server, _) = url.rsplit_once('/').ok_or("an address names a database")?;
    let address = format!("{server}/{name}");
    let tested = || block_on(async { test(Client::open(&address).await?).await });
    let outcome = catch_unwind(AssertUnwindSafe(tested));
    admin.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)"))?;
    match outcome {
        Ok(outcome) => outcome.map(|()| libtest_mimic::Completion::Completed),
        Err(panic) => resume_unwind(panic),
    }
}

/// Asks the routes.
#[derive(Clone)]
struct Client(Router);

impl Client {
    async fn open(database: &str) -> Result<Self> {
        let store = Store::open(database).await?;
        Ok(Self(router(store)))
    }

    async fn send(&self, request: Request<Body>) -> Result<(StatusCode, Option<String>, Value)> {
        let response = self.0.clone().oneshot(request).await?;
        let status = response.status();
        let location = match response.headers().get(header::LOCATION) {
            Some(location) => Some(location.to_str()?.to_owned()),
            None => None,
        };
        let body = to_bytes(response.into_body(), 1 << 20).await?;
        Ok((status, location, serde_json::from_slice(&body)?))
    }

    async fn get(&self, path: &str) -> Result<(StatusCode, Value)> {
        let request = Request::get(path).body(Body::empty())?;
        let (status, _, body) = self.send(request).await?;
        Ok((status, body))
    }

    /// Returns what is found there.
    async fn found(&self, path: &str) -> Result<Value> {
        let (status, body) = self.get(path).await?;
        assert_eq!(status, 200, "{path}: {body}");
        Ok(body)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<(StatusCode, Value)> {
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.to_string()))?;
        let (status, _, body) = self.send(request).await?;
        Ok((status, body))
    }

    /// Returns what is made.
    async fn made(&self, path: &str, body: &Value) -> Result<Value> {
        let (status, made) = self.post(path, body).await?;
        assert_eq!(status, 201, "{path}: {made}");
        Ok(made)
    }

    /// Returns why it is refused.
    async fn refused(&self, path: &str, body: &Value, wanted: u16) -> Result<String> {
        let (status, body) = self.post(path, body).await?;
        assert_eq!(status, wanted, "{path}: {body}");
        Ok(body["error"].as_str().ok_or("no reason")?.to_owned())
    }

    async fn product(&self, sku: &str, price: i64) -> Result<Value> {
        let new = json!({ "sku": sku, "name": format!("The {sku}"), "price_cents": price });
        Ok(self.made("/products", &new).await?["id"].take())
    }

    async fn customer(&self, name: &str) -> Result<Value> {
        let new = json!({ "email": format!("{name}@example.org"), "name": name });
        Ok(self.made("/customers", &new).await?["id"].take())
    }
}

fn text(id: &Value) -> &str {
    id.as_str().unwrap_or_default()
}

async fn what_is_made_can_be_found(shop: Client) -> Result {
    let tea = shop.product("tea", 450).await?;
    let cup = shop.product("cup", 1_200).await?;
    let ada = shop.customer("ada").await?;
    assert!(text(&tea).starts_with("prod_") && text(&ada).starts_with("cus_"));
    assert_eq!(
        shop.found(&format!("/products/{}", text(&tea))).await?,
        json!({ "id": tea, "sku": "tea", "name": "The tea", "price_cents": 450 })
    );
    assert_eq!(
        shop.found(&format!("/customers/{}", text(&ada))).await?,
        json!({ "id": ada, "email": "ada@example.org", "name": "ada" })
    );

    let before = jiff::Timestamp::now().as_millisecond();
    let cart = json!({ "customer": ada, "lines": [
        { "product": tea, "quantity": 3 }, { "product": cup, "quantity": 1 },
    ] });
    let request = Request::post("/orders")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(cart.to_string()))?;
    let (status, location, order) = shop.send(request).await?;
    assert_eq!(status, 201, "{order}");
    let id = text(&order["id"]);
    assert_eq!(location, Some(format!("/orders/{id}")));
    assert_eq!(order["total_cents"], 3 * 450 + 1_200);
    assert_eq!(order["customer"], ada);
    let lines = order["lines"].as_array().ok_or("no lines")?;
    assert_eq!((&lines[0]["product"], &lines[1]["product"]), (&tea, &cup));
    assert_eq!(lines[0]["price_cents"], 450);
    assert!(text(&lines[0]["id"]) < text(&lines[1]["id"]));
    let placed: jiff::Timestamp = text(&order["placed_at"]).parse()?;
    let after = jiff::Timestamp::now().as_millisecond();
    assert!(
        (before..=after).contains(&placed.as_millisecond()),
        "{placed}"
    );
    // As the database has it.
    assert_eq!(shop.found(&format!("/orders/{id}")).await?, order);
    Ok(())
}

async fn ids_that_cannot_be_are_told(shop: Client) -> Result {
    let tea = shop.product("tea", 450).await?;
    let tea = text(&tea);
    let ada = shop.customer("ada").await?;
    for (path, status, reason) in [
        (
            "/products/1".to_owned(),
            400,
            "not a `ProductId`: expected the prefix \"prod\"",
        ),
        // Another text of the same key is not one.
        (format!("/products/{}", tea.to_uppercase()), 400, "\"prod\""),
        (format!("/products/{}", text(&ada)), 400, "\"prod\""),
        (format!("/orders?before={tea}"), 400, "\"ord\""),
        ("/orders?limit=many".to_owned(), 400, "limit"),
        ("/orders?after=1".to_owned(), 400, "unknown field"),
        // Of version 4.
        (
            "/products/prod_7zzzzzzzzz8zzbzzzzzzzzzzzz".to_owned(),
            400,
            "version 4",
        ),
        (
            "/products/prod_01h455vb4pex5vsknk084sn02q".to_owned(),
            404,
            "no prod_01h455vb4pex5vsknk084sn02q",
        ),
        (
            "/customers/cus_01h455vb4pex5vsknk084sn02q".to_owned(),
            404,
            "no cus_",
        ),
        (
            "/orders/ord_01h455vb4pex5vsknk084sn02q".to_owned(),
            404,
            "no ord_",
        ),
        ("/nowhere".to_owned(), 404, "no such route"),
    ] {
        let (found, body) = shop.get(&path).await?;
        assert_eq!(found, status, "{path}: {body}");
        let error = body["error"].as_str().ok_or("no reason")?;
        assert!(error.contains(reason), "{path}: {error}");
    }
    let cart = json!({ "customer": tea, "lines": [] });
    let reason = shop.refused("/orders", &cart, 400).await?;
    assert!(
        reason.contains("customer") && reason.contains("\"cus\""),
        "{reason}"
    );
    let reason = shop
        .refused("/orders", &json!({ "customer": 7, "lines": [] }), 400)
        .await?;
    assert!(reason.contains("the text of a `CustomerId`"), "{reason}");
    Ok(())
}

async fn what_the_database_refuses_is_told(shop: Client) -> Result {
    let tea = shop.product("tea", 450).await?;
    let ada = shop.customer("ada").await?;
    let line = json!({ "product": tea, "quantity": 1 });
    let nobody = json!("cus_01h455vb4pex5vsknk084sn02q");
    let nothing = json!({ "product": "prod_01h455vb4pex5vsknk084sn02q", "quantity": 1 });
    let zero = json!({ "product": tea, "quantity": 0 });
    for (path, body, status, reason) in [
        (
            "/products",
            json!({ "sku": "tea", "name": "", "price_cents": 1 }),
            409,
            "sku",
        ),
        (
            "/products",
            json!({ "sku": "loss", "name": "", "price_cents": -1 }),
            422,
            "price_cents",
        ),
        (
            "/orders",
            json!({ "customer": nobody, "lines": [line] }),
            422,
            "cannot insert into orders",
        ),
        (
            "/orders",
            json!({ "customer": ada, "lines": [nothing] }),
            422,
            "no prod_01h455vb4pex5vsknk084sn02q",
        ),
        (
            "/orders",
            json!({ "customer": ada, "lines": [] }),
            422,
            "empty",
        ),
        // The flush names the row.
        (
            "/orders",
            json!({ "customer": ada, "lines": [zero] }),
            422,
            "cannot insert into order_lines (row 0), key line_",
        ),
        (
            "/orders",
            json!({ "customer": ada, "lines": [line, line] }),
            409,
            "cannot insert into order_lines",
        ),
        // In the year 4147.
        (
            "/orders",
            json!({ "id": "ord_1zzzzzzzzzfzzvzzzzzzzzzzzz", "customer": ada, "lines": [line] }),
            422,
            "a time that has not come",
        ),
    ] {
        let error = shop.refused(path, &body, status).await?;
        assert!(error.contains(reason), "{path} {body}: {error}");
    }
    // All or nothing: the order does not stay without its lines.
    assert_eq!(
        shop.found("/orders").await?,
        json!({ "items": [], "next": null })
    );
    Ok(())
}

/// A key as a client makes it.
fn order_id() -> String {
    use ordid::KeyType;

    #[derive(KeyType)]
    #[ordid(prefix = "ord")]
    struct OrderId(uuid::Uuid);

    OrderId::generate().to_string()
}

async fn a_cart_that_is_sent_again_is_ordered_once(shop: Client) -> Result {
    let tea = shop.product("tea", 450).await?;
    let cup = shop.product("cup", 1_200).await?;
    let ada = shop.customer("ada").await?;
    let (one, two) = (
        json!({ "product": tea, "quantity": 1 }),
        json!({ "product": cup, "quantity": 2 }),
    );
    let cart = json!({ "id": order_id(), "customer": ada, "lines": [one, two] });
    let order = shop.made("/orders", &cart).await?;
    assert_eq!(order["id"], cart["id"]);
    assert_eq!(
        shop.post("/orders", &cart).await?,
        (StatusCode::OK, order.clone())
    );
    let turned = json!({ "id": cart["id"], "customer": ada, "lines": [two, one] });
    assert_eq!(
        shop.post("/orders", &turned).await?,
        (StatusCode::OK, order.clone())
    );

    let other = json!({ "id": cart["id"], "customer": ada, "lines": [two] });
    let reason = shop.refused("/orders", &other, 409).await?;
    assert!(reason.ends_with(" is another order"), "{reason}");
    let grace = shop.customer("grace").await?;
    let other = json!({ "id": cart["id"], "customer": grace, "lines": [one, two] });
    shop.refused("/orders", &other, 409).await?;

    // Without an id it is another order each time.
    let cart = json!({ "customer": ada, "lines": [one] });
    let next = shop.made("/orders", &cart).await?;
    let last = shop.made("/orders", &cart).await?;
    assert_ne!(next["id"], last["id"]);
    let found = shop.found("/orders").await?;
    assert_eq!(found["items"], json!([last, next, order]));
    Ok(())
}

async fn carts_with_one_id_at_once_are_one_order(shop: Client) -> Result {
    let tea = shop.product("tea", 450).await?;
    let ada = shop.customer("ada").await?;
    let line = json!({ "product": tea, "quantity": 1 });
    let cart = json!({ "id": order_id(), "customer": ada, "lines": [line] });
    let mut clients = Vec::new();
    for _ in 0..8 {
        let (shop, cart) = (shop.clone(), cart.clone());
        clients.push(tokio::spawn(
            async move { shop.post("/orders", &cart).await },
        ));
    }
    let mut statuses = Vec::new();
    for client in clients {
        let (status, order) = client.await??;
        assert_eq!(order["id"], cart["id"], "{order}");
        statuses.push(status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses[..7], [StatusCode::OK; 7]);
    assert_eq!(statuses[7], StatusCode::CREATED);
    let found = shop.found("/orders").await?;
    assert_eq!(found["items"].as_array().map(Vec::len), Some(1));
    Ok(())
}

async fn lists_are_newest_first_page_by_page(shop: Client) -> Result {
    let mut products = Vec::new();
    for number in 0..3 {
        products.push(shop.product(&format!("p{number}"), 100).await?);
    }
    let [ada, grace] = [shop.customer("ada").await?, shop.customer("grace").await?];
    let mut newest_first = Vec::new();
    for number in 0..25 {
        let customer = if number % 5 == 0 { &grace } else { &ada };
        let line = json!({ "product": products[number % 3], "quantity": 1 });
        let cart = json!({ "customer": customer, "lines": [line] });
        newest_first.insert(0, shop.made("/orders", &cart).await?);
    }

    let mut walked = Vec::new();
    let mut path = "/orders?limit=10".to_owned();
    let mut pages = 0;
    loop {
        let mut page = shop.found(&path).await?;
        pages += 1;
        walked.append(page["items"].as_array_mut().ok_or("no items")?);
        // What comes in between does not shift the pages to come.
        let line = json!({ "product": products[0], "quantity": 1 });
        shop.made("/orders", &json!({ "customer": ada, "lines": [line] }))
            .await?;
        match page["next"].as_str() {
            Some(next) => path = format!("/orders?limit=10&before={next}"),
            None => break,
        }
    }
    assert_eq!(pages, 3);
    assert_eq!(walked, newest_first);

    let of = shop
        .found(&format!("/orders?customer={}", text(&grace)))
        .await?;
    newest_first.retain(|order| order["customer"] == grace);
    assert_eq!(of, json!({ "items": newest_first, "next": null }));
    let listed = shop.found("/products?limit=2").await?;
    assert_eq!(listed["items"][0]["id"], products[2]);
    assert_eq!(listed["next"], products[1]);
    let listed = shop
        .found(&format!("/products?before={}", text(&products[1])))
        .await?;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["next"], Value::Null);
    Ok(())
}
