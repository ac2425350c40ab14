//! SQL Server has no unsigned integers: half of the keys would sort below the others.

use ordid::{KeyType, key::ObjectId};

#[derive(KeyType)]
#[ordid(scheme = uuid_short, tiberius(sql_server = bigint))]
struct OrderId(u64);

#[derive(KeyType)]
#[ordid(scheme = object_id, tiberius(sql_server = binary16))]
struct ProductId(ObjectId);

fn main() {}
