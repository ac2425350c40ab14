//! tokio-postgres, which has PostgreSQL's columns alone.

/// Defines what it does, a module for each column.
macro_rules! columns {
    ($($column:ident),+) => {
        $(pub mod $column {
            use ordid_tests::trials::Outcome;

            use crate::{
                column::$column::{Book, Of, Person, PersonId},
                engine::fill,
                library::{Answer, Library, Rows, Work},
            };
            use ::tokio_postgres::{
                Row,
                types::{FromSqlOwned, ToSql},
            };

            fn get<T: FromSqlOwned>(row: &Row, name: &str) -> Result<T, ::tokio_postgres::Error> {
                row.try_get(name)
            }

            fn read_person(row: &Row) -> Result<Person, ::tokio_postgres::Error> {
                Ok(Person {
                    id: get(row, "id")?,
                    mentor: get(row, "mentor")?,
                    name: get(row, "name")?,
                    note: get(row, "note")?,
                    position: get(row, "position")?,
                })
            }

            fn read_book(row: &Row) -> Result<Book, ::tokio_postgres::Error> {
                Ok(Book {
                    title: get(row, "title")?,
                    id: get(row, "id")?,
                    author: get(row, "author")?,
                    editor: get(row, "editor")?,
                    position: get(row, "position")?,
                })
            }

            /// Over a connection for each question.
            pub struct TokioPostgres(pub String);

            impl TokioPostgres {
                async fn read<T>(
                    &self,
                    sql: &str,
                    parameters: &[&(dyn ToSql + Sync)],
                    row: fn(&Row) -> Result<T, ::tokio_postgres::Error>,
                ) -> Outcome<Vec<T>> {
                    let client = crate::tokio::connect(&self.0).await?;
                    let rows = client.query(sql, parameters).await?;
                    Ok(rows.iter().map(row).collect::<Result<_, _>>()?)
                }
            }

            impl Library<Of> for TokioPostgres {
                fn insert<'a>(&'a self, rows: &'a Rows<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let client = crate::tokio::connect(&self.0).await?;
                        // In one array of each column.
                        let ids: Vec<_> = rows.people.iter().map(|it| it.id).collect();
                        let mentors: Vec<_> = rows.people.iter().map(|it| it.mentor).collect();
                        let names: Vec<_> = rows.people.iter().map(|it| &it.name).collect();
                        let notes: Vec<_> = rows.people.iter().map(|it| &it.note).collect();
                        let positions: Vec<_> = rows.people.iter().map(|it| it.position).collect();
                        let ty = <<PersonId as ordid_tokio_postgres::StoredAs>::Column as
                            ordid::storage::ColumnOn<ordid::storage::dialect::Postgres>>::TYPE;
                        let ty = ty.split(' ').next().unwrap_or_default();
                        let sql = format!(
                            "INSERT INTO people (id, mentor, name, note, position) \
                             SELECT * FROM unnest($1::{ty}[], $2::{ty}[], $3::text[], $4::text[], $5::bigint[])"
                        );
                        let inserted = client
                            .execute(&sql, &[&ids, &mentors, &names, &notes, &positions])
                            .await?;
                        assert_eq!(usize::try_from(inserted)?, rows.people.len());
                        for book in &rows.books {
                            let sql = "INSERT INTO books (title, id, author, editor, position) \
                                       VALUES ($1, $2, $3, $4, $5)";
                            let parameters: [&(dyn ToSql + Sync); 5] =
                                [&book.title, &book.id, &book.author, &book.editor, &book.position];
                            client.execute(sql, &parameters).await?;
                        }
                        Ok(())
                    })
                }

                fn flush<'a>(&'a self, rows: &'a Work<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let mut work = ordid_tokio_postgres::UnitOfWork::new();
                        fill!(work, rows);
                        let mut client = crate::tokio::connect(&self.0).await?;
                        work.flush(&mut client).await?;
                        Ok(())
                    })
                }

                fn read(&self) -> Answer<'_, Rows<Of>> {
                    Box::pin(async {
                        Ok(Rows {
                            people: self.read("SELECT * FROM people ORDER BY id", &[], read_person).await?,
                            books: self.read("SELECT * FROM books ORDER BY id", &[], read_book).await?,
                        })
                    })
                }

                fn of_author(&self, author: PersonId) -> Answer<'_, Vec<Book>> {
                    Box::pin(async move {
                        let sql = "SELECT books.* FROM books JOIN people ON people.id = books.author \
                                   WHERE people.id = $1 ORDER BY books.id";
                        self.read(sql, &[&author], read_book).await
                    })
                }

                fn of_mentor(&self, mentor: PersonId) -> Answer<'_, Vec<Person>> {
                    Box::pin(async move {
                        let sql = "SELECT * FROM people WHERE mentor = $1 ORDER BY id";
                        self.read(sql, &[&mentor], read_person).await
                    })
                }
            }
        })+
    };
}

columns!(uuid, char36, char26, char22, bigint);
