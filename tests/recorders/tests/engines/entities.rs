//! The rows that are flushed, and how.

#![allow(
    unreachable_pub,
    reason = "`DeriveEntityModel` makes public types that show the model and its keys"
)]

use std::{collections::BTreeSet, time::Duration};

use ordid::{KeyType, uuid::Uuid};
use ordid_recorders::conversation::{BIGINT, Peer, TEXT, Table, UUID};
use ordid_sql::{ChunkLimits, FlushError, Flushed, Retry};
use sea_orm::{DatabaseConnection, TransactionTrait as _};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel, mysql_async, sea_orm, sqlx, tokio_postgres)]
pub struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel, mysql_async, sea_orm, sqlx, tokio_postgres)]
pub struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel, mysql_async, sea_orm, sqlx, tokio_postgres)]
pub struct LinkId(Uuid);

/// Entities of the libraries that ask nothing of an entity beside its derive: `SQLx`, tokio-postgres and mysql_async.
pub(crate) mod plain {
    use ordid::OrderedKey;

    use super::{CustomerId, LinkId, OrderId};

    #[derive(OrderedKey)]
    #[ordid(table = "customers")]
    pub(crate) struct Customer {
        #[ordid(key)]
        pub(crate) id: CustomerId,
        pub(crate) name: String,
    }

    #[derive(OrderedKey)]
    #[ordid(table = "orders")]
    pub(crate) struct Order {
        #[ordid(key)]
        pub(crate) id: OrderId,
        #[ordid(parent)]
        pub(crate) customer: CustomerId,
        pub(crate) total: i64,
    }

    #[derive(OrderedKey)]
    #[ordid(table = "items")]
    pub(crate) struct Item {
        #[ordid(key, parent)]
        pub(crate) customer: CustomerId,
        #[ordid(key)]
        pub(crate) id: OrderId,
        pub(crate) total: i64,
    }

    #[derive(OrderedKey)]
    #[ordid(table = "links")]
    pub(crate) struct Link {
        #[ordid(key)]
        pub(crate) id: LinkId,
        #[ordid(parent, deferrable)]
        pub(crate) next: LinkId,
    }
}

/// Declares the entities of Diesel and diesel-async, whose key columns have this type in `table!`.
macro_rules! of_diesel {
    ($module:ident: $key:ident) => {
        pub(crate) mod $module {
            use ordid::OrderedKey;

            use super::{CustomerId, LinkId, OrderId};

            type Key = diesel::sql_types::$key;

            diesel::table! {
                use diesel::sql_types::Text;
                use super::Key;

                customers (id) {
                    id -> Key,
                    name -> Text,
                }
            }

            diesel::table! {
                use diesel::sql_types::BigInt;
                use super::Key;

                orders (id) {
                    id -> Key,
                    customer -> Key,
                    total -> BigInt,
                }
            }

            diesel::table! {
                use diesel::sql_types::BigInt;
                use super::Key;

                items (customer, id) {
                    customer -> Key,
                    id -> Key,
                    total -> BigInt,
                }
            }

            diesel::table! {
                use super::Key;

                links (id) {
                    id -> Key,
                    next -> Key,
                }
            }

            #[derive(OrderedKey)]
            #[diesel(table_name = links)]
            #[ordid(diesel)]
            pub(crate) struct Link {
                pub(crate) id: LinkId,
                #[ordid(parent, deferrable)]
                pub(crate) next: LinkId,
            }

            #[derive(OrderedKey)]
            #[diesel(table_name = customers)]
            #[ordid(diesel)]
            pub(crate) struct Customer {
                pub(crate) id: CustomerId,
                pub(crate) name: String,
            }

            #[derive(OrderedKey)]
            #[diesel(table_name = orders)]
            #[ordid(diesel)]
            pub(crate) struct Order {
                pub(crate) id: OrderId,
                #[ordid(parent)]
                pub(crate) customer: CustomerId,
                pub(crate) total: i64,
            }

            #[derive(OrderedKey)]
            #[diesel(table_name = items)]
            #[ordid(diesel)]
            pub(crate) struct Item {
                #[ordid(key, parent)]
                pub(crate) customer: CustomerId,
                #[ordid(key)]
                pub(crate) id: OrderId,
                pub(crate) total: i64,
            }
        }
    };
}

of_diesel!(diesel_postgres: Uuid);
of_diesel!(diesel_mysql: Binary);

/// Entities of `SeaORM`.
pub(crate) mod sea {
    pub(crate) use customer::Model as Customer;
    pub(crate) use item::Model as Item;
    pub(crate) use link::Model as Link;
    pub(crate) use order::Model as Order;

    pub(crate) mod customer {
        use ordid::OrderedKey;
        use sea_orm::entity::prelude::*;

        use super::super::CustomerId;

        #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
        #[sea_orm(table_name = "customers")]
        pub struct Model {
            #[sea_orm(primary_key, auto_increment = false)]
            pub id: CustomerId,
            pub name: String,
        }

        #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
        pub enum Relation {}

        impl ActiveModelBehavior for ActiveModel {}
    }

    pub(crate) mod item {
        use ordid::OrderedKey;
        use sea_orm::entity::prelude::*;

        use super::super::{CustomerId, OrderId};

        #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
        #[sea_orm(table_name = "items")]
        pub struct Model {
            #[sea_orm(primary_key, auto_increment = false)]
            #[ordid(parent)]
            pub customer: CustomerId,
            #[sea_orm(primary_key, auto_increment = false)]
            pub id: OrderId,
            pub total: i64,
        }

        #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
        pub enum Relation {}

        impl ActiveModelBehavior for ActiveModel {}
    }

    pub(crate) mod link {
        use ordid::OrderedKey;
        use sea_orm::entity::prelude::*;

        use super::super::LinkId;

        #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
        #[sea_orm(table_name = "links")]
        pub struct Model {
            #[sea_orm(primary_key, auto_increment = false)]
            pub id: LinkId,
            #[ordid(parent, deferrable)]
            pub next: LinkId,
        }

        #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
        pub enum Relation {}

        impl ActiveModelBehavior for ActiveModel {}
    }

    pub(crate) mod order {
        use ordid::OrderedKey;
        use sea_orm::entity::prelude::*;

        use super::super::{CustomerId, OrderId};

        #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
        #[sea_orm(table_name = "orders")]
        pub struct Model {
            #[sea_orm(primary_key, auto_increment = false)]
            pub id: OrderId,
            #[ordid(parent)]
            pub customer: CustomerId,
            pub total: i64,
        }

        #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
        pub enum Relation {}

        impl ActiveModelBehavior for ActiveModel {}
    }
}

pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "customers",
        columns: &[("id", UUID), ("name", TEXT)],
        keys: 1,
    },
    Table {
        name: "orders",
        columns: &[("id", UUID), ("customer", UUID), ("total", BIGINT)],
        keys: 1,
    },
    Table {
        name: "items",
        columns: &[("customer", UUID), ("id", UUID), ("total", BIGINT)],
        keys: 2,
    },
    Table {
        name: "links",
        columns: &[("id", UUID), ("next", UUID)],
        keys: 1,
    },
];

/// What is flushed: a customer with so many orders, which are added first; whether an order that is there is changed, or so
/// many of them are changed, upserted and deleted; and so many items, whose keys begin with the customer's, of which another one is changed
/// and another one deleted; and whether two links refer to each other, by constraints that are checked at COMMIT.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) orders: usize,
    pub(crate) changes: bool,
    pub(crate) updates: usize,
    pub(crate) upserts: usize,
    pub(crate) deletes: usize,
    pub(crate) items: usize,
    pub(crate) links: bool,
}

/// The rows that are flushed, and how: in chunks, or within a transaction of the caller's, which is committed then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flush {
    pub(crate) rows: Rows,
    pub(crate) chunks: Option<ChunkLimits>,
    pub(crate) is_within: bool,
}

impl Flush {
    /// Within a transaction of the caller's.
    pub(crate) fn within(rows: Rows) -> Self {
        Self {
            is_within: true,
            ..rows.into()
        }
    }
}

impl From<Rows> for Flush {
    fn from(rows: Rows) -> Self {
        Self {
            rows,
            chunks: None,
            is_within: false,
        }
    }
}

pub(crate) const GRAPH: Rows = Rows {
    orders: 2,
    changes: false,
    updates: 0,
    upserts: 0,
    deletes: 0,
    items: 0,
    links: false,
};

/// Rows of a tenant, which is the customer.
pub(crate) const TENANT: Rows = Rows {
    orders: 0,
    items: 2,
    ..GRAPH
};

pub(crate) const CHANGE: Rows = Rows {
    changes: true,
    ..GRAPH
};

/// What a library's `delete` takes.
macro_rules! deleted {
    (sea, $row:expr) => {
        $row
    };
    ($others:ident, $row:expr) => {
        &$row
    };
}
pub(crate) use deleted;

/// Sets a new unit of work of any library up, and adds rows of the entities of this module.
macro_rules! filled {
    ($work:expr, $engine:expr, $flush:expr, $entities:ident) => {{
        use $crate::entities::{CustomerId, Flush, LinkId, OrderId, RETRY, Rows, $entities};

        let Flush { rows, chunks, .. } = Flush::from($flush);
        let Rows {
            orders,
            changes,
            updates,
            upserts,
            deletes,
            items,
            links,
        } = rows;
        let mut work = $work
            .with_engine($engine)
            .with_retry(RETRY)
            .with_new_memory();
        if let Some(limits) = chunks {
            work = work.in_chunks(limits);
        }
        let customer = <CustomerId as ordid::KeyType>::generate();
        for total in (0..).take(orders) {
            let id = <OrderId as ordid::KeyType>::generate();
            work.add($entities::Order {
                id,
                customer,
                total,
            });
        }
        work.add($entities::Customer {
            id: customer,
            name: "Ada".to_owned(),
        });
        let order = |total| $entities::Order {
            id: <OrderId as ordid::KeyType>::generate(),
            customer,
            total,
        };
        for _ in 0..updates + usize::from(changes) {
            work.update(order(7));
        }
        for _ in 0..upserts {
            work.upsert(order(8));
        }
        for _ in 0..deletes {
            work.delete($crate::entities::deleted!($entities, order(0)));
        }
        let item = |total| $entities::Item {
            customer,
            id: <OrderId as ordid::KeyType>::generate(),
            total,
        };
        for total in (0..).take(items) {
            work.add(item(total));
        }
        if items > 0 {
            work.update(item(7));
            work.delete($crate::entities::deleted!($entities, item(0)));
        }
        if links {
            let [id, next] = [(); 2].map(|()| <LinkId as ordid::KeyType>::generate());
            work.add($entities::Link { id, next });
            work.add($entities::Link { id: next, next: id });
        }
        work
    }};
}
pub(crate) use filled;

/// Writes the name of a savepoint as the unit of work does, where a library gives it its own.
pub(crate) fn name_savepoint(sql: &mut String) {
    for own in ["_sqlx_savepoint_1", "diesel_savepoint_1"] {
        if sql.contains(own) {
            *sql = sql.replace(own, "ordid_flush");
        }
    }
}

pub(crate) const CONNECTS: &str = "the peer is there";
pub(crate) const BEGINS: &str = "a transaction begins";
pub(crate) const COMMITS: &str = "the caller's transaction is committed";

/// Flushes through `SQLx`, to an engine of either protocol.
pub(crate) async fn through_sqlx<DB: ordid_sqlx::Backend>(
    mut work: ordid_sqlx::UnitOfWork<DB>,
    flush: Flush,
    pool: &sqlx::Pool<DB>,
) -> Said {
    if !flush.is_within {
        return Said::of(work.flush(pool).await);
    }
    let mut open = pool.begin().await.expect(BEGINS);
    let said = Said::of(work.flush_in(&mut open).await);
    open.commit().await.expect(COMMITS);
    said
}

/// The same through `SeaORM`.
pub(crate) async fn through_seaorm(
    mut work: ordid_seaorm::UnitOfWork,
    flush: Flush,
    db: &DatabaseConnection,
) -> Said {
    if !flush.is_within {
        return Said::of(work.flush(db).await);
    }
    let open = db.begin().await.expect(BEGINS);
    let said = Said::of(work.flush_in(&open).await);
    open.commit().await.expect(COMMITS);
    said
}

/// Three attempts that wait for nothing.
pub(crate) const RETRY: Retry = Retry::DEFAULT
    .with_attempts(3)
    .with_delays(Duration::ZERO, Duration::ZERO)
    .with_jitter(false);

/// What a flush said.
#[derive(Debug)]
pub(crate) enum Said {
    Wrote(Flushed),
    Nothing(String),
    Unknown(String),
}

impl Said {
    pub(crate) fn of<D: std::error::Error + 'static>(
        flushed: Result<Flushed, FlushError<D>>,
    ) -> Self {
        match flushed {
            Ok(flushed) => Self::Wrote(flushed),
            Err(error) if error.is_commit_unknown() => Self::Unknown(error.to_string()),
            Err(error) => Self::Nothing(error.to_string()),
        }
    }

    #[track_caller]
    pub(crate) fn wrote(self) -> Flushed {
        match self {
            Self::Wrote(flushed) => flushed,
            Self::Nothing(error) | Self::Unknown(error) => panic!("{error}"),
        }
    }
}

/// Checks that a peer has the rows once, or none of them.
#[track_caller]
pub(crate) fn has(peer: &Peer, rows: Rows, is_written: bool) {
    for (table, expected) in [
        ("customers", 1),
        ("orders", rows.orders),
        ("items", rows.items),
        ("links", if rows.links { 2 } else { 0 }),
    ] {
        let keys = peer.committed(table);
        let once: BTreeSet<_> = keys.iter().collect();
        let expected = if is_written { expected } else { 0 };
        assert_eq!((keys.len(), once.len()), (expected, expected), "{table}");
    }
}
