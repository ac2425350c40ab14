//! The scheduler: tasks, a clock that nobody waits for, and chance. All of it follows from a seed.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use ordid_core::{
    clock::{Clock, Timestamp},
    entropy::{Entropy as _, SeededEntropy},
};

/// When a simulation begins, in milliseconds since 1970.
const BEGINNING: u64 = 1_800_000_000_000;

pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A world. Clones are the same one.
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    chance: SeededEntropy,
    state: Mutex<State>,
}

struct State {
    now: u64,
    /// The earliest time that what was polled last waits for.
    wake: Option<u64>,
    spawned: Vec<Task>,
    /// Numbers what happened, in its order.
    trace: u64,
    is_calm: bool,
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Inner {
            chance: SeededEntropy::new(seed),
            state: Mutex::new(State {
                now: BEGINNING,
                wake: None,
                spawned: Vec::new(),
                trace: 0,
                is_calm: false,
            }),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> u64 {
        self.state().now
    }

    /// Returns a number below this one.
    pub fn below(&self, end: u64) -> u64 {
        let word = self.0.chance.next_u64().expect("a seeded source has words");
        word % end
    }

    /// Whether something happens that happens once in so many times. In a world that is calm nothing does.
    pub fn once_in(&self, times: u64) -> bool {
        !self.state().is_calm && self.below(times) == 0
    }

    /// From now on nothing goes wrong.
    pub fn calm(&self) {
        self.state().is_calm = true;
    }

    /// Notes what happened.
    pub fn note(&self, what: u64) {
        let mut state = self.state();
        let seen = state.trace.rotate_left(5) ^ what ^ state.now;
        state.trace = seen.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    pub fn trace(&self) -> u64 {
        self.state().trace
    }

    /// Waits for so many milliseconds.
    pub fn sleep(&self, millis: u64) -> Sleep {
        Sleep {
            world: self.clone(),
            end: self.now() + millis,
        }
    }

    /// Waits for as long as a message takes: mostly a few milliseconds, and at times many seconds.
    pub fn message(&self) -> Sleep {
        let millis = match self.once_in(60) {
            true => self.below(20_000),
            false => self.below(5),
        };
        self.sleep(millis)
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.state().spawned.push(Box::pin(task));
    }

    /// Runs the tasks, and those that they spawn, until all have ended. Of those that could go on, chance chooses.
    pub fn run(&self, tasks: Vec<Task>) {
        let mut waiting: Vec<(u64, Task)> = Vec::new();
        let begin = |tasks: Vec<Task>| tasks.into_iter().map(|task| (0, task));
        waiting.extend(begin(tasks));
        while let Some(first) = waiting.iter().map(|it| it.0).min() {
            let due: Vec<usize> = (0..waiting.len())
                .filter(|&number| waiting[number].0 == first)
                .collect();
            let chosen = self.below(u64::try_from(due.len()).expect("few tasks"));
            let chosen = due[usize::try_from(chosen).expect("few tasks")];
            let (_, mut task) = waiting.swap_remove(chosen);
            {
                let mut state = self.state();
                state.now = state.now.max(first);
                state.wake = None;
            }
            let polled = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let spawned = std::mem::take(&mut self.state().spawned);
            waiting.extend(begin(spawned));
            if polled.is_pending() {
                let wake = self.state().wake;
                waiting.push((wake.expect("a task waits for a time"), task));
            }
        }
    }
}

/// Waits until a time.
pub struct Sleep {
    world: World,
    end: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let mut state = self.world.state();
        if state.now >= self.end {
            return Poll::Ready(());
        }
        let earliest = state.wake.map_or(self.end, |wake| wake.min(self.end));
        state.wake = Some(earliest);
        Poll::Pending
    }
}

/// The clock of a machine, which may be wrong.
#[derive(Clone)]
pub struct MachineClock {
    world: World,
    ahead: Arc<Mutex<i64>>,
}

impl MachineClock {
    pub fn new(world: &World, ahead_millis: i64) -> Self {
        Self {
            world: world.clone(),
            ahead: Arc::new(Mutex::new(ahead_millis)),
        }
    }

    /// Steps by so many milliseconds, back or forth.
    pub fn step(&self, millis: i64) {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) += millis;
    }
}

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        let ahead = *self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        Timestamp::saturating_from_unix_millis(self.world.now().saturating_add_signed(ahead))
    }

    /// Nobody waits here: the clock moves on by itself.
    fn pause(&self, duration: std::time::Duration) {
        self.step(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX));
    }
}
