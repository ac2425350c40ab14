//! Updates, deletes and circles on a live database: the same tests on each engine.

pub mod deferred;
pub mod finds;
pub mod twins;

use ordid::{KeyType, OrderedKey, storage::Dialect as _, uuid::Uuid};
use ordid_sql::{FlushDialect, TreeDeletes};
use ordid_sqlx::{Error, UnitOfWork};
use ordid_tests::soak;
use sqlx::Pool;

use crate::{
    Outcome,
    database::{Keeps, Live, Reads, Test, Work, all_of, begin, read},
};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct TeamId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct PersonId(Uuid);

/// A team and the people in it refer to each other.
#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "team")]
pub struct Team {
    pub id: TeamId,
    /// Before the key in no table, behind it in this one.
    pub name: String,
    #[ordid(parent)]
    pub lead: Option<PersonId>,
}

/// The key is neither first nor last, and a name has to be quoted.
#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "person", columns)]
pub struct Person {
    #[ordid(parent)]
    #[sqlx(rename = "group")]
    pub team: TeamId,
    #[ordid(key)]
    pub id: PersonId,
    #[ordid(parent)]
    pub mentor: Option<PersonId>,
    pub age: i32,
}

pub fn person(team: TeamId, mentor: Option<PersonId>, age: i32) -> Person {
    Person {
        team,
        id: PersonId::generate(),
        mentor,
        age,
    }
}

/// Who is in which project: once.
#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "membership")]
pub struct Membership {
    pub id: Uuid,
    #[ordid(parent)]
    pub team: TeamId,
    #[ordid(parent)]
    pub person: PersonId,
    /// With `number`, what the membership is known by to people.
    pub year: i32,
    pub number: i32,
}

/// Refers to a membership by what it is known by, too.
#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "fee")]
pub struct Fee {
    pub id: Uuid,
    #[ordid(parent = Membership)]
    pub membership: Uuid,
    pub year: i32,
    pub number: i32,
    pub amount: i64,
}

/// The tests of a database.
pub fn tests<DB: Changes>() -> [(&'static str, Test<DB>); 10] {
    crate::database::tests![
        circles_are_fixed_up,
        a_deep_tree_goes_leaves_first,
        a_long_chain_goes_in_few_statements,
        all_in_one_flush,
        some_columns_are_updated,
        a_missing_row_is_told,
        a_refused_change_is_told,
        many_to_many_and_natural_keys,
        unique_values_are_not_exchanged,
        what_contradicts_itself_is_told,
    ]
}

all_of! {
    /// A database that has the tables of [`create`].
    pub trait Changes:
        Live
        + Keeps<Team>
        + Keeps<Person>
        + Keeps<Membership>
        + Keeps<Fee>
        + Reads<Team>
        + Reads<Person>
        + Reads<Membership>
}

async fn create<DB: Live>(pool: &Pool<DB>) -> Result<(), sqlx::Error> {
    let (key, options) = (DB::KEY, DB::OPTIONS);
    // Reserved words: `lead` is one of MySQL's.
    let (group, lead) = (DB::Dialect::quote("group"), DB::Dialect::quote("lead"));
    for sql in [
        format!(
            "CREATE TABLE team (id {key} NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL \
             UNIQUE, {lead} {key} {}) {options}",
            DB::forward("person")
        ),
        format!(
            "CREATE TABLE person ({group} {key} NOT NULL, id {key} NOT NULL PRIMARY KEY, \
             mentor {key}, age INTEGER NOT NULL CHECK (age <> 13), \
             FOREIGN KEY ({group}) REFERENCES team (id), \
             FOREIGN KEY (mentor) REFERENCES person (id)) {options}"
        ),
        DB::backward("team", &lead, "person"),
        format!(
            "CREATE TABLE membership (id {key} NOT NULL PRIMARY KEY, team {key} NOT NULL, \
             person {key} NOT NULL, year INTEGER NOT NULL, number INTEGER NOT NULL, \
             UNIQUE (team, person), UNIQUE (year, number), \
             FOREIGN KEY (team) REFERENCES team (id), \
             FOREIGN KEY (person) REFERENCES person (id)) {options}"
        ),
        format!(
            "CREATE TABLE fee (id {key} NOT NULL PRIMARY KEY, membership {key} NOT NULL, \
             year INTEGER NOT NULL, number INTEGER NOT NULL, amount BIGINT NOT NULL, \
             FOREIGN KEY (membership) REFERENCES membership (id), \
             FOREIGN KEY (year, number) REFERENCES membership (year, number)) {options}"
        ),
    ] {
        if !sql.is_empty() {
            DB::script(pool, &sql).await?;
        }
    }
    DB::create_flushes(pool).await
}

async fn people<DB: Changes>(pool: &Pool<DB>) -> Result<Vec<Person>, sqlx::Error> {
    read(pool, "SELECT * FROM person ORDER BY id").await
}

fn team<DB: Changes>(work: &mut Work<UnitOfWork<DB>>, name: &str) -> TeamId {
    work.add(Team {
        id: TeamId::generate(),
        name: name.into(),
        lead: None,
    })
}

/// A team's lead is a person of the team, and three people are each other's mentors.
async fn circles_are_fixed_up<DB: Changes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let mut work = begin::<DB>();
    let mut teams = Vec::new();
    let mut wanted = Vec::new();
    for number in 0..700 {
        let id = TeamId::generate();
        let mut ring = [20, 30, 40].map(|age| person(id, None, age));
        for (mentor, pupil) in [(0, 1), (1, 2), (2, 0)] {
            ring[pupil].mentor = Some(ring[mentor].id);
        }
        let lead = (number % 7 > 0).then_some(ring[1].id);
        teams.push(Team {
            id,
            name: number.to_string(),
            lead,
        });
        wanted.extend(ring);
    }
    for person in wanted.iter().rev() {
        work.add(person.clone());
    }
    for team in &teams {
        work.add(team.clone());
    }
    let plan = work.plan()?;
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.rows(), 2_800);
    let sent: usize = flushed.tables.iter().map(|table| table.statements).sum();
    let planned: usize = plan.tables.iter().map(|table| table.statements.len()).sum();
    assert!(sent <= planned, "COPY is one for many: {sent}, {planned}");
    let read: Vec<Team> = read(&pool, "SELECT * FROM team ORDER BY id").await?;
    assert_eq!(read, teams);
    wanted.sort_by_key(|person| person.id);
    assert_eq!(people(&pool).await?, wanted);

    // And out again.
    for person in &wanted {
        work.delete(person);
    }
    for team in &teams {
        work.delete(team);
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.deleted(), 2_800);
    assert_eq!(
        (
            DB::count(&pool, "team").await?,
            DB::count(&pool, "person").await?
        ),
        (0, 0)
    );
    Ok(())
}

/// A tree that is 50 deep, deleted in any order with its root's team; each level is more than
/// a row, and all are more than a statement.
async fn a_deep_tree_goes_leaves_first<DB: Changes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let mut work = begin::<DB>();
    let team = team(&mut work, "all");
    let mut levels = vec![vec![person(team, None, 1)]];
    for _ in 1..50 {
        let above = &levels[levels.len() - 1];
        let pupils: Vec<_> = (0..30)
            .map(|number| person(team, Some(above[number % above.len()].id), 1))
            .collect();
        levels.push(pupils);
    }
    let mut tree = levels.concat();
    // Children with keys below their parents', too.
    for person in &tree {
        work.add(person.clone());
    }
    work.flush(&pool).await?;
    tree.rotate_left(777);
    let stays = tree
        .iter()
        .position(|person| person.mentor.is_none())
        .unwrap();
    let root = tree.swap_remove(stays);
    for person in &tree {
        work.delete(person);
    }
    assert_eq!(work.flush(&pool).await?.deleted(), 49 * 30);
    assert_eq!(people(&pool).await?, std::slice::from_ref(&root));
    work.delete(&Team {
        id: team,
        name: String::new(),
        lead: None,
    });
    work.delete(&root);
    assert_eq!(work.flush(&pool).await?.deleted(), 2);
    assert_eq!(DB::count(&pool, "team").await?, 0);
    Ok(())
}

/// Each row is the parent of the next, or the child. Only SQLite takes a statement for each.
async fn a_long_chain_goes_in_few_statements<DB: Changes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    // Without the index, the server looks for each deleted row in the whole table.
    DB::script(&pool, "CREATE INDEX by_mentor ON person (mentor)").await?;
    let length = if soak() { 100_000 } else { 5_000 };
    for rises in [true, false] {
        let mut work = begin::<DB>();
        let team = team(&mut work, if rises { "rising" } else { "falling" });
        let mut chain: Vec<Person> = (0..length).map(|_| person(team, None, 1)).collect();
        let ids: Vec<_> = chain.iter().map(|it| it.id).collect();
        let mentors = match rises {
            true => &mut chain[1..],
            false => &mut chain[..length - 1],
        };
        let ids = if rises { &ids[..] } else { &ids[1..] };
        for (person, mentor) in mentors.iter_mut().zip(ids) {
            person.mentor = Some(*mentor);
        }
        for person in &chain {
            work.add(person.clone());
        }
        work.flush(&pool).await?;
        for person in &chain {
            work.delete(person);
        }
        let flushed = work.flush(&pool).await?;
        println!(
            "{length} rows of a chain were deleted in {:?}, rising: {rises}",
            flushed.elapsed
        );
        let people = flushed.tables.iter().find(|it| it.table == "person");
        let people = people.ok_or("no people")?;
        let engine = <DB::Dialect as FlushDialect>::PROFILE;
        let statements = match engine.tree_deletes {
            TreeDeletes::OneDepth => length,
            // Those whose parent has the greater key are cut off first.
            TreeDeletes::ByKey if !rises => 2 * length / engine.max_rows,
            _ => length / engine.max_rows,
        };
        assert_eq!((people.deleted, people.statements), (length, statements));
        assert_eq!(DB::count(&pool, "person").await?, 0);
    }
    Ok(())
}

/// Inserts, updates and deletes in one flush: a row moves to a team that is new, and its old
/// team goes.
async fn all_in_one_flush<DB: Changes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let mut work = begin::<DB>();
    let old = team(&mut work, "old");
    let mut movers: Vec<_> = (0..1_200).map(|age| person(old, None, age + 14)).collect();
    let leaver = person(old, Some(movers[0].id), 99);
    for person in movers.iter().chain([&leaver]) {
        work.add(person.clone());
    }
    work.flush(&pool).await?;

    work.delete(&Team {
        id: old,
        name: String::new(),
        lead: None,
    });
    work.delete(&leaver);
    let new = TeamId::generate();
    let first = person(new, Some(movers[3].id), 7);
    for mover in &mut movers {
        mover.team = new;
        mover.mentor = Some(first.id);
        work.update(mover.clone());
    }
    work.add(first.clone());
    work.add(Team {
        id: new,
        name: "old".into(),
        lead: None,
    });
    // Its name is taken until the old team is gone, which is last.
    let error = work.flush(&pool).await.unwrap_err();
    assert!(
        error.is_unique_violation() && error.table() == Some("team"),
        "{error}"
    );
    assert_eq!(DB::count(&pool, "person").await?, 1_201);

    DB::script(&pool, "UPDATE team SET name = 'past'").await?;
    let flushed = work.flush(&pool).await?;
    assert_eq!(
        (flushed.rows(), flushed.updated(), flushed.deleted()),
        (2, 1_200, 2)
    );
    assert!(work.is_empty());
    movers.push(first);
    movers.sort_by_key(|person| person.id);
    assert_eq!(people(&pool).await?, movers);
    assert_eq!(DB::count(&pool, "team").await?, 1);
    Ok(())
}

/// People in a team, two of whom are nobody's mentor.
async fn filled<DB: Changes>(pool: &Pool<DB>) -> Result<Vec<Person>, Error> {
    create(pool).await.unwrap();
    let mut work = begin::<DB>();
    let team = team(&mut work, "all");
    let mut people: Vec<_> = (0..2_500).map(|_| person(team, None, 1)).collect();
    people[7].mentor = Some(people[1_234].id);
    for person in &people {
        work.add(person.clone());
    }
    work.flush(pool).await?;
    Ok(people)
}

/// An update and a delete of a row that is not there: told by its key, and nothing is written.
async fn a_missing_row_is_told<DB: Changes>(pool: Pool<DB>) -> Outcome {
    let people = filled(&pool).await?;
    let gone = people[2_100].id;
    DB::script(&pool, "DELETE FROM person WHERE age = 2").await?;
    let mut work = begin::<DB>();
    for person in &people {
        work.update(Person {
            age: 5,
            ..person.clone()
        });
    }
    let mut other = begin::<DB>();
    other.delete(&people[2_100]);
    other.flush(&pool).await?;
    let error = work.flush(&pool).await.unwrap_err();
    assert!(error.is_missing_row() && !error.is_plan(), "{error}");
    assert!(!error.is_unique_violation() && error.driver().is_none());
    assert_eq!((error.table(), error.chunk()), (Some("person"), Some(2)));
    assert_eq!(error.key(), Some(&*gone.to_string()));
    assert_eq!(
        error.to_string(),
        format!(
            "cannot update person (rows 2000 to 2499), key {gone}, nothing was \
             written: there is no such row"
        )
    );
    let sum: i64 = DB::count(&pool, "person WHERE age = 5").await?;
    assert_eq!(sum, 0);
    assert_eq!(work.len(), 2_500, "nothing is lost");

    let mut work = begin::<DB>();
    work.delete(&people[2_099]);
    work.delete(&people[2_100]);
    work.delete(&people[2_101]);
    let error = work.flush(&pool).await.unwrap_err();
    assert!(error.is_missing_row(), "{error}");
    assert_eq!(error.key(), Some(&*gone.to_string()));
    assert!(
        error
            .to_string()
            .starts_with("cannot delete from person (rows 0 to 2), ")
    );
    assert_eq!(DB::count(&pool, "person").await?, 2_499);
    Ok(())
}

/// What somebody else writes to the other columns stays.
async fn some_columns_are_updated<DB: Changes>(pool: Pool<DB>) -> Outcome {
    let mut people = filled(&pool).await?;
    let mut work = begin::<DB>();
    for (number, person) in people.iter_mut().enumerate() {
        let changed = Person {
            age: 99,
            mentor: Some(person.id),
            ..person.clone()
        };
        person.age = 50;
        match number % 4 {
            0 => work.update_columns(changed.clone(), Person::age),
            1 => work.update_columns(changed.clone(), (Person::mentor, Person::id, Person::age)),
            2 => work.update_columns(changed.clone(), [Person::mentor]),
            _ => continue,
        }
        if number % 4 < 2 {
            person.age = 99;
        }
        if number % 4 > 0 {
            person.mentor = Some(person.id);
        }
    }
    DB::script(&pool, "UPDATE person SET age = 50").await?;
    let planned = work.plan()?;
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.updated(), 1_875);
    let planned: usize = planned.tables.iter().map(|it| it.statements.len()).sum();
    assert_eq!(flushed.tables[0].statements, planned);
    assert_eq!(self::people(&pool).await?, people);

    let nobody = person(people[0].team, None, 1);
    work.update_columns(nobody.clone(), Person::age);
    work.update_columns(
        Person {
            age: 7,
            ..people[3].clone()
        },
        Person::age,
    );
    let error = work.flush(&pool).await.unwrap_err();
    assert!(
        error.is_missing_row() && !error.is_commit_unknown(),
        "{error}"
    );
    assert_eq!(error.key(), Some(&*nobody.id.to_string()));
    assert_eq!(self::people(&pool).await?, people, "nothing is written");
    Ok(())
}

/// An update to what a CHECK refuses or what is taken, and a delete of what is referred to.
async fn a_refused_change_is_told<DB: Changes>(pool: Pool<DB>) -> Outcome {
    let people = filled(&pool).await?;
    let mut work = begin::<DB>();
    for (number, person) in people.iter().enumerate() {
        let age = if number == 1_717 { 13 } else { 14 };
        work.update(Person {
            age,
            ..person.clone()
        });
    }
    let error = work.flush(&pool).await.unwrap_err();
    assert_eq!(
        (error.table(), error.chunk()),
        (Some("person"), Some(1)),
        "{error}"
    );
    assert_eq!(error.key(), Some(&*people[1_717].id.to_string()));
    assert!(!error.is_missing_row() && error.to_string().starts_with("cannot update person"));

    let mut work = begin::<DB>();
    work.update(Person {
        mentor: Some(PersonId::generate()),
        ..people[3].clone()
    });
    let error = work.flush(&pool).await.unwrap_err();
    assert!(error.is_foreign_key_violation(), "{error}");
    assert_eq!(error.key(), Some(&*people[3].id.to_string()));

    // All but the one who has a mentor.
    let mut work = begin::<DB>();
    for person in people.iter().filter(|person| person.mentor.is_none()) {
        work.delete(person);
    }
    let error = work.flush(&pool).await.unwrap_err();
    assert!(error.is_foreign_key_violation(), "{error}");
    assert_eq!(error.key(), Some(&*people[1_234].id.to_string()), "{error}");
    assert_eq!(error.chunk(), Some(1));
    assert_eq!(DB::count(&pool, "person").await?, 2_500);
    Ok(())
}

/// Many to many, each pair once; and children that refer to a row by two columns that are not
/// its key.
async fn many_to_many_and_natural_keys<DB: Changes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let mut work = begin::<DB>();
    let teams: Vec<_> = (0..30).map(|it| team(&mut work, &it.to_string())).collect();
    let people: Vec<_> = (0..40)
        .map(|age| person(teams[0], None, age + 14))
        .collect();
    let mut memberships = Vec::new();
    for (number, team) in teams.iter().enumerate() {
        for (year, person) in people.iter().enumerate() {
            let id = Uuid::generate();
            let (year, number) = (i32::try_from(year)?, i32::try_from(number)?);
            let fee = Fee {
                id: Uuid::generate(),
                membership: id,
                year,
                number,
                amount: 9,
            };
            work.add(fee);
            memberships.push(Membership {
                id,
                team: *team,
                person: person.id,
                year,
                number,
            });
        }
    }
    for membership in memberships.iter().rev() {
        work.add(membership.clone());
    }
    for person in &people {
        work.add(person.clone());
    }
    assert_eq!(work.flush(&pool).await?.rows(), 30 + 40 + 2 * 1_200);
    let read: Vec<Membership> = read(&pool, "SELECT * FROM membership ORDER BY id").await?;
    assert_eq!(read, memberships);

    // A pair that is there, under a key of its own.
    let again = Membership {
        id: Uuid::generate(),
        year: 77,
        ..memberships[600].clone()
    };
    work.add(again.clone());
    let error = work.flush(&pool).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.key(), Some(&*again.id.to_string()));
    work.clear();
    // An update to a pair, and to a natural key, that another row has.
    for taken in [
        Membership {
            person: memberships[600].person,
            team: memberships[600].team,
            ..memberships[601].clone()
        },
        Membership {
            year: memberships[600].year,
            number: memberships[600].number,
            ..memberships[601].clone()
        },
    ] {
        // Without its fee, which refers to what would change.
        DB::script(&pool, "DELETE FROM fee").await?;
        work.update(taken.clone());
        let error = work.flush(&pool).await.unwrap_err();
        assert!(error.is_unique_violation(), "{error}");
        assert_eq!(error.key(), Some(&*taken.id.to_string()));
        work.clear();
    }
    // What a natural key refers to goes last.
    let kept = &memberships[0];
    let fee = Fee {
        id: Uuid::generate(),
        membership: kept.id,
        year: kept.year,
        number: kept.number,
        amount: 1,
    };
    work.add(fee.clone());
    work.flush(&pool).await?;
    for membership in &memberships {
        work.delete(membership);
    }
    work.delete(&fee);
    assert_eq!(work.flush(&pool).await?.deleted(), 1_201);
    Ok(())
}

/// Unique values are checked row by row, also where one statement updates both rows.
async fn unique_values_are_not_exchanged<DB: Changes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let mut work = begin::<DB>();
    let (first, second) = (team(&mut work, "one"), team(&mut work, "two"));
    work.flush(&pool).await?;
    work.update(Team {
        id: first,
        name: "two".into(),
        lead: None,
    });
    work.update(Team {
        id: second,
        name: "one".into(),
        lead: None,
    });
    let error = work.flush(&pool).await.unwrap_err();
    assert!(
        error.is_unique_violation() && error.table() == Some("team"),
        "{error}"
    );
    Ok(())
}

/// A unit of work that says two things of a row.
async fn what_contradicts_itself_is_told<DB: Changes>(pool: Pool<DB>) -> Outcome {
    let people = filled(&pool).await?;
    let mut work = begin::<DB>();
    work.update(people[5].clone());
    work.delete(&people[5]);
    let error = work.flush(&pool).await.unwrap_err();
    assert!(error.is_plan(), "{error}");
    assert!(
        error.to_string().contains(&people[5].id.to_string()),
        "{error}"
    );
    assert_eq!(DB::count(&pool, "person").await?, 2_500);
    Ok(())
}
