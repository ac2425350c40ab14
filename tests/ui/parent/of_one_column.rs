//! Fields are named of a parent whose key has several columns, and each once.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct PersonId(Uuid);

#[derive(OrderedKey)]
struct Friends {
    #[ordid(key, parent = Person(one))]
    one: PersonId,
    #[ordid(key)]
    other: PersonId,
    #[ordid(parent = Friends(through, through))]
    through: PersonId,
}

#[derive(OrderedKey)]
struct Person {
    id: PersonId,
}

fn main() {}
