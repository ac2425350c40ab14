//! The databases' own `ORDER BY`.

use ordid::uuid::Uuid;
use sqlx::{AssertSqlSafe, Connection, query_scalar, raw_sql};

use super::{Cell, Engine, Key};
use crate::servers::{Scratch, Servers};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Lets a database sort the keys of every ordered cell of an engine, inserted in random order, and
/// returns how many cells it sorted as they were made.
///
/// # Errors
///
/// The outer one is the reason why the engine cannot be asked; the inner one what went wrong there,
/// or all cells that are out of order.
pub async fn hold(
    engine: Engine,
    servers: &Servers,
    cells: &[Cell],
    keys: usize,
) -> Result<Result<usize, Error>, String> {
    let url = match engine.server() {
        Some(server) => servers.url(server)?,
        None if engine == Engine::Sqlite => String::new(),
        None => return Err(format!("no {} is started here", engine.name())),
    };
    let cells = cells
        .iter()
        .filter(|cell| cell.engine == engine && cell.is_ordered);
    let mut wrong = Vec::new();
    let mut sorted = 0;
    for cell in cells {
        let keys = cell.keys(keys);
        let positions = match order(engine, &url, cell, &keys).await {
            Ok(positions) => positions,
            Err(error) => return Ok(Err(format!("{}: {error}", cell.name()).into())),
        };
        if positions.iter().copied().eq(0..keys.len()) {
            sorted += 1;
        } else {
            wrong.push(cell.name());
        }
    }
    Ok(if wrong.is_empty() {
        Ok(sorted)
    } else {
        Err(format!("out of order: {}", wrong.join(", ")).into())
    })
}

/// Returns the positions of the keys in the order of the database.
async fn order(engine: Engine, url: &str, cell: &Cell, keys: &[Key]) -> Result<Vec<usize>, Error> {
    let declaration = &cell.declaration;
    let mut rows: Vec<usize> = (0..keys.len()).collect();
    shuffle(&mut rows);
    let row = |position: &usize| format!("({}, {position})", keys[*position].literal);
    if engine == Engine::Oracle {
        return emulated(url, declaration, keys, &rows);
    }
    let mut script =
        format!("CREATE TABLE cell ({declaration}, position integer NOT NULL); BEGIN;");
    for rows in rows.chunks(1_000) {
        let rows: Vec<_> = rows.iter().map(row).collect();
        script += &format!("INSERT INTO cell VALUES {};", rows.join(", "));
    }
    script += "COMMIT";
    const SORTED: &str = "SELECT position FROM cell ORDER BY id";
    macro_rules! on {
        ($database:ty) => {{
            let (pool, cleanup) = <$database>::scratch(url).await?;
            raw_sql(AssertSqlSafe(script)).execute(&pool).await?;
            let positions: Vec<i32> = query_scalar(SORTED).fetch_all(&pool).await?;
            cleanup.await?;
            positions
        }};
    }
    let positions = match engine {
        Engine::Postgres => on!(sqlx::Postgres),
        Engine::MySql | Engine::MariaDb => on!(sqlx::MySql),
        _ => {
            let mut connection = sqlx::SqliteConnection::connect("sqlite::memory:").await?;
            raw_sql(AssertSqlSafe(script))
                .execute(&mut connection)
                .await?;
            query_scalar(SORTED).fetch_all(&mut connection).await?
        }
    };
    Ok(positions
        .into_iter()
        .map(usize::try_from)
        .collect::<Result<_, _>>()?)
}

/// H2, in its Oracle mode and a database of its own that is gone with the connection.
fn emulated(
    url: &str,
    declaration: &str,
    keys: &[Key],
    rows: &[usize],
) -> Result<Vec<usize>, Error> {
    let mut script =
        format!("CREATE TABLE cell ({declaration}, \"position\" NUMBER(10) NOT NULL);\n");
    // More in one statement takes H2 longer for each.
    for rows in rows.chunks(50) {
        let rows: Vec<_> = rows
            .iter()
            .map(|&position| format!("SELECT {}, {position} FROM dual", keys[position].literal))
            .collect();
        script += &format!("INSERT INTO cell {};\n", rows.join(" UNION ALL "));
    }
    script += "SELECT \"position\" FROM cell ORDER BY \"id\";\nDROP TABLE cell;";
    let rows = ordid_harness::h2_script(&format!("{url};MODE=Oracle"), &script)?;
    Ok(rows
        .iter()
        .map(|row| row.parse())
        .collect::<Result<_, _>>()?)
}

fn shuffle<T>(rows: &mut [T]) {
    // Fisher and Yates, by random keys: no generator is wanted for the tests alone.
    for last in (1..rows.len()).rev() {
        let random = Uuid::new_v4().as_u128() % (last as u128 + 1);
        rows.swap(last, usize::try_from(random).expect("below a length"));
    }
}
