use ordid::KeyType;

#[derive(KeyType)]
struct OrderId(i64);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7)]
struct CustomerId(Option<ordid::uuid::Uuid>);

#[derive(KeyType)]
struct ProductId([u8; 16]);

#[derive(KeyType)]
struct LineId(&'static str);

fn main() {
    let _ = OrderId::generate();
}
