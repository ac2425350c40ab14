//! What is no source of nodes, or cannot be one.

use ordid::{KeyType, uuid::Uuid};

#[derive(Debug, Clone, Copy)]
struct Machine;

#[derive(KeyType)]
#[ordid(scheme = uuid_v6(node = Machine))]
struct NoSource(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v1(node = Fixed<0x9236_1f00_2671>))]
struct AnAddress(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v1(node = DangerExact<0x1_0000_0000_0000>))]
struct TooLong(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v1(node = "92:36:1f:00:26:71"))]
struct Text(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v6(mac = Random))]
struct Unknown(Uuid);

fn main() {
    let _ = NoSource::generate();
}
