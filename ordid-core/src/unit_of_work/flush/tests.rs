use super::*;
use crate::unit_of_work::Action;

#[test]
fn the_machine_walks_all_chunks_and_commits() {
    let rows = [(Action::Insert, 1, 3), (Action::Insert, 0, 12)];
    let plan = Plan::of_rows(&rows, 10);
    let expected: Vec<_> = plan.chunks().collect();
    assert_eq!(expected.len(), 3);
    let mut flush = Flush::new(plan);
    assert_eq!(flush.step(), Step::Begin);
    assert_eq!(flush.upcoming(), None);
    flush.succeeded();
    for (position, chunk) in expected.iter().enumerate() {
        assert_eq!(flush.step(), Step::Send(chunk.clone()));
        assert_eq!(flush.upcoming().as_ref(), expected.get(position + 1));
        flush.succeeded();
    }
    assert_eq!(flush.step(), Step::Commit);
    flush.succeeded();
    assert_eq!(flush.step(), Step::Done { committed: true });
    flush.succeeded();
    flush.failed();
    assert_eq!(flush.step(), Step::Done { committed: true });
}

#[test]
fn every_failure_after_the_beginning_rolls_back() {
    let plan = Plan::of_rows(&[(Action::Insert, 0, 3)], 10);
    let mut flush = Flush::new(plan.clone());
    flush.failed();
    assert_eq!(flush.step(), Step::Done { committed: false });
    for successes in 1..=2 {
        let mut flush = Flush::new(plan.clone());
        (0..successes).for_each(|_| flush.succeeded());
        flush.failed();
        assert_eq!(flush.step(), Step::Rollback);
        flush.failed();
        assert_eq!(flush.step(), Step::Done { committed: false });
    }
}
