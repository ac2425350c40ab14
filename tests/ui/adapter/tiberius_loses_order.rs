//! The order law in SQL Server and in Babelfish, which compares as PostgreSQL. The ways out that the
//! errors name are the key types after them.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, tiberius(sql_server = unique_identifier))]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, tiberius(babelfish = babelfish_unique_identifier))]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, tiberius)]
struct BareId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, tiberius(
    sql_server = unique_identifier_permuted,
    babelfish = babelfish_unique_identifier
))]
struct PermutedId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v8_sql_server, tiberius(sql_server = unique_identifier))]
struct ProductId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v4, tiberius(sql_server = unordered(unique_identifier)))]
struct RandomId(Uuid);

fn main() {}
