//! The plan of a move: data that a person can read, and that `apply` carries out step by step.
//!
//! The file of an engine writes every statement of a move into the plan. Nothing is decided later: what `plan` shows is
//! what `apply` sends. A plan has five lists of steps. `apply` works through one of them, and the journal keeps how
//! far it is.
//!
//! ```text
//!   steps (the last is the switch) ──> switched ──> [map] ──> finish
//!     └─ undo                             └─ back
//! ```

use sha2::{Digest as _, Sha256};

use serde::{Deserialize, Serialize};

use crate::engine::Engine;

/// The version of plan files that this program writes and reads. It changes whenever a field does.
pub(crate) const VERSION: u32 = 3;

/// A move of a table to other keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// The version of the file's form: [`VERSION`].
    pub(crate) ordid_plan: u32,
    /// A random number that only this plan has.
    pub(crate) id: String,
    /// The engine.
    pub(crate) engine: Engine,
    /// The server's version when the plan was made.
    pub(crate) server: String,
    /// The table, behind its schema, for people.
    pub(crate) table: String,
    /// Its schema, where the engine has schemas.
    pub(crate) schema: Option<String>,
    /// Its name.
    pub(crate) name: String,
    /// The scheme of the new keys.
    pub(crate) scheme: String,
    /// The column that stores them, as ordid names it.
    pub(crate) column: String,
    /// The column that has the rows' creation times, if there is one.
    pub(crate) created: Option<String>,
    /// The estimated rows of the table.
    pub(crate) rows: i64,
    /// The bytes of the table, without its indexes.
    pub(crate) bytes: i64,
    /// Notes that a reader should know.
    pub(crate) notes: Vec<String>,
    /// The journal's table, quoted.
    pub(crate) journal: String,
    /// The steps to the new keys. The last one switches.
    pub(crate) steps: Vec<Step>,
    /// The way back before the switch.
    pub(crate) undo: Vec<Step>,
    /// The way back after the switch.
    pub(crate) back: Vec<Step>,
    /// The name of the table that keeps old and new keys, for people.
    pub(crate) map_table: String,
    /// The steps that create it before the end.
    pub(crate) map: Vec<Step>,
    /// The end, after which there is no way back.
    pub(crate) finish: Vec<Step>,
    /// The tables as they were found. A table that differs is not moved by this plan.
    pub(crate) catalog: Vec<Table>,
    /// The digest of all the rest when the plan was made.
    #[serde(default)]
    pub(crate) digest: String,
}

impl Plan {
    /// Returns the digest of the content, whatever spaces its file has: SHA-256 in hexadecimal.
    pub(crate) fn content_digest(&self) -> String {
        let content = Self {
            digest: String::new(),
            ..self.clone()
        };
        let content = serde_json::to_string(&content).expect("a plan is JSON");
        let digest = Sha256::digest(content.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Enters the digest of a plan that is complete. Seconds are rounded first, so that they are the same when they are read.
    pub(crate) fn sealed(mut self) -> Self {
        let lists = [
            &mut self.steps,
            &mut self.undo,
            &mut self.back,
            &mut self.map,
            &mut self.finish,
        ];
        for step in lists.into_iter().flatten() {
            step.seconds = (step.seconds * 10.0).round() / 10.0;
        }
        self.digest = self.content_digest();
        self
    }

    /// Whether somebody has changed it since it was made.
    pub(crate) fn is_edited(&self) -> bool {
        self.digest != self.content_digest()
    }
}

/// A table as the catalog describes it: each piece of its definition as a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// Its name, behind its schema.
    pub(crate) name: String,
    /// Columns, keys, foreign keys, indexes and triggers, in a fixed order.
    pub(crate) definition: Vec<String>,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    /// A short name.
    pub(crate) name: String,
    /// The column that it is for, if the plan has several steps of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) on: Option<String>,
    /// A sentence that says what it does.
    pub(crate) what: String,
    /// A description of its locks, and of how long it holds them.
    pub(crate) locks: String,
    /// About how long it takes.
    pub(crate) seconds: f64,
    /// How it is carried out.
    #[serde(flatten)]
    pub(crate) action: Action,
}

/// The name of the step of a way back that builds indexes for the counts of its switch. The end of a move drops them with the old
/// columns.
pub(crate) const LOST_INDEXES: &str = "lost_indexes";

impl Step {
    /// Whether it leaves nothing behind that the end of a move does not remove.
    pub(crate) fn is_harmless(&self) -> bool {
        matches!(self.action, Action::Check { .. }) || self.name == LOST_INDEXES
    }

    /// Returns its name, and what it is for.
    pub(crate) fn title(&self) -> String {
        match &self.on {
            Some(on) => format!("{} {on}", self.name),
            None => self.name.clone(),
        }
    }

    /// Says what it is for.
    pub(crate) fn on(mut self, what: impl Into<String>) -> Self {
        self.on = Some(what.into());
        self
    }
}

/// The statements that make keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Keys {
    /// Creates what a session needs.
    pub(crate) session: Vec<String>,
    /// Reads positions and microseconds; `{after}` and `{chunk}` are replaced.
    pub(crate) read: String,
    /// A row of the statement that takes the keys: `{position}` and `{key}`.
    pub(crate) row: String,
    /// Writes a chunk; `{rows}`, `{after}` and `{last}` are replaced.
    pub(crate) write: Vec<String>,
}

/// The statements that fill a referring column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct References {
    /// Returns the last position of a part; `{after}` and `{chunk}` are replaced.
    pub(crate) read: String,
    /// Creates what a session needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) session: Vec<String>,
    /// Lists referring rows that are empty; `{after}`, `{last}` and `{limit}` are replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) collect: Vec<String>,
    /// Reads the rows of the list; `{after}`, `{last}` and `{limit}` are replaced. It is empty where rows have no name: then
    /// all rows that refer to the part are written at once.
    pub(crate) rows: String,
    /// The form of a row's name in the statement that writes it: `{row}`.
    pub(crate) row: String,
    /// Writes a chunk; `{rows}`, `{after}` and `{last}` are replaced.
    pub(crate) write: Vec<String>,
}

/// How a step is carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Action {
    /// Sends statements in one transaction, with the journal's entry.
    Transaction {
        /// The statements.
        statements: Vec<String>,
    },
    /// Sends statements, each of which commits by itself.
    Online {
        /// The statements.
        statements: Vec<Statement>,
    },
    /// Makes keys for the rows of the work list, in chunks. Each chunk is a transaction, with the journal's entry.
    Keys(Keys),
    /// Fills a referring column, in chunks of referring rows. A part of the work list is read at a time, and at most so many
    /// rows that refer to it.
    References(References),
    /// Waits until no transaction of those that the query lists is left.
    Wait {
        /// Lists the transactions that run.
        list: String,
    },
    /// Asks for counts of what is wrong, each of which has to be 0.
    Check {
        /// The counts that it asks for.
        checks: Vec<Check>,
        /// Queries for things that must not be there.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        guards: Vec<Guard>,
    },
    /// Locks tables, sends statements, and lets go: within the lock timeout, or not at all.
    Switch {
        /// Locks each table.
        lock: Vec<String>,
        /// Queries for things that must not be there.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        guards: Vec<Guard>,
        /// Counts that are quickly made, and have to be 0 when all tables are locked.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        checks: Vec<Check>,
        /// Statements that are sent first if an earlier run was cut off while it had the locks. They correct what others have
        /// written since.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repairs: Vec<Statement>,
        /// Statements that are sent while the tables are locked.
        statements: Vec<Statement>,
        /// Lets the tables go; empty where COMMIT does that.
        unlock: Vec<String>,
    },
    /// Rebuilds the tables in one transaction, which nobody else writes beside.
    Rebuild {
        /// Statements that are sent before the transaction.
        before: Vec<String>,
        /// Reads the names and definitions that the tables have to have; empty where they are those of the plan.
        expected: String,
        /// Counts that have to be the same before and after.
        counts: Vec<Check>,
        /// Fills the map of keys, as [`Action::Keys`] does.
        read: String,
        /// A row of the map: `{position}` and `{key}`.
        row: String,
        /// Writes rows into the map: `{rows}`.
        write: String,
        /// Statements that create the map, before it is filled.
        map: Vec<String>,
        /// Statements that are sent when the map is filled.
        statements: Vec<String>,
        /// Counts that have to be 0, at the beginning and before the COMMIT.
        checks: Vec<Check>,
        /// Statements that are sent after the transaction.
        after: Vec<String>,
    },
}

/// A statement that commits by itself, or whose lock is another's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Statement {
    /// The statement.
    pub(crate) sql: String,
    /// Returns a row if the statement has been carried out already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unless: Option<String>,
    /// Removes what an attempt that was cut off has left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<String>,
    /// Whether it may wait longer for its locks: on PostgreSQL nobody waits behind it, and on MySQL its work would be lost.
    #[serde(default)]
    pub(crate) waits: bool,
}

impl Statement {
    /// A statement that can be sent twice.
    pub(crate) fn new(sql: impl Into<String>) -> Self {
        Self {
            sql: sql.into(),
            unless: None,
            before: None,
            waits: false,
        }
    }

    /// Skips it if the query returns a row.
    pub(crate) fn unless(mut self, query: impl Into<String>) -> Self {
        self.unless = Some(query.into());
        self
    }

    /// Sends another statement first.
    pub(crate) fn after(mut self, sql: impl Into<String>) -> Self {
        self.before = Some(sql.into());
        self
    }

    /// Lets it wait for its locks.
    pub(crate) fn waiting(mut self) -> Self {
        self.waits = true;
        self
    }
}

/// A count that has to be 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    /// The name of the rows that are counted: `rows of orders without a new key`.
    pub(crate) what: String,
    /// The query.
    pub(crate) sql: String,
    /// The query that shows what is wrong, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) find: Option<String>,
}

impl Check {
    pub(crate) fn new(what: impl Into<String>, sql: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            sql: sql.into(),
            find: None,
        }
    }

    /// Counts the rows that a query shows.
    pub(crate) fn of_rows(what: impl Into<String>, query: impl Into<String>) -> Self {
        let query = query.into();
        Self {
            what: what.into(),
            sql: format!("SELECT count(*) FROM ({query})"),
            find: Some(query),
        }
    }
}

/// A query for names of what must not be there: each row is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Guard {
    /// The rest of the message behind its name: `depends on a moved column, and the plan does not know it`.
    pub(crate) what: String,
    /// The query.
    pub(crate) sql: String,
    /// The advice for the user.
    pub(crate) advice: String,
}

impl Guard {
    pub(crate) fn new(
        what: impl Into<String>,
        sql: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            what: what.into(),
            sql: sql.into(),
            advice: advice.into(),
        }
    }

    /// Asks for things that depend on moved columns and are not in the plan. `what` is done with the columns.
    pub(crate) fn unknown(sql: impl Into<String>, what: &str, advice: &str) -> Self {
        Self::new(
            format!("depends on a moved column, and the plan does not know it: {what}"),
            sql,
            advice,
        )
    }

    /// Before the switch.
    pub(crate) fn before_switch(sql: impl Into<String>) -> Self {
        Self::unknown(
            sql,
            "it would stay with the old column",
            "drop it and go on with --resume, or go back with --rollback and make a new plan",
        )
    }

    /// Before the way back.
    pub(crate) fn before_back(sql: impl Into<String>) -> Self {
        Self::unknown(
            sql,
            "it would be dropped with the new column",
            "drop it and repeat --rollback, or end the move with --finish",
        )
    }

    /// Before the end.
    pub(crate) fn before_finish(sql: impl Into<String>) -> Self {
        Self::unknown(
            sql,
            "it would be dropped with the old column",
            "drop it and repeat --finish, or go back with --rollback",
        )
    }
}

impl Action {
    /// Returns every statement, for people who read a plan.
    pub(crate) fn sql(&self) -> Vec<&str> {
        match self {
            Self::Transaction { statements } => strs(statements),
            Self::Online { statements } => statements.iter().map(|it| it.sql.as_str()).collect(),
            Self::Keys(Keys {
                session,
                read,
                write,
                ..
            }) => {
                let mut all = strs(session);
                all.push(read);
                all.extend(strs(write));
                all
            }
            Self::References(References {
                read,
                session,
                collect,
                rows,
                write,
                ..
            }) => {
                let mut all = strs(session);
                all.push(read);
                all.extend(strs(collect));
                if !rows.is_empty() {
                    all.push(rows);
                }
                all.extend(strs(write));
                all
            }
            Self::Wait { list } => vec![list],
            Self::Check { checks, guards } => {
                let mut all: Vec<&str> = guards.iter().map(|it| it.sql.as_str()).collect();
                all.extend(checks.iter().map(|it| it.sql.as_str()));
                all
            }
            Self::Switch {
                lock,
                guards,
                checks,
                statements,
                unlock,
                ..
            } => {
                let mut all: Vec<&str> = guards.iter().map(|it| it.sql.as_str()).collect();
                all.extend(strs(lock));
                all.extend(checks.iter().map(|it| it.sql.as_str()));
                all.extend(statements.iter().map(|it| it.sql.as_str()));
                all.extend(strs(unlock));
                all
            }
            Self::Rebuild {
                before,
                expected,
                counts,
                read,
                write,
                map,
                statements,
                checks,
                after,
                ..
            } => {
                let mut all = strs(before);
                if !expected.is_empty() {
                    all.push(expected);
                }
                all.extend(counts.iter().map(|it| it.sql.as_str()));
                all.extend(strs(map));
                if !read.is_empty() {
                    all.extend([read.as_str(), write.as_str()]);
                }
                all.extend(strs(statements));
                all.extend(checks.iter().map(|it| it.sql.as_str()));
                all.extend(strs(after));
                all
            }
        }
    }
}

fn strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// Names the first piece in which the tables differ from those of the plan; `None` if they are the same.
pub(crate) fn difference(planned: &[Table], found: &[Table]) -> Option<String> {
    for table in planned {
        let Some(now) = found.iter().find(|it| it.name == table.name) else {
            return Some(format!(
                "{} no longer refers to the table, or is gone",
                table.name
            ));
        };
        let gone = table
            .definition
            .iter()
            .find(|it| !now.definition.contains(it));
        let new = now
            .definition
            .iter()
            .find(|it| !table.definition.contains(it));
        match (gone, new) {
            (Some(gone), Some(new)) => {
                return Some(format!("{} had `{gone}`, and now has `{new}`", table.name));
            }
            (Some(gone), None) => {
                return Some(format!("{} had `{gone}`, which is gone", table.name));
            }
            (None, Some(new)) => return Some(format!("{} now has `{new}`", table.name)),
            (None, None) => {}
        }
    }
    let new = found
        .iter()
        .find(|it| !planned.iter().any(|table| table.name == it.name))?;
    Some(format!("{} now refers to the table", new.name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// Collects the fields of a document, each behind the kind of its object.
    fn fields(kind: &str, value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                let kind = object.get("do").and_then(Value::as_str).unwrap_or(kind);
                for (name, value) in object {
                    found.insert(format!("{kind}.{name}"));
                    fields(name, value, found);
                }
            }
            Value::Array(values) => values.iter().for_each(|it| fields(kind, it, found)),
            _ => {}
        }
    }

    /// A plan with every kind of step, and a value in every field.
    fn whole_plan() -> Plan {
        let text = || "text".to_owned();
        let texts = || vec![text()];
        let statements = || vec![Statement::new("sql").unless("query").after("sql").waiting()];
        let checks = || vec![Check::of_rows("rows", "query")];
        let guards = || vec![Guard::new("what", "query", "advice")];
        let actions = vec![
            Action::Transaction {
                statements: texts(),
            },
            Action::Online {
                statements: statements(),
            },
            Action::Keys(Keys {
                session: texts(),
                read: text(),
                row: text(),
                write: texts(),
            }),
            Action::References(References {
                read: text(),
                session: texts(),
                collect: texts(),
                rows: text(),
                row: text(),
                write: texts(),
            }),
            Action::Wait { list: text() },
            Action::Check {
                checks: checks(),
                guards: guards(),
            },
            Action::Switch {
                lock: texts(),
                guards: guards(),
                checks: checks(),
                repairs: statements(),
                statements: statements(),
                unlock: texts(),
            },
            Action::Rebuild {
                before: texts(),
                expected: text(),
                counts: checks(),
                read: text(),
                row: text(),
                write: text(),
                map: texts(),
                statements: texts(),
                checks: checks(),
                after: texts(),
            },
        ];
        let step = |action| Step {
            name: text(),
            on: Some(text()),
            what: text(),
            locks: text(),
            seconds: 0.0,
            action,
        };
        Plan {
            ordid_plan: VERSION,
            id: text(),
            engine: Engine::Postgres,
            server: text(),
            table: text(),
            schema: Some(text()),
            name: text(),
            scheme: text(),
            column: text(),
            created: Some(text()),
            rows: 0,
            bytes: 0,
            notes: texts(),
            journal: text(),
            steps: actions.into_iter().map(step).collect(),
            undo: Vec::new(),
            back: Vec::new(),
            map_table: text(),
            map: Vec::new(),
            finish: Vec::new(),
            catalog: vec![table("orders", &["column id bigint"])],
            digest: text(),
        }
    }

    #[test]
    fn the_version_changes_with_the_fields() {
        let document = serde_json::to_value(whole_plan()).expect("a plan is JSON");
        let mut found = BTreeSet::new();
        fields("plan", &document, &mut found);
        // A field was added or is gone? Then VERSION has to rise, and this digest belongs to the new one.
        let lines: Vec<&str> = found.iter().map(String::as_str).collect();
        let digest = Sha256::digest(lines.join("\n").as_bytes());
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            (VERSION, &digest[..16]),
            (3, "750bc9e68fbc740d"),
            "{found:#?}"
        );
    }

    fn table(name: &str, definition: &[&str]) -> Table {
        Table {
            name: name.to_owned(),
            definition: definition.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    #[test]
    fn a_difference_is_named() {
        let planned = [table("orders", &["column id bigint", "column note text"])];
        assert_eq!(difference(&planned, &planned), None);
        let added = [table(
            "orders",
            &["column id bigint", "column note text", "column extra text"],
        )];
        assert_eq!(
            difference(&planned, &added).as_deref(),
            Some("orders now has `column extra text`")
        );
        let removed = [table("orders", &["column id bigint"])];
        assert_eq!(
            difference(&planned, &removed).as_deref(),
            Some("orders had `column note text`, which is gone")
        );
        let changed = [table("orders", &["column id integer", "column note text"])];
        assert_eq!(
            difference(&planned, &changed).as_deref(),
            Some("orders had `column id bigint`, and now has `column id integer`")
        );
        let another = [planned[0].clone(), table("lines", &[])];
        assert_eq!(
            difference(&planned, &another).as_deref(),
            Some("lines now refers to the table")
        );
        assert!(difference(&another, &planned).is_some_and(|it| it.starts_with("lines no longer")));
    }
}
