use std::{num::NonZeroU32, sync::Arc};

use ordid_core::{
    coordination::AsyncSegmentSource,
    storage::dialect::{MySql, Postgres, Sqlite},
};

use super::*;
use crate::{
    EngineProfile,
    leases::{
        numbers::CounterDialect,
        scripted::{Script, Scripted, changed, rows},
    },
    spi::blocking as ready,
};

fn count(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

fn unavailable() -> Error {
    Error::coordination(CoordinationFailure::Unavailable, "as the test asks")
}

fn counter<D: CounterDialect>(script: &Arc<Script>) -> SqlCounter<Scripted<D>> {
    SqlCounter::new(Arc::clone(script), "orders").unwrap()
}

/// Reserves, and returns the first number; or the kind and the text of the error.
fn first(source: &impl AsyncSegmentSource, number: u32) -> Result<i64, String> {
    let reserved = ready(source.reserve(count(number)));
    reserved
        .map(|segment| segment.values().next().unwrap())
        .map_err(|error| error.to_string())
}

#[test]
fn a_counter_is_made_in_the_words_of_its_dialect() {
    let script = Arc::default();
    for (sql, expected) in [
        (
            counter::<Postgres>(&script).create_sql(7),
            "CREATE TABLE IF NOT EXISTS \"ordid_counters\" (name text COLLATE \"C\" NOT NULL PRIMARY KEY, \
             value BIGINT NOT NULL);\n\
             INSERT INTO \"ordid_counters\" (name, value) VALUES ('orders', 6) ON CONFLICT DO NOTHING;",
        ),
        (
            counter::<Postgres>(&script)
                .with_engine(EngineProfile::AURORA_DSQL)
                .with_table("numbers")
                .expect("a name")
                .create_sql(1),
            "CREATE TABLE IF NOT EXISTS \"numbers\" (name text NOT NULL PRIMARY KEY, value BIGINT NOT NULL);\n\
             INSERT INTO \"numbers\" (name, value) VALUES ('orders', 0) ON CONFLICT DO NOTHING;",
        ),
        (
            counter::<MySql>(&script).create_sql(-7),
            "CREATE TABLE IF NOT EXISTS `ordid_counters` (name VARCHAR(63) CHARACTER SET ascii COLLATE \
             ascii_bin NOT NULL PRIMARY KEY, value BIGINT NOT NULL) ENGINE=InnoDB;\n\
             INSERT INTO `ordid_counters` (name, value) VALUES ('orders', 0) ON DUPLICATE KEY UPDATE \
             value = value;",
        ),
        (
            counter::<Sqlite>(&script).create_sql(1),
            "CREATE TABLE IF NOT EXISTS \"ordid_counters\" (name TEXT NOT NULL PRIMARY KEY, \
             value BIGINT NOT NULL);\n\
             INSERT INTO \"ordid_counters\" (name, value) VALUES ('orders', 0) ON CONFLICT DO NOTHING;",
        ),
    ] {
        assert_eq!(sql, expected);
    }
}

#[test]
fn a_counter_gives_the_numbers_up_to_what_it_returned() {
    let script = Script::new(vec![rows(vec![vec![12]]), rows(vec![vec![13]])]);
    let orders = counter::<Sqlite>(&script);
    assert_eq!(first(&orders, 3), Ok(10));
    assert_eq!(first(&orders, 1), Ok(13));
    let [session, once, again] = &script.asked()[..] else {
        panic!("a setting and two statements");
    };
    assert_eq!(session.0, "PRAGMA");
    let below = (i64::MAX - 3).to_string();
    assert_eq!(once.1, ["3", "orders", "0", &below]);
    assert_eq!(again.0, "UPDATE");
    assert_eq!(again.1[2], "12", "no lower than it was");
    // MySQL says it by LAST_INSERT_ID.
    let answer = crate::leases::numbers::Answer {
        changed: 1,
        last_id: 12,
        ..Default::default()
    };
    let script = Script::new(vec![Ok(answer)]);
    assert_eq!(first(&counter::<MySql>(&script), 3), Ok(10));
}

#[test]
fn why_a_counter_gave_nothing_is_told() {
    let there = |value| rows(vec![vec![value]]);
    for (answers, expected) in [
        (
            vec![there(12), changed(0), there(11)],
            "the store's ceiling went back: counter orders in table ordid_counters of SQLite has given 12, and \
             is below that now: the database was restored from a copy, or fell over to one that lagged behind; \
             raise the counter above all numbers that were used",
        ),
        (
            vec![there(1), changed(0), rows(vec![])],
            "the store has lost its state: counter orders in table ordid_counters of SQLite is missing: make \
             it once with `create`, above all numbers that were used",
        ),
        (
            vec![there(1), changed(0), there(i64::MAX)],
            "the counter is exhausted: counter orders in table ordid_counters of SQLite is at \
             9223372036854775807: 1 more are above 9223372036854775807",
        ),
    ] {
        let script = Script::new(answers);
        let orders = counter::<Sqlite>(&script);
        first(&orders, 1).unwrap();
        assert_eq!(first(&orders, 1).unwrap_err(), expected);
    }
}

#[test]
fn a_sequence_gives_blocks_of_its_own_increment_alone() {
    let catalogue = |first, increment, cycles| rows(vec![vec![first, increment, 1, cycles, 0]]);
    let script = Script::new(vec![
        catalogue(1, 10, 0),
        catalogue(11, 20, 0),
        catalogue(11, 10, 1),
        rows(vec![vec![11, 10, 1, 0, 1]]),
        rows(vec![]),
        // It has not given anything since it was made anew.
        catalogue(1, 10, 0),
    ]);
    let ids = PgSequence::<Scripted<Postgres>>::new(Arc::clone(&script), "ids", count(10)).unwrap();
    assert_eq!(first(&ids, 10), Ok(1));
    for expected in [
        "has INCREMENT BY 20 CACHE 1, expected INCREMENT BY 10 CACHE 1 NO CYCLE",
        "has INCREMENT BY 10 CACHE 1 CYCLE, expected INCREMENT BY 10 CACHE 1 NO CYCLE",
        "is unlogged or temporary, so it begins anew after a crash",
        "has given 10, and is below that now",
        "has given 10, and is below that now",
    ] {
        let error = first(&ids, 10).unwrap_err();
        assert!(
            error.contains(&format!("the sequence ids {expected}")),
            "{error}"
        );
    }
    let asked = script.asked();
    assert_eq!(asked.len(), 6);
    // The first number of the last block.
    assert_eq!(asked[0].1, ["-9"]);
    assert_eq!(asked[5].1, ["1"]);
    let error = first(&ids, 11).unwrap_err();
    assert!(
        error.ends_with("gives 10 numbers at once, and not 11: raise its increment"),
        "{error}"
    );
    assert!(script.asked().is_empty(), "nothing was sent");
}

/// Two ticket servers with an increment of 2; each connection is asked how its server counts.
fn tickets(scripts: [&Arc<Script>; 2]) -> Tickets64<Scripted<MySql>> {
    Tickets64::new(scripts.map(Arc::clone), TicketForm::LastInsertId, 2).unwrap()
}

/// What the server of an offset says to the check, and then that it went on to `last`.
fn counting(offset: i64, last: u64) -> Vec<Result<crate::leases::numbers::Answer, Error>> {
    let given = crate::leases::numbers::Answer {
        changed: 1,
        last_id: last,
        ..Default::default()
    };
    vec![rows(vec![vec![2, offset, 0]]), Ok(given)]
}

/// Larger ones would not leave room for what is asked for at once.
#[test]
fn an_increment_that_mysql_does_not_have_is_refused() {
    let of = |increment| {
        let server = [Script::new(Vec::new())];
        let tickets =
            Tickets64::<Scripted<MySql>>::new(server, TicketForm::LastInsertId, increment);
        tickets.map(drop)
    };
    assert_eq!(of(65_535), Ok(()));
    let refused = of(65_536).unwrap_err();
    assert!(
        refused.to_string().contains("MySQL has none above 65535"),
        "{refused}"
    );
}

#[test]
fn a_ticket_server_that_does_not_answer_is_passed_over_and_asked_last() {
    let silent = Script::new(vec![Err(unavailable())]);
    let mut answers = counting(2, 6);
    answers.extend(counting(2, 8).pop());
    let other = Script::new(answers);
    let tickets = tickets([&silent, &other]);
    assert_eq!(first(&tickets, 3), Ok(2));
    let asked = other.asked();
    let words: Vec<_> = asked.iter().map(|(word, _)| word.as_str()).collect();
    // The settings of a new connection, its check, and the question.
    assert_eq!(words, ["SET", "SELECT", "UPDATE"]);
    let (least, most) = (i64::MIN.to_string(), (i64::MAX - 6).to_string());
    assert_eq!(asked[2].1, ["6", "2", "2", &least, &most]);
    assert_eq!(first(&tickets, 1), Ok(8));
    assert_eq!(silent.asked().len(), 2, "settings and check, once");
}

#[test]
fn a_ticket_server_that_counts_otherwise_is_an_error_and_not_passed_over() {
    let swapped = Script::new(vec![rows(vec![vec![2, 2, 0]])]);
    let other = Script::new(counting(2, 2));
    let error = first(&tickets([&swapped, &other]), 1).unwrap_err();
    assert_eq!(
        error,
        "not what was asked for: ticket server 1 has auto_increment_increment 2 and auto_increment_offset 2, \
         expected 2 and 1"
    );
    assert!(other.asked().is_empty());
    // What it gave is not of its share.
    let wrong = Script::new(counting(1, 4));
    let error = first(&tickets([&wrong, &other]), 1).unwrap_err();
    assert!(
        error.ends_with("gave 4, which is not of offset 1 and increment 2"),
        "{error}"
    );
}
