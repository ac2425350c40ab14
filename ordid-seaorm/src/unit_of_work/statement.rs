//! Statements of many rows, built by sea-query and sent.

use std::any::TypeId;

use ordid_core::unit_of_work::{Action, Batches, Chunk, Place, Table};
use sea_orm::{
    DbBackend, Statement, Value,
    sea_query::{
        Alias, Expr, ExprTrait as _, InsertStatement, IntoIden as _, Query, SimpleExpr, TableRef,
        UpdateStatement, ValueTuple,
    },
};

use super::open::Open;
use crate::{
    Error,
    entity::{Binder, Names, Row},
    failure::judge,
};

/// The text of the last `INSERT`: most of a flush's are for the same columns and as many rows, and to build
/// one takes longer than to bind its values.
#[derive(Debug, Default)]
pub(super) struct LastInsert {
    /// The entity, the positions of its columns, the number of rows.
    shape: Option<(TypeId, Vec<usize>, usize)>,
    sql: String,
}

impl LastInsert {
    /// Builds the insert of rows that have values for the same columns, for one backend each time.
    fn build(&mut self, backend: DbBackend, names: &Names, rows: Vec<Row>) -> Statement {
        let columns: Vec<usize> = set_columns(&rows).collect();
        // Around a value that is cast there may be any expression, with values of its own.
        if columns.iter().any(|&position| names.casts(position)) {
            return backend.build(&insert(names, rows));
        }
        let values = columns.len() * rows.len();
        let shape = Some((names.entity, columns, rows.len()));
        if self.shape != shape {
            let statement = backend.build(&insert(names, rows));
            self.shape = shape;
            self.sql.clone_from(&statement.sql);
            return statement;
        }
        let mut bound = Vec::with_capacity(values);
        bound.extend(rows.into_iter().flatten().flatten());
        Statement::from_sql_and_values(backend, &self.sql, bound)
    }
}

/// What sends the rows of a unit of work.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) batches: &'a Batches<Binder>,
    pub(super) names: &'a [Names],
}

impl Rows<'_> {
    /// Sends a chunk, and returns how many statements it took.
    ///
    /// Rows that follow each other and have the same columns go by one statement: a column that is `NotSet`
    /// is not named, so that the database's default holds, and an update sets what was changed. MySQL's
    /// and MariaDB's updates go row by row.
    pub(super) async fn send(
        self,
        open: &mut Open,
        chunk: &Chunk,
        last: &mut LastInsert,
    ) -> Result<usize, Error> {
        let table = self.batches.table(chunk.table);
        let names = &self.names[chunk.table];
        let values = self.values(chunk);
        let statements = statements(open.backend(), &table, names, chunk.action, values, last);
        let count = statements.len();
        let place = Place::of(&table, chunk);
        let mut changed = 0;
        for (_, statement) in statements {
            let done = open.execute(statement).await;
            let done = done.map_err(|error| Error::statement(judge(error), place.clone()))?;
            changed += done.rows_affected();
        }
        // What an `INSERT` into a view or by a rule counts is the database's own affair.
        let is_right = chunk.action == Action::Insert
            || usize::try_from(changed).is_ok_and(|changed| changed == chunk.rows.len());
        match is_right {
            true => Ok(count),
            false => Err(Error::count(changed, chunk.rows.len(), place)),
        }
    }

    pub(super) fn values(self, chunk: &Chunk) -> Vec<Row> {
        let mut binder = match chunk.action {
            Action::Update => Binder::of_changes(self.names[chunk.table].key),
            _ => Binder::new(),
        };
        self.batches.write(chunk, chunk.rows.clone(), &mut binder);
        binder.into_rows()
    }

    /// Asks whether a row that is inserted is there.
    pub(super) fn whether_there(self, backend: DbBackend, table: usize, row: usize) -> Statement {
        let mut binder = Binder::new();
        self.batches.write_key(table, row, &mut binder);
        let key = binder.into_rows().into_iter().flatten().next().flatten();
        let names = &self.names[table];
        let select = Query::select()
            .expr(Expr::val(1))
            .from(names.table.clone())
            .and_where(is_key(names, key))
            .to_owned();
        backend.build(&select)
    }
}

/// The statements of a chunk, in order, each with how many of its rows it is for.
pub(super) fn statements(
    backend: DbBackend,
    table: &Table,
    names: &Names,
    action: Action,
    rows: Vec<Row>,
    last: &mut LastInsert,
) -> Vec<(usize, Statement)> {
    match action {
        Action::Insert => runs(rows)
            .map(|run| (run.len(), last.build(backend, names, run)))
            .collect(),
        // MySQL's parameters take their types from where they stand, so that they stand at the columns.
        Action::Update | Action::FixUp { .. } if backend == DbBackend::MySql => rows
            .into_iter()
            .map(|row| (1, backend.build(&update_row(names, row))))
            .collect(),
        Action::Update | Action::FixUp { .. } => runs(rows)
            .map(|mut run| match (run.len(), run.pop()) {
                (1, Some(row)) => (1, backend.build(&update_row(names, row))),
                (count, last) => {
                    run.extend(last);
                    (count, backend.build(&update(table.name(), names, run)))
                }
            })
            .collect(),
        Action::Unlink { parent } => {
            let column = table.parents()[parent].column();
            let position = table.columns().iter().position(|it| *it == column);
            let column = names.columns[position.unwrap_or_default()].clone();
            let count = rows.len();
            let unlink = Query::update()
                .table(names.table.clone())
                .value(column, Expr::cust("NULL"))
                .and_where(is_among(names, rows))
                .to_owned();
            vec![(count, backend.build(&unlink))]
        }
        Action::Delete => {
            let count = rows.len();
            let delete = Query::delete()
                .from_table(names.table.clone())
                .and_where(is_among(names, rows))
                .to_owned();
            vec![(count, backend.build(&delete))]
        }
    }
}

/// Rows that follow each other and have values for the same columns.
fn runs(rows: Vec<Row>) -> impl Iterator<Item = Vec<Row>> {
    let is_like = |row: &Row, first: &Row| {
        let set = row.iter().map(Option::is_some);
        set.eq(first.iter().map(Option::is_some))
    };
    let mut rows = rows.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut run = vec![rows.next()?];
        while let Some(row) = rows.next_if(|row| is_like(row, &run[0])) {
            run.push(row);
        }
        Some(run)
    })
}

/// An `INSERT` for each run of rows that have values for the same columns.
pub(crate) fn inserts(names: &Names, rows: Vec<Row>) -> impl Iterator<Item = InsertStatement> {
    runs(rows).map(|run| insert(names, run))
}

/// Inserts rows that have values for the same columns.
fn insert(names: &Names, rows: Vec<Row>) -> InsertStatement {
    let mut insert = Query::insert();
    insert.into_table(names.table.clone());
    insert.columns(set_columns(&rows).map(|position| names.columns[position].clone()));
    for row in rows {
        let values = row.into_iter().enumerate();
        let values = values.filter_map(|(position, value)| Some((position, value?)));
        // As many values as columns, which is all that this asks for.
        insert
            .values_panic(values.map(|(position, value)| names.saved(position, Expr::val(value))));
    }
    insert
}

/// The positions of the columns that the first of these rows has values for.
fn set_columns(rows: &[Row]) -> impl Iterator<Item = usize> + use<> {
    let first = rows.first().into_iter().flatten().enumerate();
    let set: Vec<_> = first
        .filter_map(|(position, value)| value.as_ref().map(|_| position))
        .collect();
    set.into_iter()
}

/// The name of the rows that an `UPDATE` takes its values from.
const ROWS: &str = "ordid_rows";

/// Sets rows that have values for the same columns by one statement:
///
/// ```text
/// UPDATE "author" SET "name" = "ordid_rows"."column2"
/// FROM (VALUES ($1, $2), ($3, $4)) AS "ordid_rows"
/// WHERE "author"."id" = "ordid_rows"."column1"
/// ```
///
/// PostgreSQL and SQLite number the columns of `VALUES` so. A value arrives in its column as by an
/// `INSERT`: in PostgreSQL a parameter has the type that SQLx gives it, also where it is NULL, and an
/// assignment casts from there; in SQLite a column of `VALUES` has no affinity.
fn update(table: &str, names: &Names, rows: Vec<Row>) -> UpdateStatement {
    let mut update = Query::update();
    update.table(names.table.clone());
    let mut is_empty = true;
    let mut key = None;
    for (number, position) in set_columns(&rows).enumerate() {
        let value = Expr::col((
            Alias::new(ROWS),
            Alias::new(format!("column{}", number + 1)),
        ));
        let value = names.saved(position, value);
        if position == names.key {
            key = Some(value);
        } else {
            is_empty = false;
            update.value(names.columns[position].clone(), value);
        }
    }
    let of_table = Expr::col((Alias::new(table), names.key()));
    if is_empty {
        update.value(names.key(), of_table.clone());
    }
    let values = rows
        .into_iter()
        .map(|row| ValueTuple::Many(row.into_iter().flatten().collect()));
    update.from(TableRef::ValuesList(
        values.collect(),
        Alias::new(ROWS).into_iden(),
    ));
    update.and_where(of_table.eq(key.unwrap_or_else(null)));
    update
}

/// Sets all values of a row but its key; where there is no other, the key to itself, as the row has to
/// be there all the same.
fn update_row(names: &Names, row: Row) -> UpdateStatement {
    let mut update = Query::update();
    update.table(names.table.clone());
    let mut key = None;
    let mut is_empty = true;
    for (position, value) in row.into_iter().enumerate() {
        if position == names.key {
            key = value;
        } else if let Some(value) = value {
            is_empty = false;
            let value = names.saved(position, Expr::val(value));
            update.value(names.columns[position].clone(), value);
        }
    }
    if is_empty {
        update.value(names.key(), Expr::col(names.key()));
    }
    update.and_where(is_key(names, key));
    update
}

fn is_key(names: &Names, key: Option<Value>) -> SimpleExpr {
    let key = key.map(|key| names.saved(names.key, Expr::val(key)));
    Expr::col(names.key()).eq(key.unwrap_or_else(null))
}

fn null() -> SimpleExpr {
    Expr::cust("NULL")
}

fn is_among(names: &Names, keys: Vec<Row>) -> SimpleExpr {
    let keys = keys.into_iter().flatten().flatten();
    Expr::col(names.key()).is_in(keys.map(|key| names.saved(names.key, Expr::val(key))))
}
