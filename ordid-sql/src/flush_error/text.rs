//! The words of an error, for people.

use std::fmt;

use super::{
    DriverError, FlushError, FoundVersion, Hindrance, Inner, Kind, NoProbe, Place, Rest, Source,
    Stale, causes, failed,
};
use crate::{Action, classify::ShownValue, flush_run::MarkedFor, two_phase::Decision};

impl<D: fmt::Display> fmt::Display for FlushError<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, source, .. } = &*self.0;
        if let Some((chunks, flushed)) = &self.0.chunks {
            let rows = flushed.rows() + flushed.updated() + flushed.deleted();
            write!(
                f,
                "chunks that are committed: {chunks} ({rows} rows); flushing again goes on behind them; of the next one: "
            )?;
        }
        let is_asked = self.0.stays_unknown != Some(NoProbe::NotAsked);
        if self.0.is_unknown && is_asked && !kind.tells_unknown() {
            f.write_str(
                "the answer to COMMIT was lost, so either all rows are written or none is; ",
            )?;
            f.write_str(match self.0.stays_unknown {
                None | Some(NoProbe::NotAsked) => {
                    "flush again over a connection that works to find out"
                }
                Some(NoProbe::MarkerRemoved) => {
                    "its marker row is not in `ordid_flushes`, but is so old that it may have been removed, so no flush \
                     can find out: look for its changes in the database, then `clear` the unit of work or `discard` \
                     what its journal has"
                }
                Some(NoProbe::WithoutRecord) => {
                    "a flush `without_record` cannot find out: look for its changes in the database, then \
                     `clear` the unit of work"
                }
            })?;
            match kind {
                Kind::State(Hindrance { what, remedy }) => write!(f, ": {what}: {remedy}")?,
                Kind::Timeout(within) => write!(f, ": it took longer than {within:?}")?,
                _ => {}
            }
        } else {
            kind.fmt(f)?;
        }
        if let Some(place) = &self.0.place {
            place.fmt(f, kind)?;
        }
        if let Kind::Count { changed, rows } = kind {
            match (self.is_missing_row(), self.key(), rows) {
                _ if self.action().is_some_and(Action::inserts) => write!(
                    f,
                    ": the database took {changed} of {rows} rows; a trigger, a rule or a view leaves rows out, which \
                     `#[ordid(uncounted)]` on the entity allows"
                ),
                _ if self.action().is_some_and(Action::upserts) => write!(
                    f,
                    ": {changed} rows were changed by {rows} that are there: two of these have the same values in the \
                     columns by which rows are found, or another transaction inserts or deletes some, or these columns \
                     are not unique"
                ),
                _ if self.is_stale() => self.fmt_stale(f, *changed, *rows),
                (true, Some(_), _) if self.0.is_left_out => f.write_str(
                    ": the row is there as it was read; a trigger, a rule or a policy has left it out",
                ),
                (true, Some(_), _) => f.write_str(": there is no such row"),
                (true, None, _) => write!(f, ": {changed} of {rows} rows were found"),
                (false, _, 1) => write!(f, ": {changed} rows have this key"),
                (false, ..) => write!(f, ": {changed} rows have these {rows} keys"),
            }?;
        }
        if let Kind::TooLarge {
            bytes,
            limit,
            setting,
        } = kind
        {
            write!(
                f,
                ": the row has {bytes} bytes, and the server takes {limit}"
            )?;
            match setting {
                Some(setting) => write!(f, " (`{setting}`): raise it, or store less in the row")?,
                None => f.write_str(": store less in the row")?,
            }
        }
        match source {
            Source::None => Ok(()),
            source if matches!(kind, Kind::Other) => source.fmt(f),
            source => write!(f, ": {source}"),
        }?;
        if let Some(Place {
            more: more @ 1.., ..
        }) = &self.0.place
        {
            write!(f, " (and {more} more of these rows)")?;
        }
        if !is_asked {
            f.write_str(
                "; the database was not asked, so what became of an earlier COMMIT is still unknown",
            )?;
        }
        match self.0.rest {
            Rest::None => {}
            Rest::Open => f.write_str(
                "; and the transaction could not be rolled back: if this is your own connection, roll it back or close \
                 it, as a COMMIT there would write a part of the rows",
            )?,
            Rest::Prepared => f.write_str(
                "; what it may have prepared could not be rolled back, and holds its locks until the next flush or \
                 `recover_prepared` rolls it back",
            )?,
            Rest::Over => f.write_str(
                "; and your transaction is over, as its savepoint is gone: the server has rolled it back, and would \
                 commit each statement that you send now; begin another transaction, and do all of it again",
            )?,
        }
        match self.0.retries {
            0 => Ok(()),
            retries => write!(f, " (tried {} times)", u64::from(retries) + 1),
        }
    }
}

impl<D> FlushError<D> {
    /// Says which versions a row was read with and has.
    fn fmt_stale(&self, f: &mut fmt::Formatter<'_>, changed: u64, rows: usize) -> fmt::Result {
        let Some(Stale { read, found }) = &self.0.stale else {
            return Ok(());
        };
        match (read, found) {
            (Some(read), FoundVersion::Found(found)) => write!(
                f,
                ": the row was read with version {read} and has version {found}: somebody has changed it since; read \
                 it again"
            ),
            (Some(read), FoundVersion::NoRow) => write!(
                f,
                ": there is no such row any more, which was read with version {read}"
            ),
            (Some(read), FoundVersion::Unknown) => write!(
                f,
                ": the row was read with version {read}, and has changed since or is gone; read it again"
            ),
            (None, _) => write!(
                f,
                ": {changed} of {rows} rows have the versions that they were read with; the others have changed since \
                 or are gone"
            ),
        }
    }
}

impl<D: fmt::Display> fmt::Display for Kind<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan => f.write_str("cannot plan the flush, nothing was sent"),
            Self::Journal => f.write_str("cannot use the journal, nothing was sent"),
            Self::State(Hindrance { what, remedy })
            | Self::Database(Hindrance { what, remedy }) => {
                write!(f, "{what}, nothing was sent: {remedy}")
            }
            Self::Connect => f.write_str("cannot connect for the flush, nothing was written"),
            Self::Begin => f.write_str("cannot begin the flush, nothing was written"),
            Self::Removal => f.write_str(
                "cannot delete old rows of the table `ordid_flushes`, for which the user needs SELECT and DELETE",
            ),
            Self::Record {
                adapter,
                missing,
                marked_for,
            } => fmt_record(f, adapter, *missing, *marked_for),
            Self::Commit => f.write_str("cannot commit, nothing was written"),
            Self::Release => {
                f.write_str("cannot release the savepoint of the flush, nothing was written")
            }
            Self::Probe => f.write_str("cannot look for the rows"),
            Self::Timeout(within) => {
                write!(
                    f,
                    "the flush took longer than {within:?}, nothing was written"
                )
            }
            Self::Shards(outcomes, decision) => {
                let (count, shards) = (failed(outcomes).count(), outcomes.len());
                match decision {
                    None => write!(
                        f,
                        "{count} of {shards} shards failed, and the rows of the others are written"
                    ),
                    Some(Decision::Commit) => write!(
                        f,
                        "the flush is committed, but not yet on {count} of {shards} shards"
                    ),
                    Some(Decision::Unknown) => write!(
                        f,
                        "the answer to the COMMIT that decides was lost, so either the rows of all {shards} shards \
                         will be written or none; flush again over connections that work to find out"
                    ),
                    Some(Decision::Abort | Decision::Open) => {
                        write!(f, "nothing was written on any of {shards} shards")
                    }
                }?;
                causes(outcomes)
                    .try_for_each(|(shard, error)| write!(f, "; shard {shard}: {error}"))
            }
            Self::Prepare => f.write_str("cannot prepare the transaction, nothing was written"),
            Self::NotListed(privilege) => write!(
                f,
                "cannot list prepared transactions, nothing was written (on MySQL the user needs the privilege \
                 {privilege}, on `*.*`)"
            ),
            Self::RolledBack => {
                f.write_str("rolled back because of another shard, nothing was written")
            }
            Self::Undecided => f.write_str(
                "the rows are prepared, and will be committed or rolled back with those of the other shards",
            ),
            Self::Unfinished(gid) => write!(
                f,
                "the rows are prepared as {gid}, and the flush is committed: flushing again or `recover_prepared` \
                 commits them, too"
            ),
            Self::Vanished(gid) => write!(
                f,
                "the flush is committed on other shards, and somebody has rolled back {gid}, which this shard had \
                 prepared: flushing again writes the rows of this shard, once all others are committed"
            ),
            Self::Recovered => f.write_str(
                "another program has recovered the prepared transactions of this flush and rolled them back, nothing \
                 was written",
            ),
            Self::TooLate => f.write_str(
                "the flush began more than half a day ago, which is too long for a two-phase commit, nothing was written",
            ),
            // The place says it, or there is nothing to add to the source.
            Self::Bind
            | Self::Read
            | Self::Statement
            | Self::Count { .. }
            | Self::TooLarge { .. }
            | Self::Other => Ok(()),
        }
    }
}

impl<D> Kind<D> {
    /// Returns whether its own text says that the outcome is unknown.
    const fn tells_unknown(&self) -> bool {
        matches!(
            self,
            Self::Shards(..) | Self::Undecided | Self::Unfinished(_) | Self::Vanished(_)
        )
    }
}

/// Says why there is no marker row.
fn fmt_record(
    f: &mut fmt::Formatter<'_>,
    adapter: &str,
    missing: Option<&str>,
    marked_for: Option<MarkedFor>,
) -> fmt::Result {
    f.write_str("cannot record the flush, nothing was written: ")?;
    let needed_by = match marked_for {
        None => "updates, upserts, deletes and `with_record` need".to_owned(),
        Some(MarkedFor::Chunk) => "each chunk needs".to_owned(),
        Some(MarkedFor::TwoPhase) => "each shard of a two-phase commit needs".to_owned(),
        Some(MarkedFor::RowsTakenTwice(table) | MarkedFor::SharedKeys(table)) => {
            format!("the rows of {table} need")
        }
    };
    match missing {
        Some(_) => write!(f, "the table `ordid_flushes` is missing, which {needed_by}"),
        None => write!(
            f,
            "{needed_by} a row in the table `ordid_flushes` (which `{adapter}::flushes_table` declares, and for which the user \
             needs SELECT and INSERT)"
        ),
    }?;
    match marked_for {
        None | Some(MarkedFor::Chunk | MarkedFor::TwoPhase) => {}
        Some(MarkedFor::RowsTakenTwice(_)) => f.write_str(
            ": the database would take them twice after a lost answer to COMMIT, as no unique index has only columns \
             that are sent, or a `BEFORE INSERT` trigger may replace their values",
        )?,
        Some(MarkedFor::SharedKeys(_)) => f.write_str(
            ": their keys do not tell who wrote them after a lost answer to COMMIT, as others may write the same keys",
        )?,
    }
    if let Some(statement) = missing {
        write!(
            f,
            "; create it once, by a migration or the program, with the statement that `{adapter}::flushes_table` \
             returns: {statement}"
        )?;
    }
    if matches!(marked_for, Some(MarkedFor::Chunk | MarkedFor::TwoPhase)) {
        return Ok(());
    }
    if missing.is_some() || marked_for.is_some() {
        f.write_str("; or flush `without_record`")?;
    }
    if marked_for.is_some() {
        f.write_str(", which leaves the outcome unknown after such a loss")?;
    }
    Ok(())
}

impl Place {
    fn fmt<D>(&self, f: &mut fmt::Formatter<'_>, kind: &Kind<D>) -> fmt::Result {
        let cannot = match self.action {
            _ if matches!(kind, Kind::Bind) => "bind a row into",
            _ if matches!(kind, Kind::Read) => "read back what the database fills in rows of",
            action => action.verb(),
        };
        let (first, last) = (self.rows.start, self.rows.end.saturating_sub(1));
        write!(f, "cannot {cannot} {} ", self.table)?;
        if first < last {
            write!(f, "(rows {first} to {last})")?;
        } else {
            write!(f, "(row {first})")?;
        }
        if let Some(key) = &self.key {
            write!(f, ", key {key}")?;
        }
        f.write_str(", nothing was written")
    }
}

impl<D: fmt::Display> DriverError<D> {
    /// Writes what the database says, without a value that it refused.
    pub(crate) fn write_text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.text, self.shows_value) {
            (Some(text), ShownValue::Nowhere) => f.write_str(text),
            (None, ShownValue::Nowhere) => self.error.fmt(f),
            (text, shown) => {
                let text = text.clone().unwrap_or_else(|| self.error.to_string());
                f.write_str(&shown.cut_from(&text).unwrap_or(text))
            }
        }
    }
}

impl<D: fmt::Display> fmt::Display for Source<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Core(error) => error.fmt(f),
            Self::Driver(error) => error.write_text(f),
            Self::Boxed(error) => fmt_chain(&**error, f),
        }
    }
}

/// Writes an error and its sources, as far as the texts before do not have theirs: drivers and pools often say no more than
/// "error connecting to server".
fn fmt_chain(error: &dyn std::error::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut written = error.to_string();
    f.write_str(&written)?;
    let mut next = error.source();
    while let Some(source) = next {
        let text = source.to_string();
        if !written.contains(&text) {
            write!(f, ": {text}")?;
            written.push_str(&text);
        }
        next = source.source();
    }
    Ok(())
}
