//! Random graphs, executed on a database that checks each foreign key.

use std::collections::{BTreeSet, HashMap};

use super::*;
use ordid_core::entropy::{Entropy, SeededEntropy};

/// A database that checks foreign keys at once, row by row, as the strictest does; or at the end.
#[derive(Debug, Clone)]
struct Database {
    links: Vec<Vec<Link>>,
    rows: Vec<HashMap<u128, Vec<Option<u128>>>>,
    /// How many rows refer to a row by constraints that are checked at once, and its own apart.
    referred: HashMap<(usize, u128), isize>,
}

impl Database {
    fn of(links: &[Vec<Link>]) -> Self {
        Self {
            links: links.to_vec(),
            rows: vec![HashMap::new(); links.len()],
            referred: HashMap::new(),
        }
    }

    fn count(&mut self, table: usize, key: u128, up: &[Option<u128>], by: isize) {
        for (link, up) in self.links[table].iter().zip(up) {
            if let Some(up) = up
                && (link.target, *up) != (table, key)
            {
                *self.referred.entry((link.target, *up)).or_default() += by;
            }
        }
    }

    /// Writes a row over the one that is there.
    fn put(&mut self, table: usize, row: &Row) {
        if let Some(before) = self.rows[table].insert(row.key, row.up.clone()) {
            self.count(table, row.key, &before, -1);
        }
        self.count(table, row.key, &row.up, 1);
    }

    /// Asserts that what a row refers to is there, but for constraints that are deferred.
    fn check(&self, table: usize, key: u128, defers: bool) {
        for (link, up) in self.links[table].iter().zip(&self.rows[table][&key]) {
            if let Some(up) = up
                && !(defers && link.deferrable)
            {
                let is_there = self.rows[link.target].contains_key(up);
                assert!(is_there, "t{table} {key} before its parent {up}");
            }
        }
    }

    /// Executes a plan, and returns how many references were fixed up or unlinked.
    fn execute(&mut self, plan: &Plan, given: &[Given], engine: &EngineProfile) -> usize {
        let defers = plan.defers();
        let mut cuts = 0;
        for chunk in plan.chunks() {
            let (table, of) = (chunk.table, &given[chunk.table]);
            assert!(!chunk.rows.is_empty() && chunk.rows.len() <= 1000);
            match chunk.action {
                Action::Insert => {
                    for position in chunk.rows {
                        let mut row = of.inserts[position].clone();
                        for (parent, rows) in &of.fix_ups {
                            if rows.contains(&position) {
                                assert!(self.links[table][*parent].nullable);
                                assert!(row.up[*parent].take().is_some());
                            }
                        }
                        assert!(!self.rows[table].contains_key(&row.key), "a row twice");
                        self.put(table, &row);
                        self.check(table, row.key, defers);
                    }
                }
                Action::FixUp { parent } => {
                    for position in chunk.rows {
                        let row = &of.inserts[of.fix_ups[&parent][position]];
                        let mut up = self.rows[table][&row.key].clone();
                        assert!(up[parent].is_none(), "a reference twice");
                        up[parent] = row.up[parent];
                        cuts += 1;
                        let key = row.key;
                        self.put(table, &Row { key, up });
                        self.check(table, key, defers);
                    }
                }
                Action::UpdateColumns { .. } | Action::Upsert { .. } => {
                    unreachable!("these rows are updated whole")
                }
                Action::Update => {
                    for row in &of.updates[chunk.rows] {
                        assert!(self.rows[table].contains_key(&row.key));
                        self.put(table, row);
                        self.check(table, row.key, defers);
                    }
                }
                Action::Unlink { parent } => {
                    for position in chunk.rows {
                        let row = &of.deletes[of.unlinks[&parent][position]];
                        assert!(self.links[table][parent].nullable);
                        let mut up = self.rows[table][&row.key].clone();
                        assert!(up[parent].take().is_some());
                        cuts += 1;
                        self.put(table, &Row { key: row.key, up });
                    }
                }
                Action::Delete => {
                    let mut rows = of.deletes[chunk.rows].to_vec();
                    match engine.tree_deletes {
                        TreeDeletes::OneDepth => self.delete(table, &rows, defers, true),
                        // The statement says so.
                        TreeDeletes::ByKey => {
                            rows.sort_by_key(|row| std::cmp::Reverse(row.key));
                            for row in rows {
                                self.delete(table, &[row], defers, false);
                            }
                        }
                        TreeDeletes::Any => self.delete_together(table, &rows, defers),
                    }
                }
            }
        }
        for (table, rows) in self.rows.iter().enumerate() {
            for key in rows.keys() {
                self.check(table, *key, false);
            }
        }
        cuts
    }

    /// Deletes the rows of one statement, and checks then.
    fn delete_together(&mut self, table: usize, rows: &[Row], defers: bool) {
        for row in rows {
            let before = self.rows[table].remove(&row.key).expect("each once");
            self.count(table, row.key, &before, -1);
        }
        for row in rows {
            let is_referred = self
                .referred
                .get(&(table, row.key))
                .is_some_and(|it| *it > 0);
            let deferred = |link: &Link| defers && link.deferrable;
            let may_wait = self.links.iter().flatten().any(deferred);
            assert!(
                !is_referred || may_wait,
                "t{table} {} before its children",
                row.key
            );
        }
    }

    /// Deletes the rows of one statement, in any order: so none may refer to another.
    fn delete(&mut self, table: usize, rows: &[Row], defers: bool, deletes_own: bool) {
        let deferred = |link: &Link| defers && link.deferrable;
        for row in rows {
            let up = &self.rows[table][&row.key];
            let own = |(link, up): (&Link, &Option<u128>)| {
                !deferred(link) && (link.target, *up) == (table, Some(row.key))
            };
            assert!(deletes_own || !self.links[table].iter().zip(up).any(own));
            if self
                .referred
                .get(&(table, row.key))
                .is_none_or(|count| *count == 0)
            {
                continue;
            }
            // By constraints that wait, perhaps.
            for (child, rows) in self.rows.iter().enumerate() {
                for (key, up) in rows {
                    for (link, up) in self.links[child].iter().zip(up) {
                        let refers = (link.target, *up) == (table, Some(row.key));
                        assert!(
                            !refers || deferred(link) || (child, *key) == (table, row.key),
                            "t{table} {} before its child t{child} {key}",
                            row.key
                        );
                    }
                }
            }
        }
        for row in rows {
            let before = self.rows[table].remove(&row.key).expect("each once");
            self.count(table, row.key, &before, -1);
        }
    }
}

/// Whether rows refer to each other in a circle by references that `counts`, but for those to
/// themselves.
fn has_circle(
    links: &[Vec<Link>],
    rows: &HashMap<(usize, u128), Vec<Option<u128>>>,
    counts: impl Fn(usize, u128, usize) -> bool,
) -> bool {
    // Takes away rows without a parent until none is left, or none goes.
    let mut children: HashMap<(usize, u128), Vec<(usize, u128)>> = HashMap::new();
    let mut waits: HashMap<(usize, u128), usize> = rows.keys().map(|row| (*row, 0)).collect();
    for (&(table, key), up) in rows {
        for (column, up) in up.iter().enumerate() {
            let Some(up) = up else { continue };
            let parent = (links[table][column].target, *up);
            if parent != (table, key) && rows.contains_key(&parent) && counts(table, key, column) {
                children.entry(parent).or_default().push((table, key));
                *waits.get_mut(&(table, key)).unwrap() += 1;
            }
        }
    }
    let free = waits.iter().filter(|(_, waits)| **waits == 0);
    let mut free: Vec<_> = free.map(|(row, _)| *row).collect();
    let mut gone = 0;
    while let Some(row) = free.pop() {
        gone += 1;
        for child in children.remove(&row).unwrap_or_default() {
            let waits = waits.get_mut(&child).unwrap();
            *waits -= 1;
            if *waits == 0 {
                free.push(child);
            }
        }
    }
    gone < rows.len()
}

/// What a run over random graphs saw: a test in which one of them is zero has shown nothing of it.
#[derive(Debug, Default)]
struct Seen {
    inserted: usize,
    refused: usize,
    without_circle: usize,
    fixed_up: usize,
    deferred: usize,
    deleted: usize,
    unlinked: usize,
    updated: usize,
}

struct Random(SeededEntropy);

impl Random {
    fn below(&self, bound: usize) -> usize {
        let random = self.0.next_u64().unwrap();
        usize::try_from(random % u64::try_from(bound).unwrap()).unwrap()
    }

    fn one_in(&self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn key(&self) -> u128 {
        u128::from(self.0.next_u64().unwrap()) << 64 | u128::from(self.0.next_u64().unwrap())
    }

    fn links(&self) -> Vec<Vec<Link>> {
        let tables = 1 + self.below(1 + self.below(NUMBERED.len()));
        let rarely_null = 1 + self.below(4);
        let deferrable = 1 + self.below(8);
        (0..tables)
            .map(|table| {
                (0..self.below(NAMES.len() + 1))
                    .map(|_| Link {
                        target: match self.below(4) {
                            0 => table,
                            _ => self.below(tables),
                        },
                        nullable: !self.one_in(rarely_null + 1),
                        deferrable: self.one_in(deferrable),
                    })
                    .collect()
            })
            .collect()
    }

    /// Makes rows that refer to each other and to rows of the database, and adds to the database the
    /// rows that it must have.
    fn rows(&self, links: &[Vec<Link>], database: &mut Database) -> Vec<(usize, Row)> {
        let count = self.below(1 + self.below(500));
        let mut made: Vec<(usize, u128)> = Vec::new();
        let mut of_table: Vec<Vec<u128>> = vec![Vec::new(); links.len()];
        for _ in 0..count {
            let (table, key) = (self.below(links.len()), self.key());
            made.push((table, key));
            of_table[table].push(key);
        }
        // References that lead back in this order make no circle.
        let wild = self.below(30);
        let mut before: Vec<usize> = vec![0; links.len()];
        made.iter()
            .map(|&(table, key)| {
                let up = links[table].iter().map(|link| {
                    if link.nullable && self.one_in(3) {
                        return None;
                    }
                    let known = &of_table[link.target];
                    let any = if link.nullable {
                        self.below(30) < wild
                    } else {
                        self.below(1000) < wild
                    };
                    let bound = if any {
                        known.len()
                    } else {
                        before[link.target]
                    };
                    if bound > 0 && !self.one_in(8) {
                        return Some(known[self.below(bound)]);
                    }
                    Some(database.some(link.target, self))
                });
                let up = up.collect();
                before[table] += 1;
                (table, Row { key, up })
            })
            .collect()
    }
}

impl Database {
    /// Returns a row that is there, and that refers to nothing but itself.
    fn some(&mut self, table: usize, random: &Random) -> u128 {
        let key = u128::try_from(random.below(5)).unwrap();
        let own = |link: &Link| (link.target == table).then_some(key);
        if !self.rows[table].contains_key(&key) {
            let up = self.links[table].clone();
            // What cannot be NULL would need a parent as well; a stand-in that is checked by nobody.
            let up = up.iter().map(own).collect();
            self.put(table, &Row { key, up });
        }
        key
    }
}

/// Plans a random graph, executes it on a database that checks, and changes and deletes it again.
fn round<D: FlushDialect>(seed: u64, seen: &mut Seen) {
    let random = Random(SeededEntropy::new(seed));
    let links = random.links();
    let mut database = Database::of(&links);
    let rows = random.rows(&links, &mut database);
    let by_key = |rows: &[(usize, Row)]| -> HashMap<(usize, u128), Vec<Option<u128>>> {
        let rows = rows.iter();
        rows.map(|(table, row)| ((*table, row.key), row.up.clone()))
            .collect()
    };
    let all = by_key(&rows);
    let deferred = |table: usize, column: usize| D::DEFERS && links[table][column].deferrable;
    let is_hard =
        |table: usize, _, column: usize| !links[table][column].nullable && !deferred(table, column);
    let is_refused = has_circle(&links, &all, is_hard);
    let is_free = !has_circle(&links, &all, |_, _, _| true);

    let mut given = schema(&links);
    for (table, row) in &rows {
        given[*table].inserts.push(row.clone());
    }
    let before = given.clone();
    let plan = match planned::<D>(&mut given) {
        Ok(plan) => plan,
        Err(error) => {
            assert!(is_refused, "{error}");
            assert!(error.is_plan() && error.to_string().contains("in a circle"));
            seen.refused += 1;
            return;
        }
    };
    assert!(!is_refused, "a circle that cannot be broken was planned");
    let empty = database.clone();
    let fixed_up = database.execute(&plan, &given, &D::PROFILE);
    for (table, row) in &rows {
        assert_eq!(database.rows[*table].get(&row.key), Some(&row.up));
    }
    let there: usize = database.rows.iter().map(HashMap::len).sum();
    let there_before: usize = empty.rows.iter().map(HashMap::len).sum();
    assert_eq!(there, there_before + rows.len());
    seen.inserted += 1;
    seen.fixed_up += fixed_up;
    seen.deferred += usize::from(plan.defers());
    if is_free {
        assert!(fixed_up == 0 && !plan.defers(), "no circle, but {fixed_up}");
        seen.without_circle += 1;
    }
    // The same rows again, the same plan; also where tables and rows come the other way round.
    let mut again = before.clone();
    assert_eq!(planned::<D>(&mut again).unwrap(), plan);
    let mut turned: Vec<Given> = before.into_iter().rev().collect();
    for given in &mut turned {
        given.inserts.reverse();
    }
    let by_name = |plan: &Plan, given: &[Given]| -> Vec<(Action, &str, usize, Range<usize>)> {
        plan.chunks()
            .map(|it| (it.action, given[it.table].table.name, it.number, it.rows))
            .collect()
    };
    let plan_turned = planned::<D>(&mut turned).unwrap();
    assert_eq!(by_name(&plan_turned, &turned), by_name(&plan, &given));
    turned.reverse();
    for again in [again, turned] {
        assert!(again.iter().zip(&given).all(|(again, given)| {
            again.inserts == given.inserts && again.fix_ups == given.fix_ups
        }));
    }
    // Each reference that was fixed up closes a circle of those that were not.
    let mut cut: Vec<(usize, u128, usize)> = Vec::new();
    for (table, given) in given.iter().enumerate() {
        for (parent, rows) in &given.fix_ups {
            cut.extend(
                rows.iter()
                    .map(|row| (table, given.inserts[*row].key, *parent)),
            );
        }
    }
    if !plan.defers() && cut.len() <= 8 {
        for one in &cut {
            let kept = |table, key, column| {
                let this = (table, key, column);
                this == *one || !cut.contains(&this)
            };
            assert!(has_circle(&links, &all, kept), "{one:?} was cut needlessly");
        }
    }

    changed::<D>(&random, &links, &rows, database, seen);
}

/// Deletes some of the rows that are there and all that refer to them, changes others, and inserts
/// new ones, in one plan.
fn changed<D: FlushDialect>(
    random: &Random,
    links: &[Vec<Link>],
    rows: &[(usize, Row)],
    mut database: Database,
    seen: &mut Seen,
) {
    let mut deleted: BTreeSet<(usize, u128)> = BTreeSet::new();
    let spared = 1 + random.below(20);
    deleted.extend(
        rows.iter()
            .filter(|_| random.one_in(spared))
            .map(|(table, row)| (*table, row.key)),
    );
    loop {
        let count = deleted.len();
        for (table, row) in rows {
            let mut up = links[*table].iter().zip(&row.up);
            if up.any(|(link, up)| up.is_some_and(|up| deleted.contains(&(link.target, up)))) {
                deleted.insert((*table, row.key));
            }
        }
        if deleted.len() == count {
            break;
        }
    }
    let new = random.rows(links, &mut database);
    let mut given = schema(links);
    for (table, row) in &new {
        given[*table].inserts.push(row.clone());
    }
    let mut changed = Vec::new();
    for (table, row) in rows {
        if deleted.contains(&(*table, row.key)) {
            given[*table].deletes.push(row.clone());
        } else if random.one_in(4) {
            let mut row = row.clone();
            for (link, up) in links[*table].iter().zip(&mut row.up) {
                let parents = &given[link.target].inserts;
                if !parents.is_empty() && random.one_in(2) {
                    *up = Some(parents[random.below(parents.len())].key);
                }
            }
            given[*table].updates.push(row.clone());
            changed.push((*table, row));
        }
    }
    let plan = match planned::<D>(&mut given) {
        Ok(plan) => plan,
        // Whether it must be is known of inserts; of rows that refer to themselves it depends.
        Err(error) => {
            let own = error.to_string().contains("refers to itself");
            assert!(own && !D::DELETES_ROWS_OF_THEMSELVES || error.to_string().contains("circle"));
            return;
        }
    };
    let cuts = database.execute(&plan, &given, &D::PROFILE);
    let fixed_up: usize = given
        .iter()
        .flat_map(|given| given.fix_ups.values())
        .map(Vec::len)
        .sum();
    for (table, row) in new.iter().chain(&changed) {
        assert_eq!(database.rows[*table].get(&row.key), Some(&row.up));
    }
    for (table, key) in &deleted {
        assert!(!database.rows[*table].contains_key(key));
    }
    seen.updated += changed.len();
    seen.deleted += deleted.len();
    seen.unlinked += cuts - fixed_up;
}

/// A chain whose keys are in no order, and a second reference to any row of it, or to the row itself.
#[test]
fn deep_trees_are_deleted_without_breaking_a_foreign_key() {
    const ROWS: u128 = 210;
    let key = |row: u128| row * 73 % 211 + 1;
    for seed in 0..20 {
        let links = vec![vec![to(0), to(0)]];
        let mut given = schema(&links);
        let mut database = Database::of(&links);
        for number in 0..ROWS {
            let parent = if number == 0 { 0 } else { key(number - 1) };
            let other = match (number * 31 + seed * 17) % (ROWS + 5) {
                it if it < ROWS => key(it),
                _ => 0,
            };
            let row = row(key(number), &[parent, other]);
            database.put(0, &row);
            given[0].deletes.push(row);
        }
        let plan = planned::<MySql>(&mut given).unwrap();
        assert_eq!(
            plan.chunks().count(),
            3,
            "two columns are cut, and the rows go"
        );
        database.execute(&plan, &given, &MySql::PROFILE);
        assert!(database.rows[0].is_empty());
    }
}

/// 10,000 graphs under `cargo xtask soak`, and fewer where a minute is long.
#[test]
fn any_graph_of_rows_is_written_without_breaking_a_foreign_key() {
    let soak = std::env::var_os("ORDID_TEST_SOAK").is_some_and(|value| value == "1");
    let graphs = if soak { 5_000 } else { 250 };
    let mut seen = [Seen::default(), Seen::default(), Seen::default()];
    for seed in 0..graphs {
        round::<Postgres>(seed, &mut seen[0]);
        round::<MySql>(graphs + seed, &mut seen[1]);
        round::<Sqlite>(2 * graphs + seed, &mut seen[2]);
    }
    let graphs = usize::try_from(graphs).unwrap();
    for seen in &seen {
        assert!(
            seen.inserted > graphs / 2 && seen.refused > graphs / 100,
            "{seen:?}"
        );
        assert!(
            seen.without_circle > graphs / 10 && seen.fixed_up > graphs / 5,
            "{seen:?}"
        );
        assert!(
            seen.deleted > graphs && seen.unlinked > graphs / 10,
            "{seen:?}"
        );
        assert!(seen.updated > graphs, "{seen:?}");
    }
    assert!(
        seen[0].deferred > graphs / 20 && seen[1].deferred == 0,
        "{seen:?}"
    );
}

#[test]
fn a_ring_is_cut_where_any_other_circle_would_be() {
    let random = Random(SeededEntropy::new(7));
    let (mut cut, mut unbreakable) = (0, 0);
    for _ in 0..10_000 {
        let links: Vec<Link> = (0..3)
            .map(|_| Link {
                nullable: random.one_in(3),
                ..to(0)
            })
            .collect();
        let given = schema(&[links]);
        let tables = [given[0].table()];
        // The rows in any order, each of which refers to the next one by any column.
        let length = 2 + random.below(6);
        let mut way: Vec<u32> = (0..number(length)).collect();
        for last in (1..length).rev() {
            way.swap(last, random.below(last + 1));
        }
        let edges = (0..length).map(|at| Edge {
            child: way[at],
            parent: way[(at + 1) % length],
            column: number(random.below(3)),
        });
        let nodes = Nodes {
            tables: vec![(0, 0)],
            columns: (0..3).map(|parent| Column { table: 0, parent }).collect(),
            graph: Graph {
                nodes: length,
                edges: edges.collect(),
            },
        };
        let circle = Circle {
            nodes: (0..number(length)).collect(),
            edges: (0..number(length)).collect(),
        };
        let references = nodes.references(&circle, &tables);
        let found = nodes.break_ring(&circle, &references);
        match nodes.break_any(&circle, &references) {
            Ok(expected) => {
                assert_eq!(Vec::from_iter(found), expected, "{nodes:?}");
                cut += 1;
            }
            Err(_) => {
                assert_eq!(found, None);
                unbreakable += 1;
            }
        }
    }
    assert!(cut > 2_000 && unbreakable > 500, "{cut}, {unbreakable}");
}
