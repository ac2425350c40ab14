use ordid::KeyType;

#[derive(KeyType)]
#[ordid(scheme = snowflake(layout = Sonyflake, layout = Twitter))]
struct OrderId(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake, scheme = snowflake(layout = Twitter))]
struct CustomerId(i64);

fn main() {}
