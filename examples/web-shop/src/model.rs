//! What the shop talks about, as its JSON has it.

use diesel::Queryable;
use ordid::KeyType;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// `prod_...`
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "prod", diesel)]
pub(crate) struct ProductId(Uuid);

/// `cus_...`
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "cus", diesel)]
pub(crate) struct CustomerId(Uuid);

/// `ord_...`
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "ord", diesel)]
pub(crate) struct OrderId(Uuid);

/// `line_...`
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "line", diesel)]
pub(crate) struct LineId(Uuid);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewProduct {
    pub(crate) sku: String,
    pub(crate) name: String,
    pub(crate) price_cents: i64,
}

#[derive(Queryable, Serialize)]
pub(crate) struct Product {
    pub(crate) id: ProductId,
    pub(crate) sku: String,
    pub(crate) name: String,
    pub(crate) price_cents: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewCustomer {
    pub(crate) email: String,
    pub(crate) name: String,
}

#[derive(Queryable, Serialize)]
pub(crate) struct Customer {
    pub(crate) id: CustomerId,
    pub(crate) email: String,
    pub(crate) name: String,
}

/// A cart. With an `id` of the client's it can be sent again: it is ordered once.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cart {
    pub(crate) id: Option<OrderId>,
    pub(crate) customer: CustomerId,
    pub(crate) lines: Vec<CartLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CartLine {
    pub(crate) product: ProductId,
    pub(crate) quantity: i32,
}

#[derive(Serialize)]
pub(crate) struct Order {
    pub(crate) id: OrderId,
    /// The time in the key: there is no column for it.
    pub(crate) placed_at: Option<jiff::Timestamp>,
    pub(crate) customer: CustomerId,
    pub(crate) total_cents: i64,
    pub(crate) lines: Vec<Line>,
}

#[derive(Serialize)]
pub(crate) struct Line {
    pub(crate) id: LineId,
    pub(crate) product: ProductId,
    pub(crate) quantity: i32,
    pub(crate) price_cents: i64,
}

impl Order {
    pub(crate) fn new(id: OrderId, customer: CustomerId, lines: Vec<Line>) -> Self {
        let cents = |line: &Line| line.price_cents.saturating_mul(line.quantity.into());
        Self {
            id,
            placed_at: time_of(id),
            customer,
            total_cents: lines.iter().map(cents).fold(0, i64::saturating_add),
            lines,
        }
    }

    /// Returns whether a cart that is sent again is this order: the same lines, in any order.
    pub(crate) fn is_of(&self, cart: &Cart) -> bool {
        let mut ordered: Vec<_> = self
            .lines
            .iter()
            .map(|it| (it.product, it.quantity))
            .collect();
        let mut sent: Vec<_> = cart
            .lines
            .iter()
            .map(|it| (it.product, it.quantity))
            .collect();
        ordered.sort_unstable();
        sent.sort_unstable();
        self.customer == cart.customer && ordered == sent
    }
}

/// Returns the time that a key carries.
pub(crate) fn time_of<K: KeyType>(key: K) -> Option<jiff::Timestamp> {
    let millis = key.timestamp()?.as_unix_millis();
    jiff::Timestamp::from_millisecond(i64::try_from(millis).ok()?).ok()
}

/// Which part of a list is wanted: the newest entries, or those before one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page<K> {
    pub(crate) before: Option<K>,
    pub(crate) limit: Option<u8>,
}

impl<K> Page<K> {
    /// At most this many entries.
    pub(crate) fn limit(&self) -> usize {
        usize::from(self.limit.unwrap_or(20).clamp(1, 100))
    }

    /// What to ask the database for: one more, which tells whether there is another page.
    pub(crate) fn rows(&self) -> i64 {
        i64::from(self.limit.unwrap_or(20).clamp(1, 100)) + 1
    }
}

#[derive(Serialize)]
pub(crate) struct Listing<T, K> {
    pub(crate) items: Vec<T>,
    /// What `before` of the next page has to be; `null` on the last.
    pub(crate) next: Option<K>,
}

impl<T, K> Listing<T, K> {
    pub(crate) fn new(page: &Page<K>, mut found: Vec<T>, id: impl Fn(&T) -> K) -> Self {
        let more = found.len() > page.limit();
        found.truncate(page.limit());
        let next = found.last().filter(|_| more).map(id);
        Self { items: found, next }
    }
}
