//! mysql_async, which has the columns of MySQL and MariaDB alone.

/// Defines what it does, a module for each column.
macro_rules! columns {
    ($($column:ident),+) => {
        $(pub mod $column {
            use ::mysql_async::{
                Conn, FromRowError, Params, Row, Value,
                prelude::{FromRow, FromValue, Queryable as _, ToValue as _},
            };
            use ordid_tests::trials::Outcome;

            use crate::{
                column::$column::{Book, Of, Person, PersonId},
                engine::fill,
                library::{Answer, Library, Rows, Work},
            };

            fn take<T: FromValue>(row: &mut Row, name: &str) -> Result<T, FromRowError> {
                match row.take_opt(name) {
                    Some(Ok(value)) => Ok(value),
                    _ => Err(FromRowError(row.clone())),
                }
            }

            impl FromRow for Person {
                fn from_row_opt(mut row: Row) -> Result<Self, FromRowError> {
                    Ok(Self {
                        id: take(&mut row, "id")?,
                        mentor: take(&mut row, "mentor")?,
                        name: take(&mut row, "name")?,
                        note: take(&mut row, "note")?,
                        position: take(&mut row, "position")?,
                    })
                }
            }

            impl FromRow for Book {
                fn from_row_opt(mut row: Row) -> Result<Self, FromRowError> {
                    Ok(Self {
                        title: take(&mut row, "title")?,
                        id: take(&mut row, "id")?,
                        author: take(&mut row, "author")?,
                        editor: take(&mut row, "editor")?,
                        position: take(&mut row, "position")?,
                    })
                }
            }

            /// Over a connection for each question.
            pub struct MysqlAsync(pub String);

            impl MysqlAsync {
                async fn connect(&self) -> Outcome<Conn> {
                    Ok(Conn::new(crate::mysql::options(&self.0)?).await?)
                }
            }

            impl Library<Of> for MysqlAsync {
                fn insert<'a>(&'a self, rows: &'a Rows<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let mut conn = self.connect().await?;
                        let mut people: Vec<Value> = Vec::new();
                        for it in &rows.people {
                            people.extend([it.id.to_value(), it.mentor.to_value()]);
                            people.extend([it.name.to_value(), it.note.to_value(), it.position.to_value()]);
                        }
                        let row = "(?, ?, ?, ?, ?)";
                        let sql = format!(
                            "INSERT INTO people (id, mentor, name, note, position) VALUES {}",
                            vec![row; rows.people.len()].join(", ")
                        );
                        conn.exec_drop(sql, Params::Positional(people)).await?;
                        for book in &rows.books {
                            let sql = "INSERT INTO books (title, id, author, editor, position) \
                                       VALUES (?, ?, ?, ?, ?)";
                            let parameters =
                                (&book.title, book.id, book.author, book.editor, book.position);
                            conn.exec_drop(sql, parameters).await?;
                        }
                        Ok(conn.disconnect().await?)
                    })
                }

                fn flush<'a>(&'a self, rows: &'a Work<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let mut work = ordid_mysql_async::UnitOfWork::new();
                        fill!(work, rows);
                        let mut conn = self.connect().await?;
                        work.flush_on(&mut conn).await?;
                        Ok(conn.disconnect().await?)
                    })
                }

                /// By the text protocol, in which each value is text.
                fn read(&self) -> Answer<'_, Rows<Of>> {
                    Box::pin(async {
                        let mut conn = self.connect().await?;
                        Ok(Rows {
                            people: conn.query("SELECT * FROM people ORDER BY id").await?,
                            books: conn.query("SELECT * FROM books ORDER BY id").await?,
                        })
                    })
                }

                fn of_author(&self, author: PersonId) -> Answer<'_, Vec<Book>> {
                    Box::pin(async move {
                        let sql = "SELECT books.* FROM books JOIN people ON people.id = books.author \
                                   WHERE people.id = ? ORDER BY books.id";
                        Ok(self.connect().await?.exec(sql, (author,)).await?)
                    })
                }

                fn of_mentor(&self, mentor: PersonId) -> Answer<'_, Vec<Person>> {
                    Box::pin(async move {
                        let sql = "SELECT * FROM people WHERE mentor = ? ORDER BY id";
                        Ok(self.connect().await?.exec(sql, (mentor,)).await?)
                    })
                }
            }
        })+
    };
}

columns!(binary16, char36, char26, char22, bigint, mariadb_uuid);
