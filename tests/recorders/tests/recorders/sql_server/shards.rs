//! One unit of work over two servers, each a recorder.

use super::entities::{Customer, CustomerId, connect, texts};
use ordid::KeyType;
use ordid_recorders::tds::{Answer, Recorder};
use ordid_tiberius::{Retry, ShardedUnitOfWork, Sharding};

fn work() -> (ShardedUnitOfWork, [usize; 2]) {
    let delay = std::time::Duration::from_millis(1);
    let retry = Retry::DEFAULT.with_attempts(2).with_delays(delay, delay);
    let mut work =
        ShardedUnitOfWork::new(Sharding::by_hash(2).expect("two shards")).with_retry(retry);
    let mut rows = [0; 2];
    while rows.contains(&0) {
        let id = CustomerId::generate();
        rows[work.sharding().shard(id).expect("a hash has a shard")] += 1;
        work.add(Customer {
            id,
            name: "Ada".to_owned(),
            note: None,
        })
        .expect("a hash has a shard");
    }
    (work, rows)
}

#[tokio::test]
async fn each_shard_is_flushed_over_its_own_client() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }

    let recorders = [Recorder::start().unwrap(), Recorder::start().unwrap()];
    let mut clients = [connect(&recorders[0]).await, connect(&recorders[1]).await];
    let (mut work, rows) = work();
    let flushed = is_send(work.flush(&mut clients)).await.unwrap();
    assert_eq!([flushed[0].rows(), flushed[1].rows()], rows);
    assert!(work.is_empty());
    for recorder in &recorders {
        let texts = texts(&recorder.take());
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert_eq!(texts[3], "COMMIT");
    }
}

#[tokio::test]
async fn a_shard_whose_connection_is_lost_keeps_its_rows() {
    let recorders = [Recorder::start().unwrap(), Recorder::start().unwrap()];
    let mut clients = [connect(&recorders[0]).await, connect(&recorders[1]).await];
    let (mut work, rows) = work();
    recorders[1].once("INSERT", Answer::HangUp);
    let error = work.flush(&mut clients).await.unwrap_err();
    assert!(error.is_connection_lost(), "{error}");
    assert_eq!(work.len(), rows[1]);

    // Only that shard is asked again, over the connection that is made for it.
    recorders[0].take();
    let recorders = &recorders;
    let connect = |shard: usize| async move { Ok(connect(&recorders[shard]).await) };
    let flushed = work.flush_with(&mut clients, connect).await.unwrap();
    assert_eq!([flushed[0].rows(), flushed[1].rows()], [0, rows[1]]);
    assert!(work.is_empty());
    assert!(recorders[0].take().is_empty());
}
