//! The run itself, for every database: look, create, flush, check, compare.

use std::{cell::Cell, time::Instant};

use indicatif::{ProgressBar, ProgressStyle};
use ordid::{Fields, KeyOf, OrderedKey, storage::Dialect};
use ordid_sqlx::{Flushed, UnitOfWork};
use sqlx::Connection;

use crate::{
    data::Data,
    database::{Database, RANDOM, Size, TABLES, TableRow, Target, create_flights, create_tables},
    entities::{Airline, Airport, Flight, Plane},
    error::{Context, Error},
    random_keys::{self, RandomKeys},
    report::{FirstKey, Report},
};

/// How many keys of each table are shown.
const SHOWN: usize = 2;

/// What this run has made outside of a transaction: some of it has to go if the run ends here.
#[derive(Clone, Copy)]
enum Standing {
    /// So many of the tables, without all of their rows.
    Tables(usize),
    /// The tables for good, and the one of the comparison.
    Comparison,
    /// The tables for good.
    Rows,
}

/// Loads the data and reports. After an error or Ctrl-C nothing half loaded stays behind.
pub(crate) async fn load<DB: Database>(target: &Target<DB>, data: Data) -> Result<Report, Error>
where
    Airline: TableRow<DB>,
    Airport: TableRow<DB>,
    Plane: TableRow<DB>,
    Flight: TableRow<DB> + Fields<RandomKeys<DB>>,
{
    let standing = Cell::new(Standing::Tables(0));
    let outcome = tokio::select! {
        outcome = load_into(target, data, &standing) => outcome,
        _ = tokio::signal::ctrl_c() => Err(Error::new(match standing.get() {
            Standing::Tables(_) => "interrupted, nothing was loaded",
            Standing::Comparison | Standing::Rows => "interrupted after the tables were loaded",
        })),
    };
    match outcome {
        Ok(report) => Ok(report),
        // The connection is closed by now, and with it whatever transaction was open.
        Err(error) => match clean_up(target, standing.get()).await {
            Ok(()) => Err(error),
            Err(left) => Err(Error::new(format_args!("{error}; and then {left}"))),
        },
    }
}

async fn clean_up<DB: Database>(target: &Target<DB>, standing: Standing) -> Result<(), Error> {
    if let (Standing::Tables(_), Some(file)) = (standing, &target.new_file) {
        return target.remove(file);
    }
    let tables: Vec<_> = match standing {
        Standing::Tables(made) => TABLES[..made].iter().rev().copied().collect(),
        Standing::Comparison => vec![RANDOM],
        Standing::Rows => Vec::new(),
    };
    if DB::ROLLS_BACK_TABLES || tables.is_empty() {
        return Ok(());
    }
    let tables = tables.join(", ");
    let what = format_args!("cannot drop {tables} in {}", target.name);
    let mut connection = target.connect().await?;
    DB::run(&mut connection, format!("DROP TABLE IF EXISTS {tables}"))
        .await
        .context(what)
}

async fn load_into<DB: Database>(
    target: &Target<DB>,
    data: Data,
    standing: &Cell<Standing>,
) -> Result<Report, Error>
where
    Airline: TableRow<DB>,
    Airport: TableRow<DB>,
    Plane: TableRow<DB>,
    Flight: TableRow<DB> + Fields<RandomKeys<DB>>,
{
    let name = &target.name;
    let mut connection = target.connect().await?;
    let product = DB::describe(&mut connection).await.context(name)?;
    let taken = DB::taken(&mut connection).await.context(name)?;
    if let Some(table) = TABLES
        .into_iter()
        .chain([RANDOM])
        .find(|it| taken.iter().any(|t| t == it))
    {
        return Err(Error::new(format_args!(
            "{name} already has a table {table}: nothing was loaded"
        )));
    }

    let mut work = UnitOfWork::new();
    data.airlines.into_iter().for_each(|row| _ = work.add(row));
    data.airports.into_iter().for_each(|row| _ = work.add(row));
    data.planes.into_iter().for_each(|row| _ = work.add(row));
    data.flights.into_iter().for_each(|row| _ = work.add(row));

    let bar = progress_bar(work.len(), "loading");
    let shown = bar.clone();
    work.observe(move |progress| shown.inc(progress.rows as u64));
    let started = Instant::now();
    let flushed = flush(&mut connection, &mut work, standing)
        .await
        .map_err(|error| Error::new(format_args!("cannot load into {name}: {error}")))?;
    let elapsed = started.elapsed();
    standing.set(Standing::Rows);
    bar.finish_and_clear();

    let mut first_keys = Vec::new();
    let mut checked = 0;
    checked += check_order::<DB, Airline>(&mut connection, &work, &mut first_keys).await?;
    checked += check_order::<DB, Airport>(&mut connection, &work, &mut first_keys).await?;
    checked += check_order::<DB, Plane>(&mut connection, &work, &mut first_keys).await?;
    checked += check_order::<DB, Flight>(&mut connection, &work, &mut first_keys).await?;

    let flights = work.get::<Flight>();
    let rows = flights.len() as u64;
    let ordered = DB::size(&mut connection, "flights", rows)
        .await
        .context(name)?;
    // As many rows a statement as the flush had.
    let chunk = flushed
        .tables
        .iter()
        .find(|table| table.table == Flight::TABLE)
        .map_or(1, |table| table.rows.div_ceil(table.statements));
    let random = load_random(&mut connection, flights, chunk, standing)
        .await
        .context(format_args!("cannot load {RANDOM} into {name}, to compare"))?;
    standing.set(Standing::Rows);
    connection.close().await.context(name)?;

    Ok(Report {
        database: format!("{product}, {name}"),
        flushed,
        elapsed,
        orphans: data.orphans,
        first_keys,
        checked,
        ordered,
        random,
    })
}

/// Creates the tables and flushes: in one transaction, where tables can be created in one.
async fn flush<DB: Database>(
    connection: &mut DB::Connection,
    work: &mut UnitOfWork<DB>,
    standing: &Cell<Standing>,
) -> Result<Flushed, Error> {
    if !DB::ROLLS_BACK_TABLES {
        for (made, sql) in create_tables::<DB>().into_iter().enumerate() {
            // Noted before, in case of Ctrl-C; taken back where the table is somebody else's.
            standing.set(Standing::Tables(made + 1));
            let created = DB::run(connection, sql).await;
            created
                .inspect_err(|_| standing.set(Standing::Tables(made)))
                .context("CREATE TABLE")?;
        }
    }
    let mut transaction = connection.begin().await.context("BEGIN")?;
    if DB::ROLLS_BACK_TABLES {
        for sql in create_tables::<DB>() {
            DB::run(&mut transaction, sql)
                .await
                .context("CREATE TABLE")?;
        }
    }
    let flushed = work.flush_in(&mut transaction).await.map_err(Error::new)?;
    transaction.commit().await.context("COMMIT")?;
    Ok(flushed)
}

/// Compares what the database says to `ORDER BY` with the order in which the rows were added.
async fn check_order<DB: Database, E: TableRow<DB>>(
    connection: &mut DB::Connection,
    work: &UnitOfWork<DB>,
    first_keys: &mut Vec<FirstKey>,
) -> Result<usize, Error> {
    let (table, key) = (
        DB::Dialect::quote(E::TABLE),
        DB::Dialect::quote(E::KEY_COLUMN),
    );
    let sql = format!("SELECT {key} FROM {table} ORDER BY {key}");
    let found: Vec<KeyOf<E>> = DB::keys(connection, sql).await.context(E::TABLE)?;
    let inserted: Vec<_> = work.get::<E>().iter().filter_map(E::key).collect();
    if found != inserted {
        let same = found
            .iter()
            .zip(&inserted)
            .take_while(|(found, inserted)| found == inserted);
        return Err(Error::new(format_args!(
            "{} ORDER BY {} is not the insertion order: it differs from row {} on",
            E::TABLE,
            E::KEY_COLUMN,
            same.count() + 1
        )));
    }
    first_keys.extend(
        found
            .iter()
            .take(SHOWN)
            .map(|key| FirstKey::new(E::TABLE, *key)),
    );
    Ok(found.len())
}

/// Loads the flights once more with random keys, measures, and takes them out again.
async fn load_random<DB: Database>(
    connection: &mut DB::Connection,
    flights: &[Flight],
    chunk: usize,
    standing: &Cell<Standing>,
) -> Result<Size, sqlx::Error>
where
    Flight: Fields<RandomKeys<DB>>,
{
    let rows = flights.len() as u64;
    let bar = progress_bar(flights.len(), "comparing");
    if !DB::ROLLS_BACK_TABLES {
        standing.set(Standing::Comparison);
        let created = DB::run(connection, create_flights::<DB>(RANDOM)).await;
        created.inspect_err(|_| standing.set(Standing::Rows))?;
    }
    let mut transaction = connection.begin().await?;
    if DB::ROLLS_BACK_TABLES {
        DB::run(&mut transaction, create_flights::<DB>(RANDOM)).await?;
    }
    for chunk in flights.chunks(chunk) {
        DB::send(&mut transaction, random_keys::insert::<DB>(RANDOM, chunk)).await?;
        bar.inc(chunk.len() as u64);
    }
    bar.finish_and_clear();
    if DB::ROLLS_BACK_TABLES {
        // Never committed: whatever happens, nobody has to clean up.
        let size = DB::size(&mut transaction, RANDOM, rows).await?;
        transaction.rollback().await?;
        return Ok(size);
    }
    transaction.commit().await?;
    let size = DB::size(connection, RANDOM, rows).await?;
    DB::run(connection, format!("DROP TABLE {RANDOM}")).await?;
    Ok(size)
}

/// Makes a bar on stderr; where that is no terminal, it draws nothing.
fn progress_bar(rows: usize, what: &'static str) -> ProgressBar {
    const TEMPLATE: &str = "{msg:9} {wide_bar} {human_pos}/{human_len} rows, {per_sec}";
    let style = ProgressStyle::with_template(TEMPLATE);
    let bar = ProgressBar::new(rows as u64).with_message(what);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
