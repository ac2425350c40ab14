use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
struct UserId(Uuid);

#[derive(OrderedKey)]
struct Profile {
    #[ordid(key, parent)]
    user: UserId,
}

fn main() {}
