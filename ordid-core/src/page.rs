//! Pages of a list by key, as in Relay and GraphQL. A client asks for a [`Page`], the program reads a [`Slice`], and
//! answers with a [`Connection`].
//!
//! A list is sorted by its keys, ascending or descending. The next page begins after the last key of this one. So it
//! needs no index but that of the keys, and rows that are inserted meanwhile shift nothing. If the key has several
//! columns, a list has all rows, or those with the same first columns: [`Page::within`]. With keys that have no order
//! (`uuid_v4`) the pages are complete, too, but the list is not in the order of time.
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

/// A place in a list: right after a key, or right before it.
///
/// Its text is opaque. It is base64 of the key's text, with the prefix, and masked if the key type has a mask. So a
/// cursor of another key type with a prefix is an error. For a key of several columns, it contains the texts of all
/// of them. If the key type has a mask, the cursor also contains a hash that cannot be computed without the mask.
/// Otherwise strangers could make cursors for any time, and a list would tell them which rows are older.
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

/// The page of a list that a client asks for: GraphQL's arguments `first`, `after`, `last` and `before`, or URL query
/// parameters of these names.
///
/// With the feature `serde` it can be deserialized from both. Numbers may be texts, as in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page<K> {
    /// The number of rows to return, from the start of the list or from `after`.
    pub first: Option<u32>,
    /// Return only rows that come after this place in the list.
    pub after: Option<Cursor<K>>,
    /// The number of rows to return, from the end of the list or from `before`.
    pub last: Option<u32>,
    /// Return only rows that come before this place in the list.
    pub before: Option<Cursor<K>>,
}

impl<K: KeyType> Page<K> {
    /// The whole list, up to the limit that is passed to [`slice`](Self::slice).
    pub const ALL: Self = Self {
        first: None,
        after: None,
        last: None,
        before: None,
    };

    /// Asks for this number of rows from the start of the list.
    pub const fn first(rows: u32) -> Self {
        Self {
            first: Some(rows),
            ..Self::ALL
        }
    }

    /// Asks for this number of rows from the end of the list.
    pub const fn last(rows: u32) -> Self {
        Self {
            last: Some(rows),
            ..Self::ALL
        }
    }

    /// Asks only for rows after a place.
    #[must_use]
    pub const fn after(self, cursor: Cursor<K>) -> Self {
        Self {
            after: Some(cursor),
            ..self
        }
    }

    /// Asks only for rows before a place.
    #[must_use]
    pub const fn before(self, cursor: Cursor<K>) -> Self {
        Self {
            before: Some(cursor),
            ..self
        }
    }

    /// Returns the rows to read from a list in this order. A page has at most `most` rows, even if the client asks
    /// for more.
    ///
    /// # Errors
    ///
    /// If both `first` and `last` are given, which Relay's specification discourages because the two contradict each
    /// other; the error [`is_parse`](Error::is_parse).
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
    /// Checks that the cursors of this page belong to the list of the rows whose key begins with these values, for
    /// example the issues of a tenant if the key is `(tenant, id)`. Each cursor contains the whole key, so a cursor
    /// of another tenant's list is detected.
    ///
    /// Only the cursors are checked. The `SELECT` has to choose the rows:
    /// `WHERE tenant = .. AND id > above AND id < below`.
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

/// The default is [`Page::ALL`].
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
    /// Only keys greater than this one.
    pub above: Option<K>,
    /// Only keys less than this one.
    pub below: Option<K>,
    /// Whether to read from the largest key down: `ORDER BY id DESC`. For a page by `last`, that is the reverse of
    /// the list's order, and [`Connection::new`] reverses the rows again.
    pub is_descending: bool,
    limit: u32,
    is_backward: bool,
    is_cut_at_start: bool,
    is_cut_at_end: bool,
}

impl<K: SpreadKey> Slice<K> {
    /// Returns the same slice for each bucket of keys that are [spread](crate::scheme::spread), from the first bucket
    /// to the last. [`merge`](crate::scheme::spread::merge) makes one page from the rows of all buckets.
    ///
    /// The list is then in the order of time. A cursor stands for a moment, and each bucket is read from that moment
    /// on.
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
    /// Returns how many rows to read: one more than the page has, which shows whether there are others.
    pub const fn rows(&self) -> u32 {
        self.limit.saturating_add(1)
    }
}

/// A page of a list, with the fields that Relay defines. With the feature `serde` they have Relay's names: `edges`
/// with `cursor` and `node`, `pageInfo` with `hasNextPage`, `hasPreviousPage`, `startCursor` and `endCursor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection<K, N> {
    /// The rows, in the order of the list.
    pub edges: Vec<Edge<K, N>>,
    /// The place of the page in the list.
    pub page_info: PageInfo<K>,
}

/// A row of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge<K, N> {
    /// The place of the row in the list.
    pub cursor: Cursor<K>,
    /// The row.
    pub node: N,
}

/// The place of a page in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageInfo<K> {
    /// Whether rows follow this page. For a page by `last`, whether the client gave `before`.
    pub has_next_page: bool,
    /// Whether rows precede this page. For a page by `first`, whether the client gave `after`.
    pub has_previous_page: bool,
    /// The cursor of the first row, if there is one.
    pub start_cursor: Option<Cursor<K>>,
    /// The cursor of the last row, if there is one.
    pub end_cursor: Option<Cursor<K>>,
}

impl<K: KeyType, N> Connection<K, N> {
    /// Makes a page from the rows that were read for a slice, in the order in which they were read.
    ///
    /// `key` returns a row's key. Rows beyond the slice's limit are left out of the page, and only show that there
    /// are more.
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

    /// Returns the rows without their cursors.
    pub fn nodes(&self) -> impl Iterator<Item = &N> {
        self.edges.iter().map(|edge| &edge.node)
    }
}

#[cfg(feature = "serde")]
mod serde;

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
