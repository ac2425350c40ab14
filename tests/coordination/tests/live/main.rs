//! Coordinated ids on real servers: what is handed out twice is found here.
//!
//! A file for each store or method; what is promised on any store is in `ordid_tests::stores`, and run from theirs. Whatever is
//! done to a holder or its store, no key may come twice, and whoever gets none is told. What is done has numbers:
//!
//! | | what happens | where |
//! |---|---|---|
//! | F1 | no store at the start | each store |
//! | F2 | the store goes while a node is held, or a part of it | `keys_end_at_the_ceiling`, `away`, `falls`, `duel_through_a_failover` |
//! | F3, F4 | the holder is stopped, also between its check and its key | `duel`, `a_paused_holder_is_fenced`; core |
//! | F5, F6 | clocks that are wrong, or were before a restart | `clocks_cannot_bring_a_time_back`, `duel` |
//! | F7 | the holder is killed | `a_killed_holder_leaves_a_gap`, `duel` |
//! | F8 | the holder is forked | `forks` |
//! | F9 | two copies of a holder | `the_first_copy_to_renew_goes_on` |
//! | F10, F11 | all start at once; one more than there are nodes | `starters_get_distinct_nodes`, `nodes_run_out` |
//! | F12, F14 | a session ends, the leader changes; an operator takes the node away | `zookeeper`, `ensemble` |
//! | F13 | the store has lost its data | `without_data`, `state_that_is_gone_is_an_error` |
//! | F15 | an older copy takes the store's place | `lagging`, `a_copy_that_lags_behind_is_noticed`, `redis_clusters` |
//! | F16 | an answer is lost | `lost_*`, `an_answer_that_is_lost_*` |
//! | F17 | a connection was closed while it was idle | `segments` |
//! | F18 | a count is at its end | `a_count_ends` |

mod duel;
mod file_leases;
mod forks;
mod instagram;
mod mapping;
mod redis;
mod redis_clusters;
#[path = "../shared/redis.rs"]
mod redis_connection;
mod segments;
mod settings;
mod sql;
mod sql_leases;

mod tickets;
mod zookeeper;
#[path = "../shared/zookeeper.rs"]
mod zookeeper_session;

use ordid_tests::{
    stores,
    trials::{run, run_all},
};

fn main() {
    duel::run_if_told();
    if let Some([store, url, place]) = stores::to_hold() {
        let held = run(async || match store.as_str() {
            "redis" => redis::hold_node(&url, &place).await,
            "redis-cluster" => redis_clusters::hold_node(&url, &place).await,
            _ => zookeeper::hold_node(&url, &place).await,
        });
        return held.expect("it holds a node");
    }
    run_all(
        &[
            "postgres",
            "mariadb",
            "mysql",
            "mssql",
            "oracle",
            "redis",
            "zookeeper",
        ],
        |servers, trials| {
            duel::trials(servers, trials);
            file_leases::trials(trials);
            forks::trials(servers, trials);
            sql_leases::trials(servers, trials);
            segments::trials(servers, trials);
            settings::trials(servers, trials);
            tickets::trials(servers, trials);
            redis::add(servers, trials);
            redis_clusters::add(servers, trials);
            zookeeper::add(servers, trials);
            instagram::trials(servers, trials);
            mapping::trials(servers, trials);
        },
    );
}
