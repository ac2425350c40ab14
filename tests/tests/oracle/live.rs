//! Oracle itself, where `ORDID_TEST_ORACLE_URL` names one: `oracle://user:password@host:1521/service`.
//! The user needs the right to create tables; each test drops its own.

use libtest_mimic::Trial;
use oracle::{Connection, sql_type::FromSql};
use ordid::{
    KeyType, OrderedKey,
    storage::{ColumnOn, Dialect, Found, StoredValue, Stores, column, dialect::Oracle},
    uuid::Uuid,
};
use ordid_oracle::{Entity, Stored, StoredAs, UnitOfWork};
use ordid_tests::servers::Servers;

use crate::{
    Outcome,
    keys::{
        DocumentId, DotNetId, LongId, NetworkId, SignedId, UnsignedId, edges, generated, signed,
        unsigned,
    },
    server_trial,
};

const KEYS: usize = 100_000;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    trials.push(Trial::test("a_url_comes_apart", || {
        assert_eq!(
            apart("oracle://scott:ti:ger@db.example:1521/FREEPDB1"),
            Some(("scott", "ti:ger", "//db.example:1521/FREEPDB1".to_owned()))
        );
        assert_eq!(apart("scott/tiger@db"), None);
        Ok(())
    }));
    let mut add = |name: &str, test: fn(&Connection) -> Outcome| {
        let name = format!("oracle::{name}");
        server_trial(trials, servers, "oracle", &name, move |url| {
            let (user, password, database) =
                apart(url).ok_or("expected oracle://user:password@host:1521/service")?;
            test(&ordid_oracle::connect(user, password, &database)?)
        });
    };
    add("raw16_keeps_order", |connection| {
        order::<NetworkId>(connection, generated(KEYS))
    });
    add("raw16_dotnet_keeps_order", |connection| {
        order::<DotNetId>(connection, generated(KEYS))
    });
    add("raw12_keeps_order", |connection| {
        order::<DocumentId>(connection, generated(KEYS))
    });
    add("raw24_keeps_order", |connection| {
        order::<LongId>(connection, generated(KEYS))
    });
    add("number19_keeps_order", |connection| {
        order::<SignedId>(connection, signed(KEYS))
    });
    add("number20_keeps_order", |connection| {
        order::<UnsignedId>(connection, unsigned(KEYS))
    });
    add("raw16_is_what_uuid_to_raw_returns", uuid_to_raw);
    add("parents_first_in_chunks", parents_first_in_chunks);
    add("failure_names_the_row", failure_names_the_row);
    add("missing_parent", a_missing_parent_is_told);
    add("open_transaction", an_open_transaction_is_respected);
    add("tree", a_tree_in_one_table_goes_in_root_first);
}

/// User, password and connect string of a URL.
fn apart(url: &str) -> Option<(&str, &str, String)> {
    let (user, database) = url.strip_prefix("oracle://")?.rsplit_once('@')?;
    let (user, password) = user.split_once(':')?;
    Some((user, password, format!("//{database}")))
}

/// A table of a name that no other run has; dropped at the end.
struct Scratch<'c> {
    connection: &'c Connection,
    name: String,
}

impl<'c> Scratch<'c> {
    fn new(connection: &'c Connection, what: &str, columns: &str) -> Result<Self, oracle::Error> {
        let name = format!("ordid_{what}_{}", std::process::id());
        let sql = format!("CREATE TABLE {} ({columns})", Oracle::quote(&name));
        connection.execute(&sql, &[])?;
        Ok(Self { connection, name })
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let sql = format!(
            "DROP TABLE {} CASCADE CONSTRAINTS PURGE",
            Oracle::quote(&self.name)
        );
        let _ = self.connection.execute(&sql, &[]);
    }
}

/// As the test of the same name in H2, with array binds, and read as keys.
fn order<K>(connection: &Connection, keys: Vec<K>) -> Outcome
where
    K: StoredAs + FromSql + oracle::sql_type::ToSql,
{
    let declared = <K::Column as ColumnOn<Oracle>>::primary_key("id");
    let columns = format!("{declared}, \"position\" NUMBER(10) NOT NULL");
    let table = Scratch::new(connection, K::NAME, &columns)?;
    let name = Oracle::quote(&table.name);
    let insert = format!("INSERT INTO {name} (\"id\", \"position\") VALUES (:1, :2)");
    let mut batch = connection.batch(&insert, 1_000).build()?;
    // Neither rising nor falling.
    let mut shuffled: Vec<usize> = (0..keys.len()).collect();
    shuffled.sort_by_key(|position| Uuid::new_v4().as_u128() ^ *position as u128);
    for position in shuffled {
        batch.append_row(&[&keys[position], &i64::try_from(position)?])?;
    }
    batch.execute()?;
    drop(batch);

    let select = format!("SELECT \"id\", \"position\" FROM {name} ORDER BY \"id\"");
    let mut count = 0;
    for row in connection.query_as::<(K, usize)>(&select, &[])? {
        let (key, position) = row?;
        assert_eq!((key, position), (keys[count], count));
        count += 1;
    }
    assert_eq!(count, keys.len());

    // Values at the column's edges, by literals: in the order of their sort keys.
    connection.execute(&format!("DELETE FROM {name}"), &[])?;
    let mut raws = edges::<K::Raw>();
    for (position, raw) in raws.iter().enumerate() {
        let literal = <K::Column as ColumnOn<Oracle>>::literal(*raw);
        let insert =
            format!("INSERT INTO {name} (\"id\", \"position\") VALUES ({literal}, {position})");
        connection.execute(&insert, &[])?;
    }
    let mut expected: Vec<usize> = (0..raws.len()).collect();
    expected.sort_by_key(|&position| K::Column::sort_key(raws[position]));
    let select = format!("SELECT \"position\" FROM {name} ORDER BY \"id\"");
    let read: Vec<usize> = connection
        .query_as(&select, &[])?
        .collect::<Result<_, _>>()?;
    assert_eq!(read, expected);
    // What the database says a value is.
    let raw = raws.swap_remove(1);
    let (own, text) = match K::Column::encode(raw).found() {
        Found::Bytes(bytes) => (
            "RAWTOHEX(\"id\")",
            bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
        ),
        Found::Integer(integer) => ("TO_CHAR(\"id\")", integer.to_string()),
        Found::Unsigned(integer) => ("TO_CHAR(\"id\")", integer.to_string()),
        _ => unreachable!("no other form"),
    };
    let select = format!("SELECT {own} FROM {name} WHERE \"position\" = 1");
    assert_eq!(connection.query_row_as::<String>(&select, &[])?, text);
    connection.rollback()?;
    Ok(())
}

/// `raw16` is the text's digits as bytes, and so from 23ai on what the database's own function makes
/// of the text.
fn uuid_to_raw(connection: &Connection) -> Outcome {
    let mut expressions = vec!["HEXTORAW(REPLACE(:1, '-'))"];
    let (version, _) = connection.server_version()?;
    if version.major() >= 23 {
        expressions.push("UUID_TO_RAW(:1)");
    }
    let key = Uuid::generate();
    for expression in expressions {
        let select = format!("SELECT {expression} FROM dual");
        let read: Stored<Uuid, column::Raw16> =
            connection.query_row_as(&select, &[&key.to_string()])?;
        assert_eq!(read.into_key(), key, "{expression}");
    }
    Ok(())
}

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "cust", oracle)]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, oracle(oracle = raw16))]
struct OrderId(Uuid);

#[derive(OrderedKey, Clone, Debug)]
#[ordid(table = "ordid customers")]
struct Customer {
    #[ordid(key)]
    id: CustomerId,
    name: String,
    credit: Option<i64>,
}

/// Names that must be quoted.
#[derive(OrderedKey, Clone, Debug)]
#[ordid(table = "ordid order")]
struct Order {
    #[ordid(key)]
    id: OrderId,
    #[ordid(parent)]
    customer: CustomerId,
    #[ordid(column = "group")]
    kind: i32,
}

/// A tree in one table.
#[derive(OrderedKey)]
#[ordid(table = "ordid employee")]
struct Employee {
    #[ordid(key)]
    id: NetworkId,
    #[ordid(parent)]
    boss: Option<NetworkId>,
}

fn customer(name: &str) -> Customer {
    Customer {
        id: CustomerId::generate(),
        name: name.into(),
        credit: None,
    }
}

fn order_of(customer: CustomerId, kind: i32) -> Order {
    Order {
        id: OrderId::generate(),
        customer,
        kind,
    }
}

/// The tables of the unit of work, empty; dropped at the end.
struct Shop<'c>(&'c Connection);

impl<'c> Shop<'c> {
    fn new(connection: &'c Connection) -> Result<Self, oracle::Error> {
        let shop = Self(connection);
        // Left over from a run that was killed.
        shop.drop_tables();
        for sql in [
            "CREATE TABLE \"ordid customers\" (\"id\" RAW(16) NOT NULL PRIMARY KEY, \
             \"name\" VARCHAR2(100) NOT NULL, \"credit\" NUMBER(19))",
            "CREATE TABLE \"ordid order\" (\"id\" RAW(16) NOT NULL PRIMARY KEY, \"customer\" RAW(16) \
             NOT NULL REFERENCES \"ordid customers\" (\"id\"), \"group\" NUMBER(10) NOT NULL)",
            "CREATE TABLE \"ordid employee\" (\"id\" RAW(16) NOT NULL PRIMARY KEY, \"boss\" RAW(16) \
             REFERENCES \"ordid employee\" (\"id\"))",
        ] {
            connection.execute(sql, &[])?;
        }
        Ok(shop)
    }

    fn drop_tables(&self) {
        let _ = self.0.rollback();
        for table in ["ordid employee", "ordid order", "ordid customers"] {
            let sql = format!(
                "DROP TABLE {} CASCADE CONSTRAINTS PURGE",
                Oracle::quote(table)
            );
            let _ = self.0.execute(&sql, &[]);
        }
    }

    fn count<E: Entity>(&self) -> Result<usize, oracle::Error> {
        let sql = format!("SELECT COUNT(*) FROM {}", Oracle::quote(E::TABLE));
        self.0.query_row_as(&sql, &[])
    }
}

impl Drop for Shop<'_> {
    fn drop(&mut self) {
        self.drop_tables();
    }
}

/// Children are added first; more rows than a statement takes.
fn parents_first_in_chunks(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let customers: Vec<Customer> = (0..1_500).map(|i| customer(&i.to_string())).collect();
    let mut work = UnitOfWork::new();
    for customer in &customers {
        work.add(order_of(customer.id, 7));
    }
    for customer in customers.clone() {
        work.add(customer);
    }
    let flushed = work.flush(connection)?;
    assert!(work.is_empty());
    let tables: Vec<_> = flushed
        .tables
        .iter()
        .map(|it| (it.table, it.rows, it.statements))
        .collect();
    assert_eq!(
        tables,
        ["ordid customers", "ordid order"].map(|table| (table, 1_500, 2))
    );
    let select = "SELECT \"id\", \"name\", \"credit\" FROM \"ordid customers\" ORDER BY \"id\"";
    let rows = connection.query_as::<(CustomerId, String, Option<i64>)>(select, &[])?;
    for (row, customer) in rows.zip(&customers) {
        assert_eq!(row?, (customer.id, customer.name.clone(), customer.credit));
    }
    assert_eq!(
        (shop.count::<Customer>()?, shop.count::<Order>()?),
        (1_500, 1_500)
    );
    Ok(())
}

/// A duplicate in the second chunk: the error names table, chunk and key, nothing is written, and
/// the same work can be flushed once the cause is gone.
fn failure_names_the_row(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let mut work = UnitOfWork::new();
    let parent = work.add(customer("parent"));
    let orders: Vec<_> = (0..2_500).map(|kind| order_of(parent, kind)).collect();
    for order in orders.clone() {
        work.add(order);
    }
    let taken = orders[1_234].id;
    let mut earlier = UnitOfWork::new();
    let other = earlier.add(customer("other"));
    earlier.add(Order {
        id: taken,
        ..order_of(other, 1)
    });
    earlier.flush(connection)?;

    let error = work.flush(connection).unwrap_err();
    assert!(
        error.is_unique_violation() && !error.is_commit_unknown(),
        "{error}"
    );
    assert_eq!(
        (error.table(), error.chunk()),
        (Some("ordid order"), Some(1))
    );
    assert_eq!(error.key(), Some(&*taken.to_string()));
    assert_eq!((shop.count::<Customer>()?, shop.count::<Order>()?), (1, 1));

    assert_eq!(work.len(), 2_501, "nothing is lost");
    connection.execute("DELETE FROM \"ordid order\"", &[])?;
    connection.commit()?;
    work.flush(connection)?;
    assert_eq!(
        (shop.count::<Customer>()?, shop.count::<Order>()?),
        (2, 2_500)
    );
    Ok(())
}

fn a_missing_parent_is_told(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let mut work = UnitOfWork::new();
    let lost = work.add(order_of(CustomerId::generate(), 1));
    let error = work.flush(connection).unwrap_err();
    assert!(error.is_foreign_key_violation(), "{error}");
    assert_eq!(error.key(), Some(&*lost.to_string()));
    assert_eq!(shop.count::<Order>()?, 0);
    Ok(())
}

/// Gone with the user's rollback, kept by the user's commit; a failed flush leaves the transaction
/// as it was; and `flush` does not commit what is not its own.
fn an_open_transaction_is_respected(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let mut work = UnitOfWork::new();
    work.add(customer("one"));
    work.flush_in(connection)?;
    connection.rollback()?;
    assert_eq!((shop.count::<Customer>()?, work.len()), (0, 1));

    work.flush_in(connection)?;
    let mut failing = UnitOfWork::new();
    failing.add(customer("two"));
    let lost = failing.add(order_of(CustomerId::generate(), 1));
    let error = failing.flush_in(connection).unwrap_err();
    assert_eq!(error.key(), Some(&*lost.to_string()));
    let mut third = UnitOfWork::new();
    third.add(customer("three"));
    let error = third.flush(connection).unwrap_err();
    assert!(error.is_connection_state(), "{error}");
    third.flush_in(connection)?;
    connection.commit()?;
    let select = "SELECT \"name\" FROM \"ordid customers\" ORDER BY \"id\"";
    let names: Vec<String> = connection
        .query_as(select, &[])?
        .collect::<Result<_, _>>()?;
    assert_eq!(names, ["one", "three"]);
    Ok(())
}

/// A tree whose children have lower keys than their parents.
fn a_tree_in_one_table_goes_in_root_first(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let ids: Vec<NetworkId> = generated(1_500);
    let mut work = UnitOfWork::new();
    for (position, id) in ids.iter().enumerate() {
        // The last one is the root; each refers to one of higher key.
        let boss = (2 * (position + 1)).min(ids.len() - 1);
        work.add(Employee {
            id: *id,
            boss: (boss > position).then(|| ids[boss]),
        });
    }
    work.flush(connection)?;
    assert_eq!(shop.count::<Employee>()?, 1_500);
    Ok(())
}
