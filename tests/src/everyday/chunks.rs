//! Units of work that are too large for one transaction.

use super::*;

/// So many rows go by one transaction: not as many as by one statement, nor a part of those.
const LIMITS: ChunkLimits = ChunkLimits::rows(700);

/// Returns how many marker rows there are.
async fn markers<W: EverydayWork>(pool: &Pool<W::Database>) -> Outcome<i64> {
    W::Database::count(pool, "ordid_flushes").await
}

/// Inserts, updates and deletes of two tables, children last and first.
pub(super) async fn a_unit_of_work_is_written_in_chunks<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let mut notes = notes(2_000);
    let marks: Vec<Mark> = notes[..500]
        .iter()
        .map(|note| Mark {
            note: note.id,
            number: 1,
            title: "child".to_owned(),
            stars: 1,
        })
        .collect();
    let mut work = W::begin().in_chunks(LIMITS);
    for mark in &marks {
        work.mark(Change::Add, mark);
    }
    for note in &notes {
        work.note(Change::Add, note);
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.rows(), 2_500);
    assert_eq!(W::Database::notes(&pool).await?, notes);
    assert_eq!(W::Database::marks(&pool).await?, marks);
    let before = markers::<W>(&pool).await?;
    assert!((4..=6).contains(&before), "{before}");

    // The first notes lose their marks and go; the next ones change.
    let mut work = W::begin().in_chunks(LIMITS);
    for note in &mut notes[500..] {
        note.stars = 5;
        work.note(Change::Update, note);
        note.version += 1;
    }
    for note in &notes[..500] {
        work.note(Change::Delete, note);
    }
    for mark in &marks {
        work.mark(Change::Delete, mark);
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!([flushed.updated(), flushed.deleted()], [1_500, 1_000]);
    assert_eq!(W::Database::notes(&pool).await?, notes[500..]);
    assert!(W::Database::marks(&pool).await?.is_empty());
    assert!(markers::<W>(&pool).await? >= before + 4);
    Ok(())
}

/// The stale row is in the second chunk or later. Once it is as it was read, the rest follows.
pub(super) async fn a_refused_chunk_leaves_those_before_it<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let mut notes = notes(1_500);
    W::flushed(notes.iter().map(|it| (Change::Add, it)), &pool).await?;
    let stale = notes[1_450].clone();
    changed_elsewhere(&pool, &stale, 9).await?;
    let mut work = W::begin().in_chunks(LIMITS);
    for note in &mut notes {
        note.stars = 3;
        work.note(Change::Update, note);
        note.version += 1;
    }
    let failed = work.flush(&pool).await.unwrap_err();
    assert!(failed.is_stale, "{failed}");
    assert_eq!(failed.row.key, Some(stale.id.to_string()), "{failed}");
    let committed = usize::try_from(failed.row.committed_chunks)?;
    assert!((1..=2).contains(&committed), "{failed}");
    let written = W::Database::notes(&pool).await?;
    let written = written.iter().filter(|it| it.stars == 3).count();
    assert!((1..=1_400).contains(&written), "{written}");

    changed_elsewhere(&pool, &stale, stale.version).await?;
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.updated(), 1_500);
    assert_eq!(W::Database::notes(&pool).await?, notes);
    Ok(())
}

/// The COMMIT of one chunk lands and its answer is lost, that of the next one does not land, and that of the one after it
/// lands again.
pub(super) async fn lost_commit_of_a_chunk<W>(pool: Pool<W::Database>) -> Outcome
where
    W: EverydayWork<Database: Remote>,
{
    let notes = notes(2_500);
    // As long as the packet of a COMMIT is.
    let packet = if W::Database::KEY == "UUID" { 12 } else { 11 };
    let options = pool.connect_options();
    let proxy = Proxy::start(W::Database::address(&options)?).await?;
    proxy.plan([packet, 0, packet].map(|bytes| Fault::Cut(At::Commit(bytes))));
    let through = W::Database::through(&options, proxy.port());
    let through = Pool::<W::Database>::connect_lazy_with(through);
    let mut work = W::begin().in_chunks(LIMITS);
    for note in &notes {
        work.note(Change::Add, note);
    }
    let flushed = work.flush(&through).await;
    through.close().await;
    assert_eq!(flushed?.rows(), 2_500);
    let commits = proxy
        .traffic()
        .iter()
        .filter(|it| it.commit.is_some())
        .count();
    assert!(commits >= 4, "{commits}");
    assert_eq!(W::Database::notes(&pool).await?, notes);
    let chunks = markers::<W>(&pool).await?;
    assert!((4..=5).contains(&chunks), "{chunks}");
    Ok(())
}
