use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
struct Id<T, const N: usize>(Uuid, std::marker::PhantomData<[T; N]>);

fn main() {}
