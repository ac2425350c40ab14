//! Locks for ids on real servers: a lock that was lost writes nothing, and no number comes twice.

mod redis;
mod zookeeper;

use ordid_tests::trials::run_all;

fn main() {
    run_all(&["redis", "zookeeper"], |servers, trials| {
        redis::add(servers, trials);
        zookeeper::add(servers, trials);
    });
}
