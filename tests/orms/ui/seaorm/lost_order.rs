use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, sea_orm(uuid))]
pub struct Lost(Uuid);

#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, sea_orm(unordered(uuid)))]
pub struct GivenUp(Uuid);

#[derive(KeyType)]
#[ordid(sea_orm(binary16))]
pub struct Unknown(Uuid);

#[derive(KeyType)]
#[ordid(sea_orm(uuid, char22))]
pub struct Two(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake, sea_orm(uuid))]
pub struct Narrow(i64);

fn main() {}
