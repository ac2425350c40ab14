//! Keys for the rows that were there before the move, in chunks.
//!
//! The work list has these rows in the order of their times. The catalogue's generator makes a key for each, by a clock
//! that shows the row's time. So keys rise with the position in the list, also of rows of one millisecond.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ordid_core::{
    clock::{Clock, Timestamp},
    scheme::catalogue::{self, AnyColumn, AnyGenerator, AnyKey, Entry},
};

use super::{
    apply::Run,
    model::{Keys, Plan, References},
    session::{Cells, Fault},
};
use crate::{database::text, failure::Failure};

/// How many chunks of referring rows are listed at a time.
const LISTED: u32 = 100;
/// How often rows that are listed may not be written before this is an error.
const IN_VAIN: u32 = 5;
/// The most rows that are listed at a time, unless a chunk has more: their names are in memory.
const MOST_LISTED: u32 = 100_000;

/// A clock that shows the time of the row that is next, in microseconds since 1970.
#[derive(Debug, Default)]
struct RowClock(AtomicU64);

impl Clock for RowClock {
    fn now(&self) -> Timestamp {
        self.now_with_nanos().0
    }

    fn now_with_nanos(&self) -> (Timestamp, u32) {
        let micros = self.0.load(Ordering::Relaxed);
        let nanos = u32::try_from(micros % 1000 * 1000).expect("it is below a million");
        (Timestamp::saturating_from_unix_millis(micros / 1000), nanos)
    }
}

/// Makes keys of times that do not fall.
pub(crate) struct KeyMaker {
    scheme: &'static Entry,
    column: AnyColumn,
    generator: AnyGenerator,
    clock: Arc<RowClock>,
    last: Option<AnyKey>,
    floor: u64,
}

impl KeyMaker {
    /// Makes keys for a plan, above the last one that an earlier run has made, in hexadecimal.
    pub(crate) fn new(plan: &Plan, last: &str) -> Result<Self, Failure> {
        let cannot = |error| Failure::could_not(format_args!("no key can be made: {error}"));
        let wrong = || {
            Failure::wrong(format_args!(
                "the plan wants keys of `{}` in a column `{}`, which this version of ordid does not have",
                plan.scheme, plan.column
            ))
        };
        let scheme = catalogue::find(&plan.scheme).ok_or_else(wrong)?;
        let columns = scheme.columns();
        let column = columns
            .iter()
            .find(|it| it.dialect == plan.engine.name() && it.name == plan.column)
            .ok_or_else(wrong)?;
        let clock = Arc::new(RowClock::default());
        let generator = scheme
            .generator(None, Arc::clone(&clock) as Arc<dyn Clock>)
            .map_err(cannot)?;
        let last = match last {
            "" => None,
            hex => Some(scheme.key_of(&bytes_of(hex)).map_err(|error| {
                Failure::could_not(format_args!("the journal has a key that is none: {error}"))
            })?),
        };
        Ok(Self {
            scheme,
            column: *column,
            generator,
            clock,
            last,
            floor: 0,
        })
    }

    /// Makes the key of a row of this time.
    pub(crate) fn next(&mut self, micros: i64) -> Result<AnyKey, Failure> {
        let cannot = |error| Failure::could_not(format_args!("no key can be made: {error}"));
        let micros = u64::try_from(micros).unwrap_or(0);
        loop {
            self.clock
                .0
                .store(micros.max(self.floor), Ordering::Relaxed);
            let time = self.clock.now();
            let mut key = self.generator.generate().map_err(cannot)?;
            // The generator's own state may end long before its keys do, and stands still from there on.
            if key.timestamp().is_some_and(|reached| reached < time) {
                key = self.generator.generate_at(time).map_err(cannot)?;
            }
            match self.last {
                // An earlier run has ended inside this millisecond, with a higher count: the next one is free.
                Some(last) if key <= last => {
                    let used = last.timestamp().map_or(0, Timestamp::as_unix_millis);
                    let next = (used + 1).max(self.floor / 1000 + 1);
                    if next > Timestamp::MAX.as_unix_millis() {
                        return Err(Failure::could_not(format_args!(
                            "no key can be made: a key of `{}` is there whose time, {}, is the last one that these keys \
                             can have",
                            self.scheme.name,
                            Timestamp::MAX
                        )));
                    }
                    self.floor = next * 1000;
                }
                _ => {
                    self.last = Some(key);
                    return Ok(key);
                }
            }
        }
    }

    /// Makes the keys of positions and microseconds, in the form of a row of SQL, and returns the last position.
    pub(crate) fn rows(
        &mut self,
        found: &[Cells],
        form: &str,
    ) -> Result<(Vec<String>, Option<i64>), Failure> {
        let mut rows = Vec::with_capacity(found.len());
        let mut last = None;
        for row in found {
            let number = |at: usize| row.get(at)?.as_deref()?.parse::<i64>().ok();
            let (Some(position), Some(micros)) = (number(0), number(1)) else {
                return Err(Failure::could_not(
                    "the work list has a row without a position or a time",
                ));
            };
            let key = self.next(micros)?;
            rows.push(
                form.replace("{position}", &position.to_string())
                    .replace("{key}", &self.literal(&key)?),
            );
            last = Some(position);
        }
        Ok((rows, last))
    }

    /// Returns a key as SQL writes it.
    fn literal(&self, key: &AnyKey) -> Result<String, Failure> {
        self.column
            .literal(key)
            .map_err(|error| Failure::could_not(format_args!("{}: {error}", self.scheme.name)))
    }

    /// Returns the last key, in hexadecimal.
    pub(crate) fn last(&self) -> String {
        self.last.map_or_else(String::new, |key| {
            key.as_bytes()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        })
    }
}

/// Returns the bytes of a text in hexadecimal.
pub(crate) fn bytes_of(hex: &str) -> Vec<u8> {
    hex.as_bytes()
        .chunks(2)
        .map(|pair| {
            let pair = std::str::from_utf8(pair).unwrap_or("");
            u8::from_str_radix(pair, 16).unwrap_or(0)
        })
        .collect()
}

/// Returns a query of a part of the work list.
fn limited(sql: &str, after: i64, last: i64, size: u32) -> String {
    sql.replace("{after}", &after.to_string())
        .replace("{last}", &last.to_string())
        .replace("{limit}", &size.to_string())
}

impl References {
    /// Returns the statements that write a chunk.
    fn statements(&self, after: i64, last: i64, rows: &str) -> Vec<String> {
        let write = self.write.iter().map(|sql| {
            sql.replace("{after}", &after.to_string())
                .replace("{last}", &last.to_string())
                .replace("{rows}", rows)
        });
        write.collect()
    }
}

impl Run<'_> {
    /// Makes the keys of the rows of the work list that have none yet.
    pub(crate) async fn keys(&mut self, step: &Keys) -> Result<(), Failure> {
        for statement in &step.session {
            self.session.execute(statement).await?;
        }
        let mut maker = KeyMaker::new(self.plan, &self.entry.key)?;
        loop {
            self.stop_if_interrupted()?;
            let after = self.entry.position.to_string();
            let read = step
                .read
                .replace("{after}", &after)
                .replace("{chunk}", &self.options.chunk.to_string());
            let found = self.session.rows(&read).await?;
            let (rows, last) = maker.rows(&found, &step.row)?;
            let Some(last) = last else {
                return Ok(());
            };
            let (rows, last_text) = (rows.join(","), last.to_string());
            let statements: Vec<String> = step
                .write
                .iter()
                .map(|sql| {
                    sql.replace("{after}", &after)
                        .replace("{last}", &last_text)
                        .replace("{rows}", &rows)
                })
                .collect();
            let mut entry = self.entry.clone();
            entry.position = last;
            entry.key = maker.last();
            self.chunk(&statements, entry, found.len()).await?;
        }
    }

    /// Fills a referring column, part by part of the work list.
    pub(crate) async fn references(&mut self, step: &References) -> Result<(), Failure> {
        for statement in &step.session {
            self.session.execute(statement).await?;
        }
        let chunk = self.options.chunk;
        let size = chunk.saturating_mul(LISTED).min(MOST_LISTED).max(chunk);
        let mut in_vain = 0;
        loop {
            self.stop_if_interrupted()?;
            let after = self.entry.position;
            let read = step
                .read
                .replace("{after}", &after.to_string())
                .replace("{chunk}", &chunk.to_string());
            let Some(last) = self.session.value(&read).await? else {
                return Ok(());
            };
            let last: i64 = last.parse().unwrap_or(after);
            if step.rows.is_empty() {
                let mut entry = self.entry.clone();
                entry.position = last;
                let rows = usize::try_from(last - after).unwrap_or(0);
                let statements = step.statements(after, last, "");
                self.chunk(&statements, entry, rows).await?;
                continue;
            }
            in_vain = match self.part(step, last, size).await? {
                true => 0,
                false => in_vain + 1,
            };
            if in_vain == IN_VAIN {
                // On MySQL the query is that of an `INSERT` into the list.
                let list = step.collect.last().unwrap_or(&step.rows);
                let find = list.find("SELECT ").map_or(list.as_str(), |at| &list[at..]);
                return Err(Failure::could_not(format_args!(
                    "rows stay without a new reference, of those that this query finds: `{}`; go back with --rollback",
                    limited(find, after, last, size)
                )));
            }
        }
    }

    /// Fills the rows that refer to a part of the work list, or so many of them as may be listed at a time, and goes on to the
    /// next part if there are none. Returns whether it has got any further.
    ///
    /// A listed row may be elsewhere when it is written, and another one in its place, such as after a VACUUM FULL or a cascade that
    /// changes its key. So only an empty list says that the part is done.
    async fn part(&mut self, step: &References, last: i64, size: u32) -> Result<bool, Failure> {
        let after = self.entry.position;
        let mut attempt = 0;
        let rows = loop {
            match self.listed_rows(step, last, size).await {
                Ok(rows) => break rows,
                Err(fault) => self.again(fault, &mut attempt).await?,
            }
        };
        let mut entry = self.entry.clone();
        if rows.is_empty() {
            entry.position = last;
            self.chunk(&[], entry, 0).await?;
            return Ok(true);
        }
        let length = usize::try_from(self.options.chunk).unwrap_or(usize::MAX);
        let mut changed = 0;
        for chunk in rows.chunks(length) {
            self.stop_if_interrupted()?;
            let names: Vec<String> = chunk
                .iter()
                .map(|row| step.row.replace("{row}", &text(row, 0)))
                .collect();
            let statements = step.statements(after, last, &names.join(","));
            changed += self.chunk(&statements, entry.clone(), chunk.len()).await?;
        }
        Ok(changed > 0)
    }

    /// Lists rows that refer to a part of the work list, which may have to wait for locks.
    async fn listed_rows(
        &mut self,
        step: &References,
        last: i64,
        size: u32,
    ) -> Result<Vec<Cells>, Fault> {
        let after = self.entry.position;
        for sql in &step.collect {
            self.session
                .execute(&limited(sql, after, last, size))
                .await?;
        }
        self.session
            .rows(&limited(&step.rows, after, last, size))
            .await
    }

    /// Sends a chunk and its entry in one transaction, which is tried again while others hold its rows. Returns how many rows it has
    /// changed.
    async fn chunk(
        &mut self,
        statements: &[String],
        entry: super::journal::Entry,
        rows: usize,
    ) -> Result<u64, Failure> {
        let mut attempt = 0;
        let changed = loop {
            match self.transaction(statements, &entry).await {
                Ok(changed) => break changed,
                Err(stop) => self.after(stop, &mut attempt).await?,
            }
        };
        self.entry = entry;
        self.progress.add(u64::try_from(rows).unwrap_or(0));
        self.summary.rows += u64::try_from(rows).unwrap_or(0);
        if !self.options.pause.is_zero() {
            tokio::time::sleep(self.options.pause).await;
        }
        self.wait_for_replicas().await?;
        Ok(changed)
    }

    async fn wait_for_replicas(&mut self) -> Result<(), Failure> {
        while let Some(lag) = self.session.lag().await? {
            if lag <= self.options.max_lag.as_secs_f64() {
                break;
            }
            self.stop_if_interrupted()?;
            self.progress.say("waiting for a replica");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;

    fn plan(scheme: &str) -> Plan {
        Plan {
            ordid_plan: 0,
            id: String::new(),
            engine: Engine::Postgres,
            server: String::new(),
            table: String::new(),
            schema: None,
            name: String::new(),
            scheme: scheme.to_owned(),
            column: "uuid".to_owned(),
            created: None,
            rows: 0,
            bytes: 0,
            notes: Vec::new(),
            journal: String::new(),
            steps: Vec::new(),
            undo: Vec::new(),
            back: Vec::new(),
            map_table: String::new(),
            map: Vec::new(),
            finish: Vec::new(),
            catalog: Vec::new(),
            digest: String::new(),
        }
    }

    const SCHEMES: [&str; 4] = [
        "uuid_v7",
        "uuid_v7_unguessable",
        "uuid_v7_sub_millis",
        "ulid",
    ];

    #[test]
    fn keys_of_far_times_have_these_times_and_rise() {
        for scheme in SCHEMES {
            let plan = plan(scheme);
            let mut maker = KeyMaker::new(&plan, "").expect("the scheme has a generator");
            let mut keys = vec![maker.next(1_700_000_000_000_000).expect("there is a key")];
            // The year 9999, in which a generator's own state has ended.
            let far = 253_402_214_400_000_i64;
            for row in 0..40 {
                if row == 20 {
                    // A new run.
                    maker = KeyMaker::new(&plan, &maker.last()).expect("it has one again");
                }
                keys.push(maker.next(far * 1000).expect("there is a key"));
            }
            keys.push(maker.next(i64::MAX).expect("there is a last time"));
            assert!(keys.is_sorted_by(|a, b| a < b), "{scheme}: {keys:?}");
            let time = |key: &AnyKey| key.timestamp().map(Timestamp::as_unix_millis);
            assert_eq!(time(&keys[1]), u64::try_from(far).ok(), "{scheme}");
            assert_eq!(keys[41].timestamp(), Some(Timestamp::MAX), "{scheme}");
        }
    }

    #[test]
    fn there_is_an_error_above_the_last_key() {
        for scheme in SCHEMES {
            let mut maker = KeyMaker::new(&plan(scheme), "ffffffffffff7fffbfffffffffffffff")
                .expect("these are the bytes of a key");
            for micros in [0, 1_700_000_000_000_000, i64::MAX] {
                match maker.next(micros) {
                    Err(Failure::CouldNot(message)) => assert_eq!(
                        message,
                        format!(
                            "no key can be made: a key of `{scheme}` is there whose time, +10889-08-02T05:31:50.655Z, is the last \
                             one that these keys can have"
                        )
                    ),
                    other => panic!("{scheme}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn keys_rise_with_the_rows_also_across_kills_inside_a_millisecond() {
        for scheme in SCHEMES {
            let plan = plan(scheme);
            let mut last = String::new();
            let mut keys = Vec::new();
            for run in 0..40 {
                let mut maker = KeyMaker::new(&plan, &last).expect("the scheme has a generator");
                for row in 0..20 {
                    // Two milliseconds in all, and every time several times.
                    let micros = 1_700_000_000_000_000 + (run * 20 + row) / 2 * 5;
                    keys.push(maker.next(micros).expect("there is a key"));
                }
                last = maker.last();
            }
            assert!(keys.is_sorted_by(|a, b| a < b), "{scheme}");
            let time = |key: &AnyKey| key.timestamp().map(Timestamp::as_unix_millis);
            assert_eq!(time(&keys[0]), Some(1_700_000_000_000), "{scheme}");
            let drift = time(&keys[799]).map(|time| time - 1_700_000_000_001);
            assert!(drift.is_some_and(|drift| drift < 45), "{scheme}: {drift:?}");
        }
    }
}
