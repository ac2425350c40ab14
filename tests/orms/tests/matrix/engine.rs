//! The databases: `SQLx` and Diesel have a connection type for each, so what they do is written once and
//! expanded for each, and the tests of its columns.

use std::{future::Future, pin::Pin, sync::LazyLock};

use libtest_mimic::Trial;
use ordid::{
    clock::SystemClock,
    entropy::ThreadEntropy,
    generator::Policy,
    scheme::snowflake::{SnowflakeGenerator, SnowflakeNode},
};
use ordid_tests::{
    servers::{Scratch, Servers},
    trials::{Outcome, on_scratch, run},
};
use sqlx::{Pool, Sqlite, pool::PoolOptions, sqlite::SqliteConnectOptions};

use crate::library::NAMES;

/// What makes snowflakes: over all tests, so that they differ.
pub static NODE: LazyLock<SnowflakeGenerator> = LazyLock::new(|| {
    let node = SnowflakeNode::new(7).expect("it is small");
    SnowflakeGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT)
});

/// Adds rows to a unit of work, whose methods are named alike: children first, and deletes parents first.
macro_rules! fill {
    ($work:ident, $rows:ident) => {
        let Work {
            new,
            changed,
            deleted,
        } = $rows;
        for book in new.books.iter().cloned() {
            $work.add(book);
        }
        for person in new.people.iter().cloned() {
            $work.add(person);
        }
        for book in changed.books.iter().cloned() {
            $work.update(book);
        }
        for person in changed.people.iter().cloned() {
            $work.update(person);
        }
        for person in &deleted.people {
            $work.delete(person);
        }
        for book in &deleted.books {
            $work.delete(book);
        }
    };
}

pub(crate) use fill;

/// Makes a library that only some engines have.
macro_rules! own {
    ($name:ident, $url:ident, $column:ident []) => {
        unreachable!("no library is called {}", $name)
    };
    ($name:ident, $url:ident, $column:ident [$library:ident: $type:ident]) => {
        match $name {
            stringify!($library) => Box::new(crate::$library::$column::$type($url.clone())),
            _ => own!($name, $url, $column []),
        }
    };
}

/// Defines what the libraries do on an engine, a module for each column that it has.
macro_rules! engine {
    (
        $connection:ty, $async_connection:ty, $backend:ty, $dialect:ty,
        options: $options:literal, setup: $setup:literal, own: $own:tt;
        $($column:ident),+
    ) => {
        $(mod $column {
            use diesel::prelude::*;
            use ordid::storage::ColumnOn;
            use ordid_diesel::StoredAs;
            use ordid_tests::{servers::Client as _, trials::Outcome};
            use sqlx::{Pool, QueryBuilder, query_as};

            use crate::{
                connect::Connect as _,
                establish::{Known, connect, connect_async},
                column::$column::{Book, Of, Person, PersonId, SeaOrm, books, people},
                library::{Answer, Library, Rows, Work},
            };

            type Database = <$backend as Known>::Database;

            /// The tables, by the column that the key types declare.
            pub fn ddl() -> [String; 3] {
                type Key = <PersonId as StoredAs<$backend>>::Column;
                let ty = <Key as ColumnOn<$dialect>>::TYPE;
                let key = <Key as ColumnOn<$dialect>>::primary_key("id");
                let options = $options;
                [
                    format!(
                        "CREATE TABLE people ({key}, mentor {ty} NULL, name VARCHAR(100) NOT NULL, \
                         note VARCHAR(100), position BIGINT NOT NULL, \
                         FOREIGN KEY (mentor) REFERENCES people (id)) {options}"
                    ),
                    format!(
                        "CREATE TABLE books (title VARCHAR(100) NOT NULL, {key}, author {ty} NOT \
                         NULL, editor {ty} NULL, position BIGINT NOT NULL, \
                         FOREIGN KEY (author) REFERENCES people (id), \
                         FOREIGN KEY (editor) REFERENCES people (id)) {options}"
                    ),
                    ordid_sqlx::flushes_table::<Database>().to_owned(),
                ]
            }

            struct Sqlx(Pool<Database>);

            impl Library<Of> for Sqlx {
                fn insert<'a>(&'a self, rows: &'a Rows<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let mut insert = QueryBuilder::<Database>::new(
                            "INSERT INTO people (id, mentor, name, note, position) ",
                        );
                        insert.push_values(&rows.people, |mut row, person| {
                            row.push_bind(person.id)
                                .push_bind(person.mentor)
                                .push_bind(&person.name)
                                .push_bind(&person.note)
                                .push_bind(person.position);
                        });
                        insert.build().execute(&self.0).await?;
                        for book in &rows.books {
                            let mut insert = QueryBuilder::<Database>::new(
                                "INSERT INTO books (title, id, author, editor, position) ",
                            );
                            insert.push_values([book], |mut row, book| {
                                row.push_bind(&book.title)
                                    .push_bind(book.id)
                                    .push_bind(book.author)
                                    .push_bind(book.editor)
                                    .push_bind(book.position);
                            });
                            insert.build().execute(&self.0).await?;
                        }
                        Ok(())
                    })
                }

                fn flush<'a>(&'a self, rows: &'a Work<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let mut work = ordid_sqlx::UnitOfWork::<Database>::new();
                        fill!(work, rows);
                        work.flush(&self.0).await?;
                        Ok(())
                    })
                }

                fn read(&self) -> Answer<'_, Rows<Of>> {
                    Box::pin(async {
                        let people = query_as("SELECT * FROM people ORDER BY id");
                        let books = query_as("SELECT * FROM books ORDER BY id");
                        Ok(Rows {
                            people: people.fetch_all(&self.0).await?,
                            books: books.fetch_all(&self.0).await?,
                        })
                    })
                }

                fn of_author(&self, author: PersonId) -> Answer<'_, Vec<Book>> {
                    Box::pin(async move {
                        let mut query = QueryBuilder::<Database>::new(
                            "SELECT books.* FROM books JOIN people ON people.id = books.author \
                             WHERE people.id = ",
                        );
                        query.push_bind(author).push(" ORDER BY books.id");
                        Ok(query.build_query_as().fetch_all(&self.0).await?)
                    })
                }

                fn of_mentor(&self, mentor: PersonId) -> Answer<'_, Vec<Person>> {
                    Box::pin(async move {
                        let mut query = QueryBuilder::<Database>::new(
                            "SELECT * FROM people WHERE mentor = ",
                        );
                        query.push_bind(mentor).push(" ORDER BY id");
                        Ok(query.build_query_as().fetch_all(&self.0).await?)
                    })
                }
            }

            macro_rules! by_author {
                ($author:expr) => {
                    books::table
                        .inner_join(people::table)
                        .filter(people::id.eq($author))
                        .order(books::id)
                        .select(Book::as_select())
                };
            }

            macro_rules! by_mentor {
                ($mentor:expr) => {
                    people::table
                        .filter(people::mentor.eq($mentor))
                        .order(people::id)
                        .select(Person::as_select())
                };
            }

            /// Over a connection for each question.
            struct Diesel(String);

            impl Diesel {
                fn connect(&self) -> ConnectionResult<$connection> {
                    connect(&self.0, $setup)
                }
            }

            impl Library<Of> for Diesel {
                fn insert<'a>(&'a self, rows: &'a Rows<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let connection = &mut self.connect()?;
                        let insert = diesel::insert_into(people::table).values(&rows.people);
                        insert.execute(connection)?;
                        for book in &rows.books {
                            let insert = diesel::insert_into(books::table).values(book);
                            insert.execute(connection)?;
                        }
                        Ok(())
                    })
                }

                fn flush<'a>(&'a self, rows: &'a Work<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let mut work = ordid_diesel::UnitOfWork::<$backend>::new();
                        fill!(work, rows);
                        work.flush(&mut self.connect()?)?;
                        Ok(())
                    })
                }

                fn read(&self) -> Answer<'_, Rows<Of>> {
                    Box::pin(async {
                        let connection = &mut self.connect()?;
                        let people = people::table.order(people::id);
                        let books = books::table.order(books::id);
                        Ok(Rows {
                            people: people.select(Person::as_select()).load(connection)?,
                            books: books.select(Book::as_select()).load(connection)?,
                        })
                    })
                }

                fn of_author(&self, author: PersonId) -> Answer<'_, Vec<Book>> {
                    Box::pin(async move {
                        let found = by_author!(author);
                        Ok(found.load(&mut self.connect()?)?)
                    })
                }

                fn of_mentor(&self, mentor: PersonId) -> Answer<'_, Vec<Person>> {
                    Box::pin(async move {
                        let found = by_mentor!(mentor);
                        Ok(found.load(&mut self.connect()?)?)
                    })
                }
            }

            /// The same of diesel-async.
            struct DieselAsync(String);

            impl DieselAsync {
                async fn connect(&self) -> ConnectionResult<$async_connection> {
                    connect_async(&self.0, $setup).await
                }
            }

            impl Library<Of> for DieselAsync {
                fn insert<'a>(&'a self, rows: &'a Rows<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let connection = &mut self.connect().await?;
                        // One by one: on SQLite it takes no more a statement (diesel_async #277).
                        for person in &rows.people {
                            let insert = diesel::insert_into(people::table).values(person);
                            diesel_async::RunQueryDsl::execute(insert, connection).await?;
                        }
                        for book in &rows.books {
                            let insert = diesel::insert_into(books::table).values(book);
                            diesel_async::RunQueryDsl::execute(insert, connection).await?;
                        }
                        Ok(())
                    })
                }

                fn flush<'a>(&'a self, rows: &'a Work<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let mut work = ordid_diesel::UnitOfWork::<$backend>::new();
                        fill!(work, rows);
                        work.flush_async(&mut self.connect().await?).await?;
                        Ok(())
                    })
                }

                fn read(&self) -> Answer<'_, Rows<Of>> {
                    Box::pin(async {
                        let connection = &mut self.connect().await?;
                        let people = people::table.order(people::id);
                        let people = people.select(Person::as_select());
                        let books = books::table.order(books::id);
                        let books = books.select(Book::as_select());
                        Ok(Rows {
                            people: diesel_async::RunQueryDsl::load(people, connection).await?,
                            books: diesel_async::RunQueryDsl::load(books, connection).await?,
                        })
                    })
                }

                fn of_author(&self, author: PersonId) -> Answer<'_, Vec<Book>> {
                    Box::pin(async move {
                        let found = by_author!(author);
                        let connection = &mut self.connect().await?;
                        Ok(diesel_async::RunQueryDsl::load(found, connection).await?)
                    })
                }

                fn of_mentor(&self, mentor: PersonId) -> Answer<'_, Vec<Person>> {
                    Box::pin(async move {
                        let found = by_mentor!(mentor);
                        let connection = &mut self.connect().await?;
                        Ok(diesel_async::RunQueryDsl::load(found, connection).await?)
                    })
                }
            }

            /// Makes the tables, and lets one library write and another read and change.
            pub async fn test(pool: Pool<Database>, writer: &str, reader: &str) -> Outcome {
                for sql in ddl() {
                    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&pool).await?;
                }
                let url = Database::client_url(&pool.connect_options());
                let library = |name: &str| -> Box<dyn Library<Of>> {
                    match name {
                        "sqlx" => Box::new(Sqlx(pool.clone())),
                        "diesel" => Box::new(Diesel(url.clone())),
                        "diesel_async" => Box::new(DieselAsync(url.clone())),
                        "seaorm" => Box::new(SeaOrm(Database::connect(pool.clone()))),
                        _ => own!(name, url, $column $own),
                    }
                };
                crate::library::test::<Of>(&*library(writer), &*library(reader)).await
            }
        })+

        fn each_column(
            mut add: impl FnMut(&str, super::Test<<$backend as crate::establish::Known>::Database>),
        ) {
            $(add(stringify!($column), |pool, writer, reader| {
                Box::pin($column::test(pool, writer, reader))
            });)+
        }
    };
}

/// A test of a column: who writes, and who reads.
type Test<DB> = fn(Pool<DB>, &'static str, &'static str) -> Pin<Box<dyn Future<Output = Outcome>>>;

/// Each library writes, and each other one reads: those of all engines, and the engine's own.
fn pairs(own: &[&'static str]) -> impl Iterator<Item = (&'static str, &'static str)> {
    let names = [&NAMES[..], own].concat();
    let writers = names.clone();
    writers.into_iter().flat_map(move |writer| {
        let others = names.clone().into_iter();
        let others = others.filter(move |reader| *reader != writer);
        others.map(move |reader| (writer, reader))
    })
}

fn name(column: &str, writer: &str, reader: &str) -> String {
    format!("{column}::what_{writer}_writes_{reader}_reads_and_changes")
}

fn on_server<DB: Scratch>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    (server, own): (&'static str, &[&'static str]),
    column: &str,
    test: Test<DB>,
) {
    for (writer, reader) in pairs(own) {
        let name = name(column, writer, reader);
        on_scratch::<DB, _, _>(trials, servers, server, &name, move |pool| {
            test(pool, writer, reader)
        });
    }
}

pub mod postgres {
    use super::*;

    engine! {
        diesel::PgConnection, diesel_async::AsyncPgConnection, diesel::pg::Pg,
        ordid::storage::dialect::Postgres, options: "", setup: "", own: [tokio_postgres: TokioPostgres];
        uuid, char36, char26, char22, bigint
    }

    pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
        each_column(|column, test| {
            on_server(
                servers,
                trials,
                ("postgres", &["tokio_postgres"]),
                column,
                test,
            )
        });
    }
}

pub mod mariadb {
    use super::*;

    engine! {
        diesel::MysqlConnection, diesel_async::AsyncMysqlConnection, diesel::mysql::Mysql,
        ordid::storage::dialect::MariaDb, options: "CHARACTER SET utf8mb4", setup: "", own: [mysql_async: MysqlAsync];
        binary16, char36, char26, char22, bigint, mariadb_uuid
    }

    pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
        each_column(|column, test| {
            on_server(servers, trials, ("mariadb", &["mysql_async"]), column, test)
        });
    }
}

pub mod sqlite {
    use super::*;

    engine! {
        diesel::SqliteConnection,
        diesel_async::sync_connection_wrapper::SyncConnectionWrapper<diesel::SqliteConnection>,
        diesel::sqlite::Sqlite, ordid::storage::dialect::Sqlite,
        options: "", setup: "PRAGMA foreign_keys = ON", own: [rusqlite: Rusqlite];
        binary16, char36, char26, char22, bigint
    }

    pub fn trials(trials: &mut Vec<Trial>) {
        each_column(|column, test| {
            for (writer, reader) in pairs(&["rusqlite"]) {
                let name = format!("sqlite::{}", name(column, writer, reader));
                trials.push(Trial::test(name, move || {
                    run(|| in_file(test, writer, reader))
                }));
            }
        });
    }

    async fn in_file(test: Test<Sqlite>, writer: &'static str, reader: &'static str) -> Outcome {
        let folder = tempfile::tempdir()?;
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("matrix.sqlite"))
            .create_if_missing(true)
            .foreign_keys(true);
        let pool: Pool<Sqlite> = PoolOptions::new().connect_with(options).await?;
        let outcome = test(pool.clone(), writer, reader).await;
        pool.close().await;
        outcome
    }
}
