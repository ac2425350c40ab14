//! rusqlite, which has SQLite's columns alone.

/// Defines what it does, a module for each column.
macro_rules! columns {
    ($($column:ident),+) => {
        $(pub mod $column {
            use ordid_rusqlite::UnitOfWork;
            use rusqlite::{Connection, Params, Row, params};

            use crate::{
                column::$column::{Book, Of, Person, PersonId},
                engine::fill,
                library::{Answer, Library, Rows, Work},
                lite::open,
            };

            const PEOPLE: &str = "SELECT id, mentor, name, note, position FROM people";
            const BOOKS: &str = "SELECT books.title, books.id, author, editor, books.position FROM books";

            fn person(row: &Row<'_>) -> rusqlite::Result<Person> {
                Ok(Person {
                    id: row.get(0)?,
                    mentor: row.get(1)?,
                    name: row.get(2)?,
                    note: row.get(3)?,
                    position: row.get(4)?,
                })
            }

            fn book(row: &Row<'_>) -> rusqlite::Result<Book> {
                Ok(Book {
                    title: row.get(0)?,
                    id: row.get(1)?,
                    author: row.get(2)?,
                    editor: row.get(3)?,
                    position: row.get(4)?,
                })
            }

            fn read<T>(
                connection: &Connection,
                sql: &str,
                parameters: impl Params,
                row: fn(&Row<'_>) -> rusqlite::Result<T>,
            ) -> rusqlite::Result<Vec<T>> {
                connection.prepare(sql)?.query_map(parameters, row)?.collect()
            }

            /// Over a connection for each question.
            pub struct Rusqlite(pub String);

            impl Library<Of> for Rusqlite {
                fn insert<'a>(&'a self, rows: &'a Rows<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let mut connection = open(&self.0)?;
                        let transaction = connection.transaction()?;
                        // A row may refer to one that comes later.
                        transaction.execute_batch("PRAGMA defer_foreign_keys = ON")?;
                        let insert = "INSERT INTO people (id, mentor, name, note, position) \
                                      VALUES (?, ?, ?, ?, ?)";
                        for it in &rows.people {
                            let values = params![it.id, it.mentor, it.name, it.note, it.position];
                            transaction.prepare_cached(insert)?.execute(values)?;
                        }
                        let insert = "INSERT INTO books (title, id, author, editor, position) \
                                      VALUES (?, ?, ?, ?, ?)";
                        for it in &rows.books {
                            let values = params![it.title, it.id, it.author, it.editor, it.position];
                            transaction.prepare_cached(insert)?.execute(values)?;
                        }
                        Ok(transaction.commit()?)
                    })
                }

                fn flush<'a>(&'a self, rows: &'a Work<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let mut work = UnitOfWork::new();
                        fill!(work, rows);
                        work.flush(&mut open(&self.0)?)?;
                        Ok(())
                    })
                }

                fn read(&self) -> Answer<'_, Rows<Of>> {
                    Box::pin(async {
                        let connection = open(&self.0)?;
                        Ok(Rows {
                            people: read(&connection, &format!("{PEOPLE} ORDER BY id"), [], person)?,
                            books: read(&connection, &format!("{BOOKS} ORDER BY id"), [], book)?,
                        })
                    })
                }

                fn of_author(&self, author: PersonId) -> Answer<'_, Vec<Book>> {
                    Box::pin(async move {
                        let sql = format!(
                            "{BOOKS} JOIN people ON people.id = books.author WHERE people.id = ? \
                             ORDER BY books.id"
                        );
                        Ok(read(&open(&self.0)?, &sql, [author], book)?)
                    })
                }

                fn of_mentor(&self, mentor: PersonId) -> Answer<'_, Vec<Person>> {
                    Box::pin(async move {
                        let sql = format!("{PEOPLE} WHERE mentor = ? ORDER BY id");
                        Ok(read(&open(&self.0)?, &sql, [mentor], person)?)
                    })
                }
            }
        })+
    };
}

columns!(binary16, char36, char26, char22, bigint);
