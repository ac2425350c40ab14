//! What a table of nodes is asked, on H2 in its Oracle mode: an emulation, which tells whether the statements are
//! SQL and move what they are to move. It takes scripts alone, so literals stand for the parameters.
//!
//! H2 does not know the block that makes the table, nor `CONNECT BY` in it, `SYS_EXTRACT_UTC` and `TO_NUMBER`; and
//! it multiplies integers of 32 bits. What stands for them here is below, in `emulated`.

use std::time::Duration;

use ordid::{
    clock::{Clock as _, SystemClock, Timestamp},
    coordination::{AsyncNodeAllocator as _, CoordinationFailure, Grant, LeaseTerms},
    storage::dialect::Oracle,
};
use ordid_sql::{
    leases::{
        Remedy, SqlLease, StoreDriver, Unanswered,
        numbers::{Answer, LeaseDialect as _, Statement, Value},
    },
    spi::blocking as done,
};
use ordid_tests::servers::Servers;

use crate::{Outcome, h2::run, h2_trials};

pub fn trials(servers: &Servers, trials: &mut Vec<libtest_mimic::Trial>) {
    let mut add = h2_trials(trials, servers);
    add("the_clock_of_leases_is_that_of_the_server", clock);
    add("a_node_is_leased_renewed_given_back_and_written_back", life);
    add("a_table_of_nodes_is_made_and_kept", table);
}

/// A statement, in H2's words.
fn emulated(sql: &str) -> String {
    sql.replace(
        "SYS_EXTRACT_UTC(SYSTIMESTAMP)",
        "(TIMESTAMP '1970-01-01 00:00:00' + \
         (SYSTIMESTAMP - TIMESTAMP WITH TIME ZONE '1970-01-01 00:00:00+00'))",
    )
    .replace("* 86400000", "* CAST(86400000 AS BIGINT)")
}

const TO_NUMBER: &str =
    "CREATE ALIAS IF NOT EXISTS TO_NUMBER FOR \"java.lang.Long.valueOf(java.lang.String)\";\n";

/// H2, as the database that leases are asked of, by its URL.
struct H2;

impl StoreDriver for H2 {
    type Dialect = Oracle;
    type Options = String;
    type Connection = String;

    const SURVIVES_FORKS: bool = true;

    async fn connect(url: &String, _: Duration) -> Result<String, ordid::Error> {
        Ok(url.clone())
    }

    async fn ask(
        url: &mut String,
        statement: &Statement,
        values: &[Value<'_>],
    ) -> Result<Answer, Unanswered> {
        // Five at most, so that none is the beginning of another.
        let mut sql = emulated(statement.sql());
        for (number, value) in (1..).zip(values) {
            let Value::Number(value) = value else {
                panic!("no node is named: {value:?}");
            };
            sql = sql.replace(&format!(":{number}"), &value.to_string());
        }
        // Of a change, how many rows it leaves behind.
        if statement.is_change() {
            sql = format!("SELECT COUNT(*) FROM FINAL TABLE ({sql})");
        }
        let read = run(url, &format!("{TO_NUMBER}{sql};")).map_err(|error| Unanswered {
            error: ordid::Error::coordination(CoordinationFailure::Unavailable, error.to_string()),
            remedy: Remedy::None,
        })?;
        let number = |word: &str| word.parse().expect("a number");
        let row = |row: &String| row.split(' ').map(number).collect::<Vec<i64>>();
        let rows: Vec<Vec<i64>> = read.iter().map(row).collect();
        if statement.is_change() {
            let changed = u64::try_from(rows[0][0]).expect("a count");
            return Ok(Answer {
                changed,
                ..Answer::default()
            });
        }
        Ok(Answer {
            rows,
            ..Answer::default()
        })
    }

    async fn run(url: &mut String, _: String) -> Result<(), ordid::Error> {
        unreachable!("{url} has no PL/SQL");
    }
}

fn leases(url: &str, terms: LeaseTerms, table: &str) -> Result<SqlLease<H2>, ordid::Error> {
    SqlLease::new(url.to_owned(), terms)
        .with_timeout(Duration::from_mins(1))
        .with_table(table)
}

fn now() -> Timestamp {
    SystemClock.now()
}

/// Milliseconds since 1970, whatever the time zone of the session; but what makes UTC of the server's time, H2 has
/// not.
fn clock(url: &str) -> Outcome {
    for zone in ["UTC", "Asia/Kolkata", "America/New_York"] {
        let before = now().as_unix_millis();
        let script = format!(
            "{TO_NUMBER}SET TIME ZONE '{zone}';\nSELECT {} FROM dual;",
            emulated(Oracle::CLOCK)
        );
        let read: u64 = run(url, &script)?.concat().parse()?;
        assert!(
            (before..=now().as_unix_millis()).contains(&read),
            "{zone}: {read}"
        );
    }
    Ok(())
}

/// The statements inside of the block, of which the second makes rows.
fn made(nodes: &SqlLease<H2>) -> Result<String, ordid::Error> {
    let block = nodes.create_sql()?;
    let quoted = block.split('\'').skip(1).step_by(2);
    let statements: Vec<&str> = quoted.collect();
    let [create, insert] = statements[..] else {
        panic!("two statements: {block}");
    };
    let (of, rest) = insert.split_once("LEVEL").expect("a level");
    let (_, count) = rest.split_once("<= ").expect("a last one");
    let (count, rest_of) = count.split_once(')').expect("its end");
    let insert = format!("{of}X - 1 AS node FROM SYSTEM_RANGE(1, {count})){rest_of}");
    let create = create.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS");
    Ok(format!("{create};\n{insert};\n"))
}

/// Making it again takes nothing away, and adds what is new.
fn table(url: &str) -> Outcome {
    let nodes = |nodes| leases(url, LeaseTerms::new(nodes)?, "h2_made_nodes");
    let select = "SELECT node, epoch, ceiling, expires FROM \"h2_made_nodes\" ORDER BY node;";
    let made_once = format!("{}{select}", made(&nodes(5..8)?)?);
    assert_eq!(run(url, &made_once)?, ["5 0 0 0", "6 0 0 0", "7 0 0 0"]);
    let used = format!(
        "UPDATE \"h2_made_nodes\" SET epoch = 3 WHERE node = 6;\n{}{select}",
        made(&nodes(5..10)?)?
    );
    assert_eq!(
        run(url, &used)?,
        ["5 0 0 0", "6 3 0 0", "7 0 0 0", "8 0 0 0", "9 0 0 0"]
    );
    Ok(())
}

fn failure<T: std::fmt::Debug>(result: Result<T, ordid::Error>) -> Option<CoordinationFailure> {
    result
        .expect_err("it cannot have succeeded")
        .coordination_failure()
}

fn life(url: &str) -> Outcome {
    // Each statement starts H2's tool: on a busy machine, all of them take longer than the usual 10 s.
    let terms = LeaseTerms::new(0..2)?.with_ttl(Duration::from_mins(10))?;
    let nodes = leases(url, terms, "h2_nodes")?;
    run(url, &made(&nodes)?)?;
    let acquire = || done(nodes.acquire(now(), None));
    let renew = |grant: &Grant| done(nodes.renew(grant, now()));

    let first = acquire()?;
    let second = acquire()?;
    assert_eq!(first.node() + second.node(), 1, "one each");
    assert_eq!((first.epoch(), second.epoch()), (1, 1));
    assert_eq!(failure(acquire()), Some(CoordinationFailure::NoFreeNode));

    let renewed = renew(&first)?;
    assert!(renewed.ceiling() > first.ceiling());
    // A copy of it has lost.
    assert_eq!(failure(renew(&first)), Some(CoordinationFailure::Fenced));
    let given_back = done(nodes.release(&first, None));
    assert_eq!(failure(given_back), Some(CoordinationFailure::Fenced));

    // What is given back begins above the newest key, under the next grant.
    let last = Timestamp::from_unix_millis(renewed.floor().as_unix_millis() + 7)?;
    done(nodes.release(&renewed, Some(last)))?;
    let behind = Timestamp::from_unix_millis(renewed.floor().as_unix_millis() - 1_000)?;
    let next = done(nodes.acquire(behind, None))?;
    assert_eq!((next.node(), next.epoch()), (first.node(), 2));
    assert_eq!(next.floor().as_unix_millis(), last.as_unix_millis() + 1);

    // Out of a copy: it is told, and raised to what was granted, and no further.
    run(
        url,
        "UPDATE \"h2_nodes\" SET epoch = 1, ceiling = 5, expires = 0;",
    )?;
    let regressed = Some(CoordinationFailure::CeilingRegressed);
    assert_eq!(failure(renew(&next)), regressed);
    let select = format!(
        "SELECT epoch, ceiling FROM \"h2_nodes\" WHERE node = {};",
        next.node()
    );
    let ceiling = next.ceiling().as_unix_millis();
    assert_eq!(run(url, &select)?, [format!("2 {ceiling}")]);
    run(
        url,
        "UPDATE \"h2_nodes\" SET epoch = 9, ceiling = 9000000000000;",
    )?;
    assert_eq!(failure(renew(&next)), Some(CoordinationFailure::Fenced));
    assert_eq!(run(url, &select)?, ["9 9000000000000"]);

    run(url, "DELETE FROM \"h2_nodes\";")?;
    assert_eq!(failure(renew(&next)), Some(CoordinationFailure::StateLost));
    assert_eq!(failure(acquire()), Some(CoordinationFailure::StateLost));
    Ok(())
}
