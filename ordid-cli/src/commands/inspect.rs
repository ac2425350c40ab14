//! `ordid inspect`: the schemes that a key may be of, what it tells, and what each engine stores.
//!
//! A list (`-`) gives a line for each key: key, scheme, certainty, time, node and count, with tabs between, of the
//! scheme that is the most likely; `-` stands for what the key does not tell.
//!
//! JSON Lines, one object a key: `key`; `spelled`, how it differs from the canonical text, or null; `prefix`, or null;
//! `candidates`, the surest first, each with `scheme`, `certainty` (`stated`, `likely`, `possible`), `time` (RFC 3339),
//! `tick_nanos`, `bucket`, `node`, `count` and `version`, or null; and but for lists `stored`, what columns store of a key of the
//! first candidate, each with `engine`, `column`, `hex`, `literal` and `keeps_order`.

use std::{
    borrow::Cow,
    io::{self, BufRead, Write as _},
    sync::mpsc,
    thread,
};

use clap::Args;
use jiff::Timestamp as Instant;
use ordid_core::{
    clock::{Clock as _, SystemClock, Timestamp},
    scheme::{Certainty, Inspection},
};
use serde::Serialize;

use crate::{
    engine::Engine,
    failure::{Failure, Outcome, without_password},
    input::{self, Keys},
    output::{Output, Style},
    progress::Progress,
    spelling::{self, Reading, hex_of},
};

/// Arguments of `ordid inspect`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Keys in any spelling, or `-` for the lines of stdin
    #[arg(required = true, allow_negative_numbers = true)]
    keys: Vec<String>,
    /// Show only what this engine stores
    #[arg(long)]
    engine: Option<Engine>,
    /// Show all of each key of a list, and schemes that are unlikely beside one that the key states
    #[arg(long)]
    full: bool,
}

/// A scheme that a key may be of, in JSON.
#[derive(Serialize)]
struct Candidate {
    scheme: &'static str,
    certainty: &'static str,
    time: Option<String>,
    tick_nanos: Option<u64>,
    bucket: Option<u16>,
    node: Option<u64>,
    count: Option<u64>,
    version: Option<u8>,
}

impl From<&Inspection> for Candidate {
    fn from(found: &Inspection) -> Self {
        Self {
            scheme: found.scheme,
            certainty: certainty(found.certainty),
            time: time_of(found),
            tick_nanos: found.moment.map(|moment| moment.tick_nanos),
            bucket: found.bucket,
            node: found.node,
            count: found.counter,
            version: found.version,
        }
    }
}

/// The stored form of a column, in JSON.
#[derive(Serialize)]
struct Stored {
    engine: &'static str,
    column: &'static str,
    hex: String,
    literal: String,
    keeps_order: bool,
    /// The hex, or the text.
    #[serde(skip)]
    shown: String,
}

/// A key, in JSON.
#[derive(Serialize)]
struct Inspected<'a> {
    key: &'a str,
    spelled: Option<&'static str>,
    prefix: Option<&'a str>,
    candidates: Vec<Candidate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<Vec<Stored>>,
}

const fn certainty(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Stated => "stated",
        Certainty::Likely => "likely",
        _ => "possible",
    }
}

/// The time of a key that tells it in milliseconds, which a timestamp writes faster than others do.
fn millis_of(found: &Inspection) -> Option<Timestamp> {
    let moment = found.moment?;
    moment
        .timestamp()
        .filter(|_| moment.tick_nanos == 1_000_000)
}

/// The time as finely as the key tells it.
fn time_of(found: &Inspection) -> Option<String> {
    let moment = found.moment?;
    if let Some(time) = millis_of(found) {
        return Some(time.to_string());
    }
    let instant = Instant::from_nanosecond(moment.unix_nanos);
    // Years that RFC 3339 has no form for are written as milliseconds' timestamps are.
    Some(match (instant, moment.timestamp()) {
        (Ok(instant), _) => match moment.tick_nanos {
            tick if tick >= 1_000_000_000 => format!("{instant:.0}"),
            tick if tick >= 1_000_000 => format!("{instant:.3}"),
            _ => format!("{instant:.7}"),
        },
        (Err(_), Some(time)) => time.to_string(),
        (Err(_), None) => format!("{} ns since 1970", moment.unix_nanos),
    })
}

fn stored(reading: &Reading, engine: Option<Engine>) -> Vec<Stored> {
    let candidates = reading.detection.candidates.iter();
    let Some(key) = candidates
        .filter_map(|found| reading.key_of(found.scheme))
        .next()
    else {
        return Vec::new();
    };
    let columns = key.entry().columns().into_iter();
    let wanted =
        columns.filter(|column| engine.is_none_or(|engine| engine.name() == column.dialect));
    wanted
        .filter_map(|column| {
            let stored = column.stored(&key).ok()?;
            Some(Stored {
                engine: column.dialect,
                column: column.name,
                hex: hex_of(&stored),
                shown: match column.is_text() {
                    true => String::from_utf8_lossy(&stored).into_owned(),
                    false => hex_of(&stored),
                },
                literal: column.literal(&key).ok()?,
                keeps_order: column.keeps_order_of(key.entry()),
            })
        })
        .collect()
}

impl Arguments {
    /// Prints what the keys tell.
    ///
    /// # Errors
    ///
    /// The keys cannot be read, or the output cannot be written.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let now = SystemClock.now();
        let is_list = self.keys == ["-"] && !self.full;
        if is_list && self.engine.is_some() {
            return Err(Failure::wrong(
                "--engine is about what columns store, which a list does not show: add --full, or leave it out",
            ));
        }
        match input::keys(self.keys.clone())? {
            Keys::Lines(lines) if !self.full => list(lines, now, output),
            keys => {
                let mut outcome = Outcome::Fine;
                for (number, key) in keys.enumerate() {
                    let key = key?;
                    let reading = spelling::read(&key, now);
                    if reading.detection.candidates.is_empty() {
                        outcome = Outcome::Findings;
                    }
                    if number > 0 && !output.is_json() {
                        output.line("")?;
                    }
                    self.show(&without_password(&key), &reading, output)?;
                }
                Ok(outcome)
            }
        }
    }

    fn show(&self, key: &str, reading: &Reading, output: &mut Output) -> Result<(), Failure> {
        let stored = stored(reading, self.engine);
        if output.is_json() {
            return output.json_line(&inspected(key, reading, Some(stored)));
        }
        output.line(&output.paint(Style::Bold, key))?;
        if let Some(spelled) = reading.spelled {
            output.line(&format!("  it is written {spelled}"))?;
        }
        if let Some(prefix) = &reading.prefix {
            output.line(&format!("  its prefix is {prefix}"))?;
        }
        let candidates = &reading.detection.candidates;
        if candidates.is_empty() {
            let nothing = reading.detection.to_string();
            return output.line(&format!("  {}", output.paint(Style::Warning, &nothing)));
        }
        if reading.prefix.is_some() && candidates[0].scheme == "uuid_v4" {
            output.line("  if its key type has a mask, the stored key is another one, which your program can print")?;
        }
        // A key that states what it is leaves little room for others.
        let least = match candidates[0].certainty {
            Certainty::Stated if !self.full => Certainty::Likely,
            _ => Certainty::Possible,
        };
        for found in candidates.iter().filter(|found| found.certainty >= least) {
            let mut line = format!("  {:<9} {:<27}", certainty(found.certainty), found.scheme);
            if let Some(time) = time_of(found) {
                line.push_str(&time);
            }
            for (name, value) in [
                ("bucket", found.bucket.map(u64::from)),
                ("node", found.node),
                ("count", found.counter),
            ] {
                if let Some(value) = value {
                    line.push_str(&format!("  {name} {value}"));
                }
            }
            let line = line.trim_end();
            output.line(&match found.certainty {
                Certainty::Possible => output.paint(Style::Dim, line),
                _ => line.to_owned(),
            })?;
        }
        let mut forms: Vec<(&str, Vec<&Stored>)> = Vec::new();
        for column in &stored {
            match forms.iter_mut().find(|(shown, _)| *shown == column.shown) {
                Some((_, columns)) => columns.push(column),
                None => forms.push((&column.shown, vec![column])),
            }
        }
        if !forms.is_empty() {
            output.line("  stored as")?;
        }
        for (shown, columns) in forms {
            output.line(&format!("    {shown}"))?;
            for keeps_order in [true, false] {
                let names = names_of(columns.iter().filter(|it| it.keeps_order == keeps_order));
                match (names.is_empty(), keeps_order) {
                    (true, _) => {}
                    (false, true) => output.line(&format!("      {names}"))?,
                    (false, false) => {
                        let lost = format!("      out of order: {names}");
                        output.line(&output.paint(Style::Warning, &lost))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Names columns, each engine once: `PostgreSQL uuid, bytea; SQLite blob`.
fn names_of<'a>(columns: impl Iterator<Item = &'a &'a Stored>) -> String {
    let mut engines: Vec<(&str, Vec<&str>)> = Vec::new();
    for column in columns {
        match engines
            .iter_mut()
            .find(|(engine, _)| *engine == column.engine)
        {
            Some((_, names)) => names.push(column.column),
            None => engines.push((column.engine, vec![column.column])),
        }
    }
    let engines = engines
        .iter()
        .map(|(engine, names)| format!("{engine} {}", names.join(", ")));
    engines.collect::<Vec<_>>().join("; ")
}

fn inspected<'a>(key: &'a str, reading: &'a Reading, stored: Option<Vec<Stored>>) -> Inspected<'a> {
    Inspected {
        key,
        spelled: reading.spelled,
        prefix: reading.prefix.as_deref(),
        candidates: reading
            .detection
            .candidates
            .iter()
            .map(Candidate::from)
            .collect(),
        stored,
    }
}

/// Lines that a thread takes at once.
const CHUNK: usize = 1 << 13;

/// The lines of a chunk of keys.
struct Inspections {
    text: Vec<u8>,
    count: u64,
    /// Whether each key is of a known scheme.
    all_known: bool,
}

/// Inspects a list, on all processors, and prints its lines in order.
///
/// One thread reads, and hands a chunk to each of the others in turn; in the same turn their lines are written. Each queue
/// holds one chunk, so memory does not depend on the number of keys.
fn list(
    mut lines: input::Lines<Box<dyn BufRead + Send>>,
    now: Timestamp,
    output: &mut Output,
) -> Result<Outcome, Failure> {
    let is_json = output.is_json();
    let (mut to_threads, mut from_threads, mut threads) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
        let (to_thread, chunks) = mpsc::sync_channel::<String>(1);
        let (done, from_thread) = mpsc::sync_channel(1);
        threads.push(thread::spawn(move || {
            for chunk in chunks {
                if done.send(inspections(&chunk, now, is_json)).is_err() {
                    break;
                }
            }
        }));
        to_threads.push(to_thread);
        from_threads.push(from_thread);
    }
    let reader = thread::spawn(move || {
        for to_thread in to_threads.iter().cycle() {
            let mut chunk = String::with_capacity(CHUNK * 40);
            let end = read_chunk(&mut lines, &mut chunk);
            if to_thread.send(chunk).is_err() {
                break;
            }
            if let Some(end) = end {
                return end;
            }
        }
        Ok(())
    });
    let mut progress = Progress::new("keys", 0);
    let mut outcome = Outcome::Fine;
    for from_thread in from_threads.iter().cycle() {
        let Ok(done) = from_thread.recv() else {
            break;
        };
        // If nobody reads any more, the threads end with the process: the reader may be waiting for a key.
        output.bytes(&done.text)?;
        progress.add(done.count);
        if !done.all_known {
            outcome = Outcome::Findings;
        }
    }
    // If one has panicked, the others and the reader would wait for it to be read from.
    drop(from_threads);
    for thread in threads {
        thread.join().expect("inspecting a key does not panic");
    }
    let end = reader.join().expect("reading a line does not panic");
    if end.is_err() {
        output.flush()?;
    }
    progress.finish();
    end.map(|()| outcome)
}

/// Reads the lines of a chunk; returns how the list ended if this is the last one.
fn read_chunk(
    lines: &mut input::Lines<Box<dyn BufRead + Send>>,
    chunk: &mut String,
) -> Option<Result<(), Failure>> {
    for _ in 0..CHUNK {
        match lines.read() {
            Ok(Some(line)) => {
                chunk.push_str(line);
                chunk.push('\n');
            }
            Ok(None) => return Some(Ok(())),
            Err(failure) => return Some(Err(failure)),
        }
    }
    None
}

/// Inspects the keys of a chunk.
fn inspections(keys: &str, now: Timestamp, is_json: bool) -> Inspections {
    const TAKES_ALL: &str = "memory takes what is written, and strings and numbers are JSON";

    let mut done = Inspections {
        text: Vec::with_capacity(keys.len() * if is_json { 12 } else { 3 }),
        count: 0,
        all_known: true,
    };
    for key in keys.lines() {
        let reading = spelling::read(key, now);
        let first = reading.detection.candidates.first();
        let key = &*match first {
            Some(_) => Cow::Borrowed(key),
            None => without_password(key),
        };
        done.all_known &= first.is_some();
        done.count += 1;
        if is_json {
            let line = inspected(key, &reading, None);
            serde_json::to_writer(&mut done.text, &line).expect(TAKES_ALL);
        } else {
            write_line(key, first, &mut done.text).expect(TAKES_ALL);
        }
        done.text.push(b'\n');
    }
    done
}

fn write_line(key: &str, found: Option<&Inspection>, text: &mut Vec<u8>) -> io::Result<()> {
    text.extend_from_slice(key.as_bytes());
    let Some(found) = found else {
        text.extend_from_slice(b"\tunknown\t-\t-\t-\t-");
        return Ok(());
    };
    for field in [found.scheme, certainty(found.certainty)] {
        text.push(b'\t');
        text.extend_from_slice(field.as_bytes());
    }
    text.push(b'\t');
    match millis_of(found) {
        Some(time) => write!(text, "{time}")?,
        None => text.extend_from_slice(time_of(found).as_deref().unwrap_or("-").as_bytes()),
    }
    for value in [found.node, found.counter] {
        match value {
            Some(value) => write!(text, "\t{value}")?,
            None => text.extend_from_slice(b"\t-"),
        }
    }
    Ok(())
}
