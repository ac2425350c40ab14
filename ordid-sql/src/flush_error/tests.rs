use std::{error::Error as _, fmt, io};

use super::*;
use crate::flush_run::MarkedFor;

/// What stands for a driver's error.
fn driver(failure: Failure) -> DriverError<io::Error> {
    DriverError::new(io::Error::other("no such thing"), failure)
}

fn place(key: Option<&str>) -> Place {
    Place {
        key: key.map(str::to_owned),
        ..Place::new(Action::Delete, "orders", 1, 1_000..1_003)
    }
}

type Failed = FlushError<io::Error>;

/// An error that leaves it to its sources to say what is wrong, as tokio-postgres' does.
#[derive(Debug)]
struct Outer(&'static str, io::Error);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.1)
    }
}

#[test]
fn a_flush_error_is_one_pointer() {
    assert_eq!(size_of::<Failed>(), size_of::<usize>());
    assert_eq!(size_of::<Result<(), Failed>>(), size_of::<usize>());
}

#[test]
fn each_kind_of_error_has_its_message() {
    let driver = || driver(Failure::Refused);
    for (error, text) in [
        (
            Error::plan("two rows have one key").into(),
            "cannot plan the flush, nothing was sent: two rows have one key",
        ),
        (
            Error::journal("no space").into(),
            "cannot use the journal, nothing was sent: no space",
        ),
        (
            Failed::open_transaction("client"),
            "a transaction is open on this client, nothing was sent: flush inside it with \
             `flush_in`, or end it first",
        ),
        (
            Failed::no_transaction("client"),
            "no transaction is open on this client, nothing was sent: begin one, or use `flush`",
        ),
        (
            Failed::database(
                "this unit of work is for SQL Server",
                "the server is Babelfish",
            ),
            "this unit of work is for SQL Server, nothing was sent: the server is Babelfish",
        ),
        (Failed::other(driver()), "no such thing"),
        (
            Failed::connect("refused"),
            "cannot connect for the flush, nothing was written: refused",
        ),
        (
            Failed::begin(driver()),
            "cannot begin the flush, nothing was written: no such thing",
        ),
        (
            Failed::other(driver()).into_begin(),
            "cannot begin the flush, nothing was written: no such thing",
        ),
        (
            Failed::removal("ordid_x", &EngineProfile::SQLITE, driver()),
            "cannot delete old rows of the table `ordid_flushes`, for which the user needs SELECT and DELETE: no such thing",
        ),
        (
            Failed::record("ordid_x", &EngineProfile::SQLITE, driver()),
            "cannot record the flush, nothing was written: updates, upserts, deletes and `with_record` need \
             a row in the table `ordid_flushes` (which `ordid_x::flushes_table` declares, and for which the user needs SELECT and \
             INSERT): no such thing",
        ),
        (
            Failed::record(
                "ordid_x",
                &EngineProfile::SQLITE,
                DriverError {
                    is_missing_table: true,
                    ..driver()
                },
            ),
            "cannot record the flush, nothing was written: the table `ordid_flushes` is missing, which updates, upserts, \
             deletes and `with_record` need; create it once, by a migration or the program, with the statement that \
             `ordid_x::flushes_table` returns: CREATE TABLE IF NOT EXISTS ordid_flushes (id BLOB NOT NULL PRIMARY KEY, \
             flushed_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) WITHOUT ROWID; or flush `without_record`: no such thing",
        ),
        (
            Failed::record("ordid_x", &EngineProfile::MYSQL, driver())
                .needed_by(Some(MarkedFor::RowsTakenTwice("events"))),
            "cannot record the flush, nothing was written: the rows of events need a row in the table \
             `ordid_flushes` (which `ordid_x::flushes_table` declares, and for which the user needs SELECT and INSERT): the database would take them twice after a lost answer to COMMIT, as no \
             unique index has only columns that are sent, or a `BEFORE INSERT` trigger may replace their values; or flush \
             `without_record`, which leaves the outcome unknown after such a loss: no such thing",
        ),
        (
            Failed::record(
                "ordid_x",
                &EngineProfile::POSTGRES,
                DriverError {
                    is_missing_table: true,
                    ..driver()
                },
            )
            .needed_by(Some(MarkedFor::RowsTakenTwice("events"))),
            "cannot record the flush, nothing was written: the table `ordid_flushes` is missing, which the rows of events \
             need: the database would take them twice after a lost answer to COMMIT, as no unique index has only columns \
             that are sent, or a `BEFORE INSERT` trigger may replace their values; create it once, by a migration or the \
             program, with the statement that `ordid_x::flushes_table` returns: CREATE TABLE IF NOT EXISTS ordid_flushes \
             (id uuid NOT NULL PRIMARY KEY, flushed_at timestamptz NOT NULL DEFAULT now()); or flush `without_record`, \
             which leaves the outcome unknown after such a loss: no such thing",
        ),
        (
            Failed::record("ordid_x", &EngineProfile::SQLITE, driver())
                .needed_by(Some(MarkedFor::SharedKeys("post_tags"))),
            "cannot record the flush, nothing was written: the rows of post_tags need a row in the table \
             `ordid_flushes` (which `ordid_x::flushes_table` declares, and for which the user needs SELECT and INSERT): their keys do not tell who wrote them after a lost answer to COMMIT, as \
             others may write the same keys; or flush `without_record`, which leaves the outcome unknown after such a loss: \
             no such thing",
        ),
        (
            Failed::bind("too large", place(Some("7"))),
            "cannot bind a row into orders (rows 1000 to 1002), key 7, nothing was \
             written: too large",
        ),
        (
            Failed::statement(driver(), place(None)),
            "cannot delete from orders (rows 1000 to 1002), nothing was written: no such \
             thing",
        ),
        (
            Failed::commit(driver()),
            "cannot commit, nothing was written: no such thing",
        ),
        (
            Failed::release(driver()),
            "cannot release the savepoint of the flush, nothing was written: no such thing",
        ),
        (
            Failed::probe(driver()),
            "cannot look for the rows: no such thing",
        ),
    ] {
        assert_eq!(error.to_string(), text);
        assert_eq!(error.failure() == Failure::Lost, text.contains("connect"));
        assert!(!error.is_commit_unknown() && !error.is_transient());
        assert_eq!(
            error.is_flushes_table_missing(),
            text.contains("CREATE TABLE")
        );
        assert_eq!(error.is_plan(), text.starts_with("cannot plan"));
        assert_eq!(error.is_journal(), text.contains("journal"));
        assert_eq!(error.is_connection_state(), text.contains("open on"));
        assert_eq!(error.is_wrong_database(), text.contains("Babelfish"));
        assert_eq!(
            error.driver().is_some(),
            text.ends_with("no such thing") || text == "no such thing",
            "{text}"
        );
        // Each text has its source's at the end, unless it is that text.
        if let Some(source) = error.source() {
            assert!(text.ends_with(&format!(": {source}")), "{text}");
        }
    }
}

/// A person sees the text alone.
#[test]
fn the_message_has_what_an_error_leaves_to_its_sources() {
    for (text, expected) in [
        (
            "error connecting to server",
            "error connecting to server: refused",
        ),
        ("it was refused", "it was refused"),
    ] {
        let error = Failed::connect(Outer(text, io::Error::other("refused")));
        let expected = format!("cannot connect for the flush, nothing was written: {expected}");
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.source().unwrap().to_string(), text);
    }
}

#[test]
fn the_message_of_a_missing_row_names_it() {
    let error = Failed::count(2, 3, place(None));
    assert!(error.is_missing_row() && error.refuses_a_row());
    assert_eq!(
        (error.action(), error.table(), error.chunk(), error.rows()),
        (
            Some(Action::Delete),
            Some("orders"),
            Some(1),
            Some(1_000..1_003)
        )
    );
    let text = "cannot delete from orders (rows 1000 to 1002), nothing was written: 2 of 3 \
                rows were found";
    assert_eq!(error.to_string(), text);
    let error = Failed::count(0, 1, place(Some("7")));
    let text = "cannot delete from orders (rows 1000 to 1002), key 7, nothing was written: \
                there is no such row";
    assert_eq!((error.to_string().as_str(), error.key()), (text, Some("7")));
    let more = Place {
        more: 3,
        ..place(Some("7"))
    };
    let error = Failed::count(0, 1, more).to_string();
    assert!(error.ends_with(": there is no such row (and 3 more of these rows)"));
    for (changed, rows, text) in [
        (4, 3, ": 4 rows have these 3 keys"),
        (2, 1, ": 2 rows have this key"),
    ] {
        let error = Failed::count(changed, rows, place(None));
        assert!(!error.is_missing_row());
        assert!(error.to_string().ends_with(text));
    }
}

#[test]
fn the_message_names_the_row_that_was_found() {
    let mut source = driver(Failure::Duplicate);
    source.refuses_a_row = true;
    source.violation = Some(Violation::Unique);
    let mut error = Failed::statement(source, place(None));
    assert!(error.refuses_a_row() && error.is_unique_violation());
    assert!(!error.is_foreign_key_violation() && !error.is_missing_row());
    let chunk = Chunk {
        action: Action::Delete,
        table: 0,
        number: 2,
        rows: 2_000..2_001,
    };
    error.set_row(&chunk, 0, "7".to_owned());
    assert_eq!(
        error.to_string(),
        "cannot delete from orders (row 2000), key 7, nothing was written: no \
         such thing"
    );
    // What is no statement's is about no row.
    let mut source = driver(Failure::Refused);
    source.refuses_a_row = true;
    source.violation = Some(Violation::ForeignKey);
    let error = Failed::commit(source);
    assert!(error.is_foreign_key_violation() && !error.refuses_a_row());
}

#[test]
fn an_adapter_may_replace_the_message() {
    let mut source = driver(Failure::Refused);
    source.text = Some("the first row was refused".to_owned());
    let place = Place {
        more: 2,
        ..place(Some("7"))
    };
    let error = Failed::statement(source, place);
    let text = ", key 7, nothing was written: the first row was refused (and 2 more of these \
                rows)";
    assert!(error.to_string().ends_with(text), "{error}");
    assert_eq!(error.source().unwrap().to_string(), "no such thing");
}

#[test]
fn only_an_unresolved_commit_counts_as_unknown() {
    let unknown = "the answer to COMMIT was lost, so either all rows are written or none is; flush \
                   again over a connection that works to find out: ";
    let mut error = Failed::commit(driver(Failure::Lost)).into_unknown();
    error.set_retries(3);
    assert!(error.is_commit_unknown() && error.is_connection_lost() && !error.is_transient());
    assert_eq!(
        error.to_string(),
        format!("{unknown}no such thing (tried 4 times)")
    );
    assert_eq!(error.retries(), 3);
    // It is not known where it happened either.
    let error = Failed::statement(driver(Failure::Duplicate), place(None)).into_unknown();
    assert_eq!(error.to_string(), format!("{unknown}no such thing"));
    assert_eq!((error.table(), error.rows()), (None, None));
    let error = Failed::no_transaction("client").into_unknown();
    assert!(error.to_string().starts_with(unknown));
}

#[test]
fn an_error_that_has_waited_itself_is_transient_but_not_retried() {
    let mut source = driver(Failure::Refused);
    source.has_waited = true;
    let error = Failed::begin(source);
    assert!(error.is_transient() && !error.is_connection_lost());
    assert_eq!(error.failure(), Failure::Refused);
    assert!(Failed::begin(driver(Failure::Transient)).is_transient());
}

#[test]
fn a_sharded_error_is_transient_if_every_failed_shard_is() {
    let failed = |failure| Err(Failed::commit(driver(failure)));
    for (failures, expected) in [
        (&[Failure::Transient][..], Failure::Transient),
        (&[Failure::Transient, Failure::Refused], Failure::Refused),
        (&[Failure::Lost, Failure::Duplicate], Failure::Duplicate),
        (&[Failure::Lost, Failure::Transient], Failure::Lost),
    ] {
        let outcomes = failures.iter().map(|it| failed(*it));
        let outcomes: Vec<_> = [Ok(Flushed::default())]
            .into_iter()
            .chain(outcomes)
            .collect();
        let error = Failed::of_shards(outcomes);
        assert_eq!(error.failure(), expected);
        assert_eq!(error.shards().unwrap().len(), failures.len() + 1);
        let text = format!(
            "{} of {} shards failed, and the rows of the others are written; shard 1: cannot \
             commit, nothing was written: no such thing",
            failures.len(),
            failures.len() + 1
        );
        assert!(error.to_string().starts_with(&text), "{error}");
        assert!(error.source().unwrap().is::<Failed>());
        // Which shard it was is in its own.
        assert!(!error.is_unique_violation() && error.driver().is_none());
    }
}

#[test]
fn a_sharded_error_is_transient_if_a_pool_has_waited_and_no_shard_refused_its_rows() {
    let waited = || {
        let mut source = driver(Failure::Refused);
        source.has_waited = true;
        Err(Failed::begin(source))
    };
    let failed = |failure| Err(Failed::commit(driver(failure)));
    for (outcomes, expected) in [
        (vec![waited()], true),
        (vec![waited(), failed(Failure::Lost)], true),
        (vec![failed(Failure::Transient), waited()], true),
        (vec![waited(), failed(Failure::Refused)], false),
        (vec![failed(Failure::Duplicate), waited()], false),
    ] {
        let outcomes = [Ok(Flushed::default())].into_iter().chain(outcomes);
        let error = Failed::of_shards(outcomes.collect());
        assert_eq!(error.is_transient(), expected, "{error}");
        assert!(!error.is_connection_lost(), "{error}");
    }
}

/// A value may be a person's; the library's error still has it.
#[test]
fn a_duplicate_is_printed_without_the_refused_value() {
    let told = "1062 (23000): Duplicate entry 'ada@example.org' for key 'mail'";
    // The library's own text, and one that its adapter has written.
    for (own, text) in [(told.to_owned(), None), (format!("`{told}'"), Some(told))] {
        let error = Failed::statement(
            DriverError {
                shows_value: crate::classify::ShownValue::InQuotes,
                text: text.map(str::to_owned),
                ..DriverError::new(io::Error::other(own.clone()), Failure::Duplicate)
            },
            place(None),
        );
        assert_eq!(
            error.to_string(),
            "cannot delete from orders (rows 1000 to 1002), nothing was written: 1062 (23000): \
             Duplicate entry for key 'mail'"
        );
        assert_eq!(
            error.source().map(|it| it.to_string()).as_deref(),
            Some(&*own)
        );
    }
}
