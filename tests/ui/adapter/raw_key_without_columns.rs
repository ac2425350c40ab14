//! SQL Server has no integer without a sign, and no column for a push id.

use ordid::{KeyType, key::PushId};

#[derive(KeyType)]
#[ordid(scheme = uuid_short, tiberius)]
struct CustomerId(u64);

#[derive(KeyType)]
#[ordid(scheme = push_id, tiberius(sql_server = binary16), oracle)]
struct LineId(PushId);

fn main() {
    let _: u64 = "1".parse::<CustomerId>().unwrap().into();
}
