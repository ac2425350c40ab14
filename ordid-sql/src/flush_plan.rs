//! What would be sent, without sending it.

use std::{fmt, ops::Range, sync::Arc};

use crate::{
    Action, Chunk, EngineProfile, NotBulk, PendingRows, Plan, Table, UpsertStep,
    not_bulk::offered,
    spi::{RowBinder, TransactionScope},
    text::{Statement, Statements, can_be_staged, staged_action},
};

/// What a flush would send: what an adapter's `UnitOfWork::plan` returns.
///
/// Its text has a line for each table, and under it the beginning of each statement:
///
/// ```text
/// insert into customers: 1 row by 1 statement
///     INSERT INTO "customers" ("id", "name") VALUES ($1, $2)
/// insert into orders: 2500 rows by 3 statements, or in bulk if the table and the values allow it
///     2 times INSERT INTO "orders" ("id", "customer", "total") VALUES ($1, $2, $3), ($4, $5, $6) ..
///     INSERT INTO "orders" ("id", "customer", "total") VALUES ($1, $2, $3), ($4, $5, $6) ..
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushPlan {
    /// The statement that is sent first, where constraints have to be checked at COMMIT.
    pub defers: Option<&'static str>,
    /// The tables, in the order in which they are written: one comes as often as it is its turn.
    pub tables: Vec<PlannedTable>,
}

/// What a flush would do with rows of one table, with nothing in between.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedTable {
    /// The table's name.
    pub table: &'static str,
    /// What is done with the rows.
    pub action: Action,
    /// How many rows there are.
    pub rows: usize,
    /// The statements, in order. Rows that go by the engine's bulk command are sent without them. Those of an upsert are
    /// the question which rows are there, and an insert and an update of all rows: each row goes by one of the two.
    ///
    /// Many rows that are updated or upserted go through a temporary table: see `temporary_table`. Many that are upserted
    /// [without a report](crate::OnConflict::unreported) go by one statement of MySQL or SQLite, if the table has no other
    /// unique index.
    pub statements: Vec<PlannedStatement>,
    /// Why `flush` will send the rows by these statements. `None` if it offers them to the bulk command, `COPY` or a bulk
    /// load: whether that takes them depends on the table and the values, which
    /// [`FlushedTable::not_bulk`](crate::FlushedTable::not_bulk) tells afterwards. `flush_in` always sends statements.
    pub not_bulk: Option<NotBulk>,
    /// Whether some of these statements take rows through a temporary table: see
    /// [`EngineProfile::temporary_tables`](crate::EngineProfile::temporary_tables). If the server does not let `flush` make
    /// one or refuses one of these statements, and in `flush_in`, the rows go by statements for the table itself. `flush` of
    /// SQLx offers rows with values for all columns to `COPY`, in place of the inserts into the temporary table.
    pub temporary_table: bool,
}

/// One statement of a flush.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedStatement {
    /// Which rows of those that the action is done with, counted from 0 in the order in which they are
    /// sent: as in the adapter's `Error::rows`.
    pub rows: Range<usize>,
    /// The text, with a placeholder for each value. Statements of as many rows share it.
    pub sql: Arc<str>,
}

impl FlushPlan {
    /// Returns the number of rows that are inserted, over all tables.
    pub fn rows(&self) -> usize {
        let inserts = self.tables.iter().filter(|it| it.action == Action::Insert);
        inserts.map(|table| table.rows).sum()
    }

    /// Lists the statements of a plan over these rows.
    pub(crate) fn of<B: RowBinder>(
        plan: &Plan,
        rows: &PendingRows<B>,
        engine: &EngineProfile,
        statements: &mut Statements<'_>,
    ) -> Self {
        let scope = TransactionScope::Transaction;
        let offered = offered::<B>(plan, &rows.tables(), engine, scope);
        let chunks: Vec<Chunk> = plan.chunks().collect();
        let turns =
            chunks.chunk_by(|one, next| (one.action, one.table) == (next.action, next.table));
        let tables = turns.map(|turn| {
            let (action, table) = (turn[0].action, turn[0].table);
            let together = turn.iter().map(|chunk| chunk.rows.len()).sum();
            let writes = is_written(action, statements.table(table), engine, together);
            let least = engine
                .stages_from()
                .filter(|_| can_be_staged(action) && !writes);
            let (mut planned, mut rest, mut temporary_table) = (Vec::new(), turn, false);
            while !rest.is_empty() {
                let left: usize = rest.iter().map(|chunk| chunk.rows.len()).sum();
                let whole = rest.iter().take(statements.writer().max_staged_chunks());
                let group = match least.is_some_and(|least| left >= least) {
                    true => whole
                        .take_while(|it| is_whole(rows, it, statements))
                        .count(),
                    false => 0,
                };
                let (now, later) = rest.split_at(group.max(1));
                temporary_table |= group > 0;
                planned.extend(match group {
                    0 if writes && is_whole(rows, &now[0], statements) => {
                        sent(rows, &now[0].with_step(UpsertStep::Write), statements)
                    }
                    0 => sent(rows, &now[0], statements),
                    _ => staged(now, statements),
                });
                rest = later;
            }
            PlannedTable {
                table: statements.table(table).name(),
                action,
                rows: together,
                statements: planned,
                not_bulk: match action {
                    Action::Insert => offered[table].err(),
                    Action::Upsert { .. } => Some(NotBulk::Upserted),
                    _ => Some(NotBulk::NotInserted),
                },
                temporary_table,
            }
        });
        let tables = tables.collect();
        Self {
            defers: engine.defer.filter(|_| plan.defers()),
            tables,
        }
    }
}

impl fmt::Display for FlushPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_first = true;
        let mut line = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            if !std::mem::take(&mut is_first) {
                f.write_str("\n")?;
            }
            f.write_fmt(text)
        };
        if let Some(defers) = self.defers {
            line(f, format_args!("{defers}"))?;
        }
        for table in &self.tables {
            let (verb, name) = (table.action.verb(), table.table);
            let rows = counted(table.rows, "row");
            let statements = counted(table.statements.len(), "statement");
            let or_in_bulk = match table.not_bulk {
                None => ", or in bulk if the table and the values allow it",
                Some(_) => "",
            };
            line(
                f,
                format_args!("{verb} {name}: {rows} by {statements}{or_in_bulk}"),
            )?;
            let like = table.statements.chunk_by(|one, next| one.sql == next.sql);
            for like in like {
                let text = beginning(&like[0].sql);
                match like.len() {
                    1 => line(f, format_args!("    {text}"))?,
                    times => line(f, format_args!("    {times} times {text}"))?,
                }
            }
        }
        Ok(())
    }
}

fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Returns the beginning of a statement: one of a thousand rows is longer than anybody reads.
fn beginning(sql: &str) -> String {
    const CHARACTERS: usize = 120;
    match sql.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{} ..", &sql[..end]),
        None => sql.to_owned(),
    }
}

/// Returns whether rows that are upserted without a report go by the engine's own statement, if it does what is asked for.
fn is_written(action: Action, table: &Table, engine: &EngineProfile, rows: usize) -> bool {
    match action {
        Action::Upsert { set, .. } => {
            table.column_sets()[set].may_be_written()
                && engine.writes_from().is_some_and(|least| rows >= least)
        }
        _ => false,
    }
}

/// The statements of a chunk.
fn sent<B: RowBinder>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    statements: &mut Statements<'_>,
) -> Vec<PlannedStatement> {
    let mut sent = Vec::new();
    for part in parts(chunk, statements) {
        let mut start = part.rows.start;
        for (count, columns) in runs(rows, &part, statements) {
            let sql = statements.of(&part, count, columns.as_deref()).sql;
            let rows = start..start + count;
            start = rows.end;
            sent.push(PlannedStatement { rows, sql });
        }
    }
    sent
}

/// The statements that take chunks of one action and table through a temporary table together.
fn staged(group: &[Chunk], statements: &mut Statements<'_>) -> Vec<PlannedStatement> {
    let rows = group[0].rows.start..group[group.len() - 1].rows.end;
    let of_all = |statement: Statement| PlannedStatement {
        rows: rows.clone(),
        sql: statement.sql,
    };
    let (writer, action) = (statements.writer(), group[0].action);
    let table = statements.table(group[0].table).clone();
    let names = statements.names(group[0].table).clone();
    let made = writer.stage(&table, &names, staged_action(action));
    let mut sent: Vec<_> = made.into_iter().map(of_all).collect();
    sent.extend(group.iter().map(|chunk| {
        let part = Chunk {
            action: staged_action(action),
            ..chunk.clone()
        };
        PlannedStatement {
            rows: chunk.rows.clone(),
            sql: statements.staged(&part, chunk.rows.len()).sql,
        }
    }));
    let taken = writer.take_over(&table, &names, action, rows.len());
    sent.extend(taken.into_iter().map(of_all));
    sent.push(of_all(writer.unstage()));
    sent
}

/// Returns whether all rows of a chunk have values for all columns, so that they may go through a temporary table.
pub(crate) fn is_whole<B: RowBinder>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    statements: &Statements<'_>,
) -> bool {
    let chunk = Chunk {
        action: staged_action(chunk.action),
        ..chunk.clone()
    };
    let all = statements.table(chunk.table).columns_of(chunk.action);
    !B::HAS_RUNS
        || runs(rows, &chunk, statements)
            .iter()
            .all(|(_, columns)| columns.as_ref().is_none_or(|it| *it == all))
}

/// What may be sent of a chunk.
fn parts(chunk: &Chunk, statements: &Statements<'_>) -> Vec<Chunk> {
    let Action::Upsert {
        set,
        step: UpsertStep::Find,
    } = chunk.action
    else {
        return vec![chunk.clone()];
    };
    let is_ignored = statements.table(chunk.table).column_sets()[set]
        .columns
        .is_empty();
    let last = match statements.writer().engine.words.confirms {
        _ if !is_ignored => Some(UpsertStep::Update),
        confirms => confirms.map(|_| UpsertStep::Confirm),
    };
    let steps = [UpsertStep::Find, UpsertStep::Insert]
        .into_iter()
        .chain(last);
    steps.map(|step| chunk.with_step(step)).collect()
}

/// How many rows of a chunk go by a statement, and the columns that they have values for, where those are not all.
fn runs<B: RowBinder>(
    rows: &PendingRows<B>,
    chunk: &Chunk,
    statements: &Statements<'_>,
) -> Vec<(usize, Option<Vec<usize>>)> {
    let each = statements.writer().is_for_each_row(chunk.action);
    if !B::HAS_RUNS {
        return match each {
            true => vec![(1, None); chunk.rows.len()],
            false => vec![(chunk.rows.len(), None)],
        };
    }
    let columns = statements.table(chunk.table).columns_of(chunk.action).len();
    let mut values = B::with_room(rows.entity(chunk.table), chunk.rows.len(), columns);
    values.begin_rows(chunk.action);
    rows.write(chunk, chunk.rows.clone(), &mut values);
    let runs = values.into_runs(chunk.rows.len()).into_iter();
    runs.flat_map(|run| match each {
        true => vec![(1, run.columns); run.rows],
        false => vec![(run.rows, run.columns)],
    })
    .collect()
}
