//! Locks for ids on real servers: a lock that was lost writes nothing, and no number comes twice.

mod redis;
#[path = "../../../../tests/coordination/tests/shared/redis.rs"]
mod redis_connection;
mod zookeeper;
#[path = "../../../../tests/coordination/tests/shared/zookeeper.rs"]
mod zookeeper_session;

use ordid_tests::trials::run_all;

fn main() {
    run_all(&["redis", "zookeeper"], |servers, trials| {
        redis::add(servers, trials);
        zookeeper::add(servers, trials);
    });
}
