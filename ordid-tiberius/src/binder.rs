//! How entities become values: a sink that keeps them, and what can be an entity here.

use std::{borrow::Cow, cmp::Ordering, fmt, marker::PhantomData, mem};

use ordid_core::{
    KeyOf, OrderedKey, RawKeyOf, Sink,
    storage::Stores,
    unit_of_work::{ColumnMask, Columns, Row, RowEnd, RowSink, Take},
};
use tiberius::{ColumnData, TokenRow};

use crate::{encode::Encode, fit::Fit, flavour::Flavour, stored::StoredAs};

/// Takes the fields of entities as values of tiberius.
pub struct Binder<D> {
    values: TokenRow<'static>,
    /// Where rows are only looked at: whether they can go by bulk load.
    fit: Option<Fit>,
    mask: ColumnMask,
    flavour: PhantomData<fn() -> D>,
}

impl<D: Flavour> Binder<D> {
    pub(crate) fn with_capacity(values: usize) -> Self {
        Self {
            values: TokenRow::with_capacity(values),
            fit: None,
            mask: ColumnMask::default(),
            flavour: PhantomData,
        }
    }

    /// A binder that keeps nothing, and refuses the first row that does not fit.
    pub(crate) fn looking(fit: Fit) -> Self {
        Self {
            fit: Some(fit),
            ..Self::with_capacity(0)
        }
    }

    pub(crate) fn into_values(self) -> TokenRow<'static> {
        self.values
    }

    pub(crate) fn into_fit(self) -> Option<Fit> {
        self.fit
    }

    /// Returns the values since the last call as a row, and makes room for one of as many.
    pub(crate) fn take_row(&mut self) -> TokenRow<'static> {
        let next = TokenRow::with_capacity(self.values.len());
        mem::replace(&mut self.values, next)
    }
}

impl<D> fmt::Debug for Binder<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binder")
            .field("values", &self.values.len())
            .finish_non_exhaustive()
    }
}

#[diagnostic::do_not_recommend]
impl<D: Flavour, T: Encode<D>> Sink<T> for Binder<D> {
    fn put(&mut self, value: &T) {
        let value = match self.mask.take() {
            Take::Value => value.encode(),
            Take::Null => null(&value.encode()),
            Take::Skip => return,
        };
        match &mut self.fit {
            Some(fit) => fit.take(&value),
            None => self.values.push(into_owned(value)),
        }
    }
}

impl<D: Flavour> RowSink for Binder<D> {
    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
    }

    fn end_row(&mut self) -> RowEnd {
        match self.fit.as_mut().map(Fit::ends_row) {
            None | Some(true) => RowEnd::Taken,
            Some(false) => RowEnd::Refused,
        }
    }
}

/// Returns a value that borrows nothing.
fn into_owned(value: ColumnData<'_>) -> ColumnData<'static> {
    match value {
        ColumnData::U8(value) => ColumnData::U8(value),
        ColumnData::I16(value) => ColumnData::I16(value),
        ColumnData::I32(value) => ColumnData::I32(value),
        ColumnData::I64(value) => ColumnData::I64(value),
        ColumnData::F32(value) => ColumnData::F32(value),
        ColumnData::F64(value) => ColumnData::F64(value),
        ColumnData::Bit(value) => ColumnData::Bit(value),
        ColumnData::String(value) => ColumnData::String(value.map(owned)),
        ColumnData::Guid(value) => ColumnData::Guid(value),
        ColumnData::Binary(value) => ColumnData::Binary(value.map(owned)),
        ColumnData::Numeric(value) => ColumnData::Numeric(value),
        ColumnData::Xml(value) => ColumnData::Xml(value.map(owned)),
        ColumnData::DateTime(value) => ColumnData::DateTime(value),
        ColumnData::SmallDateTime(value) => ColumnData::SmallDateTime(value),
        ColumnData::Time(value) => ColumnData::Time(value),
        ColumnData::Date(value) => ColumnData::Date(value),
        ColumnData::DateTime2(value) => ColumnData::DateTime2(value),
        ColumnData::DateTimeOffset(value) => ColumnData::DateTimeOffset(value),
    }
}

fn owned<T: ToOwned + ?Sized>(value: Cow<'_, T>) -> Cow<'static, T> {
    Cow::Owned(value.into_owned())
}

/// Returns NULL of the type of a value.
fn null(value: &ColumnData<'_>) -> ColumnData<'static> {
    match value {
        ColumnData::U8(_) => ColumnData::U8(None),
        ColumnData::I16(_) => ColumnData::I16(None),
        ColumnData::I32(_) => ColumnData::I32(None),
        ColumnData::I64(_) => ColumnData::I64(None),
        ColumnData::F32(_) => ColumnData::F32(None),
        ColumnData::F64(_) => ColumnData::F64(None),
        ColumnData::Bit(_) => ColumnData::Bit(None),
        ColumnData::String(_) => ColumnData::String(None),
        ColumnData::Guid(_) => ColumnData::Guid(None),
        ColumnData::Binary(_) => ColumnData::Binary(None),
        ColumnData::Numeric(_) => ColumnData::Numeric(None),
        ColumnData::Xml(_) => ColumnData::Xml(None),
        ColumnData::DateTime(_) => ColumnData::DateTime(None),
        ColumnData::SmallDateTime(_) => ColumnData::SmallDateTime(None),
        ColumnData::Time(_) => ColumnData::Time(None),
        ColumnData::Date(_) => ColumnData::Date(None),
        ColumnData::DateTime2(_) => ColumnData::DateTime2(None),
        ColumnData::DateTimeOffset(_) => ColumnData::DateTimeOffset(None),
    }
}

/// An entity that a flavour of server can take: every type with `#[derive(OrderedKey)]` whose key
/// type names a column there, and whose fields it can store.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written to {D}",
    label = "cannot be written there",
    note = "it needs `#[derive(ordid::OrderedKey)]`, and a key type with a column: \
            `#[ordid(tiberius(sql_server = unique_identifier))]`"
)]
pub trait Entity<D: Flavour>: Row<Binder<D>> {
    /// Compares as the server compares the stored values.
    #[doc(hidden)]
    const __COMPARE: fn(&RawKeyOf<Self>, &RawKeyOf<Self>) -> Ordering;
}

impl<D, E> Entity<D> for E
where
    D: Flavour,
    E: Row<Binder<D>> + OrderedKey,
    KeyOf<E>: StoredAs<D>,
{
    const __COMPARE: fn(&RawKeyOf<Self>, &RawKeyOf<Self>) -> Ordering =
        <KeyOf<E> as StoredAs<D>>::Column::compare;
}
