//! Nodes and edges: depths, circles, and which edges to cut.

use std::collections::{BTreeSet, HashMap};

use petgraph::{algo::kosaraju_scc, graph::DiGraph};

/// The depth of a row in a circle, or below one.
pub(super) const STUCK: u32 = u32::MAX;

/// The most steps that are spent on finding out which references of a circle need not be cut after
/// all. Beyond them a few too many are cut, which costs updates and no more.
const STEPS: usize = 1 << 24;

/// A foreign key that leads from row to row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) child: u32,
    pub(super) parent: u32,
    /// Which of [`Nodes::columns`].
    pub(super) column: u32,
}

/// Rows of which each leads to each other one.
#[derive(Debug, Default)]
pub(super) struct Circle {
    /// Rising.
    pub(super) nodes: Vec<u32>,
    /// Those between the nodes.
    pub(super) edges: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: usize,
    pub(super) edges: Vec<Edge>,
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
    pub(super) fn depths(&self, keep: impl Fn(usize) -> bool) -> Vec<u32> {
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

    /// Returns the circles among the nodes that are stuck, by the edges that are kept.
    pub(super) fn circles(&self, depths: &[u32], keep: impl Fn(usize) -> bool) -> Vec<Circle> {
        let is_open = |edge: &Edge| {
            let stuck = |node: u32| depths[node as usize] == STUCK;
            edge.child != edge.parent && stuck(edge.child) && stuck(edge.parent)
        };
        let open = || {
            let edges = (0_u32..).zip(&self.edges);
            edges.filter(|(at, edge)| keep(*at as usize) && is_open(edge))
        };
        let nodes = depths.iter().filter(|depth| **depth == STUCK).count();
        let mut graph = DiGraph::<u32, ()>::with_capacity(nodes, open().count());
        let mut indices = vec![Default::default(); self.nodes];
        for node in (0..number(self.nodes)).filter(|node| depths[*node as usize] == STUCK) {
            indices[node as usize] = graph.add_node(node);
        }
        for (_, edge) in open() {
            graph.add_edge(
                indices[edge.child as usize],
                indices[edge.parent as usize],
                (),
            );
        }
        drop(indices);
        // Not Tarjan's, which calls itself for each row of a chain.
        let components = kosaraju_scc(&graph);
        let count = components.iter().filter(|it| it.len() > 1).count();
        let mut circles: Vec<Circle> = Vec::with_capacity(count);
        for component in components {
            if component.len() > 1 {
                let mut nodes: Vec<u32> = component.into_iter().map(|node| graph[node]).collect();
                nodes.sort_unstable();
                // Most circles are rings.
                let edges = Vec::with_capacity(nodes.len());
                circles.push(Circle { nodes, edges });
            }
        }
        drop(graph);
        circles.sort_unstable_by_key(|circle| circle.nodes[0]);
        let mut circle_of = vec![STUCK; self.nodes];
        for (circle, of) in (0..).zip(&circles) {
            for node in &of.nodes {
                circle_of[*node as usize] = circle;
            }
        }
        for (at, edge) in open() {
            let circle = circle_of[edge.child as usize];
            if circle != STUCK && circle == circle_of[edge.parent as usize] {
                circles[circle as usize].edges.push(at);
            }
        }
        circles
    }

    /// Returns the edges of one way round among the nodes that are stuck: each of them leads to a
    /// parent that is stuck as well.
    pub(super) fn way_round(&self, depths: &[u32], keep: impl Fn(usize) -> bool) -> Vec<usize> {
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
    pub(super) fn fewest_cuts(&self, soft: impl Fn(&Edge) -> bool) -> Vec<u32> {
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
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).expect("rows and references are counted first")
}
