//! The order law in Oracle: the bytes of version 7 in the order of .NET. The way out that the error
//! names is the second key type.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, oracle(oracle = raw16_dotnet))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, oracle(oracle = unordered(raw16_dotnet)))]
struct SharedId(Uuid);

fn main() {}
