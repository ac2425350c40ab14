//! Columns that are known at run time only, for tools.

use alloc::{format, string::String, vec::Vec};

use super::{
    super::{ColumnOn, Dialect, Found, StoredValue as _, Stores, Written, dialect},
    *,
};
use crate::{
    error::Error,
    key::BinaryForm,
    layout::Comparison,
    scheme::catalogue::{AnyKey, Entry, RawForm, raw_key},
};

/// A column of a dialect for one type of raw key, as a value that is known only at run time.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AnyColumn {
    /// The vendor's name of the dialect: `PostgreSQL`.
    pub dialect: &'static str,
    /// The name that users write, such as `binary16`.
    pub name: &'static str,
    /// The column's type in a `CREATE TABLE`, with its collation.
    pub sql_type: &'static str,
    /// How the database compares the stored values.
    pub comparison: Comparison,
    /// The source for how the database compares this type: a section of a manual, or a source file.
    pub source: &'static str,
    /// The raw keys that it stores.
    pub raw: RawForm,
    is_text: bool,
    quote: fn(&str) -> String,
    primary_key: fn(&str) -> String,
    literal: fn(&[u8]) -> Option<String>,
    stored: fn(&[u8]) -> Option<Vec<u8>>,
    sort_key: fn(&[u8]) -> Option<Vec<u8>>,
    read: fn(Found<'_>) -> Result<Vec<u8>, Error>,
}

/// Adds a column of a dialect for each raw key.
macro_rules! columns {
    ($all:ident $($name:ident $column:ident: $raws:tt $($dialect:ident)+;)+) => {
        $($(columns!(@raws $all $column $dialect $raws);)+)+
    };
    (@raws $all:ident $column:ident $dialect:ident [$($raw:ident)+]) => {
        $($all.push(AnyColumn::new::<raw::$raw, $column, dialect::$dialect>());)+
    };
}

/// The raw keys: one has the name of a column.
mod raw {
    pub(super) use uuid::Uuid;

    pub(super) use crate::key::{Key192, ObjectId, PushId};

    #[allow(non_camel_case_types)]
    pub(super) type i64 = core::primitive::i64;
    #[allow(non_camel_case_types)]
    pub(super) type u64 = core::primitive::u64;
}

impl AnyColumn {
    /// Returns each column of each dialect, once for each raw key that it stores.
    pub fn all() -> Vec<Self> {
        // As many as there are, or nearly.
        let mut all = Vec::with_capacity(80);
        crate::__for_each_column! { columns all }
        all
    }

    fn new<R: RawKey, C: ColumnOn<D> + Stores<R>, D: Dialect>() -> Self {
        Self {
            dialect: D::NAME,
            name: C::NAME,
            sql_type: C::TYPE,
            comparison: C::COMPARISON,
            source: C::SOURCE,
            raw: RawForm::of::<R>(),
            is_text: R::BINARY == BinaryForm::Bytes && C::LITERAL.written == Written::Plain,
            quote: D::quote,
            primary_key: C::primary_key,
            literal: |key| raw_key(key).map(|raw: R| C::literal(raw)),
            stored: |key| {
                raw_key(key).map(|raw: R| match C::encode(raw).found() {
                    Found::Bytes(bytes) => bytes.to_vec(),
                    Found::Integer(integer) => integer.to_be_bytes().to_vec(),
                    Found::Unsigned(integer) => integer.to_be_bytes().to_vec(),
                })
            },
            sort_key: |key| raw_key(key).map(|raw: R| C::sort_key(raw).as_ref().to_vec()),
            read: |found| C::decode(found).map(|raw| raw.to_bytes().as_ref().to_vec()),
        }
    }

    /// Returns whether the stored value is ASCII text.
    pub fn is_text(&self) -> bool {
        self.is_text
    }

    /// Returns an identifier in the dialect's quotes.
    pub fn quote(&self, identifier: &str) -> String {
        (self.quote)(identifier)
    }

    /// Returns the declaration of a primary key of this name. The name gets quoted.
    pub fn primary_key(&self, name: &str) -> String {
        (self.primary_key)(name)
    }

    /// Returns whether keys of the scheme rise in the column.
    pub fn keeps_order_of(&self, scheme: &Entry) -> bool {
        scheme.raw() == self.raw && scheme.orders().contains(self.comparison)
    }

    /// Returns a key as a literal in the database's SQL.
    ///
    /// # Errors
    ///
    /// A key that the column does not store gives an error that [`is_unsupported`](Error::is_unsupported).
    pub fn literal(&self, key: &AnyKey) -> Result<String, Error> {
        self.of(key, (self.literal)(key.as_bytes()))
    }

    /// Returns the value that the column stores: the bytes of a binary column in the order in which the database
    /// shows them, the ASCII of a text, or an integer as 8 bytes with the most significant first.
    ///
    /// # Errors
    ///
    /// As [`literal`](Self::literal).
    pub fn stored(&self, key: &AnyKey) -> Result<Vec<u8>, Error> {
        self.of(key, (self.stored)(key.as_bytes()))
    }

    /// Returns bytes that compare, from the first, as the database compares the stored values.
    ///
    /// # Errors
    ///
    /// As [`literal`](Self::literal).
    pub fn sort_key(&self, key: &AnyKey) -> Result<Vec<u8>, Error> {
        self.of(key, (self.sort_key)(key.as_bytes()))
    }

    /// Reads a value that the database returned as a key of the scheme.
    ///
    /// # Errors
    ///
    /// A value of another form gives an error that [`is_parse`](Error::is_parse), and a key of another scheme one
    /// that [`is_layout`](Error::is_layout).
    pub fn read<'a>(
        &self,
        scheme: &'static Entry,
        found: impl Into<Found<'a>>,
    ) -> Result<AnyKey, Error> {
        scheme.key_of(&(self.read)(found.into())?)
    }

    fn of<T>(&self, key: &AnyKey, found: Option<T>) -> Result<T, Error> {
        let stores = key.entry().raw() == self.raw;
        found.filter(|_| stores).ok_or_else(|| {
            Error::unsupported(format!(
                "a `{}` column of {} does not store keys of {}",
                self.name,
                self.dialect,
                key.entry().name
            ))
        })
    }
}
