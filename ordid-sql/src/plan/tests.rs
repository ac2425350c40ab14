use std::collections::HashMap;

use super::*;
use crate::graph::tests::{Given, Link, planned, row, schema, to};
use ordid_core::storage::dialect::{Oracle, Postgres, SqlServer};

/// Tables with as many rows as given, the keys of which do not matter.
fn with_inserts(given: &mut [Given], rows: usize) {
    for given in given {
        given.inserts = (1..=rows)
            .map(|key| row(u128::try_from(key).unwrap(), &[]))
            .collect();
    }
}

#[test]
fn parents_come_first_at_any_depth() {
    // The first refers to both others, the second to the third and to itself: by the number of
    // foreign keys alone this could not be told from the reverse.
    let mut given = schema(&[vec![to(1), to(2)], vec![to(2), to(1)], vec![]]);
    with_inserts(&mut given, 1);
    let plan = planned::<Postgres>(&mut given).unwrap();
    assert_eq!(plan.tables().collect::<Vec<_>>(), [2, 1, 0]);
    let actions: Vec<_> = plan.actions().collect();
    assert_eq!(
        actions,
        [
            (Action::Insert, 2),
            (Action::Insert, 1),
            (Action::Insert, 0)
        ]
    );
}

#[test]
fn independent_tables_are_sorted_by_name() {
    // The third refers to the last one; no other to any.
    let mut given = schema(&[vec![], vec![], vec![to(4)], vec![], vec![]]);
    with_inserts(&mut given, 1);
    for (given, name) in given.iter_mut().zip(["d", "a", "b", "e", "c"]) {
        given.table.name = name;
    }
    let plan = planned::<Postgres>(&mut given).unwrap();
    assert_eq!(plan.tables().collect::<Vec<_>>(), [1, 4, 2, 0, 3]);
}

#[test]
fn tables_without_rows_close_no_circle() {
    let mut given = schema(&[vec![to(1)], vec![to(2)], vec![to(0)]]);
    with_inserts(&mut given[..2], 3);
    given[2].updates = vec![row(7, &[1])];
    let plan = planned::<Postgres>(&mut given).unwrap();
    let sent: Vec<_> = plan
        .chunks()
        .map(|it| (it.action, it.table, it.rows))
        .collect();
    assert_eq!(
        sent,
        [
            (Action::Insert, 1, 0..3),
            (Action::Insert, 0, 0..3),
            (Action::Update, 2, 0..1),
        ]
    );
    assert_eq!(plan.tables().count(), 3);
}

/// The database deletes the rows between them (`ON DELETE CASCADE`), which are no rows of the unit of work.
#[test]
fn children_are_deleted_first_also_over_a_table_without_deletes() {
    for names in [["a", "b", "c"], ["c", "b", "a"]] {
        // The third refers to the second, and that to the first.
        let mut given = schema(&[vec![], vec![to(0)], vec![to(1)]]);
        for (given, name) in given.iter_mut().zip(names) {
            given.table.name = name;
        }
        given[0].deletes = vec![row(1, &[])];
        given[2].deletes = vec![row(3, &[2])];
        let plan = planned::<Postgres>(&mut given).unwrap();
        let actions: Vec<_> = plan.actions().collect();
        assert_eq!(actions, [(Action::Delete, 2), (Action::Delete, 0)]);
    }
}

/// A journal does not have the table between them.
#[test]
fn tables_without_rows_do_not_order_the_chunks_of_a_flush() {
    let plan = |links: &[Vec<Link>]| {
        let mut given = schema(links);
        let last = given.len() - 1;
        for (table, name, key) in [(0, "z", 1), (last, "a", 3)] {
            given[table].table.name = name;
            given[table].deletes = vec![row(key, &vec![9; links[table].len()])];
        }
        let mut rows: Vec<&mut dyn TypelessRows> = given.iter_mut().map(|it| it as _).collect();
        let orders = Orders::ByTablesWithRows;
        let plan = Plan::of(&mut rows, &EngineProfile::POSTGRES, orders).unwrap();
        let of_last = plan.actions().map(|(_, table)| table == last);
        of_last.collect::<Vec<_>>()
    };
    assert_eq!(
        plan(&[vec![], vec![to(0)], vec![to(1)]]),
        plan(&[vec![], vec![]])
    );
}

#[test]
fn chunks_respect_the_limits_of_parameters_and_rows() {
    let rows = |plan: Plan| -> Vec<_> { plan.chunks().map(|chunk| chunk.rows).collect() };
    let mut given = schema(&[vec![to(0), to(0), to(0)]]);
    with_inserts(&mut given, 2001);
    let plan = planned::<Postgres>(&mut given).unwrap();
    assert_eq!(rows(plan), [0..1000, 1000..2000, 2000..2001]);
    // 2098 parameters for four columns.
    let plan = planned::<SqlServer>(&mut given).unwrap();
    assert_eq!(rows(plan), [0..524, 524..1048, 1048..1572, 1572..2001]);
    // One for the key alone, and two for a fix-up.
    given[0].deletes = std::mem::take(&mut given[0].inserts);
    let plan = planned::<SqlServer>(&mut given).unwrap();
    assert_eq!(rows(plan), [0..1000, 1000..2000, 2000..2001]);

    static WIDE: [&str; 70_000] = ["id"; 70_000];
    with_inserts(&mut given, 1001);
    given[0].deletes.clear();
    given[0].table.columns = &WIDE;
    assert_eq!(
        planned::<Postgres>(&mut given).unwrap_err().to_string(),
        "table t0 has 70000 columns, more than the 65535 parameters of a statement"
    );
    // Where a parameter takes all rows of its column, their number does not matter.
    given[0].table.columns = &WIDE[..65_535];
    let plan = planned::<Oracle>(&mut given).unwrap();
    assert_eq!(rows(plan), [0..1000, 1000..1001]);
}

#[test]
fn chunk_at_finds_a_chunk_by_position() {
    let mut given = schema(&[vec![to(1)], vec![to(0)], vec![]]);
    with_inserts(&mut given, 1500);
    // A chain of tables in turns, and a circle that is cut.
    for key in 1..=20 {
        let at = usize::try_from(key).unwrap() - 1;
        given[0].inserts[at] = row(key, &[key]);
        given[1].inserts[at] = row(key, &[key + 1]);
    }
    given[1].inserts[19].up = vec![Some(1)];
    given[2].deletes = (2000..5000).map(|key| row(key, &[])).collect();
    let plan = planned::<Postgres>(&mut given).unwrap();
    let chunks: Vec<_> = plan.chunks().collect();
    assert!(chunks.len() > 40, "{}", chunks.len());
    assert_eq!((plan.len(), plan.is_empty()), (chunks.len(), false));
    for (position, chunk) in chunks.iter().enumerate() {
        assert_eq!(plan.chunk(position).as_ref(), Some(chunk));
    }
    assert_eq!(plan.chunk(chunks.len()), None);
    // Numbers rise, and rows follow each other, for each action and table.
    let mut last: HashMap<(Action, usize), (usize, usize)> = HashMap::new();
    for chunk in chunks {
        let (number, start) = last.entry((chunk.action, chunk.table)).or_default();
        assert_eq!((chunk.number, chunk.rows.start), (*number, *start));
        (*number, *start) = (chunk.number + 1, chunk.rows.end);
    }
    assert_eq!(Plan::default().chunk(0), None);
    assert!(Plan::default().is_empty() && Plan::default().only_inserts());
}

#[test]
fn the_repeated_chunks_end_with_the_failed_one() {
    let mut given = schema(&[vec![], vec![to(0)]]);
    with_inserts(&mut given, 3500);
    let plan = planned::<Postgres>(&mut given).unwrap();
    let chunks: Vec<_> = plan.chunks().collect();
    let of_child: Vec<_> = (0..chunks.len())
        .filter(|&it| chunks[it].table == 1)
        .collect();
    assert!(of_child.len() > 2, "{chunks:?}");
    let (first, last) = (of_child[1], of_child[2]);
    let failed = Chunk {
        rows: chunks[first].rows.start..chunks[last].rows.end,
        ..chunks[first].clone()
    };
    let (before, suspected) = plan.towards(&failed);
    assert_eq!(before, chunks[..first]);
    assert_eq!(suspected, chunks[first..=last]);
    // Up to a row, the chunk that has it.
    let row = chunks[first].singly().nth(1).unwrap();
    assert_eq!(row.rows.start, chunks[first].rows.start + 1);
    assert_eq!(row.rows.len(), 1);
    let (before, suspected) = plan.towards(&row);
    assert_eq!(before, chunks[..first]);
    assert_eq!(suspected, chunks[first..=first]);
}

/// What failed were rows of a table by one command, over several chunks: no chunk of another table that
/// comes after the last of these is sent before the row is found, as it may refer to rows that failed.
#[test]
fn the_search_for_a_failed_row_sends_no_chunks_of_later_tables() {
    let mut given = schema(&[vec![], vec![to(0)], vec![to(1)]]);
    with_inserts(&mut given, 2500);
    let plan = planned::<Postgres>(&mut given).unwrap();
    let chunks: Vec<_> = plan.chunks().collect();
    assert_eq!(chunks.len(), 9);
    for (failed, first, last) in [(0..2500, 3, 5), (0..1, 3, 3), (1999..2001, 4, 5)] {
        let failed = Chunk {
            rows: failed,
            ..chunks[3].clone()
        };
        let (before, suspected) = plan.towards(&failed);
        assert_eq!(
            (&before[..], &suspected[..]),
            (&chunks[..first], &chunks[first..=last])
        );
    }

    // In a circle, chunks of one table lie between those of the other.
    let mut given = schema(&[vec![to(1)], vec![to(0)]]);
    with_inserts(&mut given, 6);
    for key in 1..=6 {
        let at = usize::try_from(key).unwrap() - 1;
        given[0].inserts[at] = row(key, &[key - 1]);
        given[1].inserts[at] = row(key, &[key]);
    }
    let plan = planned::<Postgres>(&mut given).unwrap();
    let chunks: Vec<_> = plan.chunks().collect();
    let of_first: Vec<_> = (0..chunks.len())
        .filter(|it| chunks[*it].table == 0)
        .collect();
    assert!(of_first.len() > 3, "{chunks:?}");
    let [_, first, last, next, ..] = of_first[..] else {
        panic!("several turns");
    };
    assert!(
        last > first + 1 && next > last + 1,
        "the other table lies between"
    );
    let failed = Chunk {
        rows: chunks[first].rows.start..chunks[last].rows.end,
        ..chunks[first].clone()
    };
    let (before, suspected) = plan.towards(&failed);
    assert_eq!(
        (&before[..], &suspected[..]),
        (&chunks[..first], &chunks[first..=last])
    );
}

/// Each part begins a statement, wherever the one before has ended.
#[test]
fn parts_of_a_limit_below_a_statements_rows_are_as_large_as_it() {
    let plan = Plan::of_rows(
        &[(Action::Insert, 0, 10_000), (Action::Insert, 1, 500)],
        1_000,
    );
    for (limit, expected) in [(999, 11), (600, 18), (1_500, 10), (2_500, 5)] {
        let (mut start, mut sizes, mut last) = (0, Vec::new(), None);
        while start < plan.rows() {
            let most = plan.rows().min(start + limit);
            let end = match most == plan.rows() {
                true => most,
                false => plan.statement_end(start, most),
            };
            for chunk in plan.part(start..end).chunks() {
                let number = (chunk.table, chunk.number);
                assert!(
                    last.is_none_or(|last| last <= number),
                    "{last:?} {number:?}"
                );
                last = Some(number);
            }
            sizes.push(end - start);
            start = end;
        }
        assert_eq!(sizes.len(), expected, "{limit}: {sizes:?}");
    }
}
