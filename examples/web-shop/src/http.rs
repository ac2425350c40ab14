//! The routes, and what their answers look like.

use std::io::{self, Write as _};

use axum::{
    Json, Router,
    extract::{
        FromRequest, FromRequestParts, State,
        rejection::{JsonRejection, PathRejection, QueryRejection},
    },
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Kind},
    model::{
        Cart, Customer, CustomerId, Listing, NewCustomer, NewProduct, Order, OrderId, Page,
        Product, ProductId,
    },
    store::Store,
};

/// Returns the shop's routes.
///
/// | | |
/// |---|---|
/// | `POST /products` | `{"sku": .., "name": .., "price_cents": ..}` |
/// | `GET /products?before=prod_..&limit=20` | newest first |
/// | `GET /products/prod_..` | |
/// | `POST /customers` | `{"email": .., "name": ..}` |
/// | `GET /customers/cus_..` | |
/// | `POST /orders` | `{"id": "ord_..", "customer": "cus_..", "lines": [{"product": "prod_..", "quantity": 1}]}`; without `id` the shop makes one |
/// | `GET /orders?customer=cus_..&before=ord_..&limit=20` | newest first |
/// | `GET /orders/ord_..` | |
///
/// What goes wrong is `{"error": ..}`: 400 where the request cannot be read, 404, 409 where something
/// else has the key or a unique value, 422 where the database or the shop refuses it, 503 where another
/// time it may work.
pub fn router(store: Store) -> Router {
    Router::new()
        .route("/products", get(products).post(add_product))
        .route("/products/{id}", get(product))
        .route("/customers", axum::routing::post(add_customer))
        .route("/customers/{id}", get(customer))
        .route("/orders", get(orders).post(place))
        .route("/orders/{id}", get(order))
        .fallback(async || Failure::new(StatusCode::NOT_FOUND, "no such route"))
        .with_state(store)
}

type Answer<T> = Result<Json<T>, Failure>;
type Created<T> = (StatusCode, [(header::HeaderName, String); 1], Json<T>);

/// Says where what was made can be found.
fn at<T>(status: StatusCode, path: String, made: T) -> Created<T> {
    (status, [(header::LOCATION, path)], Json(made))
}

type Made<T> = Result<Created<T>, Failure>;

async fn add_product(State(store): State<Store>, Body(new): Body<NewProduct>) -> Made<Product> {
    let made = store.ask(|shop| shop.add_product(new)).await?;
    let path = format!("/products/{}", made.id);
    Ok(at(StatusCode::CREATED, path, made))
}

async fn product(State(store): State<Store>, Path(id): Path<ProductId>) -> Answer<Product> {
    Ok(Json(store.ask(move |shop| shop.product(id)).await?))
}

async fn products(
    State(store): State<Store>,
    Query(page): Query<Page<ProductId>>,
) -> Answer<Listing<Product, ProductId>> {
    let listing = store.ask(move |shop| {
        let found = shop.products(&page)?;
        Ok(Listing::new(&page, found, |product| product.id))
    });
    Ok(Json(listing.await?))
}

async fn add_customer(State(store): State<Store>, Body(new): Body<NewCustomer>) -> Made<Customer> {
    let made = store.ask(|shop| shop.add_customer(new)).await?;
    let path = format!("/customers/{}", made.id);
    Ok(at(StatusCode::CREATED, path, made))
}

async fn customer(State(store): State<Store>, Path(id): Path<CustomerId>) -> Answer<Customer> {
    Ok(Json(store.ask(move |shop| shop.customer(id)).await?))
}

async fn place(State(store): State<Store>, Body(cart): Body<Cart>) -> Made<Order> {
    let (order, new) = store.ask(move |shop| shop.place(&cart)).await?;
    let status = if new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(at(status, format!("/orders/{}", order.id), order))
}

async fn order(State(store): State<Store>, Path(id): Path<OrderId>) -> Answer<Order> {
    Ok(Json(store.ask(move |shop| shop.order(id)).await?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhichOrders {
    customer: Option<CustomerId>,
    before: Option<OrderId>,
    limit: Option<u8>,
}

async fn orders(
    State(store): State<Store>,
    Query(which): Query<WhichOrders>,
) -> Answer<Listing<Order, OrderId>> {
    let page = Page {
        before: which.before,
        limit: which.limit,
    };
    let listing = store.ask(move |shop| {
        let found = shop.orders(which.customer, &page)?;
        Ok(Listing::new(&page, found, |order| order.id))
    });
    Ok(Json(listing.await?))
}

/// axum's own, with the shop's answer to what it refuses.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Failure))]
struct Path<T>(T);

/// Likewise.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Failure))]
struct Query<T>(T);

/// Likewise.
#[derive(FromRequest)]
#[from_request(via(axum::Json), rejection(Failure))]
struct Body<T>(T);

/// What a request failed with.
struct Failure {
    status: StatusCode,
    message: String,
}

impl Failure {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Body {
            error: String,
        }

        let body = Body {
            error: self.message,
        };
        (self.status, Json(body)).into_response()
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
            // A value of the wrong type is a bad request. The shop uses 422 only for requests that it has understood.
            JsonRejection::JsonDataError(_) => StatusCode::BAD_REQUEST,
            _ => rejection.status(),
        };
        Self::new(status, rejection.body_text())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Taken => StatusCode::CONFLICT,
            Kind::Refused => StatusCode::UNPROCESSABLE_ENTITY,
            Kind::Busy | Kind::Failed => {
                // For the operator: the client is told no more than it can use. Where stderr is
                // closed there is nobody to tell.
                let _ = writeln!(io::stderr(), "web-shop: {error}");
                return match error.kind() {
                    Kind::Busy => Self::new(StatusCode::SERVICE_UNAVAILABLE, "try again"),
                    _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the shop failed"),
                };
            }
        };
        Self::new(status, error.to_string())
    }
}
