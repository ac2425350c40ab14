//! The order of rows that refer to each other.
//!
//! A table that does not refer to itself needs no graph: its rows go in the order of their keys. Of
//! tables that refer to each other in a circle, and of a table that refers to itself, each row is a
//! node, and each foreign key that leads to a row of the same unit of work is an edge. Rows go by
//! depth, which is the length of the longest way up to a row without a parent, and then by key.
//!
//! # Circles
//!
//! Rows that refer to each other in a circle are taken apart at foreign keys, in this order:
//!
//! 1. Where the database can check constraints at COMMIT, those that were declared so.
//! 2. Those that can be NULL: as few columns as will do, and of those with the fewest references; and
//!    of these columns as few references as will do.
//!
//! A reference that is satisfied by the order all the same is written as it is.
//!
//! MySQL and MariaDB delete rows by descending key, whatever their depths are. If rows of a deep tree have smaller keys than
//! their parents, these references are cut as well, where they can be NULL: a statement for each depth takes longer.

mod circles;

use std::ops::Range;

use self::circles::{Circle, Edge, Graph, STUCK, number};
use crate::{
    Action, MAX_ROWS, Table, TreeDeletes,
    rows::{Cuts, List, TypelessRows},
};
use ordid_core::Error;

/// Up to this many statements, one for each depth, rows are deleted depth by depth and not unlinked first. It is a choice:
/// an unlinked row is touched twice.
const DEEP: usize = 100;

/// What a database allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) engine: &'static str,
    pub(crate) defers: bool,
    pub(crate) deletes_rows_of_themselves: bool,
    pub(crate) tree_deletes: TreeDeletes,
}

/// Rows of a table that are sent one after the other, as positions in the order of sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) table: usize,
    pub(crate) rows: Range<usize>,
}

/// In which order the rows of some tables are sent.
#[derive(Debug, Default)]
pub(crate) struct Order {
    pub(crate) runs: Vec<Run>,
    /// The tables and foreign keys that are cut, each with the number of rows.
    pub(crate) cuts: Vec<(usize, usize, usize)>,
    pub(crate) defers: bool,
}

/// What became of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Kept,
    /// The database checks it at COMMIT.
    Deferred,
    /// It is NULL at first, or before the end.
    Cut,
}

/// In which order rows go, and whether a statement may take a row and its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// Rows of one depth go together.
    Depth,
    /// As [`Depth`](Self::Depth), and one statement takes rows of several depths.
    AnyDepth,
    /// By descending key, whatever their depths are.
    Key,
}

/// Orders the rows of tables that refer to each other in a circle, or of one table, and tells the
/// rows what was cut.
pub(crate) fn order(
    component: &[usize],
    tables: &[Table],
    rows: &mut [&mut dyn TypelessRows],
    list: List,
    rules: Rules,
) -> Result<Order, Error> {
    if let [table] = component {
        let length = match list {
            List::Inserts => tables[*table].rows,
            List::Deletes => tables[*table].deletes,
        };
        let is_tree = tables[*table].refers_to(&tables[*table]);
        if !is_tree || list == List::Inserts && rows[*table].are_parents_first() {
            return Ok(Order {
                runs: vec![Run {
                    table: *table,
                    rows: 0..length,
                }],
                ..Order::default()
            });
        }
    }
    let nodes = Nodes::of(component, tables, rows, list)?;
    let mut states = vec![State::Kept; nodes.graph.edges.len()];
    let mut depths = nodes.graph.depths(|_| true);
    let mut may_defer = rules.defers;
    while depths.contains(&STUCK) {
        for circle in nodes
            .graph
            .circles(&depths, |edge| states[edge] == State::Kept)
        {
            let deferrable = |edge: &&u32| {
                let column = nodes.column(nodes.graph.edges[**edge as usize]);
                may_defer && tables[column.table].parents[column.parent].is_deferrable()
            };
            let deferred: Vec<u32> = circle.edges.iter().filter(deferrable).copied().collect();
            let (cut, state) = if deferred.is_empty() {
                let cut = nodes.break_circle(&circle, tables);
                let cut = cut.map_err(|way| nodes.unbreakable(&way, tables, rows, list, rules))?;
                (cut, State::Cut)
            } else {
                (deferred, State::Deferred)
            };
            for edge in cut {
                states[edge as usize] = state;
            }
        }
        // Once: what is in a circle still was not deferrable.
        may_defer = false;
        depths = nodes.graph.depths(|edge| states[edge] == State::Kept);
    }
    if list == List::Deletes && !rules.deletes_rows_of_themselves {
        nodes.cut_own(tables, &mut states, rows, rules)?;
    }
    let by = match list {
        List::Inserts => By::Depth,
        List::Deletes => nodes.deletes_by(tables, &mut states, &depths, rules),
    };
    Ok(nodes.arrange(&depths, &states, tables, rows, list, by))
}

/// Returns the depth of each of so many rows, by the references between them: child and parent. The rows of a circle, and those
/// below one, are the deepest.
pub(crate) fn depths(rows: usize, references: &[[usize; 2]]) -> Vec<u32> {
    let edges = references.iter().map(|row| {
        let [child, parent] = row.map(number);
        Edge {
            child,
            parent,
            column: 0,
        }
    });
    let graph = Graph {
        nodes: rows,
        edges: edges.collect(),
    };
    graph.depths(|_| true)
}

/// A column that holds a foreign key.
#[derive(Debug, Clone, Copy)]
struct Column {
    table: usize,
    parent: usize,
}

/// The rows of some tables, and how they refer to each other.
#[derive(Debug)]
struct Nodes {
    /// The tables, each with the number of its first row.
    tables: Vec<(usize, usize)>,
    columns: Vec<Column>,
    graph: Graph,
}

impl Nodes {
    fn of(
        component: &[usize],
        tables: &[Table],
        rows: &[&mut dyn TypelessRows],
        list: List,
    ) -> Result<Self, Error> {
        let mut starts = Vec::with_capacity(component.len());
        let mut nodes = 0;
        for &table in component {
            starts.push((table, nodes));
            nodes += match list {
                List::Inserts => tables[table].rows,
                List::Deletes => tables[table].deletes,
            };
        }
        let keys: Vec<_> = component
            .iter()
            .map(|table| rows[*table].keys(list))
            .collect();
        let mut columns = Vec::new();
        let mut edges = Vec::new();
        for &(table, start) in &starts {
            let first = columns.len();
            let parents = &tables[table].parents;
            columns.extend((0..parents.len()).map(|parent| Column { table, parent }));
            // The entities that may be the parent, as entities may share a key type. With each stand the number of its
            // first row, and the position that was found last.
            let mut targets: Vec<Vec<_>> = parents
                .iter()
                .map(|parent| {
                    let is = |table: usize| parent.is(tables[table].entity, tables[table].key);
                    let targets = starts.iter().zip(&keys).filter(|((it, _), _)| is(*it));
                    targets
                        .map(|((_, start), keys)| (*start, keys, 0))
                        .collect()
                })
                .collect();
            rows[table].parents(list, &mut |row, parent, key| {
                for (parents, keys, near) in &mut targets[parent] {
                    if let Some(position) = keys.find(&key, near) {
                        // A number that does not fit is refused below.
                        let number = |node: usize| u32::try_from(node).unwrap_or(STUCK);
                        edges.push(Edge {
                            child: number(start + row),
                            parent: number(*parents + position),
                            column: number(first + parent),
                        });
                    }
                }
            });
        }
        if nodes.max(edges.len()) >= STUCK as usize {
            return Err(Error::plan(format!(
                "{nodes} rows with {} references between them are too many for one flush",
                edges.len()
            )));
        }
        Ok(Self {
            tables: starts,
            columns,
            graph: Graph { nodes, edges },
        })
    }

    fn column(&self, edge: Edge) -> Column {
        self.columns[edge.column as usize]
    }

    /// Returns the table of a row, as the place in `tables`, and its position there.
    fn row(&self, node: u32) -> (usize, usize) {
        let node = node as usize;
        let place = self.tables.partition_point(|(_, start)| *start <= node) - 1;
        (place, node - self.tables[place].1)
    }

    /// Returns the edges to cut so that the circle is none any more, or a way round that nothing can
    /// break.
    fn break_circle(&self, circle: &Circle, tables: &[Table]) -> Result<Vec<u32>, Vec<Edge>> {
        let references = self.references(circle, tables);
        match self.break_ring(circle, &references) {
            Some(edge) => Ok(vec![edge]),
            None => self.break_any(circle, &references),
        }
    }

    /// Returns by how many references of a circle each column that can be NULL takes part; 0 for the others.
    fn references(&self, circle: &Circle, tables: &[Table]) -> Vec<usize> {
        let mut references = vec![0; self.columns.len()];
        for edge in &circle.edges {
            let edge = self.graph.edges[*edge as usize];
            let column = self.column(edge);
            if tables[column.table].can_be_null(column.parent) {
                references[edge.column as usize] += 1;
            }
        }
        references
    }

    /// Returns the edge that [`break_any`](Self::break_any) cuts if there is one way round only, as in most circles, of
    /// which a unit of work may have very many.
    fn break_ring(&self, circle: &Circle, references: &[usize]) -> Option<u32> {
        if circle.edges.len() > circle.nodes.len() {
            return None;
        }
        let edge = |it: &u32| self.graph.edges[*it as usize];
        let edges = circle.edges.iter().copied();
        let soft = edges.filter(|it| references[edge(it).column as usize] > 0);
        soft.min_by_key(|it| {
            let Edge { child, column, .. } = edge(it);
            (references[column as usize], column, child)
        })
    }

    /// Returns the edges to cut of a circle of any form.
    fn break_any(&self, circle: &Circle, references: &[usize]) -> Result<Vec<u32>, Vec<Edge>> {
        let local = Graph {
            nodes: circle.nodes.len(),
            edges: circle
                .edges
                .iter()
                .map(|edge| {
                    let edge = self.graph.edges[*edge as usize];
                    let local = |node: u32| circle.nodes.partition_point(|it| *it < node);
                    Edge {
                        child: number(local(edge.child)),
                        parent: number(local(edge.parent)),
                        column: edge.column,
                    }
                })
                .collect(),
        };
        let columns = 0..references.len();
        let mut cheapest: Vec<usize> = columns.filter(|it| references[*it] > 0).collect();
        // Those with as many references stay in their order.
        cheapest.sort_by_key(|column| references[*column]);
        let mut soft = vec![false; self.columns.len()];
        let holds = |soft: &[bool]| {
            let depths = local.depths(|edge| !soft[local.edges[edge].column as usize]);
            !depths.contains(&STUCK)
        };
        let mut is_broken = false;
        let mut taken = Vec::new();
        for column in cheapest {
            soft[column] = true;
            taken.push(column);
            is_broken = holds(&soft);
            if is_broken {
                break;
            }
        }
        if !is_broken {
            let hard = |edge: usize| !soft[local.edges[edge].column as usize];
            let way = local.way_round(&local.depths(hard), hard);
            let global = |edge: usize| self.graph.edges[circle.edges[edge] as usize];
            return Err(way.into_iter().map(global).collect());
        }
        // The most expensive first; the last one taken is needed.
        for column in taken.into_iter().rev().skip(1) {
            soft[column] = false;
            soft[column] = !holds(&soft);
        }
        let cut = local.fewest_cuts(|edge| soft[edge.column as usize]);
        Ok(cut
            .into_iter()
            .map(|edge| circle.edges[edge as usize])
            .collect())
    }

    /// Cuts rows off from themselves.
    fn cut_own(
        &self,
        tables: &[Table],
        states: &mut [State],
        rows: &[&mut dyn TypelessRows],
        rules: Rules,
    ) -> Result<(), Error> {
        for (edge, state) in self.graph.edges.iter().zip(states) {
            if edge.child != edge.parent {
                continue;
            }
            let column = self.column(*edge);
            let table = &tables[column.table];
            if !table.can_be_null(column.parent) {
                let (_, row) = self.row(edge.child);
                return Err(Error::plan(format!(
                    "the row of {} with the key {} refers to itself by {}, and {} deletes no such \
                     row; make the column nullable",
                    table.name,
                    rows[column.table].key_text(Action::Delete, row),
                    table.parents[column.parent].column(),
                    rules.engine
                )));
            }
            *state = State::Cut;
        }
        Ok(())
    }

    /// Returns in which order the rows are deleted. Cuts references off where that saves statements.
    fn deletes_by(
        &self,
        tables: &[Table],
        states: &mut [State],
        depths: &[u32],
        rules: Rules,
    ) -> By {
        if self.tables.len() > 1 {
            return By::Depth;
        }
        // Rows are numbered by their stored keys. What refers to itself is cut off from itself.
        let rises = |(edge, state): (&Edge, &State)| {
            edge.child == edge.parent || *state == State::Kept && edge.child > edge.parent
        };
        match rules.tree_deletes {
            TreeDeletes::Any => By::AnyDepth,
            TreeDeletes::ByKey if self.graph.edges.iter().zip(&*states).all(rises) => By::Key,
            TreeDeletes::ByKey if self.may_cut_what_falls(tables, depths) => {
                for (edge, state) in self.graph.edges.iter().zip(states) {
                    if edge.child < edge.parent {
                        *state = State::Cut;
                    }
                }
                By::Key
            }
            TreeDeletes::ByKey | TreeDeletes::OneDepth => By::Depth,
        }
    }

    /// Returns whether rows that have a smaller key than their parent can be cut off from it, and a statement for each depth
    /// would be many more.
    fn may_cut_what_falls(&self, tables: &[Table], depths: &[u32]) -> bool {
        let deepest = depths.iter().max().map_or(0, |deepest| *deepest as usize);
        let mut falling = self.graph.edges.iter().filter(|it| it.child < it.parent);
        let can_be_null = |edge: &Edge| {
            let column = self.column(*edge);
            tables[column.table].can_be_null(column.parent)
        };
        let statements = (falling.clone().count() + depths.len()) / MAX_ROWS;
        deepest > DEEP.max(statements) && falling.all(can_be_null)
    }

    /// Says which rows are in a circle, and what would break it.
    fn unbreakable(
        &self,
        way: &[Edge],
        tables: &[Table],
        rows: &[&mut dyn TypelessRows],
        list: List,
        rules: Rules,
    ) -> Error {
        const SHOWN: usize = 4;
        let action = match list {
            List::Inserts => Action::Insert,
            List::Deletes => Action::Delete,
        };
        let mut shown: Vec<String> = way
            .iter()
            .take(SHOWN)
            .map(|edge| {
                let column = self.column(*edge);
                let table = &tables[column.table];
                let (_, row) = self.row(edge.child);
                format!(
                    "{}.{} of {}",
                    table.name,
                    table.parents[column.parent].column(),
                    rows[column.table].key_text(action, row)
                )
            })
            .collect();
        if way.len() > SHOWN {
            shown.push("...".to_owned());
        }
        let or = if rules.defers {
            ", or its constraint deferrable (`#[ordid(parent, deferrable)]`)"
        } else {
            ""
        };
        let shared = way.iter().find_map(|edge| {
            let column = self.column(*edge);
            shared_key_type(column.parent, &tables[column.table], tables)
        });
        Error::plan(format!(
            "{} rows refer to each other in a circle, and none of these foreign keys can be NULL: \
             {}; make one of the columns nullable (`Option`){or}{}",
            way.len(),
            shown.join(", "),
            shared.unwrap_or_default()
        ))
    }

    /// Puts the rows into order, and cuts what the order does not satisfy.
    fn arrange(
        &self,
        depths: &[u32],
        states: &[State],
        tables: &[Table],
        rows: &mut [&mut dyn TypelessRows],
        list: List,
        by: By,
    ) -> Order {
        // The deepest rows are deleted first.
        let turn = |depth: u32| match list {
            List::Inserts => depth,
            List::Deletes => u32::MAX - depth,
        };
        let mut order = Order::default();
        // The position in the order of sending, by number.
        let mut sent = vec![0; depths.len()];
        let mut runs = Vec::new();
        for &(table, start) in &self.tables {
            let length = match list {
                List::Inserts => tables[table].rows,
                List::Deletes => tables[table].deletes,
            };
            let depths = &depths[start..start + length];
            let mut positions: Vec<usize> = (0..length).collect();
            match by {
                By::Key => positions.reverse(),
                By::Depth | By::AnyDepth => positions.sort_by_key(|row| turn(depths[*row])),
            }
            for (position, row) in positions.iter().enumerate() {
                sent[start + row] = position;
            }
            let mut end = 0;
            for rows in positions.chunk_by(|left, right| depths[*left] == depths[*right]) {
                let first = end;
                end += rows.len();
                runs.push((
                    depths[rows[0]],
                    Run {
                        table,
                        rows: first..end,
                    },
                ));
            }
            rows[table].arrange(list, &positions);
        }
        let goes_together = list == List::Inserts || by != By::Depth;
        match &self.tables[..] {
            // Statements insert rows in their order.
            [(table, _)] if goes_together => order.runs.push(Run {
                table: *table,
                rows: 0..depths.len(),
            }),
            // Those of one depth stay in the order of the tables. Where none of another table comes in between, those of
            // several depths are one run.
            _ => {
                runs.sort_by_key(|(depth, _)| turn(*depth));
                for (_, run) in runs {
                    match order.runs.last_mut() {
                        Some(last)
                            if goes_together
                                && (last.table, last.rows.end) == (run.table, run.rows.start) =>
                        {
                            last.rows.end = run.rows.end;
                        }
                        _ => order.runs.push(run),
                    }
                }
            }
        }
        let is_satisfied = |edge: Edge| {
            let (child, parent) = (edge.child as usize, edge.parent as usize);
            match list {
                // Rows of one depth go by table and then by position, as they are numbered.
                List::Inserts => (depths[parent], parent) < (depths[child], child),
                List::Deletes if by == By::Key => parent < child,
                List::Deletes => depths[parent] < depths[child],
            }
        };
        let mut cuts: Vec<Cuts> = vec![Cuts::new(); tables.len()];
        for (edge, state) in self.graph.edges.iter().zip(states) {
            if *state == State::Kept || is_satisfied(*edge) {
                continue;
            }
            if *state == State::Deferred {
                order.defers = true;
                continue;
            }
            let Column { table, parent } = self.column(*edge);
            let rows = cuts[table].entry(parent).or_default();
            rows.push(sent[edge.child as usize]);
        }
        for &(table, _) in &self.tables {
            let mut cuts = std::mem::take(&mut cuts[table]);
            if cuts.is_empty() {
                continue;
            }
            for (parent, rows) in &mut cuts {
                rows.sort_unstable();
                // A key may be that of rows of two tables.
                rows.dedup();
                // They stay until the flush ends.
                rows.shrink_to_fit();
                order.cuts.push((table, *parent, rows.len()));
            }
            rows[table].cut(list, cuts);
        }
        order
    }
}

/// Says which entity to name, if a foreign key's type is the key type of several tables of the unit of work. A row of each
/// counts as its parent, so the circle may be none.
fn shared_key_type(parent: usize, table: &Table, tables: &[Table]) -> Option<String> {
    let parent = &table.parents[parent];
    let found = tables.iter().filter(|it| parent.is(it.entity, it.key));
    let names: Vec<_> = found.map(|it| it.name).collect();
    (names.len() > 1).then(|| {
        format!(
            ", or, as {} have the same key type, name the entity that {}.{} refers to (`#[ordid(parent = Customer)]`)",
            names.join(" and "),
            table.name,
            parent.column()
        )
    })
}

#[cfg(test)]
pub(crate) mod tests;
