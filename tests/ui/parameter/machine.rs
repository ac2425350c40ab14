//! Words that an ObjectId's machine is not.

use ordid::{KeyType, key::ObjectId};

#[derive(KeyType)]
#[ordid(scheme = object_id(machine = HostAndProces))]
struct Misspelt(ObjectId);

#[derive(KeyType)]
#[ordid(scheme = object_id(machine = 7))]
struct Number(ObjectId);

fn main() {}
