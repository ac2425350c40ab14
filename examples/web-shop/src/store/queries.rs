//! The tables and all queries, compiled for each database: `super` says which `Connection`, and which
//! type of `table!` its keys are.

use std::{collections::HashMap, time::Duration};

use diesel::{
    connection::SimpleConnection as _,
    prelude::*,
    r2d2::{ConnectionManager, CustomizeConnection, Pool, PooledConnection},
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness as _};
use ordid::{KeyType as _, OrderedKey};
use ordid_diesel::UnitOfWork;

use super::{Connection, Key};
use crate::{
    error::{Error, Kind},
    model::{
        Cart, Customer, CustomerId, Line, LineId, NewCustomer, NewProduct, Order, OrderId, Page,
        Product, ProductId, time_of,
    },
    store::Database,
};

diesel::table! {
    use diesel::sql_types::{BigInt, Text};
    use super::Key;

    products (id) {
        id -> Key,
        sku -> Text,
        name -> Text,
        price_cents -> BigInt,
    }
}

diesel::table! {
    use diesel::sql_types::Text;
    use super::Key;

    customers (id) {
        id -> Key,
        email -> Text,
        name -> Text,
    }
}

diesel::table! {
    use super::Key;

    orders (id) {
        id -> Key,
        customer_id -> Key,
    }
}

diesel::table! {
    use diesel::sql_types::{BigInt, Integer};
    use super::Key;

    order_lines (id) {
        id -> Key,
        order_id -> Key,
        product_id -> Key,
        quantity -> Integer,
        price_cents -> BigInt,
    }
}

/// A row of `orders`. That it is a child of a customer is told by the type of the field.
#[derive(Queryable, OrderedKey)]
#[diesel(table_name = orders)]
#[ordid(diesel)]
struct OrderRow {
    id: OrderId,
    #[ordid(parent)]
    customer_id: CustomerId,
}

#[derive(Queryable, OrderedKey)]
#[diesel(table_name = order_lines)]
#[ordid(diesel)]
struct LineRow {
    id: LineId,
    #[ordid(parent)]
    order_id: OrderId,
    #[ordid(parent)]
    product_id: ProductId,
    quantity: i32,
    price_cents: i64,
}

impl From<&LineRow> for Line {
    fn from(row: &LineRow) -> Self {
        Self {
            id: row.id,
            product: row.product_id,
            quantity: row.quantity,
            price_cents: row.price_cents,
        }
    }
}

/// How far a client's clock may be ahead of this one.
const AHEAD: Duration = Duration::from_secs(60);

/// A pool of connections.
pub(in crate::store) struct Pooled(Pool<ConnectionManager<Connection>>);

/// Sends each new connection its settings.
#[derive(Debug)]
struct Settings(&'static str);

impl CustomizeConnection<Connection, diesel::r2d2::Error> for Settings {
    fn on_acquire(&self, connection: &mut Connection) -> Result<(), diesel::r2d2::Error> {
        connection
            .batch_execute(self.0)
            .map_err(diesel::r2d2::Error::QueryError)
    }
}

impl Pooled {
    pub(in crate::store) fn open(
        address: &str,
        connections: u32,
        settings: &'static str,
        migrations: EmbeddedMigrations,
    ) -> Result<Self, Error> {
        let pool = Pool::builder()
            .max_size(connections)
            .min_idle(Some(1))
            .connection_timeout(Duration::from_secs(5))
            .connection_customizer(Box::new(Settings(settings)))
            .build(ConnectionManager::new(address))
            .map_err(|error| Error::from(error).context("cannot open the database"))?;
        pool.get()?
            .run_pending_migrations(migrations)
            .map_err(|error| Error::new(Kind::Failed, error).context("cannot migrate"))?;
        Ok(Self(pool))
    }

    fn get(&self) -> Result<PooledConnection<ConnectionManager<Connection>>, Error> {
        Ok(self.0.get()?)
    }

    /// Reads what the products in a cart cost now.
    fn prices(&self, cart: &Cart) -> Result<HashMap<ProductId, i64>, Error> {
        let wanted = cart.lines.iter().map(|line| line.product);
        let found: Vec<(ProductId, i64)> = products::table
            .filter(products::id.eq_any(wanted))
            .select((products::id, products::price_cents))
            .load(&mut self.get()?)?;
        Ok(found.into_iter().collect())
    }

    /// Gives orders their lines, in the order in which they were ordered.
    fn with_lines(&self, rows: Vec<OrderRow>) -> Result<Vec<Order>, Error> {
        let ids: Vec<OrderId> = rows.iter().map(|row| row.id).collect();
        let lines: Vec<LineRow> = order_lines::table
            .filter(order_lines::order_id.eq_any(ids))
            .order(order_lines::id)
            .load(&mut self.get()?)?;
        let mut of: HashMap<OrderId, Vec<Line>> = HashMap::new();
        for line in lines {
            of.entry(line.order_id).or_default().push(Line::from(&line));
        }
        let with_lines = |row: OrderRow| {
            let lines = of.remove(&row.id).unwrap_or_default();
            Order::new(row.id, row.customer_id, lines)
        };
        Ok(rows.into_iter().map(with_lines).collect())
    }
}

impl Database for Pooled {
    fn add_product(&self, new: NewProduct) -> Result<Product, Error> {
        let product = Product {
            id: ProductId::generate(),
            sku: new.sku,
            name: new.name,
            price_cents: new.price_cents,
        };
        diesel::insert_into(products::table)
            .values((
                products::id.eq(product.id),
                products::sku.eq(&product.sku),
                products::name.eq(&product.name),
                products::price_cents.eq(product.price_cents),
            ))
            .execute(&mut self.get()?)?;
        Ok(product)
    }

    fn product(&self, id: ProductId) -> Result<Product, Error> {
        let found = products::table.find(id).first(&mut self.get()?);
        found.optional()?.ok_or_else(|| not_found(id))
    }

    fn products(&self, page: &Page<ProductId>) -> Result<Vec<Product>, Error> {
        let mut query = products::table.into_boxed();
        if let Some(before) = page.before {
            query = query.filter(products::id.lt(before));
        }
        let newest_first = query.order(products::id.desc()).limit(page.rows());
        Ok(newest_first.load(&mut self.get()?)?)
    }

    fn add_customer(&self, new: NewCustomer) -> Result<Customer, Error> {
        let customer = Customer {
            id: CustomerId::generate(),
            email: new.email,
            name: new.name,
        };
        diesel::insert_into(customers::table)
            .values((
                customers::id.eq(customer.id),
                customers::email.eq(&customer.email),
                customers::name.eq(&customer.name),
            ))
            .execute(&mut self.get()?)?;
        Ok(customer)
    }

    fn customer(&self, id: CustomerId) -> Result<Customer, Error> {
        let found = customers::table.find(id).first(&mut self.get()?);
        found.optional()?.ok_or_else(|| not_found(id))
    }

    fn place(&self, cart: &Cart) -> Result<(Order, bool), Error> {
        let refused = |why: String| Error::new(Kind::Refused, why);
        if cart.lines.is_empty() {
            return Err(refused("the cart is empty".to_owned()));
        }
        if let Some(id) = cart.id {
            // It would stand above all orders until that time.
            let latest = jiff::Timestamp::now() + AHEAD;
            if time_of(id).is_none_or(|time| time > latest) {
                return Err(refused(format!("{id} is of a time that has not come")));
            }
        }
        let prices = self.prices(cart)?;

        // Order and lines know each other before either is in the database.
        let id = cart.id.unwrap_or_else(OrderId::generate);
        let mut work = UnitOfWork::new();
        work.add(OrderRow {
            id,
            customer_id: cart.customer,
        });
        let mut lines = Vec::with_capacity(cart.lines.len());
        for line in &cart.lines {
            let price = prices.get(&line.product);
            let row = LineRow {
                id: LineId::generate(),
                order_id: id,
                product_id: line.product,
                quantity: line.quantity,
                price_cents: *price.ok_or_else(|| refused(format!("no {}", line.product)))?,
            };
            lines.push(Line::from(&row));
            work.add(row);
        }
        match work.flush_with(|| self.0.get()) {
            Ok(_) => Ok((Order::new(id, cart.customer, lines), true)),
            Err(error) if error.is_unique_violation() && cart.id.is_some() => {
                // The client did not hear the first answer, or somebody else has the key.
                match self.order(id) {
                    Ok(order) if order.is_of(cart) => Ok((order, false)),
                    Ok(_) => Err(Error::new(Kind::Taken, format!("{id} is another order"))),
                    Err(_) => Err(error.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    fn order(&self, id: OrderId) -> Result<Order, Error> {
        let found = orders::table.find(id).load(&mut self.get()?)?;
        self.with_lines(found)?.pop().ok_or_else(|| not_found(id))
    }

    fn orders(&self, of: Option<CustomerId>, page: &Page<OrderId>) -> Result<Vec<Order>, Error> {
        let mut query = orders::table.into_boxed();
        if let Some(customer) = of {
            query = query.filter(orders::customer_id.eq(customer));
        }
        if let Some(before) = page.before {
            query = query.filter(orders::id.lt(before));
        }
        let newest_first = query.order(orders::id.desc()).limit(page.rows());
        let found = newest_first.load(&mut self.get()?)?;
        self.with_lines(found)
    }
}

fn not_found(id: impl std::fmt::Display) -> Error {
    Error::new(Kind::NotFound, format_args!("no {id}"))
}

#[cfg(test)]
mod tests {
    use ordid::storage::ColumnOn;
    use ordid_diesel::{Backend, StoredAs};

    use super::{
        super::{UP, UP_FLUSHES},
        Connection, OrderId,
    };

    type Db = <Connection as diesel::Connection>::Backend;
    type Column = <OrderId as StoredAs<Db>>::Column;
    type Declared<D> = <D as Backend>::Dialect;

    /// The migration is plain SQL: nothing else holds it to the columns in which keys keep their order.
    #[test]
    fn the_migration_declares_keys_as_ordid_does() {
        let key = <Column as ColumnOn<Declared<Db>>>::primary_key("id");
        assert_eq!(UP.matches(&format!("    {key},\n")).count(), 4, "{key}");
        let reference = format!(
            "_id {} NOT NULL REFERENCES ",
            <Column as ColumnOn<Declared<Db>>>::TYPE
        );
        assert_eq!(UP.matches(&reference).count(), 3, "{reference}");
        assert_eq!(UP.matches(" REFERENCES ").count(), 3);
    }

    #[test]
    fn the_migration_of_marker_rows_is_ordids() {
        let words = |sql: &str| {
            let sql = sql.replace('(', "( ").replace(')', " )").replace(';', "");
            let words: Vec<_> = sql.split_whitespace().collect();
            words.join(" ")
        };
        let (_, statement) = UP_FLUSHES.split_once('\n').expect("a comment");
        assert_eq!(words(statement), words(ordid_diesel::flushes_table::<Db>()));
    }
}
