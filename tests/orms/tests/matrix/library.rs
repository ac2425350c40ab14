//! What a library can do with the rows of a test, and the test: written for any rows and any library.

use std::{fmt::Debug, future::Future, pin::Pin};

use ordid::{KeyType, entity::OrderedKey};
use ordid_tests::trials::Outcome;

/// The libraries, as tests name them.
pub const NAMES: [&str; 4] = ["sqlx", "diesel", "diesel_async", "seaorm"];

/// Those of PostgreSQL.
pub const POSTGRES_NAMES: [&str; 5] =
    ["sqlx", "diesel", "diesel_async", "seaorm", "tokio_postgres"];

/// What becomes of a question to a database.
pub type Answer<'a, T = ()> = Pin<Box<dyn Future<Output = Outcome<T>> + Send + 'a>>;

/// Keys of people, and of books.
pub type Keys<T> = (Vec<<T as Tables>::PersonId>, Vec<<T as Tables>::BookId>);

/// Rows of both tables, each in the order of its keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows<T: Tables> {
    pub people: Vec<T::Person>,
    pub books: Vec<T::Book>,
}

impl<T: Tables> Rows<T> {
    fn none() -> Self {
        Self {
            people: Vec::new(),
            books: Vec::new(),
        }
    }

    /// Splits into rows for which this holds, and others.
    fn split(
        self,
        person: impl Fn(&T::Person) -> bool,
        book: impl Fn(&T::Book) -> bool,
    ) -> (Self, Self) {
        let (people, other_people) = self.people.into_iter().partition(person);
        let (books, other_books) = self.books.into_iter().partition(book);
        let others = Self {
            people: other_people,
            books: other_books,
        };
        (Self { people, books }, others)
    }
}

/// What a unit of work is given.
#[derive(Debug)]
pub struct Work<T: Tables> {
    pub new: Rows<T>,
    pub changed: Rows<T>,
    pub deleted: Rows<T>,
}

/// The entities of a test.
pub trait Tables: Clone + Debug + PartialEq + Send + Sync + 'static {
    type PersonId: KeyType;
    type BookId: KeyType;
    type Person: OrderedKey<Field = Self::PersonId>
        + Clone
        + Debug
        + PartialEq
        + Send
        + Sync
        + 'static;
    type Book: OrderedKey<Field = Self::BookId> + Clone + Debug + PartialEq + Send + Sync + 'static;

    /// Makes so many keys, rising.
    fn keys(people: usize, books: usize) -> Outcome<Keys<Self>>;

    fn person(id: Self::PersonId, mentor: Option<Self::PersonId>, number: i64) -> Self::Person;

    fn mentor(person: &Self::Person) -> Option<Self::PersonId>;

    fn book(
        id: Self::BookId,
        author: Self::PersonId,
        editor: Option<Self::PersonId>,
        number: i64,
    ) -> Self::Book;

    fn author(book: &Self::Book) -> Self::PersonId;

    fn editor(book: &Self::Book) -> Option<Self::PersonId>;
}

/// A library on a database.
pub trait Library<T: Tables>: Send + Sync {
    /// Inserts rows in this order by the library's own means.
    fn insert<'a>(&'a self, rows: &'a Rows<T>) -> Answer<'a>;

    /// Flushes a unit of work, to which the rows are added in this order.
    fn flush<'a>(&'a self, work: &'a Work<T>) -> Answer<'a>;

    /// Reads all rows, `ORDER BY` key.
    fn read(&self) -> Answer<'_, Rows<T>>;

    /// Reads the books of an author over a join, `ORDER BY` key.
    fn of_author(&self, author: T::PersonId) -> Answer<'_, Vec<T::Book>>;

    /// Reads those that have this mentor, `ORDER BY` key.
    fn of_mentor(&self, mentor: T::PersonId) -> Answer<'_, Vec<T::Person>>;
}

const PEOPLE: usize = 30;
const BOOKS: usize = 90;

/// One writes, by its unit of work and then by plain inserts; the other reads, and changes and deletes by
/// its unit of work; the first reads again.
pub async fn test<T: Tables>(writer: &dyn Library<T>, reader: &dyn Library<T>) -> Outcome {
    let rows = rows::<T>()?;
    let Rows { people, books } = &rows;
    let middle = people[PEOPLE / 2].key();

    // The later half of the people, and books that refer to nobody else: children first. Then the
    // others, by which those with the earlier keys come last.
    let is_late = |key: T::PersonId| Some(key) >= middle;
    let late_books =
        |book: &T::Book| is_late(T::author(book)) && T::editor(book).is_none_or(is_late);
    let (mut late, mut early) = rows
        .clone()
        .split(|person| person.key() >= middle, late_books);
    late.people.reverse();
    late.books.sort_by_key(|book| T::author(book));
    early.books.reverse();
    assert!(!late.books.is_empty() && !early.books.is_empty());
    let work = Work {
        new: late,
        changed: Rows::none(),
        deleted: Rows::none(),
    };
    writer.flush(&work).await?;
    writer.insert(&early).await?;

    assert_eq!(reader.read().await?, rows);
    assert_eq!(writer.read().await?, rows);
    check_references(reader, &rows).await?;

    // Half of the books change their author, lose or get an editor; of the rest some go, and people of
    // whom nothing is left; there are new ones, to whom changed rows refer.
    let (new_people, new_books) = T::keys(2, 4)?;
    let new = Rows {
        people: vec![
            T::person(new_people[0], Some(new_people[1]), 1_000),
            T::person(new_people[1], None, 1_001),
        ],
        books: new_books
            .iter()
            .zip(2_000..)
            .map(|(id, number)| T::book(*id, new_people[0], people[0].key(), number))
            .collect(),
    };
    let mut expected = Rows::none();
    let mut changed = Rows::none();
    let mut deleted = Rows::none();
    for (number, book) in (0_i64..).zip(books) {
        let id = book.key().ok_or("no key")?;
        match number % 4 {
            0 => deleted.books.push(book.clone()),
            1 | 2 => {
                let editor = match T::editor(book) {
                    Some(_) => None,
                    None => Some(new_people[1]),
                };
                let book = T::book(id, new_people[0], editor, 3_000 + number);
                changed.books.push(book.clone());
                expected.books.push(book);
            }
            _ => expected.books.push(book.clone()),
        }
    }
    for person in people {
        let is_used = expected.books.iter().chain(&new.books).any(|book| {
            let author = T::author(book);
            [Some(author), T::editor(book)].contains(&person.key())
        });
        if is_used {
            // Without a mentor, who may go.
            let id = person.key().ok_or("no key")?;
            let person = T::person(id, Some(new_people[1]), 4_000);
            changed.people.push(person.clone());
            expected.people.push(person);
        } else {
            deleted.people.push(person.clone());
        }
    }
    assert!(deleted.people.len() > 2 && changed.people.len() > 2);
    assert!(deleted.books.len() > 10 && changed.books.len() > 10);
    expected.people.extend(new.people.iter().cloned());
    expected.books.extend(new.books.iter().cloned());
    let work = Work {
        new,
        changed,
        deleted,
    };
    reader.flush(&work).await?;
    assert_eq!(writer.read().await?, expected);
    check_references(writer, &expected).await
}

/// Foreign keys lead where they are said to lead.
async fn check_references<T: Tables>(library: &dyn Library<T>, rows: &Rows<T>) -> Outcome {
    for person in &rows.people {
        let id = person.key().ok_or("no key")?;
        let mut books = rows.books.clone();
        books.retain(|book| T::author(book) == id);
        assert_eq!(library.of_author(id).await?, books);
        let mut pupils = rows.people.clone();
        pupils.retain(|person| T::mentor(person) == Some(id));
        assert_eq!(library.of_mentor(id).await?, pupils);
    }
    Ok(())
}

/// People of whom each third has no mentor, and others one with a later key; their books, some without
/// an editor.
fn rows<T: Tables>() -> Outcome<Rows<T>> {
    let (people, books) = T::keys(PEOPLE, BOOKS)?;
    assert!(people.is_sorted_by(|left, right| left < right));
    assert!(books.is_sorted_by(|left, right| left < right));
    let mentor = |number: usize| {
        let has_one = !number.is_multiple_of(3) && number + 1 < PEOPLE;
        has_one.then(|| people[(number + 1).max(PEOPLE / 2 + number % 5).min(PEOPLE - 1)])
    };
    let numbered = people.iter().enumerate().zip(0..);
    let made = numbered.map(|((place, id), number)| T::person(*id, mentor(place), number));
    let editor = |place: usize| (place % 4 != 1).then(|| people[place * 11 % PEOPLE]);
    // Such that deletes leave people of whom there is no book.
    let author = |place: usize| people[place * 7 % 20];
    let numbered = books.iter().enumerate().zip(0..);
    let written = numbered
        .map(|((place, id), number)| T::book(*id, author(place), editor(place), number))
        .collect();
    Ok(Rows {
        people: made.collect(),
        books: written,
    })
}
