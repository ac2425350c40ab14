//! The database behind the shop: PostgreSQL or SQLite, by what the address says.
//!
//! Diesel's queries are typed by the database, so that those of `store/queries.rs` are compiled once
//! for each: `table!` gives keys the type that the database sorts best, `Uuid` here, `Binary` there.

#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

use std::sync::Arc;

use crate::{
    error::{Error, Kind},
    model::{
        Cart, Customer, CustomerId, NewCustomer, NewProduct, Order, OrderId, Page, Product,
        ProductId,
    },
};

/// What the shop asks its database. Each call blocks.
pub(crate) trait Database: Send + Sync {
    fn add_product(&self, new: NewProduct) -> Result<Product, Error>;
    fn product(&self, id: ProductId) -> Result<Product, Error>;
    fn products(&self, page: &Page<ProductId>) -> Result<Vec<Product>, Error>;
    fn add_customer(&self, new: NewCustomer) -> Result<Customer, Error>;
    fn customer(&self, id: CustomerId) -> Result<Customer, Error>;
    /// Orders what is in the cart, and returns whether that was done now: a cart that was ordered
    /// already is not ordered again.
    fn place(&self, cart: &Cart) -> Result<(Order, bool), Error>;
    fn order(&self, id: OrderId) -> Result<Order, Error>;
    /// The orders of one customer, or of all, newest first.
    fn orders(&self, of: Option<CustomerId>, page: &Page<OrderId>) -> Result<Vec<Order>, Error>;
}

/// The shop's database, with its tables; to be cloned.
#[derive(Clone)]
pub struct Store(Arc<dyn Database>);

impl Store {
    /// Connects, and brings the tables up to date: to PostgreSQL where the address begins with
    /// `postgres://`, and otherwise to the SQLite file of this name.
    ///
    /// # Errors
    ///
    /// If there is no connection, or a migration fails.
    pub async fn open(address: &str) -> Result<Self, Error> {
        let address = address.to_owned();
        block(move || {
            let server = ["postgres://", "postgresql://"];
            if !server.iter().any(|scheme| address.starts_with(scheme)) {
                let file = address.strip_prefix("sqlite:").unwrap_or(&address);
                return Ok(Self(Arc::new(sqlite::open(file)?)));
            }
            #[cfg(feature = "postgres")]
            return Ok(Self(Arc::new(postgres::open(&address)?)));
            #[cfg(not(feature = "postgres"))]
            Err(Error::new(
                Kind::Failed,
                "built without PostgreSQL: build with the feature `postgres`",
            ))
        })
        .await
    }

    /// Asks the database, on a thread that may block.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Database) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let database = Arc::clone(&self.0);
        block(move || question(&*database)).await
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

async fn block<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panicked) => Err(Error::new(Kind::Failed, panicked)),
    }
}
