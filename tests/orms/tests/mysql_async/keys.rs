//! Keys in each column: written, read by both protocols, ordered, found, and refused where they have another form.

use ::mysql_async::{
    FromValueError, Value, from_value_opt,
    prelude::{FromValue, Queryable as _},
};
use libtest_mimic::Trial;
use ordid::{
    KeyType, OrderedKey,
    key::{Key192, ObjectId, PushId},
    storage::{
        ColumnOn,
        dialect::{MariaDb, MySql},
    },
    uuid::Uuid,
};
use ordid_mysql_async::{Entity, ReadKey, Stored, StoredAs, UnitOfWork, column};
use ordid_tests::{
    keys::{Keys, snowflakes, uuid_shorts},
    servers::Servers,
    trials::{Outcome, on_address},
};

use crate::{connect, execute, number};

ordid_tests::process_wide!(
    Native, Long, Short, Base32, Swapped, DotNet, Object, Push, Wide, WideText, MariaDbs
);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, mysql_async)]
pub struct Native(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, mysql_async(mysql = char36))]
pub struct Long(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, mysql_async(mysql = char22))]
pub struct Short(Uuid);

#[derive(KeyType)]
#[ordid(scheme = ulid, mysql_async(mysql = char26))]
pub struct Base32(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v1, mysql_async(mysql = binary16_swapped))]
pub struct Swapped(Uuid);

#[derive(KeyType)]
#[ordid(scheme = sequential_guid_as_binary, mysql_async(mysql = binary16_dotnet))]
pub struct DotNet(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v4, mysql_async(mysql = unordered(binary16)))]
pub struct NoOrder(Uuid);

impl Keys for NoOrder {
    fn rising(count: usize) -> Vec<Self> {
        let mut keys: Vec<Self> = (0..count).map(|_| Self::generate()).collect();
        keys.sort_unstable();
        keys
    }
}

#[derive(KeyType)]
#[ordid(scheme = snowflake, mysql_async)]
pub struct Number(i64);

impl Keys for Number {
    fn rising(count: usize) -> Vec<Self> {
        snowflakes(count)
    }
}

/// Above what a signed integer holds.
#[derive(KeyType)]
#[ordid(scheme = uuid_short, mysql_async)]
pub struct Unsigned(u64);

impl Keys for Unsigned {
    fn rising(count: usize) -> Vec<Self> {
        uuid_shorts(count)
    }
}

#[derive(KeyType)]
#[ordid(scheme = object_id, adapter = ordid_mysql_async)]
pub struct Object(ObjectId);

#[derive(KeyType)]
#[ordid(scheme = push_id, mysql_async)]
pub struct Push(PushId);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, mysql_async)]
pub struct Wide(Key192);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, mysql_async(mysql = char32))]
pub struct WideText(Key192);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, mysql_async(mysql = mariadb_uuid))]
pub struct MariaDbs(Uuid);

/// How many keys of a column are ordered: more than a statement has.
const KEYS: usize = 1_500;

/// A row of a test.
trait Row: Entity + Clone {
    type Key: Keys + StoredAs + Into<Value> + FromValue<Intermediate: Into<Value>> + Send + Sync;

    fn new(id: Self::Key, other: Option<Self::Key>) -> Self;
}

macro_rules! rows {
    ($($row:ident: $key:ident on $($server:literal $dialect:ident)+;)+) => {
        $(#[derive(OrderedKey, Clone)]
        #[ordid(table = "keys")]
        struct $row {
            id: $key,
            other: Option<$key>,
        }

        impl Row for $row {
            type Key = $key;

            fn new(id: $key, other: Option<$key>) -> Self {
                Self { id, other }
            }
        })+

        pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
            $($({
                type Column = <$key as StoredAs>::Column;
                let ty = <Column as ColumnOn<$dialect>>::TYPE;
                let name = concat!("keys::", stringify!($key), "_is_written_read_and_ordered");
                on_address::<sqlx::MySql, _, _>(trials, servers, $server, name, |url| written::<$row>(url, ty));
            })+)+
            on_address::<sqlx::MySql, _, _>(trials, servers, "mariadb", "keys::a_key_without_a_newtype", a_key_without_a_newtype);
            on_address::<sqlx::MySql, _, _>(
                trials, servers, "mysql", "keys::uuid_to_bin_writes_what_is_read", uuid_to_bin_writes_what_is_read,
            );
            trials.push(Trial::test("keys::a_value_of_another_form_is_told_with_its_column", || {
                a_value_of_another_form_is_told_with_its_column();
                Ok(())
            }));
        }
    };
}

rows! {
    NativeRow: Native on "mariadb" MariaDb "mysql" MySql;
    LongRow: Long on "mariadb" MariaDb "mysql" MySql;
    ShortRow: Short on "mariadb" MariaDb "mysql" MySql;
    Base32Row: Base32 on "mariadb" MariaDb "mysql" MySql;
    SwappedRow: Swapped on "mariadb" MariaDb "mysql" MySql;
    DotNetRow: DotNet on "mariadb" MariaDb "mysql" MySql;
    NoOrderRow: NoOrder on "mariadb" MariaDb "mysql" MySql;
    NumberRow: Number on "mariadb" MariaDb "mysql" MySql;
    UnsignedRow: Unsigned on "mariadb" MariaDb "mysql" MySql;
    ObjectRow: Object on "mariadb" MariaDb "mysql" MySql;
    PushRow: Push on "mariadb" MariaDb "mysql" MySql;
    WideRow: Wide on "mariadb" MariaDb "mysql" MySql;
    WideTextRow: WideText on "mariadb" MariaDb "mysql" MySql;
    MariaDbsRow: MariaDbs on "mariadb" MariaDb;
}

async fn written<R: Row>(url: String, ty: &str) -> Outcome {
    let mut conn = connect(&url).await?;
    let create = format!("CREATE TABLE `keys` (id {ty} NOT NULL PRIMARY KEY, other {ty})");
    execute(&mut conn, &[&create, ordid_mysql_async::flushes_table()]).await?;
    let keys = R::Key::rising(KEYS);
    let other = |number: usize| (!number.is_multiple_of(3)).then(|| keys[number / 2]);
    let rows: Vec<R> = keys
        .iter()
        .enumerate()
        .map(|(number, id)| R::new(*id, other(number)))
        .collect();
    let mut work = UnitOfWork::new();
    for row in rows.iter().rev().cloned() {
        work.try_add(row)?;
    }
    work.flush_on(&mut conn).await?;

    // As text, and in binary form.
    let sql = "SELECT id, other FROM `keys` ORDER BY id";
    let text: Vec<(R::Key, Option<R::Key>)> = conn.query(sql).await?;
    let sql = format!("{sql} LIMIT ?");
    let binary: Vec<(R::Key, Option<R::Key>)> = conn.exec(sql, (KEYS,)).await?;
    let expected = keys.iter().enumerate();
    let expected: Vec<_> = expected.map(|(number, id)| (*id, other(number))).collect();
    assert!(
        text == expected,
        "{:?} {:?}",
        text.first(),
        expected.first()
    );
    assert!(binary == expected);

    let sql = "SELECT COUNT(*) FROM `keys` WHERE id IN (?, ?) AND id >= ?";
    let found: Option<i64> = conn.exec_first(sql, (keys[14], keys[15], keys[15])).await?;
    assert_eq!(found, Some(1));

    // Rows that are updated and deleted are found by their keys.
    let mut work = UnitOfWork::new();
    rows[..20].iter().for_each(|row| work.delete(row));
    for key in &keys[20..30] {
        work.update(R::new(*key, None));
    }
    work.flush_on(&mut conn).await?;
    let left =
        "(SELECT COUNT(*) FROM `keys`) * 10000 + (SELECT COUNT(*) FROM `keys` WHERE other IS NULL)";
    let nulls = (20..KEYS)
        .filter(|it| *it < 30 || it.is_multiple_of(3))
        .count();
    let expected = (KEYS - 20) * 10_000 + nulls;
    assert_eq!(number(&mut conn, left).await?, i64::try_from(expected)?);
    Ok(())
}

async fn a_key_without_a_newtype(url: String) -> Outcome {
    type Id = Stored<Uuid, column::Char22>;

    let mut conn = connect(&url).await?;
    let ty = <column::Char22 as ColumnOn<MariaDb>>::TYPE;
    execute(&mut conn, &[&format!("CREATE TABLE `keys` (id {ty})")]).await?;
    let key: Id = Uuid::generate().into();
    conn.exec_drop("INSERT INTO `keys` VALUES (?), (NULL)", (key,))
        .await?;
    let found: Vec<Option<Id>> = conn.query("SELECT id FROM `keys` ORDER BY id").await?;
    assert_eq!(found, [None, Some(key)]);
    let length = number(&mut conn, "MAX(LENGTH(id)) FROM `keys`").await?;
    assert_eq!(length, 22);
    Ok(())
}

/// The server's own function writes the swapped form.
async fn uuid_to_bin_writes_what_is_read(url: String) -> Outcome {
    let mut conn = connect(&url).await?;
    let key = Swapped::generate();
    let sql = "SELECT UUID_TO_BIN(?, 1), BIN_TO_UUID(?, 1)";
    let parameters = (key.to_raw().to_string(), key);
    let found: Option<(Swapped, String)> = conn.exec_first(sql, parameters).await?;
    assert_eq!(found, Some((key, key.to_raw().to_string())));
    Ok(())
}

fn a_value_of_another_form_is_told_with_its_column() {
    let told = |value: Value| Native::read_key(&value).unwrap_err().to_string();
    let key = Native::generate();
    let text = Value::Bytes(key.to_raw().to_string().into_bytes());
    assert!(told(text.clone()).contains("char36"), "{}", told(text));
    assert!(
        told(Value::NULL).contains("Option"),
        "{}",
        told(Value::NULL)
    );
    assert!(told(Value::Double(0.5)).contains("0.5"));
    assert!(told(Value::Int(7)).contains('7'), "{}", told(Value::Int(7)));

    // mysql_async returns the value, or panics.
    let text = Value::Bytes(b"1234".to_vec());
    let FromValueError(value) = from_value_opt::<Native>(text.clone()).unwrap_err();
    assert_eq!(value, text);
    let panicked = std::panic::catch_unwind(|| ::mysql_async::from_value::<Native>(text));
    let panicked = panicked.unwrap_err();
    let panicked = panicked.downcast_ref::<String>().map(String::as_str);
    assert!(
        panicked.is_some_and(|it| it.contains("16 bytes")),
        "{panicked:?}"
    );
}
