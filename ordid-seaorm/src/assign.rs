//! Keys where SeaORM's hooks do not reach, and where they do.

use ordid_core::{EnsuredKey, KeyOf, OrderedKey};

use crate::entity::Entity;

/// Assigns a key to a model that will be inserted, if it has none. Call it in `before_save`.
///
/// Do not assign the key earlier: if a model's key is set, SeaORM's `save` assumes that the row is in the
/// database, and updates it.
///
/// # Example
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use sea_orm::entity::prelude::*;
///
/// #[derive(KeyType)]
/// #[ordid(sea_orm)]
/// pub struct AuthorId(Uuid);
///
/// #[derive(Clone, Debug, PartialEq, OrderedKey, DeriveEntityModel)]
/// #[sea_orm(table_name = "author")]
/// pub struct Model {
///     #[sea_orm(primary_key, auto_increment = false)]
///     pub id: AuthorId,
///     pub name: String,
/// }
///
/// #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
/// pub enum Relation {}
///
/// #[async_trait::async_trait]
/// impl ActiveModelBehavior for ActiveModel {
///     async fn before_save<C: ConnectionTrait>(mut self, _: &C, insert: bool) -> Result<Self, DbErr> {
///         ordid_seaorm::assign(&mut self, insert);
///         Ok(self)
///     }
/// }
/// # fn main() {}
/// ```
///
/// Where there is nothing else to do, [`assign_before_save!`](crate::assign_before_save) writes this.
///
/// # Panics
///
/// As [`KeyType::generate`](ordid_core::KeyType::generate), for a key that is not assigned yet.
pub fn assign<A: Entity>(model: &mut A, insert: bool)
where
    <A as OrderedKey>::Field: EnsuredKey,
{
    if insert {
        model.ensure_key();
    }
}

/// Assigns keys in rising order to the models that have none, and returns the keys of all models. Use it for
/// `Entity::insert_many`, which calls no hooks, and for rows that refer to these models.
///
/// # Example
///
/// ```
#[doc = include_str!("example_models.md")]
/// use sea_orm::{ActiveValue::{NotSet, Set}, EntityTrait};
///
/// # fn main() {
/// let mut authors = ["Ada", "Grace"].map(|name| author::ActiveModel {
///     id: NotSet,
///     name: Set(name.to_owned()),
/// });
/// let keys = ordid_seaorm::assign_keys(&mut authors);
/// assert!(keys[0] < keys[1]);
/// assert_eq!(authors[1].id, Set(keys[1]));
/// let insert = author::Entity::insert_many(authors);
/// # }
/// ```
///
/// # Panics
///
/// As [`KeyType::generate`](ordid_core::KeyType::generate), for a key that is not assigned yet.
pub fn assign_keys<A: Entity>(models: &mut [A]) -> Vec<KeyOf<A>>
where
    <A as OrderedKey>::Field: EnsuredKey,
{
    models.iter_mut().map(OrderedKey::ensure_key).collect()
}

/// Implements `ActiveModelBehavior` for an `ActiveModel`: its key is [assigned](crate::assign) in
/// `before_save`, and nothing else is done. The [crate's example](crate#example-a-graph-of-rows-in-one-transaction)
/// calls it beside each `Model`.
#[macro_export]
macro_rules! assign_before_save {
    ($model:ty) => {
        #[$crate::__private::async_trait::async_trait]
        impl $crate::__private::sea_orm::ActiveModelBehavior for $model {
            async fn before_save<C>(
                mut self,
                _: &C,
                __insert: bool,
            ) -> $crate::__private::Result<Self, $crate::__private::sea_orm::DbErr>
            where
                C: $crate::__private::sea_orm::ConnectionTrait,
            {
                $crate::assign(&mut self, __insert);
                $crate::__private::Result::Ok(self)
            }
        }
    };
}
