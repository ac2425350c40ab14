//! The entities of each column: one struct for `SQLx` and Diesel, `SeaORM`'s model beside it.

/// Converts two structs with the same fields into each other.
macro_rules! alike {
    ($one:ident, $module:ident::$other:ident { $($field:ident),+ }) => {
        impl From<$module::$other> for $one {
            fn from($module::$other { $($field),+ }: $module::$other) -> Self {
                Self { $($field),+ }
            }
        }

        impl From<$one> for $module::$other {
            fn from($one { $($field),+ }: $one) -> Self {
                Self { $($field),+ }
            }
        }
    };
}

use alike;

/// Defines key types that are stored in a column, and the entities that have them.
macro_rules! column {
    (
        $(#[$doc:meta])*
        $module:ident: $raw:ident, $scheme:ident, $sql_type:ident, $keys:expr;
        $($columns:tt)+
    ) => {
        $(#[$doc])*
        pub mod $module {
            use diesel::prelude::*;
            use ordid::{KeyType, OrderedKey};
            use ordid_tests::trials::Outcome;
            use sea_orm::{
                ActiveModelTrait as _, ColumnTrait as _, DatabaseConnection, EntityTrait as _,
                IntoActiveModel as _, QueryFilter as _, QueryOrder as _,
            };

            #[allow(unused_imports, reason = "of snowflakes")]
            use super::raw::{Generator, NODE};
            use super::raw::$raw;
            use crate::library::{Answer, Keys, Library, Rows, Tables, Work};

            #[derive(KeyType)]
            #[ordid(scheme = $scheme, $($columns)+)]
            pub struct PersonId($raw);

            #[derive(KeyType)]
            #[ordid(scheme = $scheme, $($columns)+)]
            pub struct BookId($raw);

            type Key = diesel::sql_types::$sql_type;

            diesel::table! {
                use diesel::sql_types::{BigInt, Nullable, Text};
                use super::Key;

                people (id) {
                    id -> Key,
                    mentor -> Nullable<Key>,
                    name -> Text,
                    note -> Nullable<Text>,
                    position -> BigInt,
                }
            }

            diesel::table! {
                use diesel::sql_types::{BigInt, Nullable, Text};
                use super::Key;

                books (id) {
                    title -> Text,
                    id -> Key,
                    author -> Key,
                    editor -> Nullable<Key>,
                    position -> BigInt,
                }
            }

            diesel::joinable!(books -> people (author));
            diesel::allow_tables_to_appear_in_same_query!(books, people);

            /// Refers to another of its table, or to none.
            #[derive(
                OrderedKey, sqlx::FromRow, Queryable, Selectable, Insertable, Identifiable, Clone,
                Debug, PartialEq,
            )]
            #[diesel(table_name = people, treat_none_as_default_value = false)]
            #[ordid(diesel)]
            pub struct Person {
                pub id: PersonId,
                #[ordid(parent)]
                pub mentor: Option<PersonId>,
                pub name: String,
                pub note: Option<String>,
                pub position: i64,
            }

            /// Refers to a person, and to another or none.
            #[derive(
                OrderedKey, sqlx::FromRow, Queryable, Selectable, Insertable, Identifiable, Clone,
                Debug, PartialEq,
            )]
            #[diesel(table_name = books, treat_none_as_default_value = false)]
            #[ordid(diesel)]
            pub struct Book {
                pub title: String,
                pub id: BookId,
                #[ordid(parent)]
                pub author: PersonId,
                #[ordid(parent)]
                pub editor: Option<PersonId>,
                pub position: i64,
            }

            pub mod person {
                use ordid::OrderedKey;
                use sea_orm::entity::prelude::*;

                use super::PersonId;

                #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
                #[sea_orm(table_name = "people")]
                pub struct Model {
                    #[sea_orm(primary_key, auto_increment = false)]
                    pub id: PersonId,
                    #[ordid(parent)]
                    pub mentor: Option<PersonId>,
                    pub name: String,
                    pub note: Option<String>,
                    pub position: i64,
                }

                #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
                pub enum Relation {}

                impl ActiveModelBehavior for ActiveModel {}
            }

            pub mod book {
                use ordid::OrderedKey;
                use sea_orm::entity::prelude::*;

                use super::{BookId, PersonId};

                #[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel, OrderedKey)]
                #[sea_orm(table_name = "books")]
                pub struct Model {
                    pub title: String,
                    #[sea_orm(primary_key, auto_increment = false)]
                    pub id: BookId,
                    #[ordid(parent)]
                    pub author: PersonId,
                    #[ordid(parent)]
                    pub editor: Option<PersonId>,
                    pub position: i64,
                }

                #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
                pub enum Relation {
                    #[sea_orm(
                        belongs_to = "super::person::Entity",
                        from = "Column::Author",
                        to = "super::person::Column::Id"
                    )]
                    Author,
                }

                impl Related<super::person::Entity> for Entity {
                    fn to() -> RelationDef {
                        Relation::Author.def()
                    }
                }

                impl ActiveModelBehavior for ActiveModel {}
            }

            crate::column::alike!(Person, person::Model { id, mentor, name, note, position });
            crate::column::alike!(Book, book::Model { title, id, author, editor, position });

            #[derive(Clone, Debug, PartialEq)]
            pub struct Of;

            impl Tables for Of {
                type PersonId = PersonId;
                type BookId = BookId;
                type Person = Person;
                type Book = Book;

                fn keys(people: usize, books: usize) -> Outcome<Keys<Self>> {
                    let people = (0..people).map(|_| $keys).collect::<Result<_, ordid::Error>>()?;
                    let books = (0..books).map(|_| $keys).collect::<Result<_, ordid::Error>>()?;
                    Ok((people, books))
                }

                fn person(id: PersonId, mentor: Option<PersonId>, number: i64) -> Person {
                    Person {
                        id,
                        mentor,
                        name: format!("Ada 'Ω' \"{number}\""),
                        note: (number % 2 == 0).then(|| format!("{number}\n")),
                        position: number - 7,
                    }
                }

                fn mentor(person: &Person) -> Option<PersonId> {
                    person.mentor
                }

                fn book(
                    id: BookId,
                    author: PersonId,
                    editor: Option<PersonId>,
                    number: i64,
                ) -> Book {
                    Book {
                        title: format!("Notes; {number} -- ?"),
                        id,
                        author,
                        editor,
                        position: i64::MAX - number,
                    }
                }

                fn author(book: &Book) -> PersonId {
                    book.author
                }

                fn editor(book: &Book) -> Option<PersonId> {
                    book.editor
                }
            }

            /// One type for all databases.
            pub struct SeaOrm(pub DatabaseConnection);

            impl Library<Of> for SeaOrm {
                fn insert<'a>(&'a self, rows: &'a Rows<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let people = rows.people.iter().cloned().map(person::Model::from);
                        let people = people.map(person::ActiveModel::from);
                        let inserted = person::Entity::insert_many(people);
                        inserted.exec_without_returning(&self.0).await?;
                        for book in rows.books.iter().cloned().map(book::Model::from) {
                            let inserted = book.clone().into_active_model().insert(&self.0).await?;
                            assert_eq!(inserted, book);
                        }
                        Ok(())
                    })
                }

                fn flush<'a>(&'a self, rows: &'a Work<Of>) -> Answer<'a> {
                    Box::pin(async {
                        let Work { new, changed, deleted } = rows;
                        let mut work = ordid_seaorm::UnitOfWork::new();
                        for book in new.books.iter().cloned() {
                            // Snowflakes could not be made here, and are there.
                            work.try_add(book::Model::from(book))?;
                        }
                        for person in new.people.iter().cloned() {
                            work.try_add(person::Model::from(person))?;
                        }
                        for book in changed.books.iter().cloned() {
                            work.update(book::Model::from(book));
                        }
                        for person in changed.people.iter().cloned() {
                            work.update(person::Model::from(person));
                        }
                        for person in deleted.people.iter().cloned() {
                            work.delete(person::Model::from(person));
                        }
                        for book in deleted.books.iter().cloned() {
                            work.delete(book::Model::from(book));
                        }
                        work.flush(&self.0).await?;
                        Ok(())
                    })
                }

                fn read(&self) -> Answer<'_, Rows<Of>> {
                    Box::pin(async {
                        let people = person::Entity::find().order_by_asc(person::Column::Id);
                        let people = people.all(&self.0).await?;
                        let books = book::Entity::find().order_by_asc(book::Column::Id);
                        let books = books.all(&self.0).await?;
                        Ok(Rows {
                            people: people.into_iter().map(Person::from).collect(),
                            books: books.into_iter().map(Book::from).collect(),
                        })
                    })
                }

                fn of_author(&self, author: PersonId) -> Answer<'_, Vec<Book>> {
                    Box::pin(async move {
                        let books = book::Entity::find()
                            .inner_join(person::Entity)
                            .filter(person::Column::Id.eq(author))
                            .order_by_asc(book::Column::Id);
                        let books = books.all(&self.0).await?;
                        Ok(books.into_iter().map(Book::from).collect())
                    })
                }

                fn of_mentor(&self, mentor: PersonId) -> Answer<'_, Vec<Person>> {
                    Box::pin(async move {
                        let people = person::Entity::find()
                            .filter(person::Column::Mentor.eq(mentor))
                            .order_by_asc(person::Column::Id);
                        let people = people.all(&self.0).await?;
                        Ok(people.into_iter().map(Person::from).collect())
                    })
                }
            }
        }
    };
}

/// Raw keys by names of one word, and what makes snowflakes.
mod raw {
    pub use ordid::{generator::Generator, uuid::Uuid};

    pub use crate::engine::NODE;

    pub type Integer = i64;
}

column! {
    /// PostgreSQL's own.
    uuid: Uuid, uuid_v7, Uuid, Ok(KeyType::generate());
    sqlx(postgres = uuid), diesel(postgres = uuid), sea_orm(uuid),
    tokio_postgres(postgres = uuid)
}

column! {
    /// Sixteen bytes, as `BINARY(16)`, `BLOB`.
    binary16: Uuid, uuid_v7, Binary, Ok(KeyType::generate());
    sqlx(mysql = binary16, sqlite = blob), diesel(mysql = binary16, sqlite = blob), rusqlite(sqlite = blob),
    mysql_async(mysql = binary16), sea_orm(uuid)
}

column! {
    /// A UUID's own text.
    char36: Uuid, uuid_v6, Text, Ok(KeyType::generate());
    sqlx(postgres = text, mysql = char36, sqlite = text),
    diesel(postgres = text, mysql = char36, sqlite = text),
    mysql_async(mysql = char36), rusqlite(sqlite = text), sea_orm(text), tokio_postgres(postgres = text)
}

column! {
    char26: Uuid, ulid, Text, Ok(KeyType::generate());
    sqlx(postgres = char26, mysql = char26, sqlite = char26),
    diesel(postgres = char26, mysql = char26, sqlite = char26),
    mysql_async(mysql = char26), rusqlite(sqlite = char26), sea_orm(char26), tokio_postgres(postgres = char26)
}

column! {
    char22: Uuid, ordered_text_22, Text, Ok(KeyType::generate());
    sqlx(postgres = char22, mysql = char22, sqlite = char22),
    diesel(postgres = char22, mysql = char22, sqlite = char22),
    mysql_async(mysql = char22), rusqlite(sqlite = char22), sea_orm(char22), tokio_postgres(postgres = char22)
}

column! {
    /// Snowflakes.
    bigint: Integer, snowflake, BigInt, Generator::try_generate_key(&*NODE);
    sqlx(postgres = bigint, mysql = bigint, sqlite = integer),
    diesel(postgres = bigint, mysql = bigint, sqlite = integer),
    mysql_async(mysql = bigint), rusqlite(sqlite = integer), sea_orm(bigint), tokio_postgres(postgres = bigint)
}

column! {
    /// `MariaDB`'s own.
    mariadb_uuid: Uuid, uuid_v7, Text, Ok(KeyType::generate());
    sqlx(mysql = mariadb_uuid), diesel(mysql = mariadb_uuid), mysql_async(mysql = mariadb_uuid),
    sea_orm(mariadb_uuid)
}
