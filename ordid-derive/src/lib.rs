//! The derives of ordid: use them through the facade `ordid`.
//!
//! | you want to | use |
//! |---|---|
//! | make a type of its own for the ids of an entity | `#[derive(KeyType)]` |
//! | store such ids in a column of your library | `#[ordid(scheme = uuid_v7, sqlx)]` beside it |
//! | add entities to a unit of work | `#[derive(OrderedKey)]` |
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
mod schemes;
mod suggest;
#[cfg(test)]
mod tests;
mod value;

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
/// these beside it. With `ordid`'s features `serde`, `schemars`, `utoipa`, `async-graphql7`, `juniper018`, `arbitrary` and
/// `proptest` it implements the traits of these crates as well; do not derive them beside it either, since another
/// crate of the program may turn a feature on.
///
/// # Options of the struct
///
/// | option | meaning | default |
/// |---|---|---|
/// | `scheme = uuid_v7` | the algorithm that makes the keys: `uuid_v7`, `uuid_v6`, `ulid`, `comb_rt_sql`, `object_id`, ... (below) | `uuid_v7` |
/// | `scheme = snowflake(layout = Sonyflake)` | the same, with parameters (below) | `layout = Twitter` |
/// | `prefix = "ord"` | text form by TypeID, `ord_01h455vb4pex5vsknk084sn02q` | the raw key's text |
/// | `mask = MASK` | a `static` `UuidMask` (or a `LazyLock` of one, no `const`) that hides the time of keys of version 7 where they leave the house: `Display`, `FromStr`, `Debug` and serde have the masked form alone, `MaskedKey` the key inside | no mask |
/// | `accept = any_version` | what is read may be any UUID, such as those of version 4 that a table began with; new keys are the scheme's (below) | keys of the scheme alone |
/// | `json = number` | serde writes keys to JSON as numbers, and reads no text; a scheme whose keys may be 2^53 or more does not compile | text |
/// | `short = SHORT` | short public ids of integer keys, by a static `Sqids`: `ShortKey`, with `ordid`'s feature `sqids04` | no short ids |
/// | `scatter(buckets = 16)` | a rule for a bucket in front, by a hash: `ScatteredKey` | no `ScatteredKey` |
/// | `scatter(buckets = 16, lowest_bit = 80)` | the same, by the key's bits from that one up, reversed | |
/// | `sqlx` | SQLx, each engine's native column for the raw key: `uuid`, `binary16`, `blob` | no SQLx |
/// | `sqlx(postgres = uuid, mysql = char36)` | SQLx, these engines in these columns | |
/// | `sqlx(mysql = unordered(binary16))` | the same, where the column need not keep the keys' order | |
/// | `sqlx(crate = path, ...)` | where `ordid-sqlx` is | `::ordid_sqlx` |
/// | `diesel`, `diesel(postgres = uuid, ...)` | as `sqlx`, for Diesel | no Diesel |
/// | `sea_orm`, `sea_orm(char22)` | SeaORM, all of its databases in the raw key's native form, or in this one; `sea_orm(unordered(uuid))`, `sea_orm(crate = path, ...)` | no SeaORM |
/// | `tiberius(sql_server = unique_identifier, babelfish = ...)` | as `sqlx`, for tiberius | no tiberius |
/// | `tokio_postgres`, `tokio_postgres(postgres = uuid)` | as `sqlx`, for tokio-postgres | no tokio-postgres |
/// | `mysql_async`, `mysql_async(mysql = binary16)` | as `sqlx`, for mysql_async | no mysql_async |
/// | `rusqlite`, `rusqlite(sqlite = blob)` | as `sqlx`, for rusqlite | no rusqlite |
/// | `oracle(oracle = raw16)` | as `sqlx`, for the crate `oracle` | no `oracle` |
/// | `adapter = my_crate`, `adapter = path::to::my_crate(engine = column, ...)` | as `sqlx`, for an adapter of your own or of another crate (below); there may be several | no other adapter |
/// | `crate = path` | where `ordid` is, if it was renamed or re-exported | `::ordid` |
///
/// # Schemes
///
/// Each is a page of `ordid::scheme`. The field is the scheme's raw key:
///
#[doc = include_str!("schemes.md")]
///
/// \* A node of your own tells these keys apart, or a store counts them, so there is no `generate()`:
/// make a generator with the node, or over the store, and ask it for keys. Keys of `uuid_v5` and
/// `uuid_v8_sha256` are made of names: `OrderId::named(namespace, [name])`, with the feature `named`.
///
/// # Parameters of schemes
///
/// | parameter | meaning | default |
/// |---|---|---|
/// | `snowflake(layout = Sonyflake)` | a preset: `Twitter`, `BaiduUid`, `BaiduUid<1_767_225_600>` (its epoch in seconds), `Discord`, `Sonyflake`, `SonyflakeV2`, `WideSequence`, `Yitter` | `Twitter` |
/// | `snowflake(layout = ..., epoch = "2026-01-01")` | the same bits from the start of that day in UTC, or from so many milliseconds after 1970 | the layout's |
/// | `snowflake(epoch = ..., time = 41, node = 10, sequence = 12, unit = 10)` | these bits, 63 at most, and units of so many milliseconds | `unit = 1` |
/// | `snowflake(epoch = ..., years = 20, ids_per_second = 1_000, nodes = 4)` | as short as possible for that need; `Snowflake::ENDS_AT_UNIX_MILLIS` says when it is used up | `nodes = 1` |
/// | `uuid_v7_spread(buckets = 16)` | keys over so many buckets, a power of two from 2 to 256; `ordid::scheme::spread` says how to read them | `buckets = 16` |
/// | `snowflake_spread(buckets = 16, ...)` | the same of integers; behind the bucket stands what `snowflake` may have, in 63 bits together | `epoch = "2024-01-01", time = 41, node = 8, sequence = 10` |
/// | `uuid_v1`, `uuid_v1_rearranged`, `uuid_v6`, `uuid_create_sequential` `(node = Random)` | random nodes, whatever a generator might be given | random, or what a generator is given |
/// | the same `(node = Fixed<0x0100_0000_0007>)` | this node, no network card's address | |
/// | the same `(node = DangerExact<0x9236_1f00_2671>)` | this node, which may be an address | |
/// | `uuid_v4_clustered`, `uuid_v4_clustered_compat` `(period = Minute)` | keys of a minute share their first 16 bits; `Week`, `Seconds<3600>` | `Week` |
/// | `object_id(machine = HostAndProcess)` | the form of before 2018; a node of your own\* | `Random` |
///
/// Where a parameter is a type, one of your own is written by its name or path: a `SnowflakeLayout`,
/// such as `ordid::scheme::Compact<Orders>`, a `NodeSource`, a `Clustering`; one that has a preset's
/// name by `self::Twitter`.
///
/// ```
/// use ordid::{KeyType, key::scatter::ScatteredKey, scheme::{Layout, UuidV6}, uuid::Uuid};
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v6(node = Fixed<0x0100_0000_0007>), scatter(buckets = 16))]
/// pub struct EventId(Uuid);
///
/// #[derive(KeyType)]
/// #[ordid(scheme = snowflake(epoch = "2026-01-01", years = 20, ids_per_second = 2))]
/// pub struct InvoiceId(i64);
///
/// let id = EventId::generate();
/// assert_eq!(UuidV6::unpack(&id.to_raw())?.node, [1, 0, 0, 0, 0, 7]);
/// let stored = id.scattered().to_string(); // 0c-1f0e6b2c-...
/// assert_eq!(EventId::parse_scattered(&stored)?, id);
/// type Invoices = <InvoiceId as KeyType>::Scheme;
/// assert_eq!(Invoices::ENDS_AT_UNIX_MILLIS, 2_398_585_792_512); // 2046-01-03
/// # Ok::<(), ordid::Error>(())
/// ```
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
/// # Adapters
///
/// An adapter is a path with a macro `engine` and a module `engine`. `sqlx(...)` is short for `adapter = ::ordid_sqlx(...)`,
/// and the other words are alike. For each adapter of a key type the derive calls the macro with `key`, once, and then for
/// each of its columns:
///
/// | written | called |
/// |---|---|
/// | all | `my_crate::engine! { key: OrderId, Scheme }` |
/// | `adapter = my_crate` | `my_crate::engine! { all: OrderId, Scheme, Uuid }`, with the raw key's name: `Uuid`, `i64`, `u64`, `ObjectId`, `PushId` or `Key192` |
/// | `adapter = my_crate(mysql = binary16)` | `my_crate::engine! { mysql: OrderId, Scheme, my_crate::engine::mysql::binary16 }` |
/// | `adapter = my_crate(mysql = unordered(binary16))` | the same, with `Unordered<my_crate::engine::mysql::binary16>` |
/// | `adapter = my_crate(uuid)` | `my_crate::engine! { _: OrderId, Scheme, my_crate::engine::any::uuid }` |
///
/// The macro implements the library's traits for the key type. It checks the order by `assert_keeps_order` of
/// `ordid::storage`, and its last arm refuses engines that the adapter does not have, by `compile_error!`. The columns'
/// names are those of `ordid::storage::column::names`, which the module re-exports, or aliases of `Named<Column, Dialect>`
/// for columns of the adapter's own.
///
/// # Tables that began with other keys
///
/// With `accept = any_version`, texts, raw keys and columns may have any UUID, whatever its version and variant. So a
/// table of version 4 gets typed ids, and new keys that rise. The order of time begins with the first new key: those
/// before are anywhere among and behind them. Columns that compare bytes sort all of them as `Ord` does for `uuid_v7`;
/// MariaDB's `UUID` sorts old keys of version 4 in another order than `Ord`. An old key has no `timestamp`. There is no
/// mask for such a key type, since a masked key is of version 4 itself.
///
/// ```
/// use ordid::{KeyType, uuid::Uuid};
///
/// #[derive(KeyType)]
/// #[ordid(prefix = "iss", accept = any_version)]
/// pub struct IssueId(Uuid);
///
/// let old: Uuid = "919108f7-52d1-4320-9bac-f847db4148a8".parse()?; // version 4
/// let id = IssueId::try_from(old)?;
/// assert_eq!(id.to_string(), "iss_4hj44femph8cg9qb7r8zdm2j58");
/// assert_eq!(id.to_string().parse::<IssueId>()?, id);
/// assert_eq!(id.timestamp(), None);
/// assert!(IssueId::generate() < IssueId::generate());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Keys that leave the house
///
/// ```
/// use std::sync::LazyLock;
///
/// use ordid::{KeyType, scheme::{UuidMask, masked::MaskedKey}, uuid::Uuid};
///
/// // Of two random numbers that the program is given: a secret.
/// static MASK: LazyLock<UuidMask> = LazyLock::new(|| UuidMask::new(17, 4));
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7_unguessable, mask = MASK)]
/// pub struct OrderId(Uuid);
///
/// let id = OrderId::generate();
/// let outside: Uuid = id.to_string().parse()?;
/// assert_eq!((id.to_raw().get_version_num(), outside.get_version_num()), (7, 4));
/// assert_eq!(id.to_string().parse::<OrderId>()?, id);
/// // The key inside, by an explicit call.
/// assert_eq!(id.unmasked().to_string(), id.to_raw().to_string());
/// assert!(id.unmasked().to_string().parse::<OrderId>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// At compile time, at the token that has to change: another shape than a tuple struct with one
/// field, another raw key than the scheme's, an unknown scheme, parameter, engine, column or option,
/// parameters that no layout, node, period or bucket can have, a mask of keys that are not of version
/// 7, a prefix against TypeID's rules, and a column that would lose the keys' order.
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
/// | `columns` | a constant for each column, `Order::total`, for `update_columns` of a unit of work; no method of the struct may have the name of a field | no constants |
/// | `crate = path` | where `ordid` is, if it was renamed or re-exported | `::ordid` |
/// | `uncounted` | the database may take other rows than those that are inserted: a view, a rule, or a trigger that leaves rows out | a flush fails if a row was left out |
/// | `diesel` | for a unit of work of `ordid-diesel`; `diesel(crate = path)` where that is | not for it |
/// | `sea_orm(crate = path)` | of a SeaORM model: where `ordid-seaorm` is | `::ordid_seaorm` |
///
/// # Options of a field
///
/// | option | meaning | default |
/// |---|---|---|
/// | `key` | the key: a key type `K`, or `Option<K>` where it may be unassigned; on two to four fields, the columns of one key | the field `id` |
/// | `parent` | a foreign key to the entity whose key is this one column; its key type tells the entity | no parent |
/// | `parent = Customer` | a foreign key to this entity | |
/// | `parent = Issue(tenant, issue)` | a foreign key of these fields to an entity whose key has several columns | |
/// | `deferrable` | beside them: the constraint was declared `DEFERRABLE` | checked at once |
/// | `column = "total_cents"` | the column's name | the field's name |
/// | `returning` | an `Assigned<T>` whose column the database fills: it is not written, and a flush reads its value | |
/// | `skip` | no column; in a model of SeaORM write `#[sea_orm(ignore)]` | |
/// | `version` | an integer or a timestamp that tells whether the row has changed since it was read: a unit of work updates and deletes it only if it has not, and writes the next version | no version |
///
/// Beside `sqlx::FromRow`, its `#[sqlx(rename = "...")]`, `#[sqlx(rename_all = "...")]` and
/// `#[sqlx(skip)]` hold too, so that a row is written as it is read; an option of `#[ordid(...)]`
/// goes before. A `#[sqlx(flatten)]` field is refused, since it has no column. A `#[sqlx(json)]` field is refused, since
/// a flush writes a field by its own type: write `sqlx::types::Json<T>`. `#[sqlx(try_from = "...")]` is refused on a key
/// or a foreign key, which it would read in another form than it is written in.
///
/// So do Diesel's `#[diesel(table_name = orders)]`, `#[diesel(primary_key(number))]`,
/// `#[diesel(column_name = kind)]` and `#[diesel(skip_insertion)]`, beside its derives or without them.
/// With `#[ordid(diesel)]` at the struct a unit of work of `ordid-diesel` takes it, with the names and the SQL types of
/// that `table!`. There `table`, `schema`, `rename_all` and `column` are for other libraries that write the entity; in the
/// `table!` itself, write `#[sql_name = "..."]`. `#[diesel(serialize_as = T)]`, `#[diesel(skip_update)]` and
/// `#[diesel(skip_insertion)]` are refused, since a unit of work does not write a column as they say. They may stand on a
/// field under `skip` or `returning`.
///
/// # SeaORM's models
///
/// Of a `Model` with `#[sea_orm(table_name = "...")]` it is the `ActiveModel` beside it that becomes the
/// entity. The table and its columns have the names that SeaORM gives them, so `table`, `schema`, `rename_all` and
/// `column` are refused: write `table_name`, `schema_name`, `rename_all` and `column_name` in `#[sea_orm(...)]`. The key is
/// SeaORM's primary key: columns that are not nullable, with `auto_increment = false`. Stand below `#[sea_orm::model]`,
/// and before `DeriveEntityModel`, so that the compiler shows ordid's errors first.
///
/// # Columns that the database fills
///
/// A column under `#[ordid(returning)]`, such as a time with `DEFAULT now()` or a generated column, is in no `INSERT` and
/// no `UPDATE`, and not among `COLUMNS`. A flush reads it before its COMMIT, and fills the field after it: see
/// `ordid::Assigned`. It can be neither the key, nor a foreign key, nor the version.
///
/// `sqlx::FromRow` reads the field under `#[sqlx(try_from = "T")]`, and Diesel's `Queryable` under
/// `#[diesel(deserialize_as = T)]`, with the type `T` of `Assigned<T>`. A model of SeaORM takes `ordid_seaorm::Assigned<T>`.
///
/// ```
/// use ordid::{Assigned, KeyType, OrderedKey, uuid::Uuid};
///
/// #[derive(KeyType)]
/// struct OrderId(Uuid);
///
/// #[derive(OrderedKey)]
/// struct Order {
///     id: OrderId,
///     total: i64,
///     #[ordid(returning)]
///     number: Assigned<i64>,
/// }
///
/// assert_eq!((Order::COLUMNS, Order::RETURNING), (&["id", "total"][..], &["number"][..]));
/// ```
///
/// # Keys of several columns
///
/// `#[ordid(key)]` stands on each of them, or `#[diesel(primary_key(order, number))]` names them. The first has a key
/// type, in the order of whose column rows are sent; the others have key types or are integers. Together they have at
/// most 48 bytes, as three UUIDs. `key` returns a `CompositeKey` with a tuple of them; an unassigned key type is made,
/// an integer is not.
///
/// ```
/// # use ordid::{KeyType, OrderedKey, key::CompositeKey, uuid::Uuid};
/// # #[derive(KeyType)]
/// # struct TenantId(Uuid);
/// # #[derive(KeyType)]
/// # struct IssueId(Uuid);
/// #[derive(OrderedKey)]
/// struct Issue { #[ordid(key)] tenant: TenantId, #[ordid(key)] id: Option<IssueId>, title: String }
///
/// #[derive(OrderedKey)]
/// struct Comment {
///     #[ordid(key)]
///     tenant: TenantId,
///     #[ordid(key, parent = Issue(tenant, issue))]
///     issue: IssueId,
///     #[ordid(key)]
///     number: i32,
/// }
///
/// let mut issue = Issue { tenant: TenantId::generate(), id: None, title: "Slow".into() };
/// let CompositeKey((tenant, id)) = issue.ensure_key();
/// assert_eq!((tenant, Some(id)), (issue.tenant, issue.id));
/// assert_eq!(Issue::KEY_COLUMNS, ["tenant", "id"]);
/// let comment = Comment { tenant, issue: id, number: 1 };
/// assert_eq!(comment.key(), Some(CompositeKey((tenant, id, 1))));
/// ```
///
/// A foreign key of several columns stands at one of their fields and names all of them, in the order of the parent's
/// key: `parent = Issue(tenant, issue)`. The row has a parent if all of them have a value. If rows refer to each other in
/// a circle, the column of the field where it stands is the one that is NULL at first. A bare `parent` never refers to an
/// entity whose key has several columns, also if the field has the type of one of them.
///
/// # Errors
///
/// At compile time, at the token that has to change: no key, a parent field that does not
/// tell its entity, two columns of one name, an unknown option, and anything but a struct with
/// named fields.
#[proc_macro_derive(OrderedKey, attributes(ordid, diesel))]
pub fn derive_ordered_key(input: TokenStream) -> TokenStream {
    expand::ordered_key(&parse_macro_input!(input as DeriveInput)).into()
}
