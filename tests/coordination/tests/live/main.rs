//! Coordinated ids on real servers: what is handed out twice is found here.

mod duel;
mod file_leases;
mod instagram;
mod mapping;
mod redis;
mod segments;
mod sql;
mod sql_leases;
mod stores;
mod tickets;
mod zookeeper;

use ordid_tests::trials::{run, run_all};

fn main() {
    duel::run_if_told();
    if let Some([store, url, place]) = stores::to_hold() {
        let held = run(async || match store.as_str() {
            "redis" => redis::hold_node(&url, &place).await,
            _ => zookeeper::hold_node(&url, &place).await,
        });
        return held.expect("it holds a node");
    }
    run_all(
        &["postgres", "mariadb", "mysql", "redis", "zookeeper"],
        |servers, trials| {
            duel::trials(servers, trials);
            file_leases::trials(trials);
            sql_leases::trials(servers, trials);
            segments::trials(servers, trials);
            tickets::trials(servers, trials);
            redis::add(servers, trials);
            zookeeper::add(servers, trials);
            instagram::trials(servers, trials);
            mapping::trials(servers, trials);
        },
    );
}
