use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(sea_orm(binary16))]
pub struct Unknown(Uuid);

#[derive(KeyType)]
#[ordid(sea_orm(uuid, char22))]
pub struct Two(Uuid);

fn main() {}
