use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, sea_orm(uuid))]
pub struct Lost(Uuid);

#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, sea_orm(unordered(uuid)))]
pub struct GivenUp(Uuid);

fn main() {}
