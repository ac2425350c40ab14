use alloc::{collections::BTreeSet, vec::Vec};

use proptest::{
    collection::{btree_set, vec},
    prelude::{any, prop_assert, proptest},
};
use uuid::Uuid;

use super::*;
use crate::{
    key::{Generated, StaticScheme},
    scheme::{Sequence, UuidV7},
    testing::with_keys,
};

fn table() -> Vec<Uuid> {
    with_keys(7, || (0..10).map(|_| Uuid::generate()).collect())
}

/// Returns the rows that a database would return.
fn select(table: &[Uuid], slice: &Slice<Uuid>) -> Vec<Uuid> {
    let is_in = |key: &&Uuid| {
        slice.above.is_none_or(|above| **key > above)
            && slice.below.is_none_or(|below| **key < below)
    };
    let mut rows: Vec<Uuid> = table.iter().filter(is_in).copied().collect();
    if slice.is_descending {
        rows.reverse();
    }
    rows.truncate(slice.rows() as usize);
    rows
}

fn read(table: &[Uuid], page: Page<Uuid>, order: ListOrder) -> Connection<Uuid, Uuid> {
    let slice = page.slice(order, 100).unwrap();
    Connection::new(&slice, select(table, &slice), |key| *key)
}

/// The specification's algorithm (`EdgesToReturn`, `ApplyCursorsToEdges`), over the whole list.
fn by_relay(list: &[Uuid], page: Page<Uuid>) -> Vec<Uuid> {
    let mut edges = list.to_vec();
    let place =
        |edges: &[Uuid], cursor: Cursor<Uuid>| edges.iter().position(|key| *key == cursor.key());
    if let Some(at) = page.after.and_then(|cursor| place(&edges, cursor)) {
        edges.drain(..=at);
    }
    if let Some(at) = page.before.and_then(|cursor| place(&edges, cursor)) {
        edges.truncate(at);
    }
    if let Some(first) = page.first {
        edges.truncate(first as usize);
    }
    if let Some(last) = page.last {
        edges.drain(..edges.len().saturating_sub(last as usize));
    }
    edges
}

#[test]
fn pages_are_those_of_relays_algorithm() {
    let table = table();
    let cursors: Vec<_> = core::iter::once(None)
        .chain(table.iter().map(|key| Some(Cursor::new(*key))))
        .collect();
    let mut seen = 0;
    for order in [ListOrder::Ascending, ListOrder::Descending] {
        let mut list = table.clone();
        if order == ListOrder::Descending {
            list.reverse();
        }
        for (after, before) in cursors
            .iter()
            .flat_map(|after| cursors.iter().map(move |before| (*after, *before)))
        {
            // Crossed places: Relay's algorithm then takes the second for one that is not there.
            let is_crossed = after.zip(before).is_some_and(|(after, before)| {
                let place = |cursor: Cursor<Uuid>| list.iter().position(|key| *key == cursor.key());
                place(after) >= place(before)
            });
            for count in [0, 1, 3, 10, 11] {
                for page in [Page::first(count), Page::last(count), Page::ALL] {
                    let page = Page {
                        after,
                        before,
                        ..page
                    };
                    let found = read(&table, page, order);
                    let rows: Vec<Uuid> = found.nodes().copied().collect();
                    if is_crossed {
                        assert!(rows.is_empty());
                        continue;
                    }
                    assert_eq!(rows, by_relay(&list, page), "{page:?} {order:?}");
                    let info = &found.page_info;
                    assert_eq!(info.start_cursor.map(Cursor::key), rows.first().copied());
                    assert_eq!(info.end_cursor.map(Cursor::key), rows.last().copied());
                    let all = by_relay(
                        &list,
                        Page {
                            first: None,
                            last: None,
                            ..page
                        },
                    );
                    let is_whole = rows.len() == all.len();
                    let expected = match page.last {
                        Some(_) => (!is_whole, before.is_some()),
                        None => (after.is_some(), !is_whole),
                    };
                    assert_eq!((info.has_previous_page, info.has_next_page), expected);
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 1_000);
}

#[test]
fn one_page_follows_the_other_to_the_end_and_back() {
    let table = table();
    let mut found = Vec::new();
    let mut page = Page::first(3);
    let last = loop {
        let connection = read(&table, page, ListOrder::Ascending);
        found.extend(connection.nodes().copied());
        match connection.page_info {
            PageInfo {
                has_next_page: true,
                end_cursor: Some(end),
                ..
            } => page = Page::first(3).after(end),
            info => break info,
        }
    };
    assert_eq!(found, table);
    // The page before the last one, which has one row.
    let before = read(
        &table,
        Page::last(3).before(last.start_cursor.unwrap()),
        ListOrder::Ascending,
    );
    assert!(before.nodes().eq(&table[6..9]));
    assert!(before.page_info.has_next_page && before.page_info.has_previous_page);
}

#[test]
fn a_page_has_no_more_rows_than_the_program_allows() {
    for page in [Page::<Uuid>::first(1_000), Page::last(1_000), Page::ALL] {
        let slice = page.slice(ListOrder::Ascending, 4).unwrap();
        assert_eq!(slice.rows(), 5);
        let found = Connection::new(&slice, table(), |key| *key);
        assert_eq!(found.edges.len(), 4);
    }
    let all = Page::<Uuid>::ALL
        .slice(ListOrder::Ascending, u32::MAX)
        .unwrap();
    assert_eq!(all.rows(), u32::MAX);
}

#[test]
fn first_and_last_together_are_refused() {
    let page = Page::<Uuid> {
        first: Some(1),
        last: Some(2),
        ..Page::ALL
    };
    let error = page.slice(ListOrder::Ascending, 10).unwrap_err();
    assert!(error.is_parse());
    assert_eq!(
        error.to_string(),
        "expected either `first` or `last`, found both: first 1, last 2"
    );
}

#[test]
fn cursors_are_opaque_and_strict() {
    let key = UuidV7::generate().into_raw();
    let cursor = Cursor::new(key);
    let text = cursor.to_string();
    assert_eq!(text.parse(), Ok(cursor));
    assert!(
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    );
    for wrong in [
        "",
        "!",
        &key.to_string(),
        &alloc::format!("{text}A"),
        &alloc::format!("{text}="),
        &text[1..],
        "_w",
        &"A".repeat(1 << 20),
    ] {
        let error = wrong.parse::<Cursor<Uuid>>().unwrap_err();
        assert!(error.is_parse(), "{error}");
        assert!(error.to_string().len() < 250, "{error}");
    }
}

type Line = CompositeKey<(Uuid, Uuid, i32)>;

fn cursor(tenant: u128, order: u128, number: i32) -> Cursor<Line> {
    let [tenant, order] = [tenant, order].map(Uuid::from_u128);
    Cursor::new(CompositeKey((tenant, order, number)))
}

#[test]
fn a_cursor_of_several_columns_has_one_text() {
    let cursor = cursor(1, 2, i32::MIN);
    let text = cursor.to_string();
    assert_eq!(text.parse(), Ok(cursor));
    let one = Cursor::new(Uuid::from_u128(1)).to_string();
    let two = Cursor::new(CompositeKey((Uuid::from_u128(1), Uuid::from_u128(2)))).to_string();
    for wrong in [one, two, format!("{text}A"), format!("{text}=")] {
        let error = wrong.parse::<Cursor<Line>>().unwrap_err();
        assert!(error.is_parse(), "{error}");
        assert!(error.to_string().len() < 250, "{error}");
    }
    let error = text.parse::<Cursor<Uuid>>().unwrap_err();
    assert!(error.is_parse(), "{error}");
}

/// The text is base64 of four prefixes, four `_`, 19 digits each, and the marks between them.
#[test]
fn the_longest_cursor_is_read() {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    struct Long(i64);

    impl fmt::Display for Long {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            Sequence::write_text(self.0, Self::PREFIX, f)
        }
    }

    impl KeyType for Long {
        type Raw = i64;
        type Scheme = Sequence;
        const NAME: &'static str = "Long";
        const PREFIX: Option<&'static str> =
            Some("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk");
        fn from_generated(key: Generated<Sequence>) -> Self {
            Self(key.into_raw())
        }
        fn to_raw(self) -> i64 {
            self.0
        }
        fn from_raw(raw: i64) -> Result<Self, Error> {
            Generated::check(raw, "Long").map(Self::from_generated)
        }
    }

    let key = Long(i64::MAX);
    let cursor = Cursor::new(CompositeKey((key, key, key, key)));
    let text = cursor.to_string();
    assert!(text.len() > 450);
    assert_eq!(text.parse(), Ok(cursor));
}

#[test]
fn a_cursor_of_another_list_is_refused() {
    let [one, two] = [1, 2].map(Uuid::from_u128);
    let page = Page::first(1).after(cursor(1, 2, 3));
    assert_eq!(page.within(one), Ok(page));
    assert_eq!(page.within((one, two)), Ok(page));
    assert_eq!(Page::<Line>::last(1).within(two), Ok(Page::last(1)));
    for (page, is_within) in [
        (page.before(cursor(1, 3, 3)), true),
        (page.before(cursor(2, 2, 3)), false),
        (Page::last(1).before(cursor(2, 2, 3)), false),
    ] {
        assert_eq!(page.within(one).is_ok(), is_within);
        let error = page.within((one, two)).unwrap_err();
        assert!(error.is_parse());
    }
    assert_eq!(
        page.within(two).unwrap_err().to_string(),
        "expected a cursor of the list within 00000000-0000-0000-0000-000000000002, \
         found one within 00000000-0000-0000-0000-000000000001"
    );
}

type Row = CompositeKey<(i64, i32)>;

/// Returns the rows of a table that a database would return.
fn page_of(table: &BTreeSet<Row>, page: Page<Row>, order: ListOrder) -> Connection<Row, Row> {
    let slice = page.slice(order, 100).unwrap();
    let is_in = |key: &Row| {
        slice.above.is_none_or(|above| *key > above) && slice.below.is_none_or(|below| *key < below)
    };
    let mut rows: Vec<Row> = table.iter().copied().filter(is_in).collect();
    if slice.is_descending {
        rows.reverse();
    }
    rows.truncate(slice.rows() as usize);
    Connection::new(&slice, rows, |key| *key)
}

proptest! {
    /// Pages of any size, in both directions and orders, while other rows come in between. Cursors go through their text.
    #[test]
    fn pages_have_each_row_once_and_in_order(
        old in btree_set((-3_i64..3, any::<i32>()), 0..40),
        new in vec((-3_i64..3, any::<i32>()), 20),
        size in 1_u32..12,
        is_descending: bool,
        is_forward: bool,
    ) {
        let order = if is_descending { ListOrder::Descending } else { ListOrder::Ascending };
        let old: BTreeSet<Row> = old.into_iter().map(CompositeKey).collect();
        let mut new = new.into_iter().map(CompositeKey);
        let mut table = old.clone();
        let mut page = if is_forward { Page::first(size) } else { Page::last(size) };
        let mut found = Vec::new();
        loop {
            let read = page_of(&table, page, order);
            let info = read.page_info;
            let nodes: Vec<Row> = read.edges.into_iter().map(|edge| edge.node).collect();
            let at = if is_forward { found.len() } else { 0 };
            found.splice(at..at, nodes);
            table.extend(new.next());
            let (has_more, end) = match is_forward {
                true => (info.has_next_page, info.end_cursor),
                false => (info.has_previous_page, info.start_cursor),
            };
            let Some(end) = end.filter(|_| has_more) else { break };
            let end: Cursor<Row> = end.to_string().parse().unwrap();
            page = if is_forward { page.after(end) } else { page.before(end) };
        }
        if is_descending {
            found.reverse();
        }
        prop_assert!(found.is_sorted_by(|one, next| one < next), "{:?}", found);
        prop_assert!(found.iter().all(|row| table.contains(row)));
        prop_assert!(old.iter().all(|row| found.contains(row)));
    }
}
