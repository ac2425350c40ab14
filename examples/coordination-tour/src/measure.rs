//! Clients that make ids, and the question whether one came twice.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use tokio::task::JoinSet;

/// Ids that one call made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    first: i64,
    stride: u32,
    /// How many there are.
    count: u32,
    /// How many of them are the next ones after the first, a stride apart.
    run: u32,
}

impl Made {
    /// Numbers a stride apart.
    pub(crate) const fn run(first: i64, stride: u32, count: u32) -> Self {
        Self {
            first,
            stride,
            count,
            run: count,
        }
    }

    /// Ids between which others may have made theirs: only the first is compared.
    pub(crate) const fn among_others(first: i64, count: u32) -> Self {
        Self {
            first,
            stride: 1,
            count,
            run: 1,
        }
    }
}

pub(crate) type Calling = Pin<Box<dyn Future<Output = Result<Made>> + Send>>;
/// One client: each call makes some ids.
pub(crate) type Client = Box<dyn FnMut() -> Calling + Send>;

/// A way to make ids.
pub(crate) struct Method {
    pub(crate) name: String,
    /// Connects a client.
    pub(crate) client: Box<dyn Fn() -> Result<Client> + Send>,
}

/// What clients made.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) example: i64,
    ids: u64,
    time: Duration,
}

impl Measured {
    /// Ids a second.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub(crate) fn rate(&self) -> f64 {
        self.ids as f64 / self.time.as_secs_f64()
    }
}

/// Has so many clients make ids for this long.
///
/// # Errors
///
/// What a client fails with, and if an id came twice.
pub(crate) async fn measure(method: &Method, clients: usize, time: Duration) -> Result<Measured> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut running = JoinSet::new();
    for _ in 0..clients {
        let mut client = (method.client)()?;
        // The first call connects.
        let first = client().await?;
        let stop = Arc::clone(&stop);
        running.spawn(async move {
            let mut made = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                made.push(client().await?);
            }
            anyhow::Ok((first, made))
        });
    }
    let begun = Instant::now();
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let time = begun.elapsed();
    let (mut all, mut ids) = (Vec::new(), 0);
    while let Some(client) = running.join_next().await {
        let (first, made) = client??;
        ids += made.iter().map(|made| u64::from(made.count)).sum::<u64>();
        all.push(first);
        all.extend(made);
    }
    let example = all.last().map_or(0, |made| made.first);
    ensure!(!has_twice(&mut all), "an id came twice");
    Ok(Measured { example, ids, time })
}

/// Whether two calls have an id in common.
///
/// Those of one stride are in runs, whose ends can be compared; the remainders keep strides apart.
fn has_twice(all: &mut [Made]) -> bool {
    all.sort_unstable_by_key(|made| made.first);
    let mut ends: HashMap<i64, i64> = HashMap::new();
    for made in all {
        let stride = i64::from(made.stride);
        let end = made.first + stride * i64::from(made.run);
        let before = ends.insert(made.first % stride, end);
        if before.is_some_and(|before| before > made.first) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_overlap_are_seen() {
        let run = Made::run;
        assert!(!has_twice(&mut [
            run(1, 1, 10),
            run(21, 1, 5),
            run(11, 1, 10)
        ]));
        assert!(has_twice(&mut [run(1, 1, 10), run(10, 1, 1)]));
        // Odd and even.
        assert!(!has_twice(&mut [run(1, 2, 10), run(2, 2, 10)]));
        assert!(has_twice(&mut [run(1, 2, 10), run(3, 2, 1)]));
        // Woven into each other.
        let among = Made::among_others;
        assert!(!has_twice(&mut [among(1, 10), among(2, 10)]));
        assert!(has_twice(&mut [among(2, 10), among(2, 10)]));
    }
}
