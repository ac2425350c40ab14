//! `#[derive(KeyType)]` and `#[derive(OrderedKey)]`: use them through the facade `ordid`.
//!
//! The derives know no database library: `KeyType` forwards each `engine = column` pair to a macro
//! of the adapter, and `OrderedKey` implements `Fields<S>` for every sink that takes the fields'
//! types. All mistakes of an item are reported together, each at its token, and the item still gets
//! its impls, so that nothing else fails because of them.

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

mod attr;
mod case;
mod check;
mod ctxt;
mod expand;
mod model;
mod options;
mod suggest;
#[cfg(test)]
mod tests;

/// Makes a key type of a newtype over a raw key: one per entity, so that ids do not mix.
///
/// ```
/// use ordid::{KeyType, uuid::Uuid};
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, prefix = "ord")]
/// pub struct OrderId(Uuid);
///
/// let raw: Uuid = "01890a5d-ac96-774b-bcce-b302099a8057".parse()?;
/// let id = OrderId::try_from(raw)?;
/// assert_eq!(id.to_string(), "ord_01h455vb4pex5vsknk084sn02q");
/// assert!(OrderId::generate() > id);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Implements `KeyType` and `TypedKey`, and with them `Clone`, `Copy`, `PartialEq`, `Eq`,
/// `PartialOrd`, `Ord` (the scheme's order), `Hash`, `Debug`, `Display`, `FromStr`, `TryFrom` of
/// the raw key (checking version and variant) and `From<OrderId>` for the raw key. Do not derive
/// these beside it. With `ordid`'s features `serde`, `schemars`, `utoipa`, `arbitrary` and `proptest` it
/// implements the traits of these crates as well; do not derive them beside it either, since another
/// crate of the program may turn a feature on.
///
/// # Options of the struct
///
/// | option | meaning | default |
/// |---|---|---|
/// | `scheme = uuid_v7` | the algorithm that makes the keys: `uuid_v7`, `uuid_v6`, `ulid`, `comb_rt_sql`, `object_id`, ... (below) | `uuid_v7` |
/// | `scheme = snowflake(layout = Sonyflake)` | the same, with a parameter | `layout = Twitter` |
/// | `prefix = "ord"` | text form by TypeID, `ord_01h455vb4pex5vsknk084sn02q` | the raw key's text |
/// | `sqlx` | SQLx, each engine's native column for the raw key: `uuid`, `binary16`, `blob` | no SQLx |
/// | `sqlx(postgres = uuid, mysql = char36)` | SQLx, these engines in these columns | |
/// | `sqlx(mysql = unordered(binary16))` | the same, where the column need not keep the keys' order | |
/// | `sqlx(crate = path, ...)` | where `ordid-sqlx` is | `::ordid_sqlx` |
/// | `tiberius(sql_server = unique_identifier, babelfish = ...)` | as `sqlx`, for tiberius | no tiberius |
/// | `oracle(oracle = raw16)` | as `sqlx`, for the crate `oracle` | no `oracle` |
/// | `crate = path` | where `ordid` is, if it was renamed or re-exported | `::ordid` |
///
/// # Schemes
///
/// Each is a page of `ordid::scheme`. The field is the scheme's raw key:
///
/// | raw key | schemes |
/// |---|---|
/// | `uuid::Uuid` | `uuid_v7`, `uuid_v7_sub_millis`, `uuid_v7_unguessable`, `uuid_v1`, `uuid_v1_rearranged`, `uuid_v4`, `uuid_v4_clustered`, `uuid_v4_clustered_compat`, `uuid_v6`, `uuid_v8_sql_server`, `comb_efcore`, `comb_nhibernate`, `comb_rt_binary`, `comb_rt_legacy`, `comb_rt_postgresql`, `comb_rt_sql`, `newid`\*, `ordered_text_22`, `ordered_text_22_push`, `ordered_text_22_time64`, `ordered_text_22_time64_push`, `sequential_guid_as_binary`, `sequential_guid_as_string`, `sequential_guid_at_end`, `ulid` |
/// | `ordid::key::ObjectId` | `object_id` |
/// | `ordid::key::PushId` | `push_id` |
/// | `ordid::key::Key192` | `ordered_text_32`, `ordered_text_32_push` |
/// | `i64` | `instagram`\*, `snowflake`\* |
/// | `u64` | `percona_64`\*, `uuid_short`\* |
///
/// \* A node of your own tells these keys apart, so there is no `generate()`: make a generator with
/// the node, and ask it for keys.
///
/// `snowflake` has a parameter, its layout: a preset by its name (`Twitter`, `BaiduUid`, `Discord`,
/// `Sonyflake`, `SonyflakeV2`, `WideSequence`, `Yitter`), or a type of your own by its path, such as
/// `ordid::scheme::Compact<Orders>`; one that has a preset's name, by `self::Twitter`.
///
/// ```
/// use ordid::{
///     KeyType, clock::SystemClock, entropy::ThreadEntropy, generator::{Generator, Policy},
///     scheme::snowflake::{SnowflakeGenerator, SnowflakeNode, Sonyflake},
/// };
///
/// #[derive(KeyType)]
/// #[ordid(scheme = snowflake(layout = Sonyflake), prefix = "ord")]
/// pub struct OrderId(i64);
///
/// let node = SnowflakeNode::<Sonyflake>::new(7)?;
/// let keys = SnowflakeGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
/// let id: OrderId = keys.try_generate_key()?;
/// assert!(id < keys.try_generate_key()?);
/// assert_eq!(id.to_string(), format!("ord_{}", i64::from(id)));
/// # Ok::<(), ordid::Error>(())
/// ```
///
/// # Errors
///
/// At compile time, at the token that has to change: another shape than a tuple struct with one
/// field, another raw key than the scheme's, an unknown scheme, parameter, engine, column or option,
/// a prefix against TypeID's rules, and a column that would lose the keys' order.
#[proc_macro_derive(KeyType, attributes(ordid))]
pub fn derive_key_type(input: TokenStream) -> TokenStream {
    expand::key_type(&parse_macro_input!(input as DeriveInput)).into()
}

/// Makes an entity of a struct: a row that knows its table, its columns, its key and its parents.
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
///
/// #[derive(KeyType)]
/// struct CustomerId(Uuid);
///
/// #[derive(KeyType)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// #[ordid(table = "orders")]
/// struct Order {
///     #[ordid(key)]
///     id: Option<OrderId>,
///     #[ordid(parent)]
///     customer: CustomerId,
///     total: i64,
/// }
///
/// let mut order = Order { id: None, customer: CustomerId::generate(), total: 1250 };
/// assert_eq!(order.key(), None);
/// assert_eq!(Some(order.ensure_key()), order.key());
/// assert_eq!((Order::TABLE, Order::COLUMNS), ("orders", &["id", "customer", "total"][..]));
/// ```
///
/// Implements `OrderedKey`, and `Fields<S>` for each sink `S` that takes the types of all columns.
///
/// # Options of the struct
///
/// | option | meaning | default |
/// |---|---|---|
/// | `table = "orders"` | the table's name | the struct's name in snake_case: `order` |
/// | `schema = "shop"` | the table's schema | none |
/// | `rename_all = "camelCase"` | the case of all column names, by SQLx's names of cases | as written |
/// | `crate = path` | where `ordid` is, if it was renamed or re-exported | `::ordid` |
///
/// # Options of a field
///
/// | option | meaning | default |
/// |---|---|---|
/// | `key` | the key: a key type `K`, or `Option<K>` where it may be unassigned | the field `id` |
/// | `parent` | a foreign key; its key type tells the entity | no parent |
/// | `parent = Customer` | a foreign key to this entity; `references = Customer` is the same | |
/// | `column = "total_cents"` | the column's name | the field's name |
/// | `skip` | no column | |
///
/// Beside `sqlx::FromRow`, its `#[sqlx(rename = "...")]`, `#[sqlx(rename_all = "...")]` and
/// `#[sqlx(skip)]` hold too, so that a row is written as it is read; an option of `#[ordid(...)]`
/// goes before. A `#[sqlx(flatten)]` field is refused, since it has no column.
///
/// # Errors
///
/// At compile time, at the token that has to change: no key or two, a parent field that does not
/// tell its entity, two columns of one name, an unknown option, and anything but a struct with
/// named fields.
#[proc_macro_derive(OrderedKey, attributes(ordid))]
pub fn derive_ordered_key(input: TokenStream) -> TokenStream {
    expand::ordered_key(&parse_macro_input!(input as DeriveInput)).into()
}
