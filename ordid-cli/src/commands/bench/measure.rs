//! Loading the tables, round after round, and reading from them.

use std::time::Duration;

use super::{
    figures::{self, Figures},
    key::{Key, Value},
    sample::{SPAN, Sample},
    session::Session,
};
use crate::{failure::Failure, interrupt::Interrupt, progress::Progress};

/// In how many parts the growth of a table is told.
pub(super) const PARTS: u32 = 10;

/// How much is loaded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// The rows of a table.
    pub(super) rows: u32,
    /// The bytes of a row beside its key.
    pub(super) width: u32,
    /// The rows of a statement, which is a transaction.
    pub(super) batch: u32,
    /// How often each table is loaded.
    pub(super) rounds: u32,
}

impl Plan {
    pub(super) fn new(rows: u32, width: u32, rounds: u32) -> Self {
        /// So that no server refuses a statement because it is too long.
        const STATEMENT: u32 = 4 << 20;

        let batch = 1000
            .min(rows.div_ceil(PARTS))
            .min(STATEMENT / (width + 64))
            .max(1);
        Self {
            rows,
            width,
            batch,
            rounds,
        }
    }
}

/// The results of one load of a table.
#[derive(Debug, Clone)]
pub(super) struct Load {
    /// For each part: how many rows, and how long it took.
    pub(super) parts: Vec<(u32, Duration)>,
    /// The figures that the engine gives.
    pub(super) figures: Figures,
    /// How many reads a second: rows by key, anywhere and among the newest; and spans of [`SPAN`] rows.
    pub(super) reads: Option<[f64; 3]>,
    /// Whether each key was above the one before.
    pub(super) is_ordered: bool,
}

/// The parts that the rows of all tables share.
pub(super) struct Loader {
    pub(super) plan: Plan,
    pub(super) sample: Sample,
    /// Payloads are cut out of these bytes, so that no two neighbours are equal and nothing can be compressed.
    noise: Vec<u8>,
}

impl Loader {
    pub(super) fn new(plan: Plan) -> Self {
        let mut random = super::sample::Random::new();
        let length = usize::try_from(plan.width).expect("32 bits fit") + 4096;
        let noise = std::iter::repeat_with(|| random.next().to_le_bytes())
            .flatten()
            .take(length)
            .collect();
        Self {
            plan,
            sample: Sample::new(plan.rows),
            noise,
        }
    }

    /// Loads a table that is empty, and reads from it.
    pub(super) async fn load(
        &self,
        session: &mut Session,
        key: &Key,
        interrupt: &Interrupt,
        progress: &mut Progress,
    ) -> Result<Load, Failure> {
        let Plan {
            rows, width, batch, ..
        } = self.plan;
        let table = key.table();
        let mut source = key.source()?;
        let mut kept = Vec::with_capacity(self.sample.wanted.len());
        let mut parts = vec![(0, Duration::ZERO); usize::try_from(PARTS).expect("it is small")];
        let before = figures::written(session).await;
        let mut next = 0;
        let mut example = Value::Auto;
        while next < rows {
            stop(interrupt)?;
            let size = batch.min(rows - next);
            let mut statement = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
            for number in next..next + size {
                let value = source.next()?;
                if self.sample.wanted.get(kept.len()) == Some(&number) {
                    kept.push(value.clone());
                }
                statement.push((value, self.payload(number)));
            }
            let time = session.insert(&table, &statement).await?;
            let part = u64::from(next) * u64::from(PARTS) / u64::from(rows);
            let part = &mut parts[usize::try_from(part).expect("there are few parts")];
            *part = (part.0 + size, part.1 + time);
            if let Some((value, _)) = statement.pop() {
                example = value;
            }
            next += size;
            progress.add(size.into());
        }
        let after = figures::written(session).await;
        let mut figures = figures::of_table(session, key, &example, (rows, width)).await?;
        figures.written = before.zip(after).map(|(before, after)| after - before);
        if key.made.is_none() {
            kept = self.counted(session, &table).await?;
        }
        let reads = match kept.len() == self.sample.wanted.len() {
            true => Some(
                self.read(session, &table, &kept, source.is_ordered, interrupt)
                    .await?,
            ),
            false => None,
        };
        parts.retain(|(rows, _)| *rows > 0);
        Ok(Load {
            parts,
            figures,
            reads,
            is_ordered: source.is_ordered,
        })
    }

    fn payload(&self, row: u32) -> &[u8] {
        let begin = usize::try_from(row % 4096).expect("32 bits fit");
        &self.noise[begin..begin + self.noise.len() - 4096]
    }

    /// Returns the keys that the database has made; none if they are not evenly spaced.
    async fn counted(&self, session: &mut Session, table: &str) -> Result<Vec<Value>, Failure> {
        let (least, greatest) = session.counted(table).await?;
        let steps = i64::from(self.plan.rows) - 1;
        if (greatest - least) % steps != 0 {
            return Ok(Vec::new());
        }
        let step = (greatest - least) / steps;
        let wanted = self.sample.wanted.iter();
        Ok(wanted
            .map(|row| Value::Integer(least + i64::from(*row) * step))
            .collect())
    }

    async fn read(
        &self,
        session: &mut Session,
        table: &str,
        kept: &[Value],
        is_ordered: bool,
        interrupt: &Interrupt,
    ) -> Result<[f64; 3], Failure> {
        let sample = &self.sample;
        let mut rates = [0.0; 3];
        for (rate, rows) in rates.iter_mut().zip([&sample.random, &sample.newest]) {
            let mut time = Duration::ZERO;
            for row in rows {
                stop(interrupt)?;
                let key = sample.key(kept, *row);
                let (found, took) = session.read(table, std::slice::from_ref(key)).await?;
                found_all(table, found, 1)?;
                time += took;
            }
            *rate = per_second(rows.len(), time);
        }
        let mut time = Duration::ZERO;
        for first in &sample.spans {
            stop(interrupt)?;
            let last = first + SPAN - 1;
            // Rows of one time are neighbours if keys rise; otherwise whoever wants them has to know each key.
            let (found, took) = match is_ordered {
                true => {
                    let ends = [*first, last].map(|row| sample.key(kept, row));
                    session.read_range(table, ends).await?
                }
                false => {
                    let keys: Vec<_> = (*first..=last)
                        .map(|row| sample.key(kept, row).clone())
                        .collect();
                    session.read(table, &keys).await?
                }
            };
            found_all(table, found, usize::try_from(SPAN).expect("it is small"))?;
            time += took;
        }
        rates[2] = per_second(sample.spans.len(), time);
        Ok(rates)
    }
}

/// Ends the work if the user wants it.
fn stop(interrupt: &Interrupt) -> Result<(), Failure> {
    match interrupt.is_set() {
        true => Err(Failure::could_not("interrupted")),
        false => Ok(()),
    }
}

/// A bench that does not find what it has written would measure nothing.
fn found_all(table: &str, found: usize, wanted: usize) -> Result<(), Failure> {
    match found == wanted {
        true => Ok(()),
        false => Err(Failure::could_not(format_args!(
            "the table {table} has returned {found} rows for {wanted} keys that were inserted"
        ))),
    }
}

fn per_second(count: usize, time: Duration) -> f64 {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    f64::from(count) / time.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_stays_short_whatever_the_width_is() {
        assert_eq!(Plan::new(100_000, 100, 3).batch, 1000);
        assert_eq!(Plan::new(1_000, 100, 3).batch, 100);
        assert_eq!(Plan::new(100_000, 60_000, 3).batch, 69);
    }

    #[test]
    fn neighbouring_payloads_differ_and_have_the_width() {
        for width in [0, 1, 100] {
            let loader = Loader::new(Plan::new(1000, width, 1));
            let width = usize::try_from(width).expect("small");
            assert!((0..5000).all(|row| loader.payload(row).len() == width));
            assert!(width < 8 || loader.payload(0) != loader.payload(1));
        }
    }
}
