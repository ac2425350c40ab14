//! The unit of work without I/O: which tables first, which rows in which statement, and what to do
//! next.
//!
//! An adapter has the database and a sink that binds values; this module has the rest. [`Batches`]
//! keeps the rows, [`Plan::new`] orders the tables by their foreign keys and cuts them into chunks,
//! [`row_order`] orders the rows of one table, and [`Flush`] is the state machine that the adapter
//! executes step by step, sync or async:
//!
//! ```text
//! Begin -> Send(chunk)* -> Commit -> Done
//!   |          |             |
//!   +----------+-- failed ---+--> Rollback -> Done
//! ```

mod batches;
mod generators;
mod sharding;

use std::{any::TypeId, cmp::Ordering, collections::HashMap, ops::Range};

use petgraph::{algo::tarjan_scc, graph::DiGraph};

use crate::{
    entity::{KeyOf, OrderedKey, Parent},
    error::Error,
};

pub use batches::{Batches, Row, RowEnd, RowSink};
pub use generators::Generators;
pub use sharding::Sharding;

/// The most rows of one statement. Larger chunks were not faster on any database measured.
pub const MAX_ROWS: usize = 1000;

/// What planning needs to know of the rows of one entity type.
#[derive(Debug, Clone)]
pub struct Table {
    entity: TypeId,
    key: TypeId,
    schema: Option<&'static str>,
    name: &'static str,
    key_column: &'static str,
    columns: &'static [&'static str],
    rows: usize,
    parents: &'static [Parent],
}

impl Table {
    /// Describes `rows` rows of an entity.
    pub fn of<E: OrderedKey + 'static>(rows: usize) -> Self {
        Self {
            entity: TypeId::of::<E>(),
            key: TypeId::of::<KeyOf<E>>(),
            schema: E::SCHEMA,
            name: E::TABLE,
            key_column: E::KEY_COLUMN,
            columns: E::COLUMNS,
            rows,
            parents: E::PARENTS,
        }
    }

    /// Returns the schema, unquoted, where the entity names one.
    pub const fn schema(&self) -> Option<&'static str> {
        self.schema
    }

    /// Returns the table's name, unquoted.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the key's column, unquoted.
    pub const fn key_column(&self) -> &'static str {
        self.key_column
    }

    /// Returns the columns in the order in which a row's values are written, unquoted.
    pub const fn columns(&self) -> &'static [&'static str] {
        self.columns
    }

    /// Returns the number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    fn refers_to(&self, parent: &Self) -> bool {
        self.parents
            .iter()
            .any(|it| it.is(parent.entity, parent.key))
    }
}

/// The order of tables and their chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    tables: Vec<PlannedTable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PlannedTable {
    table: usize,
    rows: usize,
    rows_per_chunk: usize,
}

/// One statement's worth of rows of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Which of the tables given to [`Plan::new`].
    pub table: usize,
    /// Which chunk of the table, from 0.
    pub number: usize,
    /// The rows, as positions in the table's [`row_order`].
    pub rows: Range<usize>,
}

impl Plan {
    /// Orders the tables, parents first, and cuts each into chunks of at most
    /// [`MAX_ROWS`] rows and `max_parameters` parameters.
    ///
    /// # Errors
    ///
    /// Tables that refer to each other in a circle, and a row with more columns than a statement
    /// has parameters; both errors [`is_plan`](Error::is_plan).
    pub fn new(tables: &[Table], max_parameters: usize) -> Result<Self, Error> {
        let mut graph = DiGraph::<usize, ()>::with_capacity(tables.len(), tables.len());
        let nodes: Vec<_> = (0..tables.len())
            .map(|table| graph.add_node(table))
            .collect();
        // Edges go from child to parent: Tarjan's components then come parents first.
        for (child, from) in tables.iter().zip(&nodes) {
            for (parent, to) in tables.iter().zip(&nodes) {
                if from != to && child.refers_to(parent) {
                    graph.add_edge(*from, *to, ());
                }
            }
        }
        let mut planned = Vec::with_capacity(tables.len());
        for component in tarjan_scc(&graph) {
            let [node] = component[..] else {
                let mut names: Vec<_> = component
                    .iter()
                    .map(|node| tables[graph[*node]].name)
                    .collect();
                names.sort_unstable();
                return Err(Error::plan(format!(
                    "the tables {} refer to each other in a circle: none can be inserted first; \
                     take `#[ordid(parent)]` off one reference and set it after the flush",
                    names.join(", ")
                )));
            };
            let index = graph[node];
            let table = &tables[index];
            let rows_per_chunk = match max_parameters.checked_div(table.columns.len()) {
                Some(0) => {
                    return Err(Error::plan(format!(
                        "table {} has {} columns, more than the {max_parameters} parameters of a \
                         statement",
                        table.name,
                        table.columns.len()
                    )));
                }
                Some(rows) => rows.min(MAX_ROWS),
                None => MAX_ROWS,
            };
            planned.push(PlannedTable {
                table: index,
                rows: table.rows,
                rows_per_chunk,
            });
        }
        Ok(Self { tables: planned })
    }

    /// Returns the tables in the order in which they are sent, as positions in what
    /// [`Plan::new`] was given.
    pub fn tables(&self) -> impl Iterator<Item = usize> + '_ {
        self.tables.iter().map(|planned| planned.table)
    }

    /// Returns all chunks in the order in which they are sent.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk> + '_ {
        self.tables.iter().flat_map(|planned| {
            (0..planned.rows.div_ceil(planned.rows_per_chunk)).map(|number| {
                let start = number * planned.rows_per_chunk;
                let end = planned.rows.min(start + planned.rows_per_chunk);
                Chunk {
                    table: planned.table,
                    number,
                    rows: start..end,
                }
            })
        })
    }

    fn chunk(&self, mut position: usize) -> Option<Chunk> {
        // Tables are few; chunks are many. So no list of chunks is kept.
        for planned in &self.tables {
            let chunks = planned.rows.div_ceil(planned.rows_per_chunk);
            if position < chunks {
                let start = position * planned.rows_per_chunk;
                let end = planned.rows.min(start + planned.rows_per_chunk);
                return Some(Chunk {
                    table: planned.table,
                    number: position,
                    rows: start..end,
                });
            }
            position -= chunks;
        }
        None
    }
}

/// Returns the order in which rows of one table are sent: by key, and where the table refers to
/// itself, parents before children. `None` where they already are in that order.
///
/// Where the column keeps order, the database compares the stored values as the keys compare, so the
/// insert appends to the index. For other columns there is [`row_order_by`].
///
/// # Errors
///
/// A row without a key, two rows with the same key, and rows that refer to each other in a circle;
/// all [`is_plan`](Error::is_plan) and name the keys.
pub fn row_order<E: OrderedKey>(rows: &[E]) -> Result<Option<Vec<usize>>, Error> {
    row_order_by(rows, Ord::cmp)
}

/// As [`row_order`], in the order of the stored form that `compare` knows. It must be zero for equal
/// keys only.
///
/// # Errors
///
/// As [`row_order`].
pub fn row_order_by<E: OrderedKey>(
    rows: &[E],
    compare: impl Fn(&KeyOf<E>, &KeyOf<E>) -> Ordering,
) -> Result<Option<Vec<usize>>, Error> {
    let keys = rows
        .iter()
        .map(|row| {
            row.key()
                .ok_or_else(|| Error::plan(format!("a row of {} has no key", E::TABLE)))
        })
        .collect::<Result<Vec<_>, _>>()?;
    // Rising strictly, so that no key is there twice.
    let sorted = keys.is_sorted_by(|left, right| compare(left, right).is_lt());
    // Mostly no row refers to a later one of its own batch, and no graph is needed.
    let mut parents_come_first = true;
    if sorted {
        for (row, key) in rows.iter().zip(&keys) {
            row.self_parents(&mut |parent| {
                parents_come_first &= compare(&parent, key).is_le()
                    || keys.binary_search_by(|key| compare(key, &parent)).is_err();
            });
        }
        if parents_come_first {
            return Ok(None);
        }
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&left, &right| compare(&keys[left], &keys[right]));
    if let Some(twice) = order.windows(2).find(|pair| keys[pair[0]] == keys[pair[1]]) {
        return Err(Error::plan(format!(
            "two rows of {} have the key {}; was an entity added twice?",
            E::TABLE,
            keys[twice[0]]
        )));
    }
    let depths = depths(rows, &keys)?;
    if !depths.is_empty() {
        order.sort_by_key(|&row| depths[row]);
    }
    Ok(Some(order))
}

/// Returns each row's distance from the rows that refer to none of this batch; empty where no row
/// refers to another.
fn depths<E: OrderedKey>(rows: &[E], keys: &[KeyOf<E>]) -> Result<Vec<usize>, Error> {
    let mut edges = Vec::new();
    let mut positions = HashMap::new();
    for (child, row) in rows.iter().enumerate() {
        row.self_parents(&mut |parent| edges.push((child, parent)));
    }
    if edges.is_empty() {
        return Ok(Vec::new());
    }
    positions.extend(keys.iter().enumerate().map(|(row, key)| (*key, row)));
    let mut graph = DiGraph::<usize, ()>::with_capacity(rows.len(), edges.len());
    let nodes: Vec<_> = (0..rows.len()).map(|row| graph.add_node(row)).collect();
    for (child, parent) in edges {
        // A row that refers to itself is inserted like any other.
        if let Some(&parent) = positions.get(&parent)
            && parent != child
        {
            graph.add_edge(nodes[child], nodes[parent], ());
        }
    }
    let mut depths = vec![0; rows.len()];
    for component in tarjan_scc(&graph) {
        let [node] = component[..] else {
            let keys: Vec<_> = component
                .iter()
                .take(4)
                .map(|node| keys[graph[*node]].to_string())
                .collect();
            return Err(Error::plan(format!(
                "{} rows of {} refer to each other in a circle: {}",
                component.len(),
                E::TABLE,
                keys.join(", ")
            )));
        };
        depths[graph[node]] = graph
            .neighbors(node)
            .map(|parent| depths[graph[parent]] + 1)
            .max()
            .unwrap_or(0);
    }
    Ok(depths)
}

/// What the adapter does next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Open the transaction; a savepoint inside one of the user's.
    Begin,
    /// Insert these rows by one statement.
    Send(Chunk),
    /// Commit the transaction; release the savepoint.
    Commit,
    /// Roll the transaction or the savepoint back.
    Rollback,
    /// Nothing: it is over. `true` if everything was committed.
    Done {
        /// Whether the rows are in the database.
        committed: bool,
    },
}

/// A flush as a state machine: [`step`](Self::step) says what to do, the adapter does it and
/// reports [`succeeded`](Self::succeeded) or [`failed`](Self::failed).
///
/// # Example
///
/// ```
/// use ordid_core::unit_of_work::{Flush, Plan, Step};
///
/// let mut flush = Flush::new(Plan::new(&[], 1000)?);
/// assert_eq!(flush.step(), Step::Begin);
/// flush.succeeded();
/// assert_eq!(flush.step(), Step::Commit);
/// flush.failed();
/// assert_eq!(flush.step(), Step::Rollback);
/// flush.succeeded();
/// assert_eq!(flush.step(), Step::Done { committed: false });
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Flush {
    plan: Plan,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Beginning,
    Sending(usize),
    RollingBack,
    Over { committed: bool },
}

impl Flush {
    /// Begins to execute a plan.
    pub const fn new(plan: Plan) -> Self {
        Self {
            plan,
            state: State::Beginning,
        }
    }

    /// Returns what to do now. It stays the same until the outcome is reported.
    pub fn step(&self) -> Step {
        match self.state {
            State::Beginning => Step::Begin,
            State::Sending(position) => match self.plan.chunk(position) {
                Some(chunk) => Step::Send(chunk),
                None => Step::Commit,
            },
            State::RollingBack => Step::Rollback,
            State::Over { committed } => Step::Done { committed },
        }
    }

    /// Returns the chunk after the one that [`step`](Self::step) sends now, so that it can be bound
    /// while the database works on that one.
    pub fn upcoming(&self) -> Option<Chunk> {
        match self.state {
            State::Sending(position) => self.plan.chunk(position + 1),
            _ => None,
        }
    }

    /// Reports that the step was carried out.
    pub fn succeeded(&mut self) {
        self.state = match (self.state, self.step()) {
            (State::Beginning, _) => State::Sending(0),
            (State::Sending(_), Step::Commit) => State::Over { committed: true },
            (State::Sending(position), _) => State::Sending(position + 1),
            (State::RollingBack, _) => State::Over { committed: false },
            (over @ State::Over { .. }, _) => over,
        };
    }

    /// Reports that the step failed.
    pub fn failed(&mut self) {
        self.state = match self.state {
            // No transaction is open, or the server will drop it with the connection.
            State::Beginning | State::RollingBack => State::Over { committed: false },
            State::Sending(_) => State::RollingBack,
            over @ State::Over { .. } => over,
        };
    }
}

#[cfg(test)]
mod tests;
