//! A name that is no identifier is none of a column of `table!`. A keyword is one: `kind` is the column `type`.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

diesel::table! {
    pets (id) {
        id -> Binary,
        r#type -> Text,
    }
}

#[derive(KeyType)]
#[ordid(diesel)]
struct PetId(Uuid);

#[derive(OrderedKey)]
#[ordid(diesel)]
#[diesel(table_name = pets)]
struct Pet {
    id: PetId,
    #[diesel(column_name = "type")]
    kind: String,
}

#[derive(OrderedKey)]
#[ordid(diesel)]
#[diesel(table_name = pets)]
struct Other {
    id: PetId,
    #[diesel(column_name = "the type")]
    kind: String,
}

fn main() {}
