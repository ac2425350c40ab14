//! Columns that SQL Server or Babelfish does not have.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(tiberius(sql_server = uuid))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(tiberius(babelfish = unordered(uniqueidentifier)))]
struct RandomId(Uuid);

fn main() {}
