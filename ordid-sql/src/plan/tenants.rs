//! A plan tenant by tenant, for chunks that keep the rows of a tenant together.
//!
//! ```text
//! rows without a tenant | of tenant a, in the order of the plan | of tenant b | .. | deletes of rows without a tenant
//! ```
//!
//! The tenant of a row is the first column of a key of several columns; of a row of the tenants' own table, its key. Chunks
//! are cut in this order, if possible between two tenants. Within a chunk the rows have the order of the plan again, so
//! that a statement takes those of several tenants.

use std::{
    collections::{HashMap, HashSet},
    mem,
    ops::Range,
};

use super::{Action, Chunk, Inseparable, Plan, Stretch};
use crate::{PendingRows, RowSink, Table};
use ordid_core::{Error, key::KeyBytes};

/// When rows are sent: the tenants, in the order of their keys, and rows without one. Then the rows of several tenants
/// mostly follow each other in the lists of their tables, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Before,
    Tenant(usize),
    After,
}

/// Rows of a stretch that belong to one tenant.
struct Piece {
    turn: Turn,
    rows: Range<usize>,
    /// The position of the first of them in the order of the plan.
    position: usize,
    /// The number of their stretch.
    stretch: usize,
}

impl Plan {
    /// Puts the rows into the order of their tenants. If no table has a tenant in its key, nothing changes.
    ///
    /// # Errors
    ///
    /// If a row refers to a row that would be sent later: of another tenant, or of a tenant while it has none itself.
    pub(crate) fn by_tenant<S>(self, rows: &PendingRows<S>) -> Result<Self, Error>
    where
        S: RowSink + 'static,
    {
        let tables = rows.tables();
        let tenants = Tenants::of(&tables);
        if tenants.bytes.iter().all(Option::is_none) {
            return Ok(self);
        }
        tenants.check(rows)?;
        let mut pieces = self.pieces(&tenants, rows);
        // Those of a tenant stay in the order of the plan.
        pieces.sort_by_key(|it| it.turn);
        let mut plan = Self {
            tables: self.tables.clone(),
            ..Self::default()
        };
        let mut turns: Vec<(Turn, Range<usize>)> = Vec::new();
        let mut deferred: Vec<(usize, Turn, Range<usize>)> = Vec::new();
        let mut end = 0;
        for piece in pieces {
            let start = end;
            end += piece.rows.len();
            match turns.last_mut() {
                Some((turn, rows)) if *turn == piece.turn => rows.end = end,
                _ => turns.push((piece.turn, start..end)),
            }
            let circles = &self.together.deferred;
            let circle = circles.partition_point(|it| it.rows.end <= piece.position);
            let is_in = |it: &Inseparable| it.rows.contains(&piece.position);
            if circles.get(circle).is_some_and(is_in) {
                match deferred.last_mut() {
                    Some((of, turn, rows)) if (*of, *turn) == (circle, piece.turn) => {
                        rows.end = end;
                    }
                    _ => deferred.push((circle, piece.turn, start..end)),
                }
            }
            plan.push_stretch(Stretch {
                rows: piece.rows,
                ..self.stretches[piece.stretch].clone()
            });
        }
        let is_tenant = |turn: &Turn| matches!(turn, Turn::Tenant(_));
        turns.retain(|(turn, _)| is_tenant(turn));
        plan.together.tenants = turns.into_iter().map(|(_, rows)| rows).collect();
        let deferred = deferred.into_iter().map(|(circle, _, rows)| Inseparable {
            rows,
            tables: self.together.deferred[circle].tables.clone(),
        });
        plan.together.deferred = deferred.collect();
        Ok(plan)
    }

    /// Cuts the plan into the rows of one tenant each, or of none.
    fn pieces<S>(&self, tenants: &Tenants<'_>, rows: &PendingRows<S>) -> Vec<Piece>
    where
        S: RowSink + 'static,
    {
        let mut numbers = HashMap::new();
        let mut pieces: Vec<Piece> = Vec::new();
        for (number, stretch) in self.stretches.iter().enumerate() {
            let mut turn = |key: &KeyBytes| match tenants.tenant(stretch.table, key) {
                Some(tenant) => {
                    let next = numbers.len();
                    Turn::Tenant(*numbers.entry(tenant).or_insert(next))
                }
                None if matches!(stretch.action, Action::Unlink { .. } | Action::Delete) => {
                    Turn::After
                }
                None => Turn::Before,
            };
            let chunk = Chunk {
                action: stretch.action,
                table: stretch.table,
                number: stretch.number,
                rows: stretch.rows.clone(),
            };
            let keys = rows.keys_of(&chunk);
            for ((row, position), (_, key)) in stretch.rows.clone().zip(stretch.first..).zip(keys) {
                let turn = turn(&key);
                match pieces.last_mut() {
                    Some(last) if (last.stretch, last.turn) == (number, turn) => {
                        last.rows.end = row + 1;
                    }
                    _ => pieces.push(Piece {
                        turn,
                        rows: row..row + 1,
                        position,
                        stretch: number,
                    }),
                }
            }
        }
        let mut by_key: Vec<(KeyBytes, usize)> = numbers.into_iter().collect();
        by_key.sort_unstable_by(|(one, _), (next, _)| one.as_bytes().cmp(next.as_bytes()));
        let mut ranks = vec![0; by_key.len()];
        for (rank, (_, number)) in by_key.into_iter().enumerate() {
            ranks[number] = rank;
        }
        for piece in &mut pieces {
            if let Turn::Tenant(number) = &mut piece.turn {
                *number = ranks[*number];
            }
        }
        pieces
    }

    /// Returns the part of the plan that one transaction sends: these rows, counted in the order of sending.
    pub(crate) fn transaction(&self, rows: Range<usize>) -> Self {
        let mut part = self.part(rows);
        if self.together.tenants.is_empty() {
            return part;
        }
        let mut stretches = mem::take(&mut part.stretches);
        stretches.sort_by_key(|it| (it.turn, it.rows.start));
        let mut joined: Vec<Stretch> = Vec::new();
        for stretch in stretches {
            match joined.last_mut() {
                Some(last) if (last.turn, last.rows.end) == (stretch.turn, stretch.rows.start) => {
                    last.rows.end = stretch.rows.end;
                }
                _ => joined.push(stretch),
            }
        }
        joined.into_iter().for_each(|it| part.push_stretch(it));
        part
    }

    /// Returns the end of the last of so many tenants, the first of which has this row or begins behind it; `None` if there
    /// are fewer.
    pub(crate) fn end_of_tenants(&self, row: usize, tenants: usize) -> Option<usize> {
        let first = self.together.tenants.partition_point(|it| it.end <= row);
        let last = self
            .together
            .tenants
            .get(first.checked_add(tenants)?.checked_sub(1)?)?;
        Some(last.end)
    }

    /// Returns the rows of the tenant that would be in two transactions if one ended before this row.
    pub(crate) fn tenant_across(&self, row: usize) -> Option<Range<usize>> {
        let number = self.together.tenants.partition_point(|it| it.end <= row);
        let tenant = self.together.tenants.get(number)?;
        (tenant.start < row).then(|| tenant.clone())
    }
}

/// Knows which tables have a tenant in their keys.
struct Tenants<'a> {
    tables: &'a [Table],
    /// How many bytes of a key are the tenant, for each table whose keys have one.
    bytes: Vec<Option<usize>>,
}

impl<'a> Tenants<'a> {
    fn of(tables: &'a [Table]) -> Self {
        // Room may have been made for rows that never came.
        let has_rows = |table: &&Table| table.all_rows() > 0;
        let several = |table: &Table| table.key_columns.len() > 1;
        let by_first = |child: &Table, table: &Table| {
            let mut to = child.parents.iter();
            to.any(|it| it.is(table.entity, table.key) && it.column() == child.key_columns[0])
        };
        let may_have = |table: &Table| {
            let mut children = tables.iter().filter(has_rows).filter(|it| several(it));
            let is_of = |child: &Table| {
                child.leading == table.key && (!table.is_raw || by_first(child, table))
            };
            several(table) || children.any(is_of)
        };
        let has = |table: &Table| has_rows(&table) && may_have(table);
        let mut has: Vec<bool> = tables.iter().map(has).collect();
        // A table of the tenants themselves has none if rows refer to it by another column than their tenant.
        let is_referred_to = |table: &Table, has: &[bool]| {
            let children = tables.iter().zip(has).filter(|(it, _)| has_rows(it));
            let mut references = children.flat_map(|(child, has)| {
                let to = child.parents.iter();
                let to = to.filter(|it| it.is(table.entity, table.key));
                to.map(move |it| *has && it.column() == child.key_columns[0])
            });
            references.any(|by_tenant| !by_tenant)
        };
        let loses = |has: &[bool]| {
            let mut tables = tables.iter().zip(has);
            tables.position(|(it, had)| *had && !several(it) && is_referred_to(it, has))
        };
        while let Some(none) = loses(&has) {
            has[none] = false;
        }
        let bytes = tables.iter().zip(has);
        Self {
            tables,
            bytes: bytes
                .map(|(table, has)| has.then_some(table.leading_bytes))
                .collect(),
        }
    }

    fn tenant(&self, table: usize, key: &KeyBytes) -> Option<KeyBytes> {
        KeyBytes::from_slice(key.as_bytes().get(..self.bytes[table]?)?)
    }

    /// Refuses rows that refer to rows which would be sent later.
    fn check<S: RowSink + 'static>(&self, rows: &PendingRows<S>) -> Result<(), Error> {
        let refused = |what: String| {
            Err(Error::plan(format!(
                "{what}: chunks that keep tenants together have one tenant after the other, so the first may be sent before \
                 the second; flush `in_chunks` without `with_tenants`"
            )))
        };
        // Who refers to another tenant's row refers mostly to one that is not written here.
        let mut written: HashMap<usize, HashSet<KeyBytes>> = HashMap::new();
        let children = self.tables.iter().enumerate();
        for (position, child) in children.filter(|(_, it)| it.all_rows() > 0) {
            let parents = self.tables.iter().enumerate();
            let mut parents =
                parents.filter(|(it, parent)| self.bytes[*it].is_some() && child.refers_to(parent));
            if self.bytes[position].is_none() {
                if let Some((_, parent)) = parents.next() {
                    return refused(format!(
                        "rows of {} have no tenant in their key, and refer to {}, whose rows have one",
                        child.name(),
                        parent.name()
                    ));
                }
                continue;
            }
            let parents: Vec<_> = parents.collect();
            let mut others = Vec::new();
            rows.links(position, &mut |key, parent, of| {
                let parent = &child.parents[parent];
                for (to, table) in &parents {
                    if parent.is(table.entity, table.key)
                        && self.tenant(position, &key) != self.tenant(*to, &of)
                    {
                        others.push((*to, of));
                    }
                }
            });
            for (parent, key) in others {
                let keys = written
                    .entry(parent)
                    .or_insert_with(|| rows.written_keys(parent));
                if keys.contains(&key) {
                    return refused(format!(
                        "a row of {} refers to a row of {} of another tenant: their keys begin with other values",
                        child.name(),
                        self.tables[parent].name()
                    ));
                }
            }
        }
        Ok(())
    }
}
