//! Connections to Redis, on a machine that has other things to do.

use std::time::Duration;

use redis::{Client, RedisResult, aio::MultiplexedConnection};

/// How long an answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn connect(url: &str) -> RedisResult<MultiplexedConnection> {
    let config = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    let client = Client::open(url)?;
    client
        .get_multiplexed_async_connection_with_config(&config)
        .await
}
