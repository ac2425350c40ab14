//! SeaORM, over SQLx.

use std::time::{Duration, Instant};

use ordid_seaorm::UnitOfWork;
use sea_orm::{
    ActiveModelTrait as _, ConnectOptions, ConnectionTrait as _, Database, DatabaseConnection,
    EntityTrait as _, IntoActiveModel as _, TransactionTrait as _,
};

use super::{Case, Library, cases};
use crate::{
    Result,
    orders::Line,
    place::{Engine, Place},
};

#[expect(unreachable_pub, reason = "SeaORM's derives want it public")]
mod order {
    use ordid::OrderedKey;
    use sea_orm::entity::prelude::*;

    use crate::orders::{CustomerId, OrderId};

    #[derive(Clone, Debug, PartialEq, DeriveEntityModel, OrderedKey)]
    #[sea_orm(table_name = "orders")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: OrderId,
        /// Its table is filled without a unit of work.
        pub customer_id: CustomerId,
        pub product: String,
        pub quantity: i32,
        pub total: i64,
        pub note: Option<String>,
    }

    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

impl From<Line> for order::Model {
    fn from(line: Line) -> Self {
        Self {
            id: line.id,
            customer_id: line.customer_id,
            product: line.product,
            quantity: line.quantity,
            total: line.total,
            note: line.note,
        }
    }
}

pub(super) struct OnSeaOrm(pub(super) Engine);

impl Library for OnSeaOrm {
    fn name(&self) -> &'static str {
        "SeaORM"
    }

    fn cases(&self) -> Vec<Case> {
        cases(self.0)
    }

    fn title(&self, case: Case) -> String {
        match case {
            Case::Flush => "ordid flush".to_owned(),
            Case::Many(rows) => format!("insert_many without returning, {rows} rows"),
            Case::One => "ActiveModel::insert".to_owned(),
            Case::Copy => unreachable!("SeaORM has no COPY"),
        }
    }

    fn run(&self, place: &Place, lines: &[Line], case: Case) -> Result<Duration> {
        tokio::runtime::Handle::current().block_on(async {
            let mut options = ConnectOptions::new(place.sqlx_url());
            options.max_connections(1).sqlx_logging(false);
            let database = Database::connect(options).await?;
            if self.0 == Engine::Sqlite {
                let pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; \
                               PRAGMA foreign_keys = ON";
                database.execute_unprepared(pragmas).await?;
            }
            let models = lines.iter().cloned().map(order::Model::from);
            let time = insert(&database, models.collect(), case).await?;
            database.close().await?;
            Ok(time)
        })
    }
}

async fn insert(
    database: &DatabaseConnection,
    models: Vec<order::Model>,
    case: Case,
) -> Result<Duration> {
    let models: Vec<_> = models
        .into_iter()
        .map(order::Model::into_active_model)
        .collect();
    let started;
    match case {
        Case::Flush => {
            let mut work = UnitOfWork::new();
            for model in models {
                work.try_add(model)?;
            }
            started = Instant::now();
            work.flush(database).await?;
        }
        Case::Many(many) => {
            started = Instant::now();
            let transaction = database.begin().await?;
            let mut rest = models.into_iter();
            loop {
                let rows: Vec<_> = rest.by_ref().take(many).collect();
                if rows.is_empty() {
                    break;
                }
                let insert = order::Entity::insert_many(rows);
                insert.exec_without_returning(&transaction).await?;
            }
            transaction.commit().await?;
        }
        Case::One => {
            started = Instant::now();
            let transaction = database.begin().await?;
            for model in models {
                model.insert(&transaction).await?;
            }
            transaction.commit().await?;
        }
        Case::Copy => unreachable!("SeaORM has no COPY"),
    }
    Ok(started.elapsed())
}
