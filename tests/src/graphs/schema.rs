//! Fifty tables of each kind, and what refers to what: an entity's parents are constants of its type,
//! so this is decided when it is compiled. Which foreign keys are declared is drawn.

use std::fmt::Write as _;

use ordid::{KeyType, entity::Parent, storage::Dialect as _, uuid::Uuid};

use super::{Engine, GraphWork, draw::Random};

/// How many tables there are of each kind.
pub const TABLES: usize = 50;

/// The columns of each table that may be foreign keys. The key's column, `id`, stands between `b` and `c`.
pub const UP: [&str; 4] = ["a", "b", "c", "d"];

/// The foreign keys of a row.
pub type Keys = [Option<Uuid>; UP.len()];

/// The key of a row that is in each table before any other, and refers to those of other tables:
/// what cannot be NULL and closes no circle refers to it.
pub(super) const ANCHOR: Uuid = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000);

/// Tables that refer to themselves and to tables before them, and close no circle.
const FOREST: usize = 0;
/// Tables that refer to any others, mostly by what can be NULL.
const KNOT: usize = 1;
/// Circles of up to four tables, of which half of the foreign keys cannot be NULL.
const RINGS: usize = 2;
pub(super) const KINDS: usize = 3;

/// A foreign key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) target: usize,
    pub(super) nullable: bool,
    pub(super) deferrable: bool,
    /// Whether this schema has it; otherwise its column is one that is NULL.
    pub(super) declared: bool,
}

impl Link {
    /// Whether it is checked at once and must be there: no circle can be broken here.
    pub(super) const fn is_hard(self) -> bool {
        !self.nullable && !self.deferrable
    }
}

/// A row of a table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The table's number.
    pub table: usize,
    /// The key.
    pub id: Uuid,
    /// The foreign keys.
    pub up: Keys,
}

/// A library's entity types: one for each table of each kind.
pub trait Entities: 'static {
    /// The type of all keys.
    type Key: KeyType<Raw = Uuid>;

    /// The entity of a table.
    type Of<const KIND: usize, const TABLE: usize>: 'static;
}

/// Returns the foreign keys of a table's entity.
pub const fn parents<E: Entities, const KIND: usize, const TABLE: usize>() -> [Parent; UP.len()] {
    [
        parent::<E, KIND>(TABLE, 0),
        parent::<E, KIND>(TABLE, 1),
        parent::<E, KIND>(TABLE, 2),
        parent::<E, KIND>(TABLE, 3),
    ]
}

/// Returns a key as one of the library's type.
///
/// # Panics
///
/// If that is of a scheme that the key is not of.
pub fn typed<K: KeyType<Raw = Uuid>>(key: Uuid) -> K {
    K::from_raw(key).expect("a UUID of version 7")
}

/// Defines a row as an entity of its table's type, for libraries that take the fields of an entity one by
/// one: `struct Numbered of Entities`.
#[macro_export]
macro_rules! numbered {
    ($(#[$doc:meta])* struct $numbered:ident of $entities:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $numbered<const KIND: usize, const TABLE: usize>(pub $crate::graphs::Row);

        impl<const KIND: usize, const TABLE: usize> ::ordid::OrderedKey
            for $numbered<KIND, TABLE>
        {
            type Field = <$entities as $crate::graphs::Entities>::Key;
            const SCHEMA: Option<&'static str> = None;
            const TABLE: &'static str = $crate::graphs::NAMES[TABLE];
            const KEY_COLUMN: &'static str = "id";
            const COLUMNS: &'static [&'static str] = &["a", "b", "id", "c", "d"];
            const PARENTS: &'static [::ordid::entity::Parent] =
                &$crate::graphs::parents::<$entities, KIND, TABLE>();

            fn key(&self) -> Option<Self::Field> {
                Some($crate::graphs::typed(self.0.id))
            }

            fn assign_key(&mut self, key: Self::Field) {
                self.0.id = ::ordid::KeyType::to_raw(key);
            }

            fn parents(&self, visit: &mut dyn FnMut(usize, ::ordid::key::KeyBytes)) {
                for (column, up) in self.0.up.into_iter().enumerate() {
                    up.into_iter()
                        .for_each(|up| visit(column, ::ordid::key::KeyBytes::of(up)));
                }
            }
        }

        impl<S, const KIND: usize, const TABLE: usize> ::ordid::Fields<S>
            for $numbered<KIND, TABLE>
        where
            S: ::ordid::Sink<<$entities as $crate::graphs::Entities>::Key>
                + ::ordid::Sink<Option<<$entities as $crate::graphs::Entities>::Key>>,
        {
            fn write(&self, sink: &mut S) {
                let [a, b, c, d] = self.0.up.map(|up| up.map($crate::graphs::typed));
                sink.put(&a);
                sink.put(&b);
                let id: <$entities as $crate::graphs::Entities>::Key =
                    $crate::graphs::typed(self.0.id);
                sink.put(&id);
                sink.put(&c);
                sink.put(&d);
            }

            fn write_key(key: ::ordid::KeyOf<Self>, sink: &mut S) {
                sink.put(&key);
            }
        }
    };
}

/// What can be done with rows of a table.
pub(super) struct Table<W> {
    pub(super) add: fn(&mut W, Row),
    pub(super) delete: fn(&mut W, Row),
}

macro_rules! tables {
    ($($number:literal)*) => {
        /// The tables' names.
        pub const NAMES: [&str; TABLES] = [$(concat!("t", $number)),*];

        const fn parent<E: Entities, const KIND: usize>(table: usize, column: usize) -> Parent {
            let link = link(KIND, table, column);
            let parent = match (link.target, link.nullable) {
                $(
                    ($number, true) =>
                        Parent::by_entity::<Option<E::Key>, E::Of<KIND, $number>>(UP[column]),
                    ($number, false) =>
                        Parent::by_entity::<E::Key, E::Of<KIND, $number>>(UP[column]),
                )*
                _ => panic!("no such table"),
            };
            if link.deferrable { parent.deferrable() } else { parent }
        }

        pub(super) fn tables<W: GraphWork, const KIND: usize>() -> [Table<W>; TABLES] {
            [$(Table { add: W::add::<KIND, $number>, delete: W::delete::<KIND, $number> }),*]
        }
    };
}

tables! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24
    25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49
}

/// `SplitMix64`'s mixing of bits.
pub(super) const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A number below another, of a random one.
#[expect(clippy::cast_possible_truncation, reason = "it is below a `usize`")]
pub(super) const fn below(bound: usize, random: u64) -> usize {
    (random % bound as u64) as usize
}

/// The table at a place of the order in which tables come before and after each other: that of their
/// names is another. 7 has no factor in common with 50, and 43 takes it back.
const fn table_at(place: usize) -> usize {
    place * 7 % TABLES
}

const fn place_of(table: usize) -> usize {
    table * 43 % TABLES
}

/// The foreign key of a table's column.
const fn link(kind: usize, table: usize, column: usize) -> Link {
    let random = mix(mix((kind * TABLES + table) as u64 + 1) ^ column as u64);
    let place = place_of(table);
    let (before, after, any) = (
        below(place + 1, random >> 8),
        place + below(TABLES - place, random >> 8),
        below(TABLES, random >> 8),
    );
    let ring = place / 4 * 4;
    let in_ring = ring
        + below(
            if ring + 4 > TABLES { TABLES - ring } else { 4 },
            random >> 8,
        );
    let to = match (kind, column) {
        (FOREST, 0) if random.is_multiple_of(2) => place,
        (FOREST, _) | (KNOT | RINGS, 1) | (RINGS, 3) => before,
        (KNOT, 0) if random.is_multiple_of(2) => place,
        (KNOT, 2) => after,
        (KNOT, _) => any,
        (RINGS, _) => in_ring,
        _ => panic!("no such kind"),
    };
    let [null, wait] = [below(8, random >> 16), below(16, random >> 24)];
    let (nullable, deferrable) = match kind {
        FOREST => (null < 4, wait < 1),
        KNOT => (null < 6, wait < 1),
        _ => (null < 4, wait < 4),
    };
    Link {
        target: table_at(to),
        nullable,
        deferrable,
        declared: true,
    }
}

/// Tables as a database has them.
#[derive(Debug)]
pub struct Schema {
    pub(super) kind: usize,
    pub(super) links: Vec<[Link; UP.len()]>,
    /// Whether triggers look at each row by itself, too, where the database has them: the constraints of
    /// PostgreSQL and SQLite look at what a statement leaves behind.
    pub(super) by_row: bool,
    /// Whether the database deletes a row that refers to itself by what cannot be NULL.
    pub(super) deletes_own: bool,
}

impl Schema {
    /// Draws the schema of a number, as this database can have it.
    pub(super) fn draw<DB: Engine>(number: u64) -> Self {
        let random = Random::new(mix(!number));
        let kind = below(KINDS, number);
        let often = 2 + random.below(8);
        let links = (0..TABLES).map(|table| {
            std::array::from_fn(|column| {
                let link = link(kind, table, column);
                Link {
                    declared: !random.one_in(often),
                    deferrable: link.deferrable && DB::Dialect::DEFERS,
                    ..link
                }
            })
        });
        Self {
            kind,
            links: links.collect(),
            by_row: random.one_in(2),
            deletes_own: DB::Dialect::DELETES_ROWS_OF_THEMSELVES,
        }
    }

    /// Returns the foreign keys of all tables: the table, the column's name, and what it refers to.
    fn declared(&self) -> impl Iterator<Item = (usize, &'static str, Link)> {
        self.links.iter().enumerate().flat_map(|(table, links)| {
            let links = UP.into_iter().zip(links);
            let links = links.filter(|(_, link)| link.declared);
            links.map(move |(column, link)| (table, column, *link))
        })
    }

    /// Returns the rows that are there before any other.
    pub(super) fn anchors(&self) -> Vec<Row> {
        let links = self.links.iter().enumerate();
        let row = |(table, links): (usize, &[Link; UP.len()])| Row {
            table,
            id: ANCHOR,
            up: links.map(|link| (link.declared && !link.nullable).then_some(ANCHOR)),
        };
        links.map(row).collect()
    }

    /// Writes what creates the tables, with their first rows, and then their foreign keys where these
    /// are not written `inside` of the tables.
    pub(super) fn ddl<DB: Engine>(&self, inside: bool) -> String {
        let mut sql = String::new();
        let key = DB::KEY;
        // Not behind the column, where MySQL reads over it.
        let foreign_key = |column: &str, link: Link| {
            let wait = if link.deferrable {
                " DEFERRABLE INITIALLY IMMEDIATE"
            } else {
                ""
            };
            let target = NAMES[link.target];
            format!("FOREIGN KEY ({column}) REFERENCES {target} (id){wait}")
        };
        for (name, links) in NAMES.iter().zip(&self.links) {
            let _ = write!(sql, "CREATE TABLE {name} (id {key} NOT NULL PRIMARY KEY");
            for (column, link) in UP.iter().zip(links) {
                let _ = write!(sql, ", {column} {key}");
                if link.declared && !link.nullable {
                    sql += " NOT NULL";
                }
            }
            for (column, link) in UP.iter().zip(links) {
                if link.declared && inside {
                    let _ = write!(sql, ", {}", foreign_key(column, *link));
                }
            }
            sql += ");";
        }
        let anchor = DB::literal(ANCHOR);
        for row in self.anchors() {
            let up = row.up.map(|up| if up.is_some() { &anchor } else { "NULL" });
            let _ = write!(
                sql,
                "INSERT INTO {} (id, {}) VALUES ({anchor}, {});",
                NAMES[row.table],
                UP.join(", "),
                up.join(", ")
            );
        }
        for (table, column, link) in self.declared().filter(|_| !inside) {
            let (name, foreign_key) = (NAMES[table], foreign_key(column, link));
            let _ = write!(sql, "ALTER TABLE {name} ADD {foreign_key};");
        }
        sql
    }

    /// Writes SQLite's triggers that refuse a row before its parent, and one that goes before its
    /// child, by the constraints that are checked at once.
    pub(super) fn triggers(&self) -> String {
        let mut inserts: [Vec<String>; TABLES] = std::array::from_fn(|_| Vec::new());
        let mut deletes = inserts.clone();
        for (table, column, link) in self.declared().filter(|(_, _, link)| !link.deferrable) {
            let (child, parent) = (NAMES[table], NAMES[link.target]);
            let (not_itself, not_the_same) = if table == link.target {
                (format!("NEW.{column} <> NEW.id AND "), " AND id <> OLD.id")
            } else {
                (String::new(), "")
            };
            inserts[table].push(format!(
                "(NEW.{column} IS NOT NULL AND {not_itself}NOT EXISTS \
                 (SELECT 1 FROM {parent} WHERE id = NEW.{column}))"
            ));
            deletes[link.target].push(format!(
                "EXISTS (SELECT 1 FROM {child} WHERE {column} = OLD.id{not_the_same})"
            ));
        }
        let mut sql = String::new();
        for (event, of_tables) in [("INSERT", inserts), ("DELETE", deletes)] {
            for (table, when) in NAMES.iter().zip(of_tables) {
                if !when.is_empty() {
                    let when = when.join(" OR ");
                    let _ = write!(
                        sql,
                        "CREATE TRIGGER {table}_{event} BEFORE {event} ON {table} WHEN {when} \
                         BEGIN SELECT RAISE(ABORT, 'a row without its parent'); END;"
                    );
                }
            }
        }
        sql
    }
}
