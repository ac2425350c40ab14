// This is the program of README.md, for the pool that the package names.

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::UnitOfWork;

#[derive(KeyType)]
#[ordid(sqlx)]
pub struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(prefix = "ord", sqlx)]
pub struct OrderId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "customers")]
pub struct Customer {
    id: CustomerId,
    name: String,
}

#[derive(OrderedKey)]
#[ordid(table = "orders")]
pub struct Order {
    #[ordid(key)]
    id: OrderId,
    #[ordid(parent)]
    customer: CustomerId,
    total: i64,
}

pub async fn sell(pool: &Pool) -> Result<(), ordid_sqlx::Error> {
    let mut work = UnitOfWork::new();
    let customer = work.add(Customer {
        id: CustomerId::generate(),
        name: "Ada".into(),
    });
    work.add(Order {
        id: OrderId::generate(),
        customer,
        total: 1250,
    });
    work.flush(pool).await?;
    Ok(())
}
