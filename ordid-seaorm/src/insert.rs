//! Rows of one entity in bulk, beside a unit of work.

use std::{collections::HashSet, ops::Range};

use ordid_core::{
    EnsuredKey, KeyOf, OrderedKey,
    storage::{Dialect as _, dialect},
    unit_of_work::{Action, Columns, MAX_ROWS, Place, RowSink as _},
};
use sea_orm::{
    DbBackend, DbErr, EntityTrait, IntoActiveModel, Iterable as _, SqlErr, TryGetable,
    sea_query::OnConflict,
};

use crate::{
    Error, assign_keys,
    entity::{Binder, Entity, Names},
    failure::{judge, judge_commit, unknown_database},
    unit_of_work::{Begin, Open, UnitOfWork, begin, inserts, is_transaction},
};

/// Inserts models, all or none, and returns their keys in the order of the models: those that have none
/// are given one. Statements have as many rows as a statement may have parameters, up to 1,000.
///
/// It is a [`UnitOfWork`] of one entity: to try again after an error, with the same keys, keep one.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # mod author {
/// # use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// # use sea_orm::entity::prelude::*;
/// # #[derive(KeyType)]
/// # #[ordid(sea_orm)]
/// # pub struct AuthorId(Uuid);
/// # #[derive(Clone, Debug, PartialEq, DeriveEntityModel, OrderedKey)]
/// # #[sea_orm(table_name = "author")]
/// # pub struct Model {
/// #     #[sea_orm(primary_key, auto_increment = false)]
/// #     pub id: AuthorId,
/// #     pub name: String,
/// # }
/// # #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
/// # pub enum Relation {}
/// # impl ActiveModelBehavior for ActiveModel {}
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use sea_orm::{
///     ActiveValue::{NotSet, Set}, ConnectionTrait, Database, EntityTrait, PaginatorTrait, Schema,
/// };
///
/// let db = Database::connect("sqlite::memory:").await?;
/// let schema = Schema::new(db.get_database_backend());
/// db.execute(&schema.create_table_from_entity(author::Entity)).await?;
/// let authors = (0..20_000).map(|number| author::ActiveModel {
///     id: NotSet,
///     name: Set(number.to_string()),
/// });
/// let keys = ordid_seaorm::insert_all(&db, authors).await?;
/// assert!(keys.is_sorted());
/// assert_eq!(author::Entity::find().count(&db).await?, 20_000);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`UnitOfWork::flush`]; in a transaction of yours, as [`UnitOfWork::flush_in`].
pub async fn insert_all<A, C>(
    on: &C,
    models: impl IntoIterator<Item = impl IntoActiveModel<A>>,
) -> Result<Vec<KeyOf<A>>, Error>
where
    A: Entity + OrderedKey<Field: EnsuredKey>,
    C: Begin,
{
    let mut work = UnitOfWork::new();
    let keys = models.into_iter().map(|model| work.add(model)).collect();
    work.flush_on(on).await?;
    Ok(keys)
}

/// Inserts those models that no row of the table stands against, by its primary key or another unique
/// key, and tells of each whether it was inserted. Those that have no key are given one. Whatever else
/// a row is refused for is an error, and then none is inserted.
///
/// PostgreSQL and SQLite (from 3.35 on) say which rows `ON CONFLICT DO NOTHING` inserted. MySQL and
/// MariaDB do not, and SeaORM's `on_conflict_do_nothing` reports each row as inserted there: they are
/// sent a plain `INSERT`, and row by row where that meets a duplicate.
///
/// # Errors
///
/// What failed, in which chunk; nothing of it is tried again.
pub async fn insert_or_skip<A, C>(on: &C, models: &mut [A]) -> Result<Vec<bool>, Error>
where
    A: Entity + OrderedKey<Field: EnsuredKey>,
    KeyOf<A>: TryGetable,
    C: Begin,
{
    let keys = assign_keys(models);
    let mut open = begin(on, false)
        .await
        .map_err(|error| Error::begin(judge(error)))?;
    let names = Names::of::<A>();
    let backend = open.backend();
    let parameters = match backend {
        DbBackend::Postgres => dialect::Postgres::MAX_PARAMETERS,
        DbBackend::MySql => dialect::MySql::MAX_PARAMETERS,
        DbBackend::Sqlite => dialect::Sqlite::MAX_PARAMETERS,
        _ => return Err(unknown_database()),
    };
    let at_once = (parameters / names.columns.len().max(1)).clamp(1, MAX_ROWS);
    let mut inserted = Vec::with_capacity(models.len());
    for (number, chunk) in models.chunks(at_once).enumerate() {
        let start = number * at_once;
        let rows = start..start + chunk.len();
        let taken = match backend {
            DbBackend::Postgres | DbBackend::Sqlite => {
                returned(&mut open, &names, chunk, &keys[rows.clone()]).await
            }
            _ => tried(&mut open, &names, chunk).await,
        };
        match taken {
            Ok(taken) => inserted.extend(taken),
            Err(error) => {
                // Its own failure says no more: the server drops what is not committed.
                let _ = open.rollback().await;
                return Err(refused::<A>(error, number, rows));
            }
        }
    }
    let committed = open.commit().await;
    committed.map_err(|error| {
        if is_transaction(on) {
            return Error::release(judge(error));
        }
        let error = Error::commit(judge_commit(error));
        match error.is_connection_lost() {
            true => error.into_unknown(),
            false => error,
        }
    })?;
    Ok(inserted)
}

fn refused<A: Entity>(error: DbErr, chunk: usize, rows: Range<usize>) -> Error {
    Error::statement(
        judge(error),
        Place::new(Action::Insert, A::TABLE, chunk, rows),
    )
}

fn bound<A: Entity>(models: &[A]) -> Binder {
    let mut binder = Binder::new();
    for model in models {
        binder.begin_row(Columns::All);
        model.write(&mut binder);
        binder.end_row();
    }
    binder
}

/// Has the database tell which rows it inserted.
async fn returned<A: Entity>(
    open: &mut Open,
    names: &Names,
    models: &[A],
    keys: &[KeyOf<A>],
) -> Result<Vec<bool>, DbErr>
where
    KeyOf<A>: TryGetable,
{
    let mut inserted = HashSet::new();
    for mut insert in inserts(names, bound(models).into_rows()) {
        insert
            .on_conflict(OnConflict::new().do_nothing().to_owned())
            .returning_col(names.key());
        let insert = open.backend().build(&insert);
        for row in open.query_all(insert).await? {
            inserted.insert(row.try_get_by_index::<KeyOf<A>>(0)?);
        }
    }
    // A key that is there twice was inserted once.
    Ok(keys.iter().map(|key| inserted.remove(key)).collect())
}

/// Inserts as if there were no duplicates, and row by row where there are: a statement that meets one
/// leaves nothing behind in these databases, and the transaction open.
async fn tried<A: Entity>(
    open: &mut Open,
    names: &Names,
    models: &[A],
) -> Result<Vec<bool>, DbErr> {
    let mut taken = Vec::with_capacity(models.len());
    // Rows of different columns go by statements of their own, each all or none.
    let runs = models.chunk_by(|left, right| set_columns(left) == set_columns(right));
    for run in runs {
        if inserted(open, names, run).await? {
            taken.resize(taken.len() + run.len(), true);
            continue;
        }
        for model in run {
            taken.push(inserted(open, names, std::slice::from_ref(model)).await?);
        }
    }
    Ok(taken)
}

fn set_columns<A: Entity>(model: &A) -> Vec<bool> {
    let columns = <A::Entity as EntityTrait>::Column::iter();
    columns.map(|column| !model.is_not_set(column)).collect()
}

/// Inserts models of the same columns, unless one of them meets a duplicate.
async fn inserted<A: Entity>(open: &mut Open, names: &Names, models: &[A]) -> Result<bool, DbErr> {
    for insert in inserts(names, bound(models).into_rows()) {
        let insert = open.backend().build(&insert);
        if let Err(error) = open.execute(insert).await {
            return match error.sql_err() {
                Some(SqlErr::UniqueConstraintViolation(_)) => Ok(false),
                _ => Err(error),
            };
        }
    }
    Ok(true)
}
