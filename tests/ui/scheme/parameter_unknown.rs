use ordid::KeyType;

#[derive(KeyType)]
#[ordid(scheme = snowflake(preset = Sonyflake))]
struct OrderId(i64);

fn main() {}
