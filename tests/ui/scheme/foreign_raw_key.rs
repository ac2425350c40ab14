use ordid::{KeyType, uuid};

mod other {
    #[derive(Clone, Copy)]
    pub struct Uuid(pub [u8; 16]);
}

// As of another major version of `uuid`.
#[derive(KeyType)]
struct OrderId(other::Uuid);

#[derive(KeyType)]
struct CustomerId(OrderId);

fn main() -> Result<(), ordid::Error> {
    let id = OrderId::generate();
    let _: OrderId = id.to_string().parse()?;
    assert!(CustomerId::generate() < CustomerId::from_raw(uuid::Uuid::nil())?);
    Ok(())
}
