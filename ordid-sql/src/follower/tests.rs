use ordid_core::{
    entity::Parent,
    key::KeyBytes,
    storage::dialect::{Babelfish, MySql, Oracle, Postgres, SqlServer, Sqlite},
    uuid::Uuid,
};

use super::*;
use crate::{DriverError, Failure, table_driver::Sent};

struct Order(Uuid);

impl OrderedKey for Order {
    type Field = Uuid;

    const SCHEMA: Option<&'static str> = Some("shop");
    const TABLE: &'static str = "orders";
    const KEY_COLUMN: &'static str = "id";
    const COLUMNS: &'static [&'static str] = &["id", "total"];
    const PARENTS: &'static [Parent] = &[];
    // `tax` is listed as in a derived entity, and `total` as in an entity of SeaORM.
    const RETURNING: &'static [&'static str] = &["tax", "total"];

    fn key(&self) -> Option<Uuid> {
        Some(self.0)
    }

    fn assign_key(&mut self, key: Uuid) {
        self.0 = key;
    }

    fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
}

fn snapshot(text: &str) -> Snapshot {
    text.parse().unwrap()
}

#[test]
fn a_snapshot_knows_what_has_ended() {
    let seen = snapshot("10:20:10,14");
    let ended: Vec<u64> = (8..22).filter(|it| seen.has_ended(*it)).collect();
    assert_eq!(ended, [8, 9, 11, 12, 13, 15, 16, 17, 18, 19]);
    assert_eq!(seen.to_string(), "10:20:10,14");
    assert!((0..100).all(|it| it == 0 || !Snapshot::NOTHING.has_ended(it)));
}

#[test]
fn the_own_transaction_is_open() {
    let own = |number| snapshot("10:20:10,14").with_open(number).to_string();
    assert_eq!(own(12), "10:20:10,12,14");
    assert_eq!(own(14), "10:20:10,14");
    assert_eq!(own(19), "10:20:10,14,19");
    assert_eq!(own(20), "10:20:10,14", "not seen anyway");
    assert_eq!(own(7), "7:20:7,10,14");
}

#[test]
fn a_snapshot_covers_older_ones_alone() {
    let seen = snapshot("10:20:10,14");
    for newer in ["10:20:10,14", "10:20:14", "20:20:", "14:30:14,25", "30:30:"] {
        assert!(snapshot(newer).covers(&seen), "{newer}");
    }
    // Fewer transactions had begun, or a transaction is open again.
    for older in ["10:19:10,14", "9:9:", "10:25:10,11,14"] {
        assert!(!snapshot(older).covers(&seen), "{older}");
    }
    assert!(seen.covers(&Snapshot::NOTHING));
}

#[test]
fn what_is_no_snapshot_is_refused() {
    for text in [
        "",
        "1",
        "1:2",
        "1:2:3:4",
        "0:5:",
        "5:4:",
        "1:9:9",
        "2:9:1",
        "1:9:4,4",
        "1:9:5,4",
        "1:9:,",
        "+1:9:",
        "01:9:",
        "1:99999999999999999999:",
    ] {
        let error = text.parse::<Snapshot>().unwrap_err();
        assert!(error.is_parse(), "{text}");
    }
    assert_eq!(
        "9:5:".parse::<Snapshot>().unwrap_err().to_string(),
        "expected a snapshot such as 10:20:10,14, found \"9:5:\""
    );
}

#[test]
fn a_position_is_its_text() {
    let key = "019ac000-0000-7000-8000-000000000001";
    for text in [
        "start".to_owned(),
        format!("above {key}"),
        "seen 10:20:14".to_owned(),
        "seen 10:20:14 until 30:30:".to_owned(),
        format!("seen 10:20:14 until 30:30: above {key}"),
    ] {
        let position: Position<Uuid> = text.parse().unwrap();
        assert_eq!(position.to_string(), text);
    }
    for text in [
        "",
        "start ",
        "above",
        "above x",
        "seen",
        "seen 9:5:",
        "until 1:1:",
    ] {
        assert!(text.parse::<Position<Uuid>>().is_err(), "{text}");
    }
    assert_eq!(
        "Start".parse::<Position<Uuid>>().unwrap_err().to_string(),
        "expected the position of a follower, such as `start` or `above KEY`, found \"Start\""
    );
}

#[test]
fn statements_of_each_rule() {
    assert_eq!(
        text::committed(
            &FollowNames::of::<Postgres, Order>(),
            "inserted_in",
            &snapshot("10:20:14"),
            &snapshot("30:31:"),
            true,
            7
        ),
        "SELECT \"id\", \"total\", \"tax\" FROM \"shop\".\"orders\" WHERE \"inserted_in\" >= '10'::xid8 AND \
         \"inserted_in\" < '31'::xid8 AND NOT pg_visible_in_snapshot(\"inserted_in\", '10:20:14'::pg_snapshot) \
         AND pg_visible_in_snapshot(\"inserted_in\", '30:31:'::pg_snapshot) \
         AND (SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_current_xact_id() END) IS NULL \
         AND \"id\" > $1 ORDER BY \"id\" LIMIT 7"
    );
    assert_eq!(
        text::settled::<Postgres>(&FollowNames::of::<Postgres, Order>(), ['>', '<'], 7),
        "SELECT \"id\", \"total\", \"tax\" FROM \"shop\".\"orders\" WHERE \"id\" > $1 AND \"id\" < $2 ORDER BY \"id\" LIMIT 7"
    );
    assert_eq!(
        text::settled::<Sqlite>(&FollowNames::of::<Sqlite, Order>(), ['<'], 7),
        "SELECT \"id\", \"total\", \"tax\" FROM \"shop\".\"orders\" WHERE \"id\" < ? ORDER BY \"id\" LIMIT 7"
    );
    assert_eq!(
        text::settled::<MySql>(&FollowNames::of::<MySql, Order>(), ['>', '<'], 1),
        "SELECT `id`, `total`, `tax` FROM `shop`.`orders` WHERE `id` > ? AND `id` < ? \
         AND 18446744073709551615 + (/*M! @@tx_isolation *//*!50720 @@transaction_isolation */ = 'READ-UNCOMMITTED') > 0 \
         ORDER BY `id` LIMIT 1"
    );
    assert_eq!(
        text::settled::<SqlServer>(&FollowNames::of::<SqlServer, Order>(), ['>', '<'], 7),
        "SELECT TOP (7) [id], [total], [tax] FROM [shop].[orders] WITH (READCOMMITTEDLOCK) WHERE [id] > @P1 AND [id] < @P2 \
         ORDER BY [id]"
    );
    assert_eq!(
        text::settled::<Babelfish>(&FollowNames::of::<Babelfish, Order>(), ['<'], 7),
        "SELECT TOP (7) [id], [total], [tax] FROM [shop].[orders] WHERE [id] < @P1 ORDER BY [id]"
    );
    assert_eq!(
        text::settled::<Oracle>(&FollowNames::of::<Oracle, Order>(), ['>', '<'], 7),
        "SELECT \"id\", \"total\", \"tax\" FROM \"shop\".\"orders\" WHERE \"id\" > :1 AND \"id\" < :2 ORDER BY \"id\" \
         FETCH FIRST 7 ROWS ONLY"
    );
    assert_eq!(
        text::create::<Order>(&FollowNames::of::<Postgres, Order>(), "inserted_in"),
        [
            "ALTER TABLE \"shop\".\"orders\" ADD COLUMN \"inserted_in\" xid8 NOT NULL DEFAULT pg_current_xact_id()",
            "CREATE INDEX CONCURRENTLY \"orders_inserted_in_idx\" ON \"shop\".\"orders\" (\"inserted_in\")"
        ]
    );
}

#[derive(ordid::KeyType)]
#[ordid(scheme = snowflake)]
struct FlakeId(i64);

/// The steps of this scheme are 10 ms.
#[derive(ordid::KeyType)]
#[ordid(scheme = snowflake(layout = Sonyflake))]
struct SonyId(i64);

/// The steps of this scheme are more than a second.
#[derive(ordid::KeyType)]
#[ordid(scheme = snowflake(epoch = "2020-01-01", unit = 1176, time = 41, node = 10, sequence = 12))]
struct SlowId(i64);

/// The row with the lowest key of a time is not among those that are older than it.
#[test]
fn a_reader_of_new_rows_begins_right_before_the_first_of_them() {
    for millis in [1_763_000_000_000, 1_763_000_000_007, 1_763_000_000_990] {
        let time = Timestamp::from_unix_millis(millis).unwrap();
        let lowest = Uuid::range(time..time).unwrap().start.as_u128();
        let before: Uuid = highest_before(time).unwrap().unwrap();
        assert!(before.as_u128() < lowest);
        let earlier = Timestamp::from_unix_millis(millis - 1).unwrap();
        assert_eq!(before.timestamp(), Some(earlier));

        let lowest = FlakeId::range(time..time).unwrap().start.to_raw();
        assert_eq!(
            highest_before::<FlakeId>(time).unwrap().unwrap().to_raw(),
            lowest - 1
        );
        let lowest = SonyId::range(time..time).unwrap().start.to_raw();
        assert_eq!(
            highest_before::<SonyId>(time).unwrap().unwrap().to_raw(),
            lowest - 1
        );
        let lowest = SlowId::range(time..time).unwrap().start.to_raw();
        assert_eq!(
            highest_before::<SlowId>(time).unwrap().unwrap().to_raw(),
            lowest - 1
        );
    }
}

/// Its times end on 2020-01-13.
#[derive(ordid::KeyType)]
#[ordid(scheme = snowflake(epoch = "2020-01-01", unit = 1, time = 30, node = 10, sequence = 12))]
struct ShortId(i64);

/// A library whose table has one row, and that remembers the queries for rows.
struct Recorded;

type Queries = std::sync::Mutex<Vec<(String, Vec<i64>)>>;

struct Short(ShortId);

impl OrderedKey for Short {
    type Field = ShortId;

    const SCHEMA: Option<&'static str> = None;
    const TABLE: &'static str = "short";
    const KEY_COLUMN: &'static str = "id";
    const COLUMNS: &'static [&'static str] = &["id"];
    const PARENTS: &'static [Parent] = &[];

    fn key(&self) -> Option<ShortId> {
        Some(self.0)
    }

    fn assign_key(&mut self, key: ShortId) {
        self.0 = key;
    }

    fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
}

impl crate::table_driver::TableDriver for Recorded {
    type Error = std::convert::Infallible;
    type Source<'c> = &'c Queries;
    type Kind = crate::table_driver::Blocking;

    fn texts<'a>(_: &'a mut &Queries, _: String) -> Sent<'a, Self, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn run<'a>(_: &'a mut &Queries, _: String) -> Sent<'a, Self, ()> {
        Box::pin(async { Ok(()) })
    }
}

impl FollowerDriver<Short> for Recorded {
    type Dialect = MySql;
    type Row = Short;

    const KEEPS_ORDER: bool = true;

    fn rows<'a>(
        queries: &'a mut &Queries,
        sql: String,
        keys: Vec<ShortId>,
    ) -> Sent<'a, Self, Vec<Short>> {
        let keys = keys.into_iter().map(KeyType::to_raw).collect();
        queries.lock().unwrap().push((sql, keys));
        Box::pin(async { Ok(vec![Short(ShortId::from_raw(7).unwrap())]) })
    }

    fn key(row: &Short) -> Option<ShortId> {
        Some(row.0)
    }
}

#[test]
fn nothing_is_settled_before_the_layout_begins() {
    let queries = Queries::default();
    let follower = Follower::<Recorded, Short>::settled_after(Duration::from_hours(100 * 365 * 24));
    for position in [Position::START, "above 5".parse().unwrap()] {
        let batch = follower.next(&queries, &position, 10).unwrap();
        assert!(batch.rows.is_empty() && batch.is_complete);
        assert_eq!(batch.position, position);
    }
    assert_eq!(follower.now(&queries).unwrap(), Position::START);
    assert!(queries.into_inner().unwrap().is_empty());

    let other = "seen 1:1:".parse().unwrap();
    let error = follower
        .next(&Queries::default(), &other, 10)
        .err()
        .unwrap();
    assert!(error.is_other_position());
}

#[test]
fn all_rows_are_settled_after_the_layout_has_ended() {
    let queries = Queries::default();
    let follower = Follower::<Recorded, Short>::settled_after(Duration::from_secs(60));
    for position in [Position::START, "above 5".parse().unwrap()] {
        let batch = follower.next(&queries, &position, 10).unwrap();
        assert_eq!(batch.position.to_string(), "above 7");
        assert!(batch.rows.len() == 1 && batch.is_complete);
    }
    let last = i64::MAX >> (63 - 30 - 22);
    assert_eq!(
        follower.now(&queries).unwrap().to_string(),
        format!("above {last}")
    );
    let committed = MySql::COMMITTED;
    assert_eq!(
        queries.into_inner().unwrap(),
        [
            (
                format!("SELECT `id` FROM `short` WHERE 1 = 1{committed} ORDER BY `id` LIMIT 10"),
                vec![]
            ),
            (
                format!(
                    "SELECT `id` FROM `short` WHERE `id` > ?{committed} ORDER BY `id` LIMIT 10"
                ),
                vec![5]
            ),
        ]
    );
}

/// The bound is the time itself where the layout begins and where it ends.
#[test]
fn the_ends_of_a_layout_are_within_it() {
    let begin = 1_577_836_800_000;
    let last = begin + (1 << 30) - 1;
    let at = |millis| Timestamp::from_unix_millis(millis).unwrap();
    let older = |millis| older_than::<ShortId>(at(millis)).unwrap();
    assert!(matches!(older(begin - 1), Older::None));
    assert!(matches!(older(begin), Older::Below(key) if key.to_raw() == 0));
    assert!(matches!(older(last), Older::Below(key) if key.to_raw() == ((1 << 30) - 1) << 22));
    assert!(matches!(older(last + 1), Older::All));
    let before = |millis| {
        highest_before::<ShortId>(at(millis))
            .unwrap()
            .map(KeyType::to_raw)
    };
    assert_eq!(before(begin - 1), None);
    assert_eq!(
        before(begin),
        None,
        "a row with the lowest key is still to come"
    );
    assert_eq!(before(begin + 1), Some((1 << 22) - 1));
    assert_eq!(before(last + 1), Some((1 << 52) - 1));
}

/// The own text of some libraries says only that the error is the database's.
#[test]
fn an_error_prints_what_the_database_says() {
    let of = |text: &str, column: Option<&str>| {
        FollowError::new(
            "\"orders\"".into(),
            column.map(str::to_owned),
            Kind::Cause(
                DriverError {
                    text: Some(text.into()),
                    ..DriverError::new("db error", Failure::Refused)
                }
                .into(),
            ),
        )
        .to_string()
    };
    let refused = "permission denied for table orders";
    for column in [None, Some(COLUMN), Some("order")] {
        assert_eq!(
            of(refused, column),
            format!("follower of \"orders\": {refused}")
        );
    }
    for column in [COLUMN, "xact"] {
        // The second message is in German.
        for missing in [
            format!("column \"{column}\" does not exist"),
            format!("Spalte »{column}« existiert nicht"),
        ] {
            assert_eq!(
                of(&missing, Some(column)),
                format!(
                    "follower of \"orders\": {missing}; a follower `by_transaction` needs this column: the statements \
                     that add it are in `Follower::create_sql`"
                )
            );
        }
    }
}
