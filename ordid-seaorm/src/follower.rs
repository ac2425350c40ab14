//! The followers of [`ordid_sql::follower`], over connections of SeaORM.

use std::marker::PhantomData;

use ordid_core::{KeyField, KeyOf, OrderedKey, storage::Column};
use ordid_sql::{
    DriverError, Failure, FlushDialect,
    follower::{self, FollowDialect, FollowError as Failed, FollowNames, FollowerDriver},
    table_driver::{Awaited, Sent, TableDriver},
};
use sea_orm::{
    ActiveModelTrait, ConnectionTrait as _, DatabaseConnection, DatabaseTransaction, DbBackend,
    DbErr, EntityTrait, FromQueryResult as _, IntoActiveModel, QueryResult, Statement, Value,
};

use crate::{
    entity::{Entity, EntityNames},
    failure::{backend_of, classify},
    stored::StoredAs,
};

/// Reads the rows of an entity's table that were inserted since the last call, including rows that were committed late.
/// Each row is delivered once, as a `Model`. A call takes `&DatabaseConnection` or `&DatabaseTransaction`.
/// [`follower::Follower`] says what a follower promises.
///
/// `D` is the [`dialect`](crate::dialect) of the database, `A` the model's `ActiveModel`.
///
/// SeaORM prepares every statement by name. Behind PgBouncer's mode `transaction` that takes PgBouncer 1.21 or later with
/// `max_prepared_statements` above 0.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// mod order {
///     use ordid::{OrderedKey, uuid::Uuid};
///     use sea_orm::entity::prelude::*;
///
///     #[derive(Clone, Debug, PartialEq, OrderedKey, DeriveEntityModel)]
///     #[sea_orm(table_name = "orders")]
///     pub struct Model {
///         #[sea_orm(primary_key, auto_increment = false)]
///         pub id: Uuid,
///         pub total: i64,
///     }
///
///     #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
///     pub enum Relation {}
///
///     ordid_seaorm::assign_before_save!(ActiveModel);
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use ordid_seaorm::{Follower, Position, create_table, dialect::Sqlite};
/// use sea_orm::{ActiveModelTrait, ActiveValue::{NotSet, Set}, ConnectionTrait, Database};
///
/// let db = Database::connect("sqlite::memory:").await?;
/// db.execute(&create_table(db.get_database_backend(), order::Entity)).await?;
/// for total in [1, 2, 3] {
///     order::ActiveModel { id: NotSet, total: Set(total) }.insert(&db).await?;
/// }
///
/// let orders = Follower::<Sqlite, order::ActiveModel>::settled_after(Duration::from_millis(50));
/// tokio::time::sleep(Duration::from_millis(60)).await;
/// let batch = orders.next(&db, &Position::START, 2).await?;
/// let totals: Vec<i64> = batch.rows.iter().map(|order| order.total).collect();
/// assert!(totals == [1, 2] && !batch.is_complete);
///
/// let stored = batch.position.to_string();
/// let batch = orders.next(&db, &stored.parse()?, 2).await?;
/// assert!(batch.rows.len() == 1 && batch.is_complete);
/// # Ok(())
/// # }
/// ```
pub type Follower<D, A> = follower::Follower<SeaOrm<D>, A>;

/// The error of a [`Follower`]. Its [`driver`](Failed::driver) is SeaORM's error.
pub type FollowError = Failed<DbErr>;

/// SeaORM, with the dialect of a database.
#[derive(Debug)]
pub struct SeaOrm<D>(PhantomData<fn() -> D>);

/// The connection or the transaction over which a call sends its statements. `&DatabaseConnection` and
/// `&DatabaseTransaction` turn into it.
#[derive(Debug)]
pub enum Over<'c> {
    /// Each statement takes a connection.
    Pool(&'c DatabaseConnection),
    /// The statements are part of it.
    Transaction(&'c DatabaseTransaction),
}

impl<'c> From<&'c DatabaseConnection> for Over<'c> {
    fn from(pool: &'c DatabaseConnection) -> Self {
        Self::Pool(pool)
    }
}

impl<'c> From<&'c DatabaseTransaction> for Over<'c> {
    fn from(transaction: &'c DatabaseTransaction) -> Self {
        Self::Transaction(transaction)
    }
}

impl Over<'_> {
    /// Returns the database, if it is that of the dialect.
    fn backend<D: FlushDialect>(&self) -> Result<DbBackend, DbErr> {
        let backend = match self {
            Self::Pool(pool) => pool.get_database_backend(),
            Self::Transaction(transaction) => transaction.get_database_backend(),
        };
        if backend_of(&D::PROFILE) == Some(backend) {
            return Ok(backend);
        }
        let text = format!(
            "this is for {}, and SeaORM is connected to {backend:?}",
            D::NAME
        );
        Err(DbErr::Custom(text))
    }

    async fn query<D: FlushDialect>(
        &self,
        sql: String,
        values: Vec<Value>,
    ) -> Result<Vec<QueryResult>, DriverError<DbErr>> {
        let backend = self.backend::<D>().map_err(refused)?;
        let query = Statement::from_sql_and_values(backend, sql, values);
        let rows = match self {
            Self::Pool(pool) => pool.query_all_raw(query).await,
            Self::Transaction(transaction) => transaction.query_all_raw(query).await,
        };
        rows.map_err(|error| classify(backend, error, false))
    }
}

/// Takes an error that would come again.
fn refused(error: DbErr) -> DriverError<DbErr> {
    DriverError::new(error, Failure::Refused)
}

impl<D: FlushDialect> TableDriver for SeaOrm<D> {
    type Error = DbErr;
    type Source<'c> = Over<'c>;
    type Kind = Awaited;

    fn texts<'a>(over: &'a mut Over<'_>, sql: String) -> Sent<'a, Self, Vec<String>> {
        Box::pin(async move {
            let rows = over.query::<D>(sql, Vec::new()).await?;
            let texts = rows
                .iter()
                .map(|row| row.try_get_by_index::<Option<String>>(0));
            let texts = texts.map(|text| Ok(text?.unwrap_or_default()));
            texts.collect::<Result<_, DbErr>>().map_err(refused)
        })
    }

    fn run<'a>(over: &'a mut Over<'_>, sql: String) -> Sent<'a, Self, ()> {
        Box::pin(async move {
            let backend = over.backend::<D>().map_err(refused)?;
            let done = match over {
                Over::Pool(pool) => pool.execute_unprepared(&sql).await,
                Over::Transaction(transaction) => transaction.execute_unprepared(&sql).await,
            };
            done.map(drop)
                .map_err(|error| classify(backend, error, false))
        })
    }
}

/// The `Model` of an `ActiveModel`.
type Model<A> = <<A as ActiveModelTrait>::Entity as EntityTrait>::Model;

impl<D, A> FollowerDriver<A> for SeaOrm<D>
where
    D: FlushDialect + FollowDialect,
    A: Entity<Entity: EntityTrait<Model: IntoActiveModel<A> + Send>>
        + OrderedKey<Field: KeyField<Key: StoredAs + Into<Value>>>,
{
    type Dialect = D;
    type Row = Model<A>;

    const KEEPS_ORDER: bool = !<<KeyOf<A> as StoredAs>::Column as Column>::UNORDERED;

    /// SeaORM's names.
    fn names() -> FollowNames {
        let entity = EntityNames::of::<A>();
        let own = FollowNames::of::<D, A>();
        FollowNames {
            table: D::quote_table(entity.schema(), entity.table()),
            key: entity.key().map_or(own.key, |it| D::quote(it)),
            selected: entity.selected(&D::PROFILE),
            placeholder: own.placeholder,
        }
    }

    fn rows<'a>(
        over: &'a mut Over<'_>,
        sql: String,
        keys: Vec<KeyOf<A>>,
    ) -> Sent<'a, Self, Vec<Model<A>>> {
        let keys = keys.into_iter().map(Into::into).collect();
        Box::pin(async move {
            if let Some(mistake) = EntityNames::of::<A>().mistake() {
                return Err(refused(mistake));
            }
            let rows = over.query::<D>(sql, keys).await?;
            let rows = rows
                .iter()
                .map(|row| Model::<A>::from_query_result(row, ""));
            rows.collect::<Result<_, _>>().map_err(refused)
        })
    }

    fn key(row: &Model<A>) -> Option<KeyOf<A>> {
        row.clone().into_active_model().key()
    }
}
