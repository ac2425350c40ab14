//! Which of several databases a row belongs to.
//!
//! ```text
//! by hash    SipHash-2-4 of the raw key's bytes -> jump consistent hash -> shard
//! by ranges  boundaries  b0 < b1 < ..  in the order of the key type
//!            shard 0: keys below b0 | shard 1: from b0, below b1 | .. | last: from the last boundary
//! ```
//!
//! A foreign key cannot leave its database, so a row has to live where its parents live: a
//! [`route`](Sharding::route) says by which of its keys a row is spread, mostly that of the root of
//! its tree, as a customer's for orders and their lines. The key of that root is then a column of each
//! of these tables, as other programs that split tables want it, too.
//!
//! **By hash** the shard follows from the key's bytes and the number of shards alone, on every machine and in every
//! version of this crate: tests hold it to vectors of other implementations. If a shard is added to make `n`, one key
//! in `n` moves, always to the new shard. If a shard is removed, it has to be the last one. **By ranges** keys that
//! were made together are together: ranges of time go to one database each, so all new rows go to the last.
//!
//! Rows to which those of every shard refer, such as airlines or countries, are in each of them, as a copy
//! under the same key: [`everywhere`](Sharding::everywhere).
//!
//! The rule is part of the data: with another one, or with another number of shards, rows that are
//! stored are looked for in the wrong database. Nothing is moved here.
//!
//! # References
//!
//! J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", 2012; J. Lamping and
//! E. Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", 2014.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    hash::Hasher as _,
    sync::Arc,
};

use siphasher::sip::SipHasher24;

use ordid_core::{
    Error,
    entity::OrderedKey,
    key::{KeyField, KeyType, RawKey as _},
};

/// The key of the hash. Another than that of [`Scatter`](ordid_core::key::scatter::Scatter): what one
/// shard holds is still spread evenly over buckets.
const HASH_KEY: &[u8; 16] = b"ordid sharding 1";

/// Copies a row of an entity type that is on every shard.
type Copy<E> = fn(&E) -> E;

/// Finds the shard of a row of an entity type.
type Route<E> = Box<dyn Fn(&E, &Sharding) -> Result<usize, Error> + Send + Sync>;

/// Says over how many databases rows are spread, by which rule, and by which of its keys each row is spread.
///
/// Shards are counted from 0. A clone shares the routes: keep one to find where to read.
///
/// # Example: orders live where their customer lives
///
/// ```
/// use ordid_core::{OrderedKey, entity::Parent, key::KeyBytes, uuid::Uuid};
/// use ordid_sql::Sharding;
///
/// // What `#[derive(OrderedKey)]` makes, here with nothing but a key.
/// macro_rules! entity {
///     ($entity:ident, $table:literal, $parents:expr) => {
///         impl OrderedKey for $entity {
///             type Field = Uuid;
///             const SCHEMA: Option<&'static str> = None;
///             const TABLE: &'static str = $table;
///             const KEY_COLUMN: &'static str = "id";
///             const COLUMNS: &'static [&'static str] = &["id"];
///             const PARENTS: &'static [Parent] = $parents;
///
///             fn key(&self) -> Option<Uuid> { Some(self.id) }
///             fn assign_key(&mut self, key: Uuid) { self.id = key; }
///             fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
///         }
///     };
/// }
///
/// struct Customer { id: Uuid }
/// struct Order { id: Uuid, customer: Uuid }
///
/// entity!(Customer, "customers", &[]);
/// entity!(Order, "orders", &[Parent::by_entity::<Uuid, Customer>("customer")]);
///
/// let sharding = Sharding::by_hash(4)?.route(|order: &Order| order.customer);
///
/// let customer: Uuid = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f".parse().unwrap();
/// let order = Order { id: Uuid::from_u128(1), customer };
/// assert_eq!(sharding.shard_of(&Customer { id: customer })?, 2);
/// assert_eq!(sharding.shard_of(&order)?, 2);
/// assert_eq!(sharding.shard(customer)?, 2); // where to look for them
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Sharding {
    rule: Rule,
    routes: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    /// How to copy rows that are on every shard: of each such type a [`Copy`].
    copies: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

#[derive(Clone)]
enum Rule {
    Hash {
        shards: u32,
    },
    Ranges {
        /// A `Vec` of keys of one type.
        boundaries: Arc<dyn Any + Send + Sync>,
        key_type: &'static str,
        shards: usize,
    },
}

impl Sharding {
    /// Spreads keys of any type over so many databases by a hash: SipHash-2-4 of the raw key's bytes
    /// in network order ([`RawKey::to_bytes`](ordid_core::RawKey::to_bytes)), under the 16 bytes
    /// `ordid sharding 1`, and of it the jump consistent hash.
    ///
    /// # Errors
    ///
    /// No database at all, and more than a `u32` counts, give an error that
    /// [`is_plan`](Error::is_plan).
    pub fn by_hash(shards: usize) -> Result<Self, Error> {
        match u32::try_from(shards) {
            Ok(shards) if shards > 0 => Ok(Self::new(Rule::Hash { shards })),
            _ => Err(Error::plan(format!(
                "keys can be spread over 1 to {} databases, not over {shards}",
                u32::MAX
            ))),
        }
    }

    /// Spreads keys of one type by ranges, over one database more than there are boundaries: a key that is a boundary
    /// belongs to the range above it. Keys compare as their type does, so if keys begin with a time, each shard has a
    /// span of time.
    ///
    /// # Errors
    ///
    /// Boundaries that do not rise give an error that [`is_plan`](Error::is_plan).
    ///
    /// # Example: what is older goes to another database
    ///
    /// ```
    /// use ordid_core::uuid::Uuid;
    /// use ordid_sql::Sharding;
    ///
    /// // The first key that a millisecond can have.
    /// let from: Uuid = "01941f29-7c00-7000-8000-000000000000".parse().unwrap();
    /// let sharding = Sharding::by_ranges([from])?;
    /// let old: Uuid = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f".parse().unwrap();
    /// assert_eq!(sharding.shards(), 2);
    /// assert_eq!((sharding.shard(old)?, sharding.shard(from)?), (0, 1));
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    pub fn by_ranges<K: KeyType>(boundaries: impl Into<Vec<K>>) -> Result<Self, Error> {
        let boundaries = boundaries.into();
        let falling = boundaries.windows(2).find(|pair| pair[0] >= pair[1]);
        if let Some(pair) = falling {
            return Err(Error::plan(format!(
                "the boundaries of ranges of keys have to rise: {} comes before {}",
                pair[0], pair[1]
            )));
        }
        Ok(Self::new(Rule::Ranges {
            shards: boundaries.len() + 1,
            boundaries: Arc::new(boundaries),
            key_type: K::NAME,
        }))
    }

    fn new(rule: Rule) -> Self {
        Self {
            rule,
            routes: HashMap::new(),
            copies: HashMap::new(),
        }
    }

    /// Says by which of its keys rows of a type are spread: a field of the row, mostly the key of the
    /// root of its tree, or the row's own key.
    ///
    /// A type that refers to no other is spread by its own key without being told.
    #[must_use]
    pub fn route<E: OrderedKey + 'static, F: KeyField>(
        mut self,
        by: impl Fn(&E) -> F + Send + Sync + 'static,
    ) -> Self {
        let route: Route<E> = Box::new(move |row, sharding| match by(row).get() {
            Some(key) => sharding.shard(key),
            None => Err(Error::plan(format!(
                "a row of {} has no key to be spread by: its route found none",
                E::TABLE
            ))),
        });
        self.routes.insert(TypeId::of::<E>(), Arc::new(route));
        self
    }

    /// Says that the rows of a type are on every shard: a table to which rows of all shards refer, and in
    /// which they find the same rows, each under the same key. A unit of work adds, updates and deletes
    /// them on each shard.
    ///
    /// It comes before a [`route`](Self::route) of the type. With a shard more, copy the rows to it: nothing
    /// is moved here.
    ///
    /// # Example: flights are spread, airlines are not
    ///
    /// ```
    /// # use ordid_core::{OrderedKey, entity::Parent, key::KeyBytes, uuid::Uuid};
    /// use ordid_sql::Sharding;
    ///
    /// #[derive(Clone)]
    /// struct Airline { id: Uuid }
    /// # impl OrderedKey for Airline {
    /// #     type Field = Uuid;
    /// #     const SCHEMA: Option<&'static str> = None;
    /// #     const TABLE: &'static str = "airlines";
    /// #     const KEY_COLUMN: &'static str = "id";
    /// #     const COLUMNS: &'static [&'static str] = &["id"];
    /// #     const PARENTS: &'static [Parent] = &[];
    /// #     fn key(&self) -> Option<Uuid> { Some(self.id) }
    /// #     fn assign_key(&mut self, key: Uuid) { self.id = key; }
    /// #     fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}
    /// # }
    ///
    /// let sharding = Sharding::by_hash(4)?.everywhere::<Airline>();
    /// let error = sharding.shard_of(&Airline { id: Uuid::from_u128(1) }).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "rows of airlines are on each of the 4 shards: read them on any, write them on all"
    /// );
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    ///
    /// An upsert finds such rows by their key only. A row that is found by other columns keeps the key that it has, and a shard
    /// that does not have the row yet would get it under another one.
    ///
    /// Such rows may have a version, but it has to be an integer: of a time, each shard would write another one, so an
    /// update is an error.
    #[must_use]
    pub fn everywhere<E: OrderedKey + Clone + 'static>(mut self) -> Self {
        let copy: Copy<E> = E::clone;
        self.copies.insert(TypeId::of::<E>(), Arc::new(copy));
        self
    }

    /// Returns how to copy rows of a type that is on [every shard](Self::everywhere); `None` of others. For
    /// adapters.
    #[doc(hidden)]
    pub fn copy_of<E: 'static>(&self) -> Option<fn(&E) -> E> {
        let copy = self.copies.get(&TypeId::of::<E>())?;
        copy.downcast_ref::<Copy<E>>().copied()
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        match &self.rule {
            Rule::Hash { shards } => *shards as usize,
            Rule::Ranges { shards, .. } => *shards,
        }
    }

    /// Returns the shard of the rows that are spread by this key.
    ///
    /// # Errors
    ///
    /// A key of another type than that of the ranges gives an error that [`is_plan`](Error::is_plan).
    pub fn shard<K: KeyType>(&self, key: K) -> Result<usize, Error> {
        match &self.rule {
            Rule::Hash { shards } => Ok(by_hash(key.to_raw().to_bytes().as_ref(), *shards)),
            Rule::Ranges {
                boundaries,
                key_type,
                ..
            } => match boundaries.downcast_ref::<Vec<K>>() {
                Some(boundaries) => Ok(boundaries.partition_point(|boundary| *boundary <= key)),
                None => Err(Error::plan(format!(
                    "rows are spread by ranges of `{key_type}`, not of `{}`: give those that have \
                     another key a route to a `{key_type}`",
                    K::NAME
                ))),
            },
        }
    }

    /// Returns the shard of a row.
    ///
    /// # Errors
    ///
    /// As [`shard`](Self::shard). A row without the key that it is spread by, a row whose type
    /// refers to others and has no route, and one whose type is on [every shard](Self::everywhere) give an
    /// error that [`is_plan`](Error::is_plan).
    pub fn shard_of<E: OrderedKey + 'static>(&self, row: &E) -> Result<usize, Error> {
        if self.copies.contains_key(&TypeId::of::<E>()) {
            return Err(Error::plan(format!(
                "rows of {} are on each of the {} shards: read them on any, write them on all",
                E::TABLE,
                self.shards()
            )));
        }
        let route = self.routes.get(&TypeId::of::<E>());
        if let Some(route) = route.and_then(|route| route.downcast_ref::<Route<E>>()) {
            return route(row, self);
        }
        if let [parent, ..] = E::PARENTS {
            return Err(Error::plan(format!(
                "rows of {table} refer to others by {column}, and no foreign key crosses databases: \
                 say by which key they are spread, as in \
                 `sharding.route(|row: &Row| row.{column})`, if that is where their parents are",
                table = E::TABLE,
                column = parent.column(),
            )));
        }
        match row.key() {
            Some(key) => self.shard(key),
            None => Err(Error::plan(format!("a row of {} has no key", E::TABLE))),
        }
    }

    /// Checks that there is a database for each shard.
    ///
    /// # Errors
    ///
    /// Another number gives an error that [`is_plan`](Error::is_plan).
    pub fn check_databases(&self, databases: usize) -> Result<(), Error> {
        if databases == self.shards() {
            return Ok(());
        }
        Err(Error::plan(format!(
            "rows are spread over {} databases, and {databases} were given",
            self.shards()
        )))
    }
}

fn by_hash(bytes: &[u8], shards: u32) -> usize {
    let mut hasher = SipHasher24::new_with_key(HASH_KEY);
    hasher.write(bytes);
    jumpch::hash(hasher.finish(), shards) as usize
}

/// The rule; a route does not show what it does, nor a type its name.
impl fmt::Debug for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match &self.rule {
            Rule::Hash { .. } => "hash",
            Rule::Ranges { key_type, .. } => key_type,
        };
        f.debug_struct("Sharding")
            .field("by", &by)
            .field("shards", &self.shards())
            .field("routes", &self.routes.len())
            .field("everywhere", &self.copies.len())
            .finish()
    }
}

#[cfg(test)]
mod tests;
