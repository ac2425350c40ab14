//! Statements with an array for each of their parameters: their text, and how they are sent.

use oracle::Connection;
use ordid_core::{
    storage::{Dialect as _, dialect::Oracle},
    unit_of_work::{Action, Batches, Chunk, Place, Table},
};

use crate::{
    binder::Binder,
    error::{FlushError, refused},
    failure::judge,
};

/// A statement for one row, which is sent once with the values of many.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) sql: String,
    /// Which of the values that a row hands over each parameter takes. Oracle binds by the place of a
    /// parameter in the text, whatever its name, so that the names are the places.
    takes: Vec<usize>,
}

impl Statement {
    /// Writes the statement for an action on rows of a table. All names are quoted.
    pub(super) fn of(table: &Table, action: Action) -> Self {
        let name = Oracle::quote_table(table.schema(), table.name());
        let key = Oracle::quote(table.key_column());
        let columns = table.columns_of(action).into_iter();
        let columns: Vec<_> = columns
            .map(|it| Oracle::quote(table.columns()[it]))
            .collect();
        let all: Vec<_> = (0..columns.len()).collect();
        let where_key = |number: usize| format!("WHERE {key} = :{number}");
        let (sql, takes) = match action {
            Action::Insert => {
                let places: Vec<_> = (1..=columns.len()).map(|it| format!(":{it}")).collect();
                let (columns, places) = (columns.join(", "), places.join(", "));
                (
                    format!("INSERT INTO {name} ({columns}) VALUES ({places})"),
                    all,
                )
            }
            Action::Update | Action::FixUp { .. } => {
                // The key comes last in the text.
                let is_key = |place: &usize| columns[*place] == key;
                let (keys, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_key);
                let set = others.iter().zip(1..);
                let set: Vec<_> = set
                    .map(|(place, number)| format!("{} = :{number}", columns[*place]))
                    .collect();
                let set = if set.is_empty() {
                    // The row has to be there all the same.
                    format!("{key} = {key}")
                } else {
                    set.join(", ")
                };
                let where_key = where_key(others.len() + 1);
                let takes = [others, keys].concat();
                (format!("UPDATE {name} SET {set} {where_key}"), takes)
            }
            Action::Unlink { parent } => {
                let parent = Oracle::quote(table.parents()[parent].column());
                let where_key = where_key(1);
                (
                    format!("UPDATE {name} SET {parent} = NULL {where_key}"),
                    all,
                )
            }
            Action::Delete => (format!("DELETE FROM {name} {}", where_key(1)), all),
        };
        Self { sql, takes }
    }
}

/// Sends the rows of a chunk by one statement, and looks whether those were there that had to be.
pub(super) fn send(
    batches: &Batches<Binder>,
    connection: &Connection,
    chunk: &Chunk,
) -> Result<(), FlushError> {
    let table = batches.table(chunk.table);
    let place = || Place::of(&table, chunk);
    let key = |row: usize| batches.key_text(chunk, chunk.rows.start + row);
    let mut binder = Binder::with_capacity(chunk.rows.len());
    batches.write(chunk, chunk.rows.clone(), &mut binder);

    let statement = Statement::of(&table, chunk.action);
    let changes = chunk.action != Action::Insert;
    // Without batch errors the rest of the rows would not be tried, but neither would it be known
    // which one failed.
    let mut builder = connection.batch(&statement.sql, chunk.rows.len());
    builder.with_batch_errors();
    if changes {
        builder.with_row_counts();
    }
    let failed = |error| refused(error, place(), key);
    let mut batch = builder.build().map_err(failed)?;
    binder
        .append_to(&mut batch, &statement.takes)
        .map_err(|(row, error)| {
            FlushError::bind_by_driver(judge(error), place().with_key(key(row)))
        })?;
    batch.execute().map_err(failed)?;
    if changes {
        let found = batch.row_counts().map_err(failed)?;
        if let Some((row, found, more)) = other_than_one(&found, chunk.rows.len()) {
            let place = Place {
                more,
                ..place().with_key(key(row))
            };
            return Err(FlushError::count(found, 1, place));
        }
    }
    Ok(())
}

/// Returns the first row of which another number was there than one, that number, and how many such rows
/// there are besides.
fn other_than_one(found: &[u64], rows: usize) -> Option<(usize, u64, usize)> {
    // What is not counted was not found.
    let counts = found.iter().copied().chain(std::iter::repeat(0));
    let mut others = counts
        .take(rows)
        .enumerate()
        .filter(|(_, found)| *found != 1);
    let (row, found) = others.next()?;
    Some((row, found, others.count()))
}

#[cfg(test)]
mod tests {
    use ordid::{KeyType, OrderedKey, uuid::Uuid};

    use super::*;

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v7, oracle)]
    struct NodeId(Uuid);

    /// The key is neither first nor last.
    #[derive(OrderedKey)]
    #[ordid(schema = "SHOP", table = "NODES")]
    struct Node {
        #[ordid(parent)]
        up: Option<NodeId>,
        #[ordid(key)]
        id: NodeId,
        #[ordid(column = "group")]
        kind: i32,
    }

    #[derive(OrderedKey)]
    #[ordid(table = "TAGS")]
    struct Tag {
        id: NodeId,
    }

    fn table<E: crate::Entity>() -> Table {
        let mut batches = Batches::<Binder>::new();
        batches.rows_mut::<E>();
        batches.table(0)
    }

    fn written(table: &Table, action: Action) -> (String, Vec<usize>) {
        let Statement { sql, takes } = Statement::of(table, action);
        // Parameters rise from 1, as they are bound by their place.
        let numbers = sql.split(':').skip(1);
        let numbers = numbers.map(|it| {
            let end = it.find(|c: char| !c.is_ascii_digit()).unwrap_or(it.len());
            it[..end].parse::<usize>().expect("a number")
        });
        assert!(numbers.eq(1..=takes.len()), "{sql}");
        (sql, takes)
    }

    #[test]
    fn each_action_has_its_text() {
        let table = table::<Node>();
        for (action, sql, takes) in [
            (
                Action::Insert,
                r#"INSERT INTO "SHOP"."NODES" ("up", "id", "group") VALUES (:1, :2, :3)"#,
                vec![0, 1, 2],
            ),
            (
                Action::Update,
                r#"UPDATE "SHOP"."NODES" SET "up" = :1, "group" = :2 WHERE "id" = :3"#,
                vec![0, 2, 1],
            ),
            (
                Action::FixUp { parent: 0 },
                r#"UPDATE "SHOP"."NODES" SET "up" = :1 WHERE "id" = :2"#,
                vec![0, 1],
            ),
            (
                Action::Unlink { parent: 0 },
                r#"UPDATE "SHOP"."NODES" SET "up" = NULL WHERE "id" = :1"#,
                vec![0],
            ),
            (
                Action::Delete,
                r#"DELETE FROM "SHOP"."NODES" WHERE "id" = :1"#,
                vec![0],
            ),
        ] {
            assert_eq!(written(&table, action), (sql.to_owned(), takes));
        }
    }

    #[derive(OrderedKey)]
    #[ordid(table = "LEAVES")]
    struct Leaf {
        id: NodeId,
        #[ordid(parent = Leaf)]
        up: Option<NodeId>,
    }

    #[test]
    fn the_key_is_bound_last_wherever_it_stands() {
        let sql = r#"UPDATE "LEAVES" SET "up" = :1 WHERE "id" = :2"#.to_owned();
        for action in [Action::Update, Action::FixUp { parent: 0 }] {
            assert_eq!(written(&table::<Leaf>(), action), (sql.clone(), vec![1, 0]));
        }
        let sql = r#"UPDATE "TAGS" SET "id" = "id" WHERE "id" = :1"#.to_owned();
        assert_eq!(written(&table::<Tag>(), Action::Update), (sql, vec![0]));
    }

    #[test]
    fn each_key_has_to_find_one_row() {
        let found = |found: &[u64]| other_than_one(found, 3);
        assert_eq!(found(&[1, 1, 1]), None);
        assert_eq!(found(&[1, 0, 0]), Some((1, 0, 1)));
        assert_eq!(found(&[2, 1, 0]), Some((0, 2, 1)));
        assert_eq!(found(&[1, 1]), Some((2, 0, 0)));
    }
}
