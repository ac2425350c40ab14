//! Statements of many rows, built by sea-query and sent.

use ordid_core::unit_of_work::{Action, Batches, Chunk, Place, Table};
use sea_orm::{
    ConnectionTrait, DbBackend, DbErr, Statement,
    sea_query::{Expr, ExprTrait as _, Query, SimpleExpr, UpdateStatement},
};

use crate::{
    Error,
    entity::{Binder, Names, Row},
    failure::judge,
};

/// What sends the rows of a unit of work.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) batches: &'a Batches<Binder>,
    pub(super) names: &'a [Names],
}

impl Rows<'_> {
    /// Sends a chunk, and returns how many statements it took.
    ///
    /// Rows of an insert that have the same columns go by one statement: a column that is `NotSet` is
    /// not named, so that the database's default holds. What is updated goes row by row, since each row
    /// sets what was changed in it.
    pub(super) async fn send<C: ConnectionTrait>(
        self,
        connection: &C,
        chunk: &Chunk,
    ) -> Result<usize, Error> {
        let table = self.batches.table(chunk.table);
        let names = &self.names[chunk.table];
        let backend = connection.get_database_backend();
        let statements = statements(backend, &table, names, chunk.action, self.values(chunk));
        let count = statements.len();
        let place = Place::of(&table, chunk);
        let mut changed = 0;
        for statement in statements {
            let done = connection.execute_raw(statement).await;
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

    fn values(self, chunk: &Chunk) -> Vec<Row> {
        let mut binder = match chunk.action {
            Action::Update => Binder::of_changes(self.names[chunk.table].key),
            _ => Binder::new(),
        };
        self.batches.write(chunk, chunk.rows.clone(), &mut binder);
        binder.into_rows()
    }

    /// Asks whether a row that is inserted is there.
    pub(super) async fn has<C: ConnectionTrait>(
        self,
        connection: &C,
        table: usize,
        row: usize,
    ) -> Result<bool, DbErr> {
        let mut binder = Binder::new();
        self.batches.write_key(table, row, &mut binder);
        let key = binder.into_rows().into_iter().flatten().next().flatten();
        let names = &self.names[table];
        let select = Query::select()
            .expr(Expr::val(1))
            .from(names.table.clone())
            .and_where(equals(names, key))
            .to_owned();
        Ok(connection.query_one(&select).await?.is_some())
    }
}

fn statements(
    backend: DbBackend,
    table: &Table,
    names: &Names,
    action: Action,
    rows: Vec<Row>,
) -> Vec<Statement> {
    match action {
        Action::Insert => inserts(names, rows)
            .map(|insert| backend.build(&insert))
            .collect(),
        Action::Update | Action::FixUp { .. } => rows
            .into_iter()
            .map(|row| backend.build(&update(names, row)))
            .collect(),
        Action::Unlink { parent } => {
            let column = table.parents()[parent].column();
            let position = table.columns().iter().position(|it| *it == column);
            let column = names.columns[position.unwrap_or_default()].clone();
            let unlink = Query::update()
                .table(names.table.clone())
                .value(column, Expr::cust("NULL"))
                .and_where(is_among(names, rows))
                .to_owned();
            vec![backend.build(&unlink)]
        }
        Action::Delete => {
            let delete = Query::delete()
                .from_table(names.table.clone())
                .and_where(is_among(names, rows))
                .to_owned();
            vec![backend.build(&delete)]
        }
    }
}

/// An `INSERT` for each run of rows that have values for the same columns.
pub(crate) fn inserts(
    names: &Names,
    rows: Vec<Row>,
) -> impl Iterator<Item = sea_orm::sea_query::InsertStatement> + '_ {
    let mut rows = rows.into_iter().peekable();
    std::iter::from_fn(move || {
        let first = rows.next()?;
        let mask = |row: &Row| -> Vec<bool> { row.iter().map(Option::is_some).collect() };
        let columns = mask(&first);
        let named = names.columns.iter().zip(&columns);
        let named = named
            .filter(|(_, is_set)| **is_set)
            .map(|(name, _)| name.clone());
        let mut insert = Query::insert();
        insert.into_table(names.table.clone()).columns(named);
        let mut next = Some(first);
        while let Some(row) = next {
            // As many values as columns, which is all that this asks for.
            insert.values_panic(row.into_iter().flatten());
            next = rows.next_if(|row| mask(row) == columns);
        }
        Some(insert)
    })
}

/// Sets all values of a row but its key; where there is no other, the key to itself, as the row has to
/// be there all the same.
fn update(names: &Names, row: Row) -> UpdateStatement {
    let mut update = Query::update();
    update.table(names.table.clone());
    let mut key = None;
    let mut is_empty = true;
    for (position, value) in row.into_iter().enumerate() {
        if position == names.key {
            key = value;
        } else if let Some(value) = value {
            is_empty = false;
            update.value(names.columns[position].clone(), value);
        }
    }
    if is_empty {
        update.value(names.key(), Expr::col(names.key()));
    }
    update.and_where(equals(names, key));
    update
}

fn equals(names: &Names, key: Option<SimpleExpr>) -> SimpleExpr {
    Expr::col(names.key()).eq(key.unwrap_or_else(|| Expr::cust("NULL")))
}

fn is_among(names: &Names, keys: Vec<Row>) -> SimpleExpr {
    Expr::col(names.key()).is_in(keys.into_iter().flatten().flatten())
}
