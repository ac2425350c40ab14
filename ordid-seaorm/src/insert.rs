//! Rows of one entity in bulk, beside a unit of work.

use std::{collections::HashSet, marker::PhantomData};

use ordid_core::{EnsuredKey, KeyOf, OrderedKey};
use ordid_sql::{
    Action, Columns, EngineProfile, Place, RowSink as _,
    spi::{
        self, ConnectionSource as _, FlushConnection as _, FlushTransaction as _, RowBinder as _,
        TableNames, TransactionScope,
    },
};
use sea_orm::{DbBackend, DbErr, IntoActiveModel, SqlErr, Statement, TryGetable};

use crate::{
    Error, assign_keys,
    connection::{Begin, Open, Source},
    entity::{Binder, Entity, EntityNames},
    failure::classify,
    unit_of_work::UnitOfWork,
};

/// Inserts models, all or none, and returns their keys in the order of the models. A model without a key gets
/// one. A statement has as many rows as its parameters allow, up to 1,000.
///
/// This function uses a [`UnitOfWork`] of one entity. To retry with the same keys after an error, use a `UnitOfWork`
/// yourself.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
#[doc = include_str!("example_models.md")]
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

/// Inserts models, but skips those whose primary key or another unique key is taken, and returns for each
/// whether it was inserted. A model without a key gets one. If a row is refused for any other reason, that is an
/// error, and none is inserted.
///
/// PostgreSQL and SQLite (from 3.35 on) return which rows `ON CONFLICT DO NOTHING` inserted. MySQL and
/// MariaDB do not, and SeaORM's `on_conflict_do_nothing` reports each row as inserted there: so they get a
/// plain `INSERT`, and one for each row if that meets a duplicate.
///
/// # Errors
///
/// The error says what failed, and in which chunk. Nothing is retried.
pub async fn insert_or_skip<A, C>(on: &C, models: &mut [A]) -> Result<Vec<bool>, Error>
where
    A: Entity + OrderedKey<Field: EnsuredKey>,
    KeyOf<A>: TryGetable,
    C: Begin,
{
    let keys = assign_keys(models);
    let mut source = Source::of(on)?;
    let inserts = Inserts::<A>::of(source.engine(), source.backend());
    let (scope, backend) = (source.scope(), source.backend());
    if let Some(mistake) = EntityNames::of::<A>().mistake() {
        let place = Place::new(Action::Insert, A::TABLE, 0, 0..models.len());
        return Err(Error::statement(classify(backend, mistake, false), place));
    }
    let mut open = source.begin(spi::Begin::of(scope, &inserts.engine)).await?;
    let columns = inserts.names.columns.len().max(1);
    let at_once = inserts.engine.max_parameters / columns;
    let at_once = at_once.clamp(1, inserts.engine.max_rows);
    let mut inserted = Vec::with_capacity(models.len());
    for (number, chunk) in models.chunks(at_once).enumerate() {
        let start = number * at_once;
        let rows = start..start + chunk.len();
        let taken = match backend {
            DbBackend::Postgres | DbBackend::Sqlite => {
                inserts
                    .returned(&mut open, chunk, &keys[rows.clone()])
                    .await
            }
            _ => inserts.tried(&mut open, chunk).await,
        };
        match taken {
            Ok(taken) => inserted.extend(taken),
            Err(error) => {
                // Its own failure says no more: the server drops what is not committed.
                let _ = open.rollback(false).await;
                let place = Place::new(Action::Insert, A::TABLE, number, rows);
                return Err(Error::statement(classify(backend, error, false), place));
            }
        }
    }
    match open.commit().await {
        Ok(()) => Ok(inserted),
        Err(error) if scope == TransactionScope::Savepoint => Err(Error::release(error)),
        Err(error) => {
            let error = Error::commit(error);
            Err(match error.is_connection_lost() {
                true => error.into_unknown(),
                false => error,
            })
        }
    }
}

/// The statements that insert models of one entity, as a unit of work writes them.
struct Inserts<A> {
    backend: DbBackend,
    engine: EngineProfile,
    names: TableNames,
    models: PhantomData<fn(A)>,
}

impl<A: Entity> Inserts<A> {
    fn of(engine: EngineProfile, backend: DbBackend) -> Self {
        Self {
            names: EntityNames::of::<A>().on(&engine),
            backend,
            engine,
            models: PhantomData,
        }
    }

    /// Binds models, as many by each statement as follow each other and have values for the same columns. Each
    /// statement comes with its number of models.
    fn bind(&self, models: &[A], end: &str) -> Vec<(usize, Statement)> {
        let mut binder = Binder::with_room(
            EntityNames::of::<A>(),
            models.len(),
            self.names.columns.len(),
        );
        for model in models {
            binder.begin_row(Columns::All);
            model.write(&mut binder);
            binder.end_row();
        }
        let runs = binder.into_runs(models.len()).into_iter();
        let bound = runs.map(|run| {
            let columns = run.columns.unwrap_or_default();
            let insert = spi::Statement::insert(&self.engine, &self.names, &columns, run.rows);
            let sql = format!("{}{end}", insert.sql);
            let values = run.values.into_values(&columns);
            let statement = Statement::from_sql_and_values(self.backend, sql, values);
            (run.rows, statement)
        });
        bound.collect()
    }

    /// Has the database tell which rows it inserted.
    async fn returned(
        &self,
        open: &mut Open,
        models: &[A],
        keys: &[KeyOf<A>],
    ) -> Result<Vec<bool>, DbErr>
    where
        KeyOf<A>: TryGetable,
    {
        let key = &self.names.columns[self.names.keys[0]];
        let end = format!(" ON CONFLICT DO NOTHING RETURNING {key}");
        let mut inserted = HashSet::new();
        for (_, insert) in self.bind(models, &end) {
            for row in open.query_all(insert).await? {
                inserted.insert(row.try_get_by_index::<KeyOf<A>>(0)?);
            }
        }
        // A key that is there twice was inserted once.
        Ok(keys.iter().map(|key| inserted.remove(key)).collect())
    }

    /// Inserts as if there were no duplicates, and row by row where there are: a statement that meets one
    /// leaves nothing behind in these databases, and the transaction open.
    async fn tried(&self, open: &mut Open, models: &[A]) -> Result<Vec<bool>, DbErr> {
        let mut taken = Vec::with_capacity(models.len());
        for (rows, insert) in self.bind(models, "") {
            if inserted(open, insert).await? {
                taken.resize(taken.len() + rows, true);
                continue;
            }
            let start = taken.len();
            for model in start..start + rows {
                for (_, insert) in self.bind(&models[model..=model], "") {
                    taken.push(inserted(open, insert).await?);
                }
            }
        }
        Ok(taken)
    }
}

/// Inserts models, unless one of them meets a duplicate.
async fn inserted(open: &mut Open, insert: Statement) -> Result<bool, DbErr> {
    match open.execute_raw(insert).await {
        Ok(_) => Ok(true),
        Err(error) => match error.sql_err() {
            Some(SqlErr::UniqueConstraintViolation(_)) => Ok(false),
            _ => Err(error),
        },
    }
}
