//! The rows that are flushed, and how.

use std::{collections::BTreeSet, time::Duration};

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_recorders::conversation::{BIGINT, Peer, TEXT, Table, UUID};
use ordid_sql::{FlushError, Flushed, Retry};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx, tokio_postgres)]
pub(crate) struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx, tokio_postgres)]
pub(crate) struct OrderId(Uuid);

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

pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "customers",
        columns: &[("id", UUID), ("name", TEXT)],
    },
    Table {
        name: "orders",
        columns: &[("id", UUID), ("customer", UUID), ("total", BIGINT)],
    },
];

/// What is flushed: a customer with so many orders, which are added first; and whether an order that is there is changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) orders: usize,
    pub(crate) changes: bool,
}

pub(crate) const GRAPH: Rows = Rows {
    orders: 2,
    changes: false,
};

pub(crate) const CHANGE: Rows = Rows {
    orders: 2,
    changes: true,
};

/// Adds rows to a unit of work of any library.
macro_rules! fill {
    ($work:expr, $rows:expr) => {{
        let customer = <CustomerId as ordid::KeyType>::generate();
        for total in (0..).take($rows.orders) {
            let id = <OrderId as ordid::KeyType>::generate();
            $work.add(Order {
                id,
                customer,
                total,
            });
        }
        $work.add(Customer {
            id: customer,
            name: "Ada".to_owned(),
        });
        if $rows.changes {
            let id = <OrderId as ordid::KeyType>::generate();
            $work.update(Order {
                id,
                customer,
                total: 7,
            });
        }
    }};
}
pub(crate) use fill;

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
    for (table, expected) in [("customers", 1), ("orders", rows.orders)] {
        let keys = peer.committed(table);
        let once: BTreeSet<_> = keys.iter().collect();
        let expected = if is_written { expected } else { 0 };
        assert_eq!((keys.len(), once.len()), (expected, expected), "{table}");
    }
}
