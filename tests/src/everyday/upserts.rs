//! Rows that are inserted unless they are there.

use std::collections::BTreeMap;

use ordid::{KeyType as _, uuid::Uuid};
use ordid_sqlx::{Backend, Upserted};
use sqlx::Pool;

use super::{Change, Engine, EverydayWork, Mark, Note, Person, Take, marks, notes};
use crate::trials::Outcome;

fn people(count: usize) -> Vec<Person> {
    let person = |number| Person {
        id: Uuid::generate(),
        mail: Some(format!("{number}@example.org")),
        name: format!("person {number}"),
        visits: 1,
    };
    (0..count).map(person).collect()
}

/// Checks what a flush says of each person.
fn check_became<W: EverydayWork>(
    flushed: &ordid_sqlx::Flushed,
    people: &[Person],
    expected: impl Fn(usize) -> Upserted,
) {
    for (number, person) in people.iter().enumerate() {
        let became = W::became(flushed, person.id);
        assert_eq!(became, Some(expected(number)), "person {number}");
    }
    let count = |of: Upserted| (0..people.len()).filter(|it| expected(*it) == of).count();
    assert_eq!(
        [flushed.rows(), flushed.updated(), flushed.left_alone()],
        [
            count(Upserted::Inserted),
            count(Upserted::Updated),
            count(Upserted::LeftAlone)
        ]
    );
}

pub(super) async fn rows_are_inserted_updated_or_left_alone<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    // More than a statement takes.
    let mut all = people(2_300);
    let at_first: Vec<_> = all.iter().step_by(3).cloned().collect();
    let flushed = W::taken(Take::Upsert, &at_first, &pool).await?;
    check_became::<W>(&flushed, &at_first, |_| Upserted::Inserted);
    assert_eq!(W::Database::people(&pool).await?, at_first);

    for person in &mut all {
        person.visits += 1;
        person.name += " again";
    }
    let flushed = W::taken(Take::Upsert, all.iter().rev(), &pool).await?;
    check_became::<W>(&flushed, &all, |number| match number % 3 {
        0 => Upserted::Updated,
        _ => Upserted::Inserted,
    });
    assert_eq!(W::Database::people(&pool).await?, all);

    // All of them are there, and are as they are wanted.
    let flushed = W::taken(Take::Upsert, &all, &pool).await?;
    check_became::<W>(&flushed, &all, |_| Upserted::Updated);
    assert_eq!(W::Database::people(&pool).await?, all);

    let mut more = all.clone();
    more.iter_mut()
        .for_each(|it| it.name = "ignored".to_owned());
    let mut new = people(3);
    for (number, person) in new.iter_mut().enumerate() {
        person.mail = Some(format!("new {number}"));
    }
    more.extend(new.iter().cloned());
    let flushed = W::taken(Take::Ignore, &more, &pool).await?;
    check_became::<W>(&flushed, &more, |number| match number {
        0..2_300 => Upserted::LeftAlone,
        _ => Upserted::Inserted,
    });
    all.extend(new);
    assert_eq!(W::Database::people(&pool).await?, all);
    assert_eq!(W::became(&flushed, Uuid::generate()), None);
    Ok(())
}

pub(super) async fn rows_are_found_by_unique_columns<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let mut there = people(1_300);
    W::taken(Take::Upsert, &there, &pool).await?;

    // New keys, the same mail addresses; and people without one, who are never there.
    let mut again = people(1_400);
    for person in &mut again {
        person.name += " renamed";
        person.visits = 9;
    }
    for person in again.iter_mut().step_by(100) {
        person.mail = None;
    }
    let is_there = |number: usize| number < 1_300 && !number.is_multiple_of(100);
    for take in [
        Take::NameByMail,
        Take::NameAndMailByMail,
        Take::IgnoreByMail,
    ] {
        let outcome = match take {
            Take::IgnoreByMail => Upserted::LeftAlone,
            _ => Upserted::Updated,
        };
        let flushed = W::taken(take, &again, &pool).await?;
        check_became::<W>(&flushed, &again, |number| match is_there(number) {
            true => outcome,
            false => Upserted::Inserted,
        });
        let new = again.iter().enumerate();
        let new = new.filter(|(number, _)| !is_there(*number));
        there.extend(new.map(|(_, person)| person.clone()));
        if take != Take::IgnoreByMail {
            for (person, again) in there.iter_mut().zip(&again).take(1_300) {
                if again.mail.is_some() {
                    person.name.clone_from(&again.name);
                }
            }
        }
        there.sort_by_key(|it| it.id);
        assert_eq!(W::Database::people(&pool).await?, there, "{take:?}");
        // The next round has keys and addresses of its own.
        for (number, person) in again.iter_mut().enumerate() {
            person.id = Uuid::generate();
            person.name += "!";
            if number >= 1_300 {
                person.mail = Some(format!("{number} behind {take:?}"));
            }
        }
    }
    Ok(())
}

/// Nobody asks what became of the rows. MySQL, MariaDB and SQLite do not say it then, unless another unique index or a trigger
/// is there.
pub(super) async fn rows_are_written_without_a_report<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let (dialect, key) = (
        <W::Database as Backend>::PROFILE.dialect(),
        W::Database::KEY,
    );
    let writes = ["MySQL", "SQLite"].contains(&dialect);
    let execute = async |sql: String| W::Database::execute_sql(&pool, sql).await;
    let mut all = people(2_300);
    let is_there = |number: usize| number.is_multiple_of(3);
    // A mail address could be another's.
    let at_first: Vec<_> = all.iter().step_by(3).cloned().collect();
    let flushed = W::taken(Take::UpsertUnreported, &at_first, &pool).await?;
    check_became::<W>(&flushed, &at_first, |_| Upserted::Inserted);
    assert_eq!(W::Database::people(&pool).await?, at_first);

    execute("DROP TABLE people".to_owned()).await?;
    execute(format!(
        "CREATE TABLE people (id {key} PRIMARY KEY, mail VARCHAR(40), name VARCHAR(40) NOT NULL, visits BIGINT NOT NULL \
         CHECK (visits >= 0))"
    ))
    .await?;
    W::taken(Take::Upsert, &at_first, &pool).await?;
    all.iter_mut().for_each(|person| person.name += " again");
    let flushed = W::taken(Take::UpsertUnreported, all.iter().rev(), &pool).await?;
    match writes {
        true => {
            assert_eq!(flushed.unreported(), all.len());
            let others = [flushed.rows(), flushed.updated(), flushed.left_alone()];
            assert_eq!(others, [0; 3]);
            assert_eq!(W::became(&flushed, all[0].id), None);
        }
        false => check_became::<W>(&flushed, &all, |number| match is_there(number) {
            true => Upserted::Updated,
            false => Upserted::Inserted,
        }),
    }
    assert_eq!(W::Database::people(&pool).await?, all);

    // Those that are left alone are reported.
    let mut more = people(600);
    for (number, person) in more.iter_mut().enumerate() {
        match is_there(number) {
            true => person.id = all[number].id,
            false => all.push(person.clone()),
        }
    }
    all.sort_by_key(|it| it.id);
    let flushed = W::taken(Take::IgnoreUnreported, &more, &pool).await?;
    check_became::<W>(&flushed, &more, |number| match is_there(number) {
        true => Upserted::LeftAlone,
        false => Upserted::Inserted,
    });
    assert_eq!(W::Database::people(&pool).await?, all);

    // A few are not worth the question.
    let flushed = W::taken(Take::UpsertUnreported, &all[..9], &pool).await?;
    check_became::<W>(&flushed, &all[..9], |_| Upserted::Updated);

    // A row that is refused is found, and nothing is written.
    let mut refused = all.clone();
    refused.iter_mut().for_each(|it| it.name = "no".to_owned());
    refused[1_700].visits = -1;
    let error = W::taken(Take::UpsertUnreported, &refused, &pool).await;
    let error = error.unwrap_err();
    assert_eq!(
        error.row.key,
        Some(refused[1_700].id.to_string()),
        "{}",
        error.message
    );
    assert_eq!(W::Database::people(&pool).await?, all);

    // A trigger before an insert would run before the database finds the row.
    if writes {
        let body = match dialect {
            "MySQL" => "FOR EACH ROW SET NEW.visits = 77",
            _ => "BEGIN SELECT 1; END",
        };
        execute(format!(
            "CREATE TRIGGER first BEFORE INSERT ON people {body}"
        ))
        .await?;
        let flushed = W::taken(Take::UpsertUnreported, &all, &pool).await?;
        check_became::<W>(&flushed, &all, |_| Upserted::Updated);
        assert_eq!(W::Database::people(&pool).await?, all);
    }
    Ok(())
}

/// Rows with parents and children, with a key of two columns, and with a version.
pub(super) async fn rows_of_all_shapes_are_upserted<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let notes = notes(20);
    let mut all = marks(&notes, 3);
    W::flushed(notes[..10].iter().map(|it| (Change::Add, it)), &pool).await?;
    W::marked(all[..15].iter().map(|it| (Change::Add, it)), &pool).await?;
    // Parents that are new, others that are there, and their children, in one flush.
    let mut work = W::begin();
    all.iter_mut().for_each(|it| it.stars = 5);
    all.iter().for_each(|it| work.mark(Change::Upsert, it));
    let ignored = notes.iter().map(|it| Note {
        title: "ignored".to_owned(),
        ..it.clone()
    });
    let ignored: Vec<_> = ignored.collect();
    let ends = notes.iter().zip(&ignored).enumerate();
    let taken = ends.map(|(number, (new, there))| if number < 10 { there } else { new });
    taken.for_each(|it| work.note(Change::Ignore, it));
    let flushed = work.flush(&pool).await?;
    assert_eq!(
        [flushed.rows(), flushed.updated(), flushed.left_alone()],
        [45 + 10, 15, 10]
    );
    assert_eq!(W::Database::notes(&pool).await?, notes);
    assert_eq!(W::Database::marks(&pool).await?, all);

    // Beside an insert, an update and a delete of other rows.
    let more: Vec<Mark> = (0..4)
        .map(|number| Mark {
            number: 100 + number,
            ..all[7].clone()
        })
        .collect();
    let flushed = W::marked(
        [
            (Change::Add, &more[0]),
            (Change::Upsert, &more[1]),
            (Change::Ignore, &more[2]),
            (Change::Update, &all[0]),
            (Change::UpdateStars, &all[1]),
            (Change::Delete, &all[2]),
            (Change::Ignore, &all[3]),
        ],
        &pool,
    )
    .await?;
    assert_eq!(
        [
            flushed.rows(),
            flushed.updated(),
            flushed.deleted(),
            flushed.left_alone()
        ],
        [3, 2, 1, 1]
    );

    // An upsert would write over a version that nobody has read.
    let before = W::Database::notes(&pool).await?;
    let error = W::flushed([(Change::Upsert, &notes[0])], &pool)
        .await
        .unwrap_err();
    assert!(
        error.is_plan && error.message.contains("has a version"),
        "{}",
        error.message
    );
    assert_eq!(W::Database::notes(&pool).await?, before);
    Ok(())
}

pub(super) async fn a_refused_upsert_writes_nothing<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    let there = people(1_200);
    W::taken(Take::Upsert, &there[..1_000], &pool).await?;
    let before = W::Database::people(&pool).await?;
    // The mail address is another's: no race, though the key is new.
    let mut taken = there.clone();
    taken[1_100].mail.clone_from(&there[3].mail);
    let mut refused = there.clone();
    refused[1_150].visits = -1;
    let mut changed = there.clone();
    changed[700].visits = -1;
    for (people, row, is_unique) in [
        (&taken, 1_100, true),
        (&refused, 1_150, false),
        (&changed, 700, false),
    ] {
        let error = W::taken(Take::Upsert, people, &pool).await.unwrap_err();
        assert_eq!(error.is_unique_violation, is_unique, "{}", error.message);
        assert_eq!(
            error.row.key,
            Some(people[row].id.to_string()),
            "{}",
            error.message
        );
        assert!(
            error.message.contains("upsert into people"),
            "{}",
            error.message
        );
        assert!(
            !error.is_transient && !error.is_commit_unknown,
            "{}",
            error.message
        );
        assert_eq!(W::Database::people(&pool).await?, before);
    }
    // The same address twice in one flush, of which the database takes one.
    let mut twice = people(2);
    twice
        .iter_mut()
        .for_each(|it| it.mail = Some("twice".to_owned()));
    let error = W::taken(Take::NameByMail, &twice, &pool).await.unwrap_err();
    assert!(error.is_unique_violation, "{}", error.message);
    assert_eq!(W::Database::people(&pool).await?, before);
    // The same key twice cannot be planned.
    let twice = [&there[0], &there[0]];
    let error = W::taken(Take::Upsert, twice, &pool).await.unwrap_err();
    assert!(error.is_plan, "{}", error.message);
    Ok(())
}

/// Tasks upsert the same rows at the same time: each row is inserted by one of them, whatever they wait for.
pub(super) async fn each_row_is_inserted_by_one_of_many<W: EverydayWork>(
    pool: Pool<W::Database>,
) -> Outcome {
    for (round, take) in [
        Take::Upsert,
        Take::Ignore,
        Take::NameByMail,
        Take::IgnoreByMail,
    ]
    .into_iter()
    .enumerate()
    {
        let mut wanted = people(60);
        for person in &mut wanted {
            person.mail = person.mail.take().map(|mail| format!("{round} {mail}"));
        }
        let by_mail = matches!(take, Take::NameByMail | Take::IgnoreByMail);
        let task = async |task: usize| {
            let mut inserted = Vec::new();
            for part in 0..10 {
                let mut people: Vec<Person> = match task.is_multiple_of(2) {
                    true => wanted.iter().skip(part * 6).take(12).cloned().collect(),
                    false => wanted
                        .iter()
                        .skip(54 - part * 6)
                        .take(12)
                        .cloned()
                        .collect(),
                };
                if by_mail {
                    people.iter_mut().for_each(|it| it.id = Uuid::generate());
                }
                let flushed = loop {
                    match W::taken(take, &people, &pool).await {
                        // SQLite gives no turn to who waits for long.
                        Err(error) if error.is_transient => tokio::task::yield_now().await,
                        flushed => break flushed?,
                    }
                };
                tokio::task::yield_now().await;
                for person in people {
                    match W::became(&flushed, person.id) {
                        Some(Upserted::Inserted) => inserted.push(person.mail),
                        Some(Upserted::Updated | Upserted::LeftAlone) => {}
                        None => panic!("the flush does not know of {person:?}"),
                    }
                }
            }
            Outcome::Ok(inserted)
        };
        let inserted = tokio::try_join!(task(0), task(1), task(2), task(3))?;
        let inserted = [inserted.0, inserted.1, inserted.2, inserted.3].concat();
        let mut times = BTreeMap::new();
        for mail in inserted {
            *times.entry(mail).or_insert(0) += 1;
        }
        let expected = wanted.iter().map(|it| (it.mail.clone(), 1));
        assert_eq!(times, expected.collect(), "{take:?}");
    }
    let found = W::Database::people(&pool).await?;
    assert_eq!(found.len(), 240);
    Ok(())
}
