//! How entities become values: a sink that keeps them, and what can be an entity here.

use std::{borrow::Cow, fmt, marker::PhantomData, mem};

use ordid_core::{KeyField, OrderedKey, RawKeyOf, Sink, storage::column, uuid::Uuid};
use ordid_sql::{
    ColumnMask, Columns, NotBulk, Registration, Row, RowEnd, RowSink, Take,
    spi::{BoxedError, RowBinder, Statement},
};
use tiberius::{ColumnData, Query, TokenRow};

use crate::{
    decode::ReadValue,
    encode::Encode,
    fit::Fit,
    flavour::Flavour,
    null,
    stored::{StoredAs, TiberiusColumn},
    unit_of_work::load_offers,
};

/// Takes the fields of entities as values of tiberius.
pub struct Binder<D> {
    values: TokenRow<'static>,
    rows: Rows,
    /// How many bytes the values of a statement have on the wire, about, and after how many it is large enough.
    bytes: usize,
    limit: Option<usize>,
    mask: ColumnMask,
    /// The functions that read the columns of a query.
    pub(crate) readers: Vec<ReadValue>,
    /// Why the server cannot store the first value that was refused.
    error: Option<BoxedError>,
    flavour: PhantomData<fn() -> D>,
}

/// What a binder takes rows for.
enum Rows {
    /// One statement.
    Statement,
    /// A bulk load, which sends one after the other.
    Load,
    /// Nothing is sent: the rows are only checked for whether they can be sent by bulk load.
    Fit(Fit),
}

impl<D> Binder<D> {
    fn of(rows: Rows, values: usize) -> Self {
        Self {
            values: TokenRow::with_capacity(values),
            rows,
            bytes: 0,
            limit: None,
            mask: ColumnMask::default(),
            readers: Vec::new(),
            error: None,
            flavour: PhantomData,
        }
    }

    /// A binder for a bulk load, which is full after each row.
    pub(crate) fn of_one_row(values: usize) -> Self {
        Self::of(Rows::Load, values)
    }

    /// A binder that keeps nothing, and refuses the first row that does not fit.
    pub(crate) fn looking(fit: Fit) -> Self {
        Self::of(Rows::Fit(fit), 0)
    }

    pub(crate) fn into_fit(self) -> Option<Fit> {
        match self.rows {
            Rows::Fit(fit) => Some(fit),
            Rows::Statement | Rows::Load => None,
        }
    }

    /// Returns the values since the last call as a row, and makes room for one of as many.
    pub(crate) fn take_row(&mut self) -> TokenRow<'static> {
        let next = TokenRow::with_capacity(self.values.len());
        mem::replace(&mut self.values, next)
    }
}

impl<D: Flavour> Binder<D> {
    /// Returns a statement with the values.
    pub(crate) fn query(self, statement: &Statement) -> Query<'_> {
        let values: Vec<_> = self.values.into_iter().map(D::parameter).collect();
        let types: Vec<_> = values.iter().map(D::null_in_text).collect();
        if types.iter().all(Option::is_none) {
            let mut query = Query::new(&*statement.sql);
            query.bind_iter(values);
            return query;
        }
        let mut query = Query::new(null::in_text(statement, &types));
        let bound = values.into_iter().zip(types);
        query.bind_iter(bound.filter_map(|(value, ty)| ty.is_none().then_some(value)));
        query
    }
}

impl<D: Flavour> RowBinder for Binder<D> {
    fn with_room((): (), _: usize, values: usize) -> Self {
        Self::of(Rows::Statement, values)
    }

    fn offers_bulk(_: usize, statements: usize) -> Result<(), NotBulk> {
        load_offers(statements)
    }

    fn limit(&mut self, bytes: usize) {
        self.limit = Some(bytes);
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn take_error(&mut self) -> Option<BoxedError> {
        self.error.take()
    }

    fn of_marker(id: Uuid) -> Self {
        let mut binder = Self::of(Rows::Statement, 1);
        binder.values.push(column::Binary16::to_data(id));
        binder
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
            Take::Value => match value.refusal() {
                None => value.encode(),
                Some(problem) => {
                    if let Rows::Fit(fit) = &mut self.rows {
                        return fit.refuse();
                    }
                    self.error.get_or_insert_with(|| problem.into());
                    T::null()
                }
            },
            Take::Null => T::null(),
            Take::Skip => return,
        };
        match &mut self.rows {
            Rows::Fit(fit) => fit.take(&value),
            Rows::Statement | Rows::Load => {
                self.bytes += bytes_of(&value);
                self.values.push(into_owned(value));
            }
        }
    }
}

impl<D: Flavour> RowSink for Binder<D> {
    type Entity = ();

    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
    }

    fn end_row(&mut self) -> RowEnd {
        match &mut self.rows {
            _ if self.error.is_some() => RowEnd::Refused,
            Rows::Statement => match self.limit {
                Some(limit) if self.bytes >= limit => RowEnd::TakenLast,
                _ => RowEnd::Taken,
            },
            Rows::Load => RowEnd::TakenLast,
            Rows::Fit(fit) => match fit.ends_row() {
                true => RowEnd::Taken,
                false => RowEnd::Refused,
            },
        }
    }

    fn sent((): (), columns: Columns<'_>, write: &mut dyn FnMut(&mut Self)) -> Option<String> {
        let mut binder = Self::of(Rows::Statement, 1);
        binder.begin_row(columns);
        write(&mut binder);
        binder
            .error
            .is_none()
            .then(|| format!("{:?}", binder.values))
    }
}

/// Returns about how many bytes a value has on the wire, where text is UTF-16.
fn bytes_of(value: &ColumnData<'_>) -> usize {
    match value {
        ColumnData::String(Some(text)) => 2 * text.len(),
        ColumnData::Binary(Some(bytes)) => bytes.len(),
        ColumnData::Xml(Some(xml)) => 2 * xml.as_ref().as_ref().len(),
        _ => 16,
    }
}

/// Returns a value that borrows nothing.
fn into_owned(value: ColumnData<'_>) -> ColumnData<'static> {
    macro_rules! each_type {
        ($($copied:ident)+; $($borrowed:ident)+) => {
            match value {
                $(ColumnData::$copied(data) => ColumnData::$copied(data),)+
                $(ColumnData::$borrowed(data) => {
                    ColumnData::$borrowed(data.map(|data| Cow::Owned(data.into_owned())))
                })+
            }
        };
    }
    each_type! {
        U8 I16 I32 I64 F32 F64 Bit Guid Numeric DateTime SmallDateTime Time Date DateTime2 DateTimeOffset;
        String Binary Xml
    }
}

/// The key type of an entity's first key column.
type Leading<E> = <<E as OrderedKey>::Field as KeyField>::Leading;

/// An entity that a flavour of server can take: every type with `#[derive(OrderedKey)]` whose key
/// type names a column there, and whose fields it can store.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written to {D}",
    label = "cannot be written there",
    note = "it needs `#[derive(ordid::OrderedKey)]`, and a key type with a column: \
            `#[ordid(tiberius(sql_server = unique_identifier))]`"
)]
pub trait Entity<D: Flavour>: Row<Binder<D>> {
    /// Says in which order the server keeps the stored keys.
    #[doc(hidden)]
    fn __register() -> Registration<Binder<D>, RawKeyOf<Self>>;
}

impl<D, E> Entity<D> for E
where
    D: Flavour,
    E: Row<Binder<D>> + OrderedKey<Field: KeyField<Leading: StoredAs<D>>>,
{
    fn __register() -> Registration<Binder<D>, RawKeyOf<Self>> {
        Registration::in_column::<E::Field, <Leading<E> as StoredAs<D>>::Column>(())
    }
}

#[cfg(test)]
mod tests {
    use ordid::{KeyType, OrderedKey};
    use ordid_core::storage::dialect::SqlServer;
    use ordid_sql::{Chunk, EngineProfile, PendingRows};

    use super::*;

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v8_sql_server, tiberius(sql_server = unique_identifier))]
    struct NodeId(Uuid);

    #[derive(OrderedKey)]
    #[ordid(table = "nodes")]
    struct Node {
        #[ordid(parent)]
        up: Option<NodeId>,
        id: NodeId,
        number: i32,
    }

    #[test]
    fn sent_values_differ_as_the_values_do() {
        let sent = |columns, name: &str, number: Option<i64>| {
            Binder::<SqlServer>::sent((), columns, &mut |binder| {
                binder.put(&name.to_owned());
                binder.put(&number);
            })
        };
        let row = sent(Columns::All, "a", Some(1));
        assert_eq!(sent(Columns::All, "a", Some(1)), row);
        assert_ne!(sent(Columns::All, "[redacted]", Some(1)), row);
        assert_ne!(sent(Columns::All, "a", None), row);
        let number = Columns::Only(&[1]);
        assert_eq!(sent(number, "a", Some(1)), sent(number, "b", Some(1)));
    }

    #[test]
    fn a_circle_is_inserted_with_null_and_set_by_key() {
        let ids: [NodeId; 3] = std::array::from_fn(|_| NodeId::generate());
        let mut rows = PendingRows::<Binder<SqlServer>>::new();
        for (id, up) in [(0, 2), (1, 0), (2, 1)] {
            rows.rows_mut().push(Node {
                up: Some(ids[up]),
                id: ids[id],
                number: 7,
            });
        }
        let plan = rows.plan(&EngineProfile::SQL_SERVER).unwrap();
        let chunks: Vec<Chunk> = plan.chunks().collect();
        let [insert, fix_up] = &chunks[..] else {
            panic!("two statements: {chunks:?}");
        };
        let values = |chunk: &Chunk| {
            let mut binder = Binder::with_room((), 3, 9);
            rows.write(chunk, chunk.rows.clone(), &mut binder);
            binder.values.into_iter().collect::<Vec<_>>()
        };
        let inserted = values(insert);
        assert_eq!(inserted.len(), 9);
        assert_eq!(inserted[0], ColumnData::Guid(None));
        assert_eq!(inserted[2], ColumnData::I32(Some(7)));
        assert!(matches!(inserted[3], ColumnData::Guid(Some(_))));
        let fixed = values(fix_up);
        assert_eq!(fixed.len(), 2);
        assert_eq!(fixed[1], inserted[1]);
        assert_eq!(fixed[0], inserted[7]);
    }
}
