//! Statements of many rows, as fragments of Diesel's.

use std::ops::Index;

use diesel::{
    RunQueryDsl,
    query_builder::{AstPass, Query, QueryBuilder, QueryFragment, QueryId},
    result::{Error::QueryBuilderError, QueryResult},
    sql_types::Integer,
};
use ordid_core::{
    unit_of_work::{Action, Batches, Chunk, Place, Table},
    uuid::Uuid,
};

use super::run::Run;
#[cfg(feature = "copy")]
use crate::postgres::copy::Copier;
use crate::{
    Error,
    backend::{Backend, Updates},
    entity::{Binder, Columns, MakeValues, Values},
    failure::judge,
};
#[cfg(feature = "copy")]
use ordid_core::unit_of_work::copy::Target;

/// The name of the rows that an `UPDATE` takes its values from, and that of the table beside them. One
/// of SQLite's `WITH` hides a table of its name, so they are ones that no table has.
const ROWS: &str = "ordid_rows";
const TARGET: &str = "ordid_target";

/// The table of an entity, as far as it is known to the compiler.
pub(crate) struct TableOf<DB: Backend> {
    name: fn(&mut DB::QueryBuilder) -> QueryResult<()>,
    names: &'static [&'static str],
    columns: &'static [&'static str],
    key_column: &'static str,
    values: &'static [MakeValues<DB>],
    #[cfg(feature = "copy")]
    copier: fn() -> Option<Copier>,
}

impl<DB: Backend> TableOf<DB> {
    pub(crate) const fn entity<E: ordid_core::OrderedKey + Columns<DB>>() -> Self {
        Self {
            name: E::table,
            names: E::NAMES,
            columns: E::COLUMNS,
            key_column: E::KEY_COLUMN,
            values: E::VALUES,
            #[cfg(feature = "copy")]
            copier: DB::copier::<E>,
        }
    }
}

/// A table as statements name it.
pub(crate) struct Shape<DB: Backend> {
    name: QueryResult<String>,
    names: &'static [&'static str],
    /// Which of the columns is the key.
    key: usize,
    values: &'static [MakeValues<DB>],
    #[cfg(feature = "copy")]
    copier: Option<Copier>,
}

impl<DB: Backend> Shape<DB> {
    pub(crate) fn new(table: &TableOf<DB>) -> Self {
        Self {
            name: text::<DB>(table.name),
            names: table.names,
            key: key_of(table.columns, table.key_column),
            values: table.values,
            #[cfg(feature = "copy")]
            copier: (table.copier)(),
        }
    }

    /// How its rows are copied, where they can be.
    #[cfg(feature = "copy")]
    pub(super) fn copier(&self) -> Option<&Copier> {
        self.copier.as_ref()
    }

    #[cfg(feature = "copy")]
    pub(super) fn names(&self) -> &'static [&'static str] {
        self.names
    }

    /// The table of flushes.
    fn of_flushes() -> Self {
        Self {
            name: text::<DB>(|out| out.push_identifier("ordid_flushes")),
            names: &["id"],
            key: 0,
            values: &[],
            #[cfg(feature = "copy")]
            copier: None,
        }
    }

    pub(super) fn binder(&self) -> Binder<DB> {
        let values = self.values.iter().map(|make| make());
        Binder::new(values.collect(), self.key)
    }
}

/// The position of the key's column.
fn key_of(columns: &[&str], key: &str) -> usize {
    let key = columns.iter().position(|it| *it == key);
    key.expect("the key is one of the columns")
}

/// Returns what is written.
fn text<DB: Backend>(write: fn(&mut DB::QueryBuilder) -> QueryResult<()>) -> QueryResult<String> {
    let mut text = DB::QueryBuilder::default();
    write(&mut text)?;
    Ok(text.finish())
}

/// The tables of a unit of work, and that of flushes.
pub(super) struct Shapes<DB: Backend> {
    tables: Vec<Shape<DB>>,
    flushes: Shape<DB>,
    /// Which of the tables are copied into, in this attempt.
    #[cfg(feature = "copy")]
    pub(super) targets: Vec<Option<Target>>,
}

impl<DB: Backend> Shapes<DB> {
    pub(super) fn new(tables: Vec<Shape<DB>>) -> Self {
        Self {
            tables,
            flushes: Shape::of_flushes(),
            #[cfg(feature = "copy")]
            targets: Vec::new(),
        }
    }

    #[cfg(feature = "copy")]
    pub(super) fn target(&self, table: usize) -> Option<Target> {
        self.targets.get(table)?.clone()
    }
}

impl<DB: Backend> Index<usize> for Shapes<DB> {
    type Output = Shape<DB>;

    fn index(&self, table: usize) -> &Shape<DB> {
        &self.tables[table]
    }
}

/// A row that a flush is known by.
pub(super) struct Known<'s, DB: Backend> {
    shape: &'s Shape<DB>,
    values: Binder<DB>,
}

impl<'s, DB: Backend> Known<'s, DB> {
    /// The row of a flush.
    pub(super) fn flush(shapes: &'s Shapes<DB>, id: Uuid) -> Self {
        Self {
            shape: &shapes.flushes,
            values: Binder::new(vec![DB::flush_id(id)], 0),
        }
    }

    /// The row of a flush where it writes one, otherwise the first of its rows.
    pub(super) fn of(batches: &Batches<Binder<DB>>, shapes: &'s Shapes<DB>, run: &Run) -> Self {
        let Some(first) = run.plan().chunks().next().filter(|_| !run.records()) else {
            return Self::flush(shapes, run.id());
        };
        let shape = &shapes[first.table];
        let mut values = shape.binder();
        values.begin_key();
        batches.write_key(first.table, first.rows.start, &mut values);
        Self { shape, values }
    }

    /// `SELECT 1 FROM "orders" WHERE "id" = $1`
    pub(super) fn exists(&self) -> Statement<'_, DB> {
        Statement::of_one(Does::Exists, self.shape, self.values.columns())
    }

    /// `INSERT INTO "ordid_flushes" ("id") VALUES ($1)`
    pub(super) fn insert(&self) -> Statement<'_, DB> {
        Statement::of_one(Does::Insert, self.shape, self.values.columns())
    }
}

/// Takes what the database said of the row of a flush.
pub(super) fn recorded<DB: Backend>(outcome: QueryResult<usize>) -> Result<(), Error> {
    let failed = |error| Error::record("ordid_diesel", judge::<DB>(error));
    outcome.map(drop).map_err(failed)
}

/// What a statement does.
#[derive(Debug, Clone)]
enum Does {
    Insert,
    /// To the columns at these positions, of many rows or of one.
    Update(Vec<usize>),
    UpdateRow(Vec<usize>, usize),
    /// To the column at this position.
    SetNull(usize),
    Delete,
    Exists,
}

/// A statement with its parameters.
#[doc(hidden)]
pub struct Statement<'a, DB: Backend> {
    does: Does,
    shape: &'a Shape<DB>,
    values: &'a [Box<dyn Values<DB>>],
    rows: usize,
    /// A prepared statement is kept in the connection's cache only where it serves again.
    repeats: bool,
}

impl<'a, DB: Backend> Statement<'a, DB> {
    fn new(does: Does, shape: &'a Shape<DB>, binder: &'a Binder<DB>) -> Self {
        Self {
            does,
            shape,
            values: binder.columns(),
            rows: binder.rows(),
            repeats: false,
        }
    }

    fn of_one(does: Does, shape: &'a Shape<DB>, values: &'a [Box<dyn Values<DB>>]) -> Self {
        Self {
            does,
            shape,
            values,
            rows: 1,
            repeats: true,
        }
    }

    fn table(&self, out: &mut AstPass<'_, '_, DB>) -> QueryResult<()> {
        match &self.shape.name {
            Ok(name) => out.push_sql(name),
            Err(error) => return Err(QueryBuilderError(error.to_string().into())),
        }
        Ok(())
    }

    fn name(&self, column: usize, out: &mut AstPass<'_, '_, DB>) -> QueryResult<()> {
        out.push_identifier(self.shape.names[column])
    }

    /// `"id", "total"`
    fn names(&self, columns: &[usize], out: &mut AstPass<'_, '_, DB>) -> QueryResult<()> {
        for (number, column) in columns.iter().enumerate() {
            if number > 0 {
                out.push_sql(", ");
            }
            self.name(*column, out)?;
        }
        Ok(())
    }

    /// `($1, $2), ($3, $4)`
    fn values<'b>(&'b self, columns: &[usize], out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        for row in 0..self.rows {
            out.push_sql(if row == 0 { "(" } else { ", (" });
            for (number, column) in columns.iter().enumerate() {
                if number > 0 {
                    out.push_sql(", ");
                }
                self.values[*column].push(row, out)?;
            }
            out.push_sql(")");
        }
        Ok(())
    }

    /// `"id" IN ($1, $2)`
    fn key_in<'b>(&'b self, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        self.name(self.shape.key, out)?;
        out.push_sql(" IN (");
        for row in 0..self.rows {
            if row > 0 {
                out.push_sql(", ");
            }
            self.values[self.shape.key].push(row, out)?;
        }
        out.push_sql(")");
        Ok(())
    }

    /// Sets all columns but the key. Where there is no other, the key is set to itself, as the row has
    /// to be there all the same.
    fn assignments<'b>(
        &'b self,
        columns: &[usize],
        out: &mut AstPass<'_, 'b, DB>,
        mut value: impl FnMut(usize, &mut AstPass<'_, 'b, DB>) -> QueryResult<()>,
    ) -> QueryResult<()> {
        let mut is_first = true;
        for column in columns.iter().filter(|it| **it != self.shape.key) {
            if !is_first {
                out.push_sql(", ");
            }
            is_first = false;
            self.name(*column, out)?;
            out.push_sql(" = ");
            value(*column, out)?;
        }
        if is_first {
            self.name(self.shape.key, out)?;
            out.push_sql(" = ");
            value(self.shape.key, out)?;
        }
        Ok(())
    }

    /// ``INSERT INTO `orders` (`id`, `total`) VALUES (?, ?), (?, ?)``
    fn walk_insert<'b>(&'b self, out: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let columns: Vec<usize> = (0..self.shape.names.len()).collect();
        out.push_sql("INSERT INTO ");
        self.table(out)?;
        out.push_sql(" (");
        self.names(&columns, out)?;
        out.push_sql(") VALUES ");
        self.values(&columns, out)
    }

    /// PostgreSQL and SQLite:
    ///
    /// ```text
    /// UPDATE "orders" AS ordid_target SET "total" = ordid_rows."total"
    /// FROM (VALUES ($1, $2), ($3, $4)) AS ordid_rows ("id", "total")
    /// WHERE ordid_target."id" = ordid_rows."id"
    ///
    /// WITH ordid_rows ("id", "total") AS (VALUES (?, ?), (?, ?))
    /// UPDATE "orders" AS ordid_target SET "total" = ordid_rows."total"
    /// FROM ordid_rows WHERE ordid_target."id" = ordid_rows."id"
    /// ```
    ///
    /// A value arrives in its column as by an `INSERT`: in PostgreSQL a parameter has the type of its
    /// column in `table!`, also where it is NULL; in SQLite a column of `VALUES` has no affinity, and so
    /// changes nothing.
    fn walk_update<'b>(
        &'b self,
        columns: &[usize],
        out: &mut AstPass<'_, 'b, DB>,
    ) -> QueryResult<()> {
        let with = DB::UPDATES == Updates::WithValues;
        if with {
            out.push_sql("WITH ");
            out.push_sql(ROWS);
            out.push_sql(" (");
            self.names(columns, out)?;
            out.push_sql(") AS (VALUES ");
            self.values(columns, out)?;
            out.push_sql(") ");
        }
        out.push_sql("UPDATE ");
        self.table(out)?;
        out.push_sql(" AS ");
        out.push_sql(TARGET);
        out.push_sql(" SET ");
        self.assignments(columns, out, |column, out| self.of(ROWS, column, out))?;
        out.push_sql(" FROM ");
        if with {
            out.push_sql(ROWS);
        } else {
            out.push_sql("(VALUES ");
            self.values(columns, out)?;
            out.push_sql(") AS ");
            out.push_sql(ROWS);
            out.push_sql(" (");
            self.names(columns, out)?;
            out.push_sql(")");
        }
        out.push_sql(" WHERE ");
        self.of(TARGET, self.shape.key, out)?;
        out.push_sql(" = ");
        self.of(ROWS, self.shape.key, out)
    }

    /// `ordid_rows."total"`
    fn of(&self, rows: &str, column: usize, out: &mut AstPass<'_, '_, DB>) -> QueryResult<()> {
        out.push_sql(rows);
        out.push_sql(".");
        self.name(column, out)
    }

    /// ``UPDATE `orders` SET `total` = ? WHERE `id` = ?``
    fn walk_update_row<'b>(
        &'b self,
        columns: &[usize],
        row: usize,
        out: &mut AstPass<'_, 'b, DB>,
    ) -> QueryResult<()> {
        out.push_sql("UPDATE ");
        self.table(out)?;
        out.push_sql(" SET ");
        self.assignments(columns, out, |column, out| {
            self.values[column].push(row, out)
        })?;
        out.push_sql(" WHERE ");
        self.name(self.shape.key, out)?;
        out.push_sql(" = ");
        self.values[self.shape.key].push(row, out)
    }
}

impl<DB: Backend> QueryFragment<DB> for Statement<'_, DB> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        if !self.repeats {
            out.unsafe_to_cache_prepared();
        }
        let out = &mut out;
        match &self.does {
            Does::Insert => self.walk_insert(out),
            Does::Update(columns) => self.walk_update(columns, out),
            Does::UpdateRow(columns, row) => self.walk_update_row(columns, *row, out),
            Does::SetNull(column) => {
                out.push_sql("UPDATE ");
                self.table(out)?;
                out.push_sql(" SET ");
                self.name(*column, out)?;
                out.push_sql(" = NULL WHERE ");
                self.key_in(out)
            }
            Does::Delete => {
                out.push_sql("DELETE FROM ");
                self.table(out)?;
                out.push_sql(" WHERE ");
                self.key_in(out)
            }
            Does::Exists => {
                out.push_sql("SELECT 1 FROM ");
                self.table(out)?;
                out.push_sql(" WHERE ");
                self.key_in(out)
            }
        }
    }
}

/// The text depends on the number of rows.
impl<DB: Backend> QueryId for Statement<'_, DB> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

/// Of the one that asks whether a row is there.
impl<DB: Backend> Query for Statement<'_, DB> {
    type SqlType = Integer;
}

impl<DB: Backend, C> RunQueryDsl<C> for Statement<'_, DB> {}

/// Returns whether an action takes a statement for each of its rows.
pub(super) fn is_for_each_row<DB: Backend>(action: Action) -> bool {
    match action {
        Action::Update | Action::FixUp { .. } => DB::UPDATES == Updates::RowByRow,
        Action::Insert | Action::Unlink { .. } | Action::Delete => false,
    }
}

/// What a chunk is sent by: its rows as parameters of one statement, or of one for each.
pub(super) struct Bound<'s, DB: Backend> {
    shape: &'s Shape<DB>,
    binder: Binder<DB>,
    does: Does,
    repeats: bool,
    place: Place,
}

/// Binds the rows of a chunk.
pub(super) fn bind<'s, DB: Backend>(
    batches: &Batches<Binder<DB>>,
    table: &Table,
    shape: &'s Shape<DB>,
    chunk: &Chunk,
) -> Bound<'s, DB> {
    let mut binder = shape.binder();
    batches.write(chunk, chunk.rows.clone(), &mut binder);
    let columns = table.columns_of(chunk.action);
    let does = match chunk.action {
        Action::Insert => Does::Insert,
        action @ (Action::Update | Action::FixUp { .. }) => match is_for_each_row::<DB>(action) {
            true => Does::UpdateRow(columns, 0),
            false => Does::Update(columns),
        },
        Action::Unlink { parent } => {
            let column = table.parents()[parent].column();
            let position = table.columns().iter().position(|it| *it == column);
            Does::SetNull(position.expect("a foreign key is a column"))
        }
        Action::Delete => Does::Delete,
    };
    let repeats = match does {
        Does::UpdateRow(..) => chunk.rows.len() > 1,
        _ => repeats(table, chunk),
    };
    Bound {
        shape,
        binder,
        does,
        repeats,
        place: Place::of(table, chunk),
    }
}

impl<DB: Backend> Bound<'_, DB> {
    /// Returns how many statements it is.
    pub(super) fn len(&self) -> usize {
        match self.does {
            Does::UpdateRow(..) => self.binder.rows(),
            _ => 1,
        }
    }

    /// Returns one of its statements, and how to [`check`] what it changed.
    pub(super) fn statement(&self, number: usize) -> (Statement<'_, DB>, usize, Place) {
        let mut place = self.place.clone();
        let (does, rows) = match &self.does {
            Does::UpdateRow(columns, _) => {
                place.row = Some(place.rows.start + number);
                (Does::UpdateRow(columns.clone(), number), 1)
            }
            does => (does.clone(), self.binder.rows()),
        };
        let mut statement = Statement::new(does, self.shape, &self.binder);
        statement.repeats = self.repeats;
        (statement, rows, place)
    }
}

/// Sends the rows of a chunk.
pub(super) fn send<DB: Backend, C: diesel::Connection<Backend = DB>>(
    bound: &Bound<'_, DB>,
    connection: &mut C,
) -> Result<(), Error> {
    for number in 0..bound.len() {
        let (statement, rows, place) = bound.statement(number);
        check::<DB>(DB::execute(connection, statement), rows, place)?;
    }
    Ok(())
}

/// Returns whether a statement with as many rows was or will be sent again.
fn repeats(table: &Table, chunk: &Chunk) -> bool {
    let rows = match chunk.action {
        Action::Insert => table.rows(),
        Action::Update => table.updates(),
        Action::Delete => table.deletes(),
        // Circles are small.
        Action::FixUp { .. } | Action::Unlink { .. } => chunk.rows.end,
    };
    let length = chunk.rows.len();
    // The last one may be shorter.
    chunk.rows.start == chunk.number * length && length * 2 <= rows
}

/// Whether the database took the rows: those that it had to have, it had.
pub(super) fn check<DB: Backend>(
    changed: QueryResult<usize>,
    rows: usize,
    place: Place,
) -> Result<(), Error> {
    match changed {
        Err(error) => Err(Error::statement(judge::<DB>(error), place)),
        // What an `INSERT` into a view or by a rule counts is the database's own affair.
        Ok(_) if place.action == Action::Insert => Ok(()),
        Ok(changed) if changed == rows => Ok(()),
        Ok(changed) => Err(Error::count(
            changed.try_into().unwrap_or(u64::MAX),
            rows,
            place,
        )),
    }
}
