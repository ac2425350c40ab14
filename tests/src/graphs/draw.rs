//! Rows that refer to each other, drawn from a number.

use std::collections::HashSet;

use ordid::{
    entropy::{Entropy, SeededEntropy},
    uuid::{Builder, Uuid},
};

use super::schema::{ANCHOR, Link, Row, Schema, TABLES, below, mix};

pub(super) const MOST_ROWS: usize = 500;

/// 2025-11-13, in Unix milliseconds.
const BEGIN: u64 = 1_763_000_000_000;

/// Random numbers that follow from a seed.
pub(super) struct Random(SeededEntropy);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(SeededEntropy::new(seed))
    }

    fn bits(&self) -> u64 {
        self.0.next_u64().expect("seeded entropy does not end")
    }

    pub(super) fn below(&self, bound: usize) -> usize {
        below(bound, self.bits())
    }

    pub(super) fn one_in(&self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    pub(super) fn shuffle<T>(&self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }

    fn key(&self, millis: usize) -> Uuid {
        let mut random = [0; 10];
        random[..8].copy_from_slice(&self.bits().to_be_bytes());
        random[8..].copy_from_slice(&self.bits().to_be_bytes()[..2]);
        Builder::from_unix_timestamp_millis(BEGIN + millis as u64, &random).into_uuid()
    }
}

/// The rows of a graph, in two orders of adding.
pub(super) fn graph(schema: &Schema, number: u64) -> [Vec<Row>; 2] {
    let random = Random::new(mix(number));
    // Every tenth has all tables and as many rows as there may be.
    let (tables, rows) = if number.is_multiple_of(10) {
        (TABLES, MOST_ROWS)
    } else {
        let most_rows = 1 + random.below(MOST_ROWS);
        (1 + random.below(TABLES), 1 + random.below(most_rows))
    };
    let mut names: Vec<usize> = (0..TABLES).collect();
    random.shuffle(&mut names);
    let made = keys(&random, &names[..tables], rows);
    let mut of_table: Vec<Vec<Uuid>> = vec![Vec::new(); TABLES];
    for (table, id) in &made {
        of_table[*table].push(*id);
    }

    let (nulls, anchors) = (2 + random.below(4), 2 + random.below(8));
    // How often a row refers to any other, and not to one before it.
    let wild = random.below(31);
    // The same where it takes little to make a circle that cannot be broken.
    let hard_wild = if random.one_in(4) {
        random.below(300)
    } else {
        0
    };
    let mut before = [0; TABLES];
    let mut graph = Vec::with_capacity(rows);
    for (table, id) in made {
        let drawn = |link: Link| {
            if !link.declared || link.nullable && random.one_in(nulls) {
                return None;
            }
            if link.target == table && random.one_in(12) {
                return Some(id);
            }
            let is_any = if link.is_hard() {
                random.below(1_000) < hard_wild
            } else {
                random.below(30) < wild
            };
            let known = &of_table[link.target];
            let bound = if is_any {
                known.len()
            } else {
                before[link.target]
            };
            if bound > 0 && !random.one_in(anchors) {
                Some(known[random.below(bound)])
            } else if link.nullable && random.one_in(2) {
                None
            } else {
                Some(ANCHOR)
            }
        };
        let up = schema.links[table].map(|link| {
            let up = drawn(link);
            let is_own = link.target == table && up == Some(id);
            if is_own && !link.nullable && !schema.deletes_own {
                Some(ANCHOR)
            } else {
                up
            }
        });
        before[table] += 1;
        graph.push(Row { table, id, up });
    }
    random.shuffle(&mut graph);
    let mut again = graph.clone();
    random.shuffle(&mut again);
    [graph, again]
}

/// Draws the tables and keys of rows: at least one row for each table, if there are so many.
fn keys(random: &Random, tables: &[usize], rows: usize) -> Vec<(usize, Uuid)> {
    let mut places: Vec<usize> = (0..rows).collect();
    for place in places.iter_mut().skip(tables.len()) {
        *place = random.below(tables.len());
    }
    random.shuffle(&mut places);
    // Rows after those to which they refer have later keys, or any.
    let rises = random.one_in(3);
    let mut made: Vec<(usize, Uuid)> = Vec::with_capacity(rows);
    let mut seen = HashSet::new();
    for (number, place) in places.into_iter().enumerate() {
        let table = tables[place];
        let mut id = random.key(if rises { number } else { random.below(rows) });
        // The key of another table's row does as well.
        if number > 0 && random.one_in(20) {
            let (_, other) = made[random.below(number)];
            if !seen.contains(&(table, other)) {
                id = other;
            }
        }
        seen.insert((table, id));
        made.push((table, id));
    }
    made
}
