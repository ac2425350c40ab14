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

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
};

use petgraph::{algo::kosaraju_scc, graph::DiGraph};

use super::{
    Action, Table,
    rows::{Cuts, List, TypelessRows},
};
use crate::{error::Error, key::KeyBytes};

/// The depth of a row in a circle, or below one.
const STUCK: u32 = u32::MAX;

/// The most steps that are spent on finding out which references of a circle need not be cut after
/// all. Beyond them a few too many are cut, which costs updates and no more.
const STEPS: usize = 1 << 24;

/// What a database allows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) dialect: &'static str,
    pub(super) defers: bool,
    pub(super) deletes_rows_of_themselves: bool,
}

/// Rows of a table that are sent one after the other, as positions in the order of sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) table: usize,
    pub(super) rows: Range<usize>,
}

/// In which order the rows of some tables are sent.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) runs: Vec<Run>,
    /// The tables and foreign keys that are cut, each with the number of rows.
    pub(super) cuts: Vec<(usize, usize, usize)>,
    pub(super) defers: bool,
}

/// A foreign key that leads from row to row.
#[derive(Debug, Clone, Copy)]
struct Edge {
    child: u32,
    parent: u32,
    /// Which of [`Nodes::columns`].
    column: u32,
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

/// Orders the rows of tables that refer to each other in a circle, or of one table, and tells the
/// rows what was cut.
pub(super) fn order(
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
        for circle in nodes.graph.circles(&depths, &states) {
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
    Ok(nodes.arrange(&depths, &states, tables, rows, list))
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
        let mut keys: HashMap<usize, HashMap<KeyBytes, u32>> = HashMap::new();
        let mut starts = Vec::with_capacity(component.len());
        let mut columns = Vec::new();
        let mut nodes = 0_usize;
        for &table in component {
            starts.push((table, nodes));
            let numbers = keys.entry(table).or_default();
            rows[table].keys(list, &mut |key| {
                // What does not fit is refused below.
                numbers.insert(key, u32::try_from(nodes).unwrap_or(STUCK));
                nodes += 1;
            });
        }
        let mut edges = Vec::new();
        for &(table, start) in &starts {
            let first = columns.len();
            let parents = &tables[table].parents;
            columns.extend((0..parents.len()).map(|parent| Column { table, parent }));
            // Of entities that share a key type, each may be the parent.
            let targets: Vec<Vec<&HashMap<KeyBytes, u32>>> = parents
                .iter()
                .map(|parent| {
                    let is = |it: &&usize| parent.is(tables[**it].entity, tables[**it].key);
                    component.iter().filter(is).map(|it| &keys[it]).collect()
                })
                .collect();
            rows[table].parents(list, &mut |row, parent, key| {
                for target in &targets[parent] {
                    if let Some(&number) = target.get(&key) {
                        edges.push(Edge {
                            child: u32::try_from(start + row).unwrap_or(STUCK),
                            parent: number,
                            column: u32::try_from(first + parent).unwrap_or(STUCK),
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
        let mut references = BTreeMap::<u32, usize>::new();
        for edge in &local.edges {
            *references.entry(edge.column).or_default() += 1;
        }
        let mut cheapest: Vec<(usize, u32)> = references
            .into_iter()
            .filter(|(column, _)| {
                let column = self.columns[*column as usize];
                tables[column.table].can_be_null(column.parent)
            })
            .map(|(column, references)| (references, column))
            .collect();
        cheapest.sort_unstable();
        let mut soft = BTreeSet::new();
        let holds = |soft: &BTreeSet<u32>| {
            let depths = local.depths(|edge| !soft.contains(&local.edges[edge].column));
            !depths.contains(&STUCK)
        };
        let mut is_broken = false;
        for (_, column) in &cheapest {
            soft.insert(*column);
            is_broken = holds(&soft);
            if is_broken {
                break;
            }
        }
        if !is_broken {
            let hard = |edge: usize| !soft.contains(&local.edges[edge].column);
            let way = local.way_round(&local.depths(hard), hard);
            let global = |edge: usize| self.graph.edges[circle.edges[edge] as usize];
            return Err(way.into_iter().map(global).collect());
        }
        // The most expensive first; the last one taken is needed.
        let taken: Vec<u32> = cheapest.iter().map(|(_, column)| *column).collect();
        for column in taken[..soft.len() - 1].iter().rev() {
            soft.remove(column);
            if !holds(&soft) {
                soft.insert(*column);
            }
        }
        let cut = local.fewest_cuts(|edge| soft.contains(&edge.column));
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
                    rules.dialect
                )));
            }
            *state = State::Cut;
        }
        Ok(())
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
        Error::plan(format!(
            "{} rows refer to each other in a circle, and none of these foreign keys can be NULL: \
             {}; make one of the columns nullable (`Option`){or}",
            way.len(),
            shown.join(", ")
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
    ) -> Order {
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
            match list {
                List::Inserts => positions.sort_by_key(|row| depths[*row]),
                List::Deletes => positions.sort_by_key(|row| Reverse(depths[*row])),
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
        match (list, &self.tables[..]) {
            // Statements insert rows in their order.
            (List::Inserts, [(table, _)]) => order.runs.push(Run {
                table: *table,
                rows: 0..depths.len(),
            }),
            (List::Inserts, _) => {
                runs.sort_by_key(|(depth, run)| (*depth, run.table));
                order.runs.extend(runs.into_iter().map(|(_, run)| run));
            }
            (List::Deletes, _) => {
                runs.sort_by_key(|(depth, run)| (Reverse(*depth), run.table));
                order.runs.extend(runs.into_iter().map(|(_, run)| run));
            }
        }
        let is_satisfied = |edge: Edge| {
            let (child, parent) = (edge.child as usize, edge.parent as usize);
            match list {
                // Rows of one depth go by table and then by position, as they are numbered.
                List::Inserts => (depths[parent], parent) < (depths[child], child),
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
        for (table, mut cuts) in cuts.into_iter().enumerate() {
            if cuts.is_empty() {
                continue;
            }
            for (parent, rows) in &mut cuts {
                rows.sort_unstable();
                // A key may be that of rows of two tables.
                rows.dedup();
                order.cuts.push((table, *parent, rows.len()));
            }
            rows[table].cut(list, cuts);
        }
        order
    }
}

/// Rows of which each leads to each other one.
#[derive(Debug, Default)]
struct Circle {
    /// Rising.
    nodes: Vec<u32>,
    /// Those between the nodes.
    edges: Vec<u32>,
}

#[derive(Debug)]
struct Graph {
    nodes: usize,
    edges: Vec<Edge>,
}

/// The edges of each node at one of their ends.
struct Index {
    starts: Vec<usize>,
    edges: Vec<u32>,
}

impl Index {
    fn of(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.edges[self.starts[node]..self.starts[node + 1]]
    }
}

impl Graph {
    /// Indexes edges by one of their ends, without those of nodes to themselves.
    fn index(&self, end: impl Fn(&Edge) -> u32, keep: impl Fn(usize) -> bool) -> Index {
        let kept = || {
            let edges = self.edges.iter().enumerate();
            edges.filter(|(number, edge)| edge.child != edge.parent && keep(*number))
        };
        let mut starts = vec![0; self.nodes + 1];
        for (_, edge) in kept() {
            starts[end(edge) as usize + 1] += 1;
        }
        for node in 0..self.nodes {
            starts[node + 1] += starts[node];
        }
        let mut edges = vec![0; starts[self.nodes]];
        let mut next = starts.clone();
        for (at, edge) in kept() {
            let slot = &mut next[end(edge) as usize];
            edges[*slot] = number(at);
            *slot += 1;
        }
        Index { starts, edges }
    }

    /// Returns the depth of each node below those without a parent, and [`STUCK`] where a circle
    /// leaves none.
    fn depths(&self, keep: impl Fn(usize) -> bool) -> Vec<u32> {
        let children = self.index(|edge| edge.parent, keep);
        let mut waits_for = vec![0_u32; self.nodes];
        for edge in &children.edges {
            waits_for[self.edges[*edge as usize].child as usize] += 1;
        }
        let mut depths = vec![STUCK; self.nodes];
        let mut layer: Vec<u32> = (0..number(self.nodes))
            .filter(|node| waits_for[*node as usize] == 0)
            .collect();
        let mut next = Vec::new();
        let mut depth = 0;
        while !layer.is_empty() {
            for node in layer.drain(..) {
                depths[node as usize] = depth;
                for edge in children.of(node) {
                    let child = self.edges[*edge as usize].child;
                    let waits_for = &mut waits_for[child as usize];
                    *waits_for -= 1;
                    if *waits_for == 0 {
                        next.push(child);
                    }
                }
            }
            std::mem::swap(&mut layer, &mut next);
            depth += 1;
        }
        depths
    }

    /// Returns the circles among the nodes that are stuck.
    fn circles(&self, depths: &[u32], states: &[State]) -> Vec<Circle> {
        let is_open = |edge: &Edge| {
            let stuck = |node: u32| depths[node as usize] == STUCK;
            edge.child != edge.parent && stuck(edge.child) && stuck(edge.parent)
        };
        let mut graph = DiGraph::<u32, ()>::new();
        let mut indices = vec![Default::default(); self.nodes];
        for node in (0..number(self.nodes)).filter(|node| depths[*node as usize] == STUCK) {
            indices[node as usize] = graph.add_node(node);
        }
        let open = || {
            let edges = (0..).zip(self.edges.iter().zip(states));
            edges.filter(|(_, (edge, state))| **state == State::Kept && is_open(edge))
        };
        for (_, (edge, _)) in open() {
            graph.add_edge(
                indices[edge.child as usize],
                indices[edge.parent as usize],
                (),
            );
        }
        let mut circles: Vec<Circle> = Vec::new();
        // Not Tarjan's, which calls itself for each row of a chain.
        for component in kosaraju_scc(&graph) {
            if component.len() > 1 {
                let mut nodes: Vec<u32> = component.into_iter().map(|node| graph[node]).collect();
                nodes.sort_unstable();
                let edges = Vec::new();
                circles.push(Circle { nodes, edges });
            }
        }
        circles.sort_unstable_by_key(|circle| circle.nodes[0]);
        let mut circle_of = vec![STUCK; self.nodes];
        for (circle, of) in (0..).zip(&circles) {
            for node in &of.nodes {
                circle_of[*node as usize] = circle;
            }
        }
        for (at, (edge, _)) in open() {
            let circle = circle_of[edge.child as usize];
            if circle != STUCK && circle == circle_of[edge.parent as usize] {
                circles[circle as usize].edges.push(at);
            }
        }
        circles
    }

    /// Returns the edges of one way round among the nodes that are stuck: each of them leads to a
    /// parent that is stuck as well.
    fn way_round(&self, depths: &[u32], keep: impl Fn(usize) -> bool) -> Vec<usize> {
        let parents = self.index(|edge| edge.child, keep);
        let stuck = |node: u32| depths[node as usize] == STUCK;
        let Some(mut node) = (0..number(self.nodes)).find(|node| stuck(*node)) else {
            return Vec::new();
        };
        let mut way = Vec::new();
        let mut seen = HashMap::new();
        while !seen.contains_key(&node) {
            seen.insert(node, way.len());
            let up = |edge: &&u32| stuck(self.edges[**edge as usize].parent);
            let Some(edge) = parents.of(node).iter().find(up) else {
                return Vec::new();
            };
            way.push(*edge as usize);
            node = self.edges[*edge as usize].parent;
        }
        way.split_off(seen[&node])
    }

    /// Returns edges to cut so that no circle is left, of those that are `soft`, and none of them
    /// needlessly. Without the soft edges there is no circle.
    fn fewest_cuts(&self, soft: impl Fn(&Edge) -> bool) -> Vec<u32> {
        let soft: Vec<bool> = self.edges.iter().map(soft).collect();
        let parents = self.index(|edge| edge.child, |_| true);
        let children = self.index(|edge| edge.parent, |_| true);
        // How many parents a node waits for, by soft edges and by others.
        let mut waits: Vec<(u32, u32)> = vec![(0, 0); self.nodes];
        for edge in &children.edges {
            let waits = &mut waits[self.edges[*edge as usize].child as usize];
            if soft[*edge as usize] {
                waits.0 += 1;
            } else {
                waits.1 += 1;
            }
        }
        // Always the node with the fewest soft edges to cut, of those that wait for nothing else.
        let mut open: BTreeSet<(u32, u32)> = waits
            .iter()
            .zip(0..)
            .filter(|(waits, _)| waits.1 == 0)
            .map(|(waits, node)| (waits.0, node))
            .collect();
        let mut placed = vec![false; self.nodes];
        let mut cut = Vec::new();
        while let Some((waits_for, node)) = open.pop_first() {
            placed[node as usize] = true;
            if waits_for > 0 {
                let unmet = |edge: &&u32| !placed[self.edges[**edge as usize].parent as usize];
                cut.extend(parents.of(node).iter().filter(unmet));
            }
            for edge in children.of(node) {
                let child = self.edges[*edge as usize].child;
                if placed[child as usize] {
                    continue;
                }
                let waits = &mut waits[child as usize];
                if waits.1 == 0 {
                    open.remove(&(waits.0, child));
                }
                if soft[*edge as usize] {
                    waits.0 -= 1;
                } else {
                    waits.1 -= 1;
                }
                if waits.1 == 0 {
                    open.insert((waits.0, child));
                }
            }
        }
        self.needed(cut, &parents)
    }

    /// Returns the edges that close a circle, of those that are cut, one after the other.
    fn needed(&self, cut: Vec<u32>, parents: &Index) -> Vec<u32> {
        let mut is_cut = vec![false; self.edges.len()];
        for edge in &cut {
            is_cut[*edge as usize] = true;
        }
        let mut seen = vec![STUCK; self.nodes];
        let mut steps = 0;
        let mut needed = Vec::new();
        for (round, at) in (0..).zip(cut) {
            let edge = self.edges[at as usize];
            let mut ways = vec![edge.parent];
            let mut closes = false;
            while let Some(node) = ways.pop() {
                steps += 1;
                if node == edge.child || steps > STEPS {
                    closes = true;
                    break;
                }
                let kept = parents
                    .of(node)
                    .iter()
                    .filter(|edge| !is_cut[**edge as usize]);
                for up in kept.map(|edge| self.edges[*edge as usize].parent) {
                    if seen[up as usize] != round {
                        seen[up as usize] = round;
                        ways.push(up);
                    }
                }
            }
            if closes {
                needed.push(at);
            } else {
                is_cut[at as usize] = false;
            }
        }
        needed
    }
}

/// A number of rows or edges, which were counted to fit.
fn number(count: usize) -> u32 {
    u32::try_from(count).expect("rows and references are counted first")
}

#[cfg(test)]
pub(super) mod tests;
