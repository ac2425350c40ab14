use alloc::vec::Vec;

use uuid::Uuid;

use super::*;
use crate::{key::StaticScheme, scheme::UuidV7, testing::with_keys};

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
