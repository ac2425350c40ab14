//! Pages of a list by key, as Relay and GraphQL have them: [`Page`] is what a client asks for,
//! [`Slice`] what the program reads, and [`Connection`] what it answers.
//!
//! A list stands in the order of its keys, or in the reverse. The next page is what follows the last key of
//! this one, so it needs no other index than that of the keys, and rows that come in meanwhile shift nothing.
//! Where the key has several columns, a list has all rows, or those with the same first columns: [`Page::within`].
//! With keys in no order (`uuid_v4`) the pages are complete, too, but the list is in no order of time.
//!
//! # Example: the newest orders
//!
//! ```
//! use ordid_core::{KeyType, page::{Connection, ListOrder, Page}, uuid::Uuid};
//!
//! let mut orders: Vec<Uuid> = (0..5).map(|_| Uuid::generate()).collect();
//! # let table = orders.clone();
//! // SELECT id FROM orders WHERE id > above AND id < below ORDER BY id (DESC) LIMIT rows
//! let select = |slice: &ordid_core::page::Slice<Uuid>| {
//!     // ..
//! #     let is_in = |key: &&Uuid| {
//! #         slice.above.is_none_or(|above| **key > above) && slice.below.is_none_or(|below| **key < below)
//! #     };
//! #     let mut rows: Vec<Uuid> = table.iter().filter(is_in).copied().collect();
//! #     if slice.is_descending { rows.reverse(); }
//! #     rows.truncate(slice.rows() as usize);
//! #     rows
//! };
//!
//! let slice = Page::first(2).slice(ListOrder::Descending, 100)?;
//! let newest = Connection::new(&slice, select(&slice), |id| *id);
//! orders.reverse();
//! assert!(newest.nodes().eq(&orders[..2]));
//! assert!(newest.page_info.has_next_page && !newest.page_info.has_previous_page);
//!
//! let cursor = newest.page_info.end_cursor.unwrap();
//! let slice = Page::first(2).after(cursor).slice(ListOrder::Descending, 100)?;
//! let next = Connection::new(&slice, select(&slice), |id| *id);
//! assert!(next.nodes().eq(&orders[2..4]));
//! # Ok::<(), ordid_core::Error>(())
//! ```
//!
//! # References
//!
//! "GraphQL Cursor Connections Specification", relay.dev.

use alloc::{format, string::ToString as _, vec::Vec};
use core::{fmt, str::FromStr};

use data_encoding::BASE64URL_NOPAD;

use crate::{
    __private,
    error::Error,
    key::{CompositeKey, KeyParts, KeyStart, KeyType, Scheme, text::excerpt},
    scheme::spread::{SpreadKey, ends_of},
};

/// A place in a list: behind a key, or before it.
///
/// Its text is opaque: base64 of the key's text, with the prefix, and masked where the key type has a mask.
/// So a cursor of another key type with a prefix is an error. The cursor of a key of several columns has the texts of all
/// of them. If the key type has a mask, the cursor also has a hash that nobody makes without the mask: otherwise a list
/// would tell, for any time, which rows are older.
///
/// # Example
///
/// ```
/// use ordid_core::{page::Cursor, uuid::Uuid};
///
/// let key: Uuid = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f".parse()?;
/// let text = Cursor::new(key).to_string();
/// assert_eq!(text, "MDE3ZjIyZTItNzliMC03Y2MzLTk4YzQtZGMwYzBjMDczOThm");
/// assert_eq!(text.parse::<Cursor<Uuid>>()?.key(), key);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor<K>(K);

impl<K: KeyType> Cursor<K> {
    /// Makes the cursor of a key.
    pub const fn new(key: K) -> Self {
        Self(key)
    }

    /// Returns the key.
    pub const fn key(self) -> K {
        self.0
    }
}

impl<K: KeyType> fmt::Display for Cursor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.0.to_string();
        if let Some(seal) = self.0.__cursor_seal(&text) {
            text = format!("{text}.{seal:016x}");
        }
        f.pad(&BASE64URL_NOPAD.encode(text.as_bytes()))
    }
}

impl<K: KeyType> FromStr for Cursor<K> {
    type Err = Error;

    /// # Errors
    ///
    /// A text that is not base64 gives an error that [`is_parse`](Error::is_parse), and so does a cursor of a key with a mask
    /// that was not made with the mask. If it is base64, but not of a key's text, the error is that of the key's `FromStr`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let no_cursor = || {
            Error::parse(format!(
                "expected a cursor of `{}`, found {}",
                K::NAME,
                excerpt(text.as_bytes())
            ))
        };
        // Longer than the text of any key: a prefix has 63 letters, and a key four columns of 48 bytes together.
        if text.len() > 512 {
            return Err(no_cursor());
        }
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes());
        let bytes = bytes.map_err(|_| no_cursor())?;
        let text = core::str::from_utf8(&bytes).map_err(|_| no_cursor())?;
        // The text of a key has no point.
        let (key, seal) = match text.split_once('.') {
            Some((key, seal)) => (key, Some(seal)),
            None => (text, None),
        };
        let key: K = __private::parse(key)?;
        let expected = key.__cursor_seal(&key.to_string());
        let expected = expected.map(|seal| format!("{seal:016x}"));
        match seal == expected.as_deref() {
            true => Ok(Self(key)),
            false => Err(no_cursor()),
        }
    }
}

/// The page of a list that a client asks for: GraphQL's arguments `first`, `after`, `last` and `before`, or
/// the query of a URL by the same names.
///
/// With the feature `serde` it is read from both; numbers may be texts, as in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page<K> {
    /// So many rows from the start of the list, or from `after`.
    pub first: Option<u32>,
    /// Only what stands behind this place in the list.
    pub after: Option<Cursor<K>>,
    /// So many rows from the end of the list, or from `before`.
    pub last: Option<u32>,
    /// Only what stands before this place in the list.
    pub before: Option<Cursor<K>>,
}

impl<K: KeyType> Page<K> {
    /// All of the list, as far as [`slice`](Self::slice) allows.
    pub const ALL: Self = Self {
        first: None,
        after: None,
        last: None,
        before: None,
    };

    /// So many rows from the start of the list.
    pub const fn first(rows: u32) -> Self {
        Self {
            first: Some(rows),
            ..Self::ALL
        }
    }

    /// So many rows from the end of the list.
    pub const fn last(rows: u32) -> Self {
        Self {
            last: Some(rows),
            ..Self::ALL
        }
    }

    /// The same, of what stands behind a place.
    #[must_use]
    pub const fn after(self, cursor: Cursor<K>) -> Self {
        Self {
            after: Some(cursor),
            ..self
        }
    }

    /// The same, of what stands before a place.
    #[must_use]
    pub const fn before(self, cursor: Cursor<K>) -> Self {
        Self {
            before: Some(cursor),
            ..self
        }
    }

    /// Returns what to read of a list in this order. A page has `most` rows at most, also where the client
    /// asks for more.
    ///
    /// # Errors
    ///
    /// If both `first` and `last` are given, which Relay's specification discourages, as the two contradict
    /// each other; the error [`is_parse`](Error::is_parse).
    pub fn slice(self, order: ListOrder, most: u32) -> Result<Slice<K>, Error> {
        let (limit, is_backward) = match (self.first, self.last) {
            (Some(first), Some(last)) => {
                return Err(Error::parse(format!(
                    "expected either `first` or `last`, found both: first {first}, last {last}"
                )));
            }
            (None, Some(last)) => (last, true),
            (first, None) => (first.unwrap_or(most), false),
        };
        let [after, before] = [self.after, self.before].map(|cursor| cursor.map(Cursor::key));
        let (above, below) = match order {
            ListOrder::Ascending => (after, before),
            ListOrder::Descending => (before, after),
        };
        Ok(Slice {
            above,
            below,
            is_descending: is_backward != (order == ListOrder::Descending),
            limit: limit.min(most),
            is_backward,
            is_cut_at_start: after.is_some(),
            is_cut_at_end: before.is_some(),
        })
    }
}

impl<P: KeyParts> Page<CompositeKey<P>> {
    /// Checks that this page is of the list of the rows whose key begins with these values: the issues of a tenant, where
    /// the key is `(tenant, id)`. Each cursor holds the whole key, so a cursor of another tenant's list is found out.
    ///
    /// Only the cursors are checked. The `SELECT` names the rows: `WHERE tenant = .. AND id > above AND id < below`.
    ///
    /// # Errors
    ///
    /// A cursor of another list gives an error that [`is_parse`](Error::is_parse).
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::{KeyType, key::CompositeKey, page::{Cursor, ListOrder, Page}, uuid::Uuid};
    ///
    /// let [tenant, other, issue] = [(); 3].map(|()| Uuid::generate());
    /// let cursor = Cursor::new(CompositeKey((tenant, issue)));
    ///
    /// let page = Page::first(10).after(cursor);
    /// let slice = page.within(tenant)?.slice(ListOrder::Ascending, 100)?;
    /// // SELECT .. WHERE tenant = .. AND id > above ORDER BY id LIMIT 11
    /// let above = slice.above.map(|CompositeKey((_, id))| id);
    /// assert_eq!(above, Some(issue));
    ///
    /// assert!(page.within(other).is_err_and(|error| error.is_parse()));
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    pub fn within<S: KeyStart<P>>(self, start: S) -> Result<Self, Error> {
        for cursor in [self.after, self.before].into_iter().flatten() {
            let found = S::of(cursor.key().0);
            if found != start {
                return Err(Error::parse(format!(
                    "expected a cursor of the list within {start:?}, found one within {found:?}"
                )));
            }
        }
        Ok(self)
    }
}

/// As [`Page::ALL`].
impl<K: KeyType> Default for Page<K> {
    fn default() -> Self {
        Self::ALL
    }
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListOrder {
    /// The smallest key first: the oldest, where keys are ordered by time.
    Ascending,
    /// The largest key first: the newest.
    Descending,
}

/// The rows that a program reads for a page: `WHERE id > above AND id < below ORDER BY id LIMIT rows()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slice<K> {
    /// Only keys above this one, without it.
    pub above: Option<K>,
    /// Only keys below this one, without it.
    pub below: Option<K>,
    /// Whether to read from the largest key down: `ORDER BY id DESC`. For `last`, that is the reverse of the
    /// list's order; [`Connection::new`] turns the rows round.
    pub is_descending: bool,
    limit: u32,
    is_backward: bool,
    is_cut_at_start: bool,
    is_cut_at_end: bool,
}

impl<K: SpreadKey> Slice<K> {
    /// Returns what to read of each bucket of keys that are [spread](crate::scheme::spread), from the first to the last: the
    /// same page of each. [`merge`](crate::scheme::spread::merge) makes the page of all of them.
    ///
    /// The list is then in the order of time. A cursor stands for a moment, and each bucket is read from there.
    ///
    /// # Example
    ///
    /// ```
    /// # use ordid_core::{key::Generated, scheme::UuidV7Spread};
    /// use ordid_core::{KeyType, page::{Connection, ListOrder, Page, Slice}, scheme::spread};
    /// # use uuid::Uuid;
    /// # #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    /// # struct EventId(Uuid);
    /// # impl std::fmt::Display for EventId {
    /// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { self.0.fmt(f) }
    /// # }
    /// # impl KeyType for EventId {
    /// #     type Raw = Uuid;
    /// #     type Scheme = UuidV7Spread<16>;
    /// #     const NAME: &'static str = "EventId";
    /// #     const PREFIX: Option<&'static str> = None;
    /// #     fn from_generated(key: Generated<Self::Scheme>) -> Self { Self(key.into_raw()) }
    /// #     fn to_raw(self) -> Uuid { self.0 }
    /// #     fn from_raw(raw: Uuid) -> Result<Self, ordid_core::Error> {
    /// #         Generated::check(raw, "EventId").map(Self::from_generated)
    /// #     }
    /// # }
    ///
    /// let events: Vec<EventId> = (0..100).map(|_| EventId::generate()).collect();
    /// // SELECT id FROM events WHERE id > above AND id < below ORDER BY id LIMIT rows
    /// let select = |slice: &Slice<EventId>| {
    ///     // ..
    /// #     let is_in = |id: &EventId| {
    /// #         slice.above.is_none_or(|above| *id > above) && slice.below.is_none_or(|below| *id < below)
    /// #     };
    /// #     let mut rows: Vec<EventId> = events.iter().copied().filter(is_in).collect();
    /// #     rows.sort_unstable();
    /// #     rows.truncate(slice.rows() as usize);
    /// #     rows
    /// };
    /// let mut page = Page::first(30);
    /// let mut read = Vec::new();
    /// loop {
    ///     let slice = page.slice(ListOrder::Ascending, 100)?;
    ///     let of_buckets = slice.buckets().iter().map(select).collect();
    ///     let rows = spread::merge(of_buckets, slice.is_descending, |id| *id);
    ///     let connection = Connection::new(&slice, rows, |id| *id);
    ///     read.extend(connection.nodes().copied());
    ///     match connection.page_info.end_cursor {
    ///         Some(cursor) if connection.page_info.has_next_page => page = Page::first(30).after(cursor),
    ///         _ => break,
    ///     }
    /// }
    /// assert_eq!(read, events);
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    pub fn buckets(&self) -> Vec<Self> {
        let last = <K::Scheme as Scheme>::BUCKETS - 1;
        let moved = |key: K, bucket| key.in_bucket(bucket).expect("there is such a bucket");
        let slice = |bucket| Self {
            above: match self.above {
                Some(key) => Some(moved(key, bucket)),
                None => (bucket > 0).then(|| ends_of(bucket - 1).1),
            },
            below: match self.below {
                Some(key) => Some(moved(key, bucket)),
                None => (bucket < last).then(|| ends_of(bucket + 1).0),
            },
            ..*self
        };
        (0..=last).map(slice).collect()
    }
}

impl<K> Slice<K> {
    /// Returns how many rows to read: one more than the page has, which tells whether there are others.
    pub const fn rows(&self) -> u32 {
        self.limit.saturating_add(1)
    }
}

/// A page of a list, as Relay has it. With the feature `serde` its fields have Relay's names: `edges` with
/// `cursor` and `node`, `pageInfo` with `hasNextPage`, `hasPreviousPage`, `startCursor` and `endCursor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection<K, N> {
    /// The rows, in the order of the list.
    pub edges: Vec<Edge<K, N>>,
    /// Where the page stands in the list.
    pub page_info: PageInfo<K>,
}

/// A row of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge<K, N> {
    /// Its place in the list.
    pub cursor: Cursor<K>,
    /// The row.
    pub node: N,
}

/// Where a page stands in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageInfo<K> {
    /// Whether rows follow. For a page by `last`, this is whether it was asked for `before` a place.
    pub has_next_page: bool,
    /// Whether rows come before. For a page by `first`, this is whether it was asked for `after` a place.
    pub has_previous_page: bool,
    /// The place of the first row, if there is one.
    pub start_cursor: Option<Cursor<K>>,
    /// The place of the last row, if there is one.
    pub end_cursor: Option<Cursor<K>>,
}

impl<K: KeyType, N> Connection<K, N> {
    /// Makes a page of the rows that were read for a slice, in the order in which they were read.
    ///
    /// `key` returns a row's key. A page never has more rows than the client asked for.
    pub fn new(slice: &Slice<K>, rows: impl IntoIterator<Item = N>, key: impl Fn(&N) -> K) -> Self {
        let limit = usize::try_from(slice.limit).unwrap_or(usize::MAX);
        let mut rows = rows.into_iter();
        let edge = |node| Edge {
            cursor: Cursor(key(&node)),
            node,
        };
        let mut edges: Vec<_> = rows.by_ref().take(limit).map(edge).collect();
        let has_more = rows.next().is_some();
        if slice.is_backward {
            edges.reverse();
        }
        let (has_previous_page, has_next_page) = match slice.is_backward {
            false => (slice.is_cut_at_start, has_more),
            true => (has_more, slice.is_cut_at_end),
        };
        let page_info = PageInfo {
            has_next_page,
            has_previous_page,
            start_cursor: edges.first().map(|edge| edge.cursor),
            end_cursor: edges.last().map(|edge| edge.cursor),
        };
        Self { edges, page_info }
    }

    /// Returns the rows alone.
    pub fn nodes(&self) -> impl Iterator<Item = &N> {
        self.edges.iter().map(|edge| &edge.node)
    }
}

#[cfg(feature = "serde")]
mod serde;

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
