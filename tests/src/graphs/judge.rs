//! What must become of a graph, found without a plan: by asking each row.

use std::collections::{HashMap, HashSet};

use ordid::uuid::Uuid;

use super::schema::{Link, NAMES, Row, Schema, UP};

/// A graph's references between different rows of it.
pub(super) struct Judge<'a> {
    rows: &'a [Row],
    /// Of each row: the column, its link, and the row to which it refers.
    up: Vec<Vec<(usize, Link, usize)>>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(schema: &Schema, rows: &'a [Row]) -> Self {
        let ids = rows.iter().map(|row| (row.table, row.id));
        let places: HashMap<(usize, Uuid), usize> = ids.zip(0..).collect();
        let up = rows.iter().enumerate().map(|(place, row)| {
            let links = schema.links[row.table].iter().enumerate();
            let up = links.filter_map(|(column, link)| {
                let parent = places.get(&(link.target, row.up[column]?))?;
                (*parent != place).then_some((column, *link, *parent))
            });
            up.collect()
        });
        Self {
            rows,
            up: up.collect(),
        }
    }

    /// Whether no order of the rows has each behind those to which it refers by links that count: rows
    /// that wait for none go, until nobody is left, or nobody goes.
    pub(super) fn has_circle(&self, counts: impl Fn(Link) -> bool) -> bool {
        let mut left: HashSet<usize> = (0..self.rows.len()).collect();
        loop {
            let waits = |row: &usize| {
                let mut up = self.up[*row].iter();
                up.any(|(_, link, parent)| counts(*link) && left.contains(parent))
            };
            let next: HashSet<usize> = left.iter().copied().filter(waits).collect();
            if next.len() == left.len() {
                return !left.is_empty();
            }
            left = next;
        }
    }

    /// Whether a message names nothing but references that cannot be broken, each of which leads
    /// round to its own row: at least two.
    pub(super) fn is_circle(&self, message: &str) -> bool {
        let named = message.split_once("can be NULL: ");
        let named = named.and_then(|(_, rest)| rest.split_once("; make one"));
        let Some((named, _)) = named else {
            return false;
        };
        let named: Vec<&str> = named.split(", ").filter(|it| *it != "...").collect();
        named.len() >= 2 && named.iter().all(|it| self.leads_round(it))
    }

    /// Whether a reference, as `t7.a of` a key, is such a one.
    fn leads_round(&self, reference: &str) -> bool {
        (0..self.rows.len()).any(|child| {
            let (name, id) = (NAMES[self.rows[child].table], self.rows[child].id);
            self.hard(child).any(|(column, parent)| {
                reference == format!("{name}.{} of {id}", UP[column]) && self.leads(parent, child)
            })
        })
    }

    fn hard(&self, row: usize) -> impl Iterator<Item = (usize, usize)> {
        let up = self.up[row].iter().filter(|(_, link, _)| link.is_hard());
        up.map(|(column, _, parent)| (*column, *parent))
    }

    /// Whether references that cannot be broken lead from a row to another.
    fn leads(&self, from: usize, to: usize) -> bool {
        let mut seen = HashSet::from([from]);
        let mut open = vec![from];
        while let Some(row) = open.pop() {
            if row == to {
                return true;
            }
            let parents = self.hard(row).map(|(_, parent)| parent);
            open.extend(parents.filter(|parent| seen.insert(*parent)));
        }
        false
    }
}
