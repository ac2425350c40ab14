//! The journal: a table with one row, in the database that is moved, which says how far a plan has been carried out.
//!
//! A chunk of rows and its entry are one transaction, and so is a step where the engine's DDL can be undone. So a
//! process that is killed leaves either both or neither.

use super::{
    model::{Action, Plan, Step},
    session::{Fault, Session},
    subject::literal,
    switch::BETWEEN,
};
use crate::{engine::Engine, failure::Failure};

/// The list of the plan that is being carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The steps to the new keys.
    Steps,
    /// They are done: the table has its new keys, and there is a way back.
    Switched,
    /// The way back before the switch.
    Undo,
    /// The way back after the switch.
    Back,
    /// The same, with the copy of old and new keys: the table that has it stays.
    BackMapped,
    /// Old and new keys are copied before the end.
    Map,
    /// The end, with the copy: the table that has it stays.
    Mapped,
    /// The end.
    Finish,
}

impl Phase {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Steps, "steps"),
        (Self::Switched, "switched"),
        (Self::Undo, "undo"),
        (Self::Back, "back"),
        (Self::BackMapped, "back_mapped"),
        (Self::Map, "map"),
        (Self::Mapped, "mapped"),
        (Self::Finish, "finish"),
    ];

    /// Whether its steps read rows of the moved tables.
    pub(crate) fn reads_rows(self) -> bool {
        matches!(
            self,
            Self::Steps | Self::Back | Self::BackMapped | Self::Map
        )
    }

    /// Returns its name in the journal.
    pub(crate) fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(phase, _)| *phase == self);
        found.map_or("", |(_, name)| name)
    }

    fn of(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(phase, _)| *phase)
    }
}

/// The content of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The list.
    pub(crate) phase: Phase,
    /// How many of its steps are done.
    pub(crate) step: usize,
    /// The last position of the work list that the present step has done.
    pub(crate) position: i64,
    /// The last key that was given out, in hexadecimal.
    pub(crate) key: String,
}

impl Entry {
    /// The beginning of a list.
    pub(crate) fn beginning(phase: Phase) -> Self {
        Self {
            phase,
            step: 0,
            position: 0,
            key: String::new(),
        }
    }

    /// The beginning of the next step.
    pub(crate) fn next_step(&self) -> Self {
        Self {
            step: self.step + 1,
            position: 0,
            ..self.clone()
        }
    }
}

impl Entry {
    /// Whether the steps of its list have only counted or prepared so far, so that another list may begin instead.
    pub(crate) fn has_changed_nothing(&self, list: &[Step]) -> bool {
        self.position != BETWEEN
            && list.iter().take(self.step).all(Step::is_harmless)
            && list.get(self.step).is_some_and(|next| {
                next.is_harmless() || matches!(next.action, Action::Switch { .. })
            })
    }
}

/// The journal of a plan.
pub(crate) struct Journal<'p> {
    plan: &'p Plan,
}

impl<'p> Journal<'p> {
    pub(crate) fn of(plan: &'p Plan) -> Self {
        Self { plan }
    }

    /// Returns the query that finds the journal's table.
    fn exists(&self) -> String {
        exists(self.plan.engine, &self.plan.journal)
    }

    /// Reads what it says; `None` if the plan has not begun.
    ///
    /// # Errors
    ///
    /// The database refuses, or another plan has begun to move the table.
    pub(crate) async fn read(&self, session: &mut Session) -> Result<Option<Entry>, Failure> {
        if !session.exists(&self.exists()).await? {
            return Ok(None);
        }
        let query = format!(
            "SELECT plan, phase, step, place, last_key FROM {}",
            self.plan.journal
        );
        let rows = session.rows(&query).await?;
        let Some([Some(plan), Some(phase), Some(step), Some(place), Some(key)]) =
            rows.first().map(Vec::as_slice)
        else {
            return Ok(None);
        };
        if *plan != self.plan.id {
            return Err(Failure::wrong(format_args!(
                "{} is being moved by another plan, {plan}: apply that one to the end, or roll it back",
                self.plan.table
            )));
        }
        let (Some(phase), Ok(step), Ok(position)) = (Phase::of(phase), step.parse(), place.parse())
        else {
            return Err(Failure::could_not(format_args!(
                "the journal {} says what this version does not know: phase {phase}, step {step}, place {place}",
                self.plan.journal
            )));
        };
        Ok(Some(Entry {
            phase,
            step,
            position,
            key: key.clone(),
        }))
    }

    /// Creates it, with its first entry.
    pub(crate) async fn create(&self, session: &mut Session, entry: &Entry) -> Result<(), Fault> {
        let (text, big) = match self.plan.engine {
            Engine::Postgres => ("text", "bigint"),
            _ => ("varchar(64)", "bigint"),
        };
        let create = format!(
            "CREATE TABLE IF NOT EXISTS {} (plan {text} NOT NULL PRIMARY KEY, phase {text} NOT NULL, step int NOT NULL, \
             place {big} NOT NULL, last_key {text} NOT NULL){}",
            self.plan.journal,
            match self.plan.engine {
                // It is in the transactions of the rows, whatever the default is.
                Engine::Mysql | Engine::Mariadb => " ENGINE=InnoDB",
                _ => "",
            }
        );
        session.execute(&create).await?;
        let insert = format!(
            "INSERT INTO {} (plan, phase, step, place, last_key) SELECT '{}', '{}', {}, {}, '{}' {} WHERE NOT EXISTS \
             (SELECT 1 FROM {} AS it)",
            self.plan.journal,
            self.plan.id,
            entry.phase.name(),
            entry.step,
            entry.position,
            entry.key,
            match self.plan.engine {
                Engine::Mysql | Engine::Mariadb => "FROM dual",
                _ => "",
            },
            self.plan.journal
        );
        session.execute(&insert).await.map(|_| ())
    }

    /// Returns the statement that makes an entry.
    fn write(&self, entry: &Entry) -> String {
        format!(
            "UPDATE {} SET phase = '{}', step = {}, place = {}, last_key = '{}' WHERE plan = '{}'",
            self.plan.journal,
            entry.phase.name(),
            entry.step,
            entry.position,
            entry.key,
            self.plan.id
        )
    }

    /// Makes an entry.
    ///
    /// # Errors
    ///
    /// The database refuses, or the journal is not this plan's.
    pub(crate) async fn enter(&self, session: &mut Session, entry: &Entry) -> Result<(), Fault> {
        match session.execute(&self.write(entry)).await? {
            1 => Ok(()),
            rows => Err(Fault {
                message: format!(
                    "the journal {} has {rows} entries of the plan {} and not one: another plan moves the table",
                    self.plan.journal, self.plan.id
                ),
                sql: String::new(),
                is_contention: false,
                is_lost: false,
            }),
        }
    }

    /// Removes it.
    pub(crate) async fn remove(&self, session: &mut Session) -> Result<(), Fault> {
        let remove = format!("DROP TABLE IF EXISTS {}", self.plan.journal);
        session.execute(&remove).await.map(|_| ())
    }
}

/// Returns the query that finds a table, whose name is quoted.
pub(crate) fn exists(engine: Engine, table: &str) -> String {
    match engine {
        Engine::Postgres => format!("SELECT 1 WHERE to_regclass({}) IS NOT NULL", literal(table)),
        Engine::Sqlite => {
            let name = unquoted(table, '"').pop().unwrap_or_default();
            format!(
                "SELECT 1 FROM sqlite_schema WHERE name = {}",
                literal(&name)
            )
        }
        _ => {
            let mut names = unquoted(table, '`');
            let name = names.pop().unwrap_or_default();
            let schema = names.pop().unwrap_or_default();
            format!(
                "SELECT 1 FROM information_schema.tables WHERE table_schema = {} AND table_name = {}",
                literal(&schema),
                literal(&name)
            )
        }
    }
}

/// Takes a quoted name apart, such as `` `shop`.`or``ders` ``. A quote inside a part is doubled.
fn unquoted(name: &str, quote: char) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = name.chars().peekable();
    while rest.next() == Some(quote) {
        let mut part = String::new();
        while let Some(it) = rest.next() {
            if it == quote && rest.next_if_eq(&quote).is_none() {
                break;
            }
            part.push(it);
        }
        parts.push(part);
        // The dot.
        rest.next();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_found_whatever_its_table_is_called() {
        let mysql = exists(Engine::Mysql, "`sh``op`.`ordid_move_we``.``ird'`");
        assert!(
            mysql.ends_with("table_schema = 'sh`op' AND table_name = 'ordid_move_we`.`ird'''"),
            "{mysql}"
        );
        let sqlite = exists(Engine::Sqlite, "\"ordid_move_t\"\"\"");
        assert!(sqlite.ends_with("name = 'ordid_move_t\"'"), "{sqlite}");
    }
}
