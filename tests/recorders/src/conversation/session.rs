//! A connection of a peer: its transaction, and what a statement does to it.

use std::sync::Mutex;

use super::{Answer, Conversation, Refusal, codes, lock};

/// How far a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transaction {
    None,
    Open,
    /// It takes nothing but its end, as on PostgreSQL.
    Failed,
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Text(String),
    /// An `oid` of PostgreSQL.
    Number(u32),
    Bigint(i64),
}

/// The answer to one statement.
#[derive(Debug)]
pub(super) enum Reply {
    /// It was carried out, and changed so many rows.
    Done(u64),
    /// It has these rows.
    Rows(Vec<Vec<Value>>),
    /// The rows of a `COPY` may come.
    Copy,
    Refused(Refusal),
    /// The connection ends.
    End,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Session<'c> {
    shared: &'c Mutex<Conversation>,
    pub(super) transaction: Transaction,
    /// The rows that the transaction has inserted.
    pending: Vec<(String, Vec<u8>)>,
    /// How many of them were there at each savepoint.
    savepoints: Vec<usize>,
    /// Whether a failed statement spoils the transaction.
    fails: bool,
}

impl<'c> Session<'c> {
    /// Of an engine of which a failed statement `fails` the transaction, or not.
    pub(super) fn new(shared: &'c Mutex<Conversation>, fails: bool) -> Self {
        Self {
            shared,
            transaction: Transaction::None,
            pending: Vec::new(),
            savepoints: Vec::new(),
            fails,
        }
    }

    /// Returns the peer's version.
    pub(super) fn version(&self) -> &'static str {
        lock(self.shared).version
    }

    /// Returns the type of a column of PostgreSQL, by its table's quoted name.
    pub(super) fn types(&self, quoted: &str) -> Vec<super::Column> {
        let name = quoted.trim_matches('"');
        let shared = lock(self.shared);
        let table = shared.tables.iter().find(|table| table.name == name);
        table
            .map(|table| table.columns.to_vec())
            .unwrap_or_default()
    }

    /// Returns how many columns the key of a table has.
    pub(super) fn keys(&self, table: &str) -> usize {
        let shared = lock(self.shared);
        let found = shared.tables.iter().find(|it| it.name == table);
        found.map_or(1, |it| it.keys)
    }

    /// Returns how many rows a `DELETE` has, whose values are keys.
    fn rows_of_keys(&self, sql: &str, values: &[Option<Vec<u8>>]) -> u64 {
        let table = sql.split_once(" FROM ").map(|(_, from)| first_name(from));
        let keys = table.map_or(1, |table| self.keys(&table));
        (values.len() / keys).max(1) as u64
    }

    /// Returns why a statement is refused where it is prepared: the engine does not have it.
    pub(super) fn refuses_to_prepare(&mut self, sql: &str) -> Option<Refusal> {
        let lacks = |answer: &Answer| matches!(answer, Answer::Fails(it) if it.is_unsupported());
        let is_told = lock(self.shared).peek(sql).is_some_and(lacks);
        if !is_told {
            return None;
        }
        match self.receive(sql, &[]) {
            Reply::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Carries a statement out.
    pub(super) fn receive(&mut self, sql: &str, values: &[Option<Vec<u8>>]) -> Reply {
        let told = lock(self.shared).told(sql);
        match told {
            Some(Answer::Row(text)) => Reply::Rows(vec![vec![Value::Text(text.to_owned())]]),
            Some(Answer::Fails(refusal)) => self.refuse(sql, refusal),
            Some(Answer::DoesAndFails(refusal)) => match self.carry_out(sql, values) {
                Reply::Refused(other) => Reply::Refused(other),
                _ => Reply::Refused(refusal),
            },
            Some(Answer::Ends) => Reply::End,
            Some(Answer::DoesAndEnds) => {
                self.carry_out(sql, values);
                Reply::End
            }
            None => self.carry_out(sql, values),
        }
    }

    fn refuse(&mut self, sql: &str, refusal: Refusal) -> Reply {
        // A COMMIT that fails ends the transaction. So does a deadlock of MySQL, and what Galera aborts.
        if sql == "COMMIT" || refusal.number == codes::DEADLOCK.number {
            self.end();
        } else if self.fails && self.transaction == Transaction::Open {
            self.transaction = Transaction::Failed;
        }
        Reply::Refused(refusal)
    }

    /// Ends the transaction, without what it has inserted.
    pub(super) fn end(&mut self) {
        self.transaction = Transaction::None;
        self.pending.clear();
        self.savepoints.clear();
    }

    /// Ends what was done since the last savepoint, which stays.
    fn end_savepoint(&mut self) -> Reply {
        let Some(&rows) = self.savepoints.last() else {
            return Reply::Refused(codes::NO_SAVEPOINT);
        };
        self.pending.truncate(rows);
        self.transaction = Transaction::Open;
        Reply::Done(0)
    }

    fn carry_out(&mut self, sql: &str, values: &[Option<Vec<u8>>]) -> Reply {
        match (first_word(sql), self.transaction) {
            ("ROLLBACK", _) if sql.contains(" TO ") => return self.end_savepoint(),
            ("ROLLBACK", _) | ("COMMIT", Transaction::Failed) => self.end(),
            (_, Transaction::Failed) => return Reply::Refused(codes::IN_FAILED_TRANSACTION),
            ("BEGIN" | "START", _) => self.transaction = Transaction::Open,
            ("SAVEPOINT", _) => self.savepoints.push(self.pending.len()),
            ("RELEASE", _) if self.savepoints.pop().is_none() => {
                return Reply::Refused(codes::NO_SAVEPOINT);
            }
            ("COMMIT", _) => self.commit(),
            ("INSERT", _) => return self.insert(sql, values),
            ("COPY", _) => return Reply::Copy,
            ("UPDATE", _) => return Reply::Done(rows_of_values(sql)),
            ("DELETE", _) => return Reply::Done(self.rows_of_keys(sql, values)),
            ("SELECT", _) => return Reply::Rows(self.select(sql, values)),
            _ => {}
        }
        Reply::Done(0)
    }

    fn commit(&mut self) {
        let mut shared = lock(self.shared);
        shared.committed.append(&mut self.pending);
        self.transaction = Transaction::None;
    }

    /// An `INSERT` of rows of as many values as it names columns.
    fn insert(&mut self, sql: &str, values: &[Option<Vec<u8>>]) -> Reply {
        let Some((table, columns)) = table_and_columns(sql) else {
            return Reply::Refused(codes::SYNTAX);
        };
        let keys = self.keys(&table);
        let rows = values.chunks(columns);
        let keys = rows.filter_map(|row| key_of(row.get(..keys)?));
        self.insert_keys(table, keys.collect())
    }

    /// Inserts rows, of which one that is there spoils all.
    pub(super) fn insert_keys(&mut self, table: String, keys: Vec<Vec<u8>>) -> Reply {
        let count = keys.len() as u64;
        for key in keys {
            let row = (table.clone(), key);
            let is_there =
                self.pending.contains(&row) || lock(self.shared).committed.contains(&row);
            if is_there {
                let duplicate = match self.fails {
                    true => codes::UNIQUE_VIOLATION,
                    false => codes::DUPLICATE,
                };
                return self.refuse("INSERT", duplicate);
            }
            self.pending.push(row);
        }
        if self.transaction == Transaction::None {
            self.commit();
        }
        Reply::Done(count)
    }

    /// Knows its version, a text that it is given, and which keys are committed or its own.
    fn select(&self, sql: &str, values: &[Option<Vec<u8>>]) -> Vec<Vec<Value>> {
        if sql.eq_ignore_ascii_case("SELECT version()") {
            return vec![vec![Value::Text(self.version().to_owned())]];
        }
        let given = sql.strip_prefix("SELECT '");
        if let Some(text) = given.and_then(|it| it.strip_suffix('\'')) {
            return vec![vec![Value::Text(text.to_owned())]];
        }
        let table = sql.split_once(" FROM ").map(|(_, from)| first_name(from));
        let key = (!values.is_empty()).then(|| key_of(values)).flatten();
        let (Some(table), Some(key)) = (table, key) else {
            return Vec::new();
        };
        let row = (table, key);
        let is_there = self.pending.contains(&row) || lock(self.shared).committed.contains(&row);
        match is_there {
            true => vec![vec![Value::Text("1".to_owned())]],
            false => Vec::new(),
        }
    }
}

/// Returns the values of a key, one behind the other, if none is NULL.
pub(super) fn key_of(values: &[Option<Vec<u8>>]) -> Option<Vec<u8>> {
    let values: Option<Vec<_>> = values.iter().map(Option::as_deref).collect();
    values.map(|values| values.concat())
}

/// Returns the word that a statement begins with.
pub(super) fn first_word(sql: &str) -> &str {
    let sql = sql.trim_start_matches('(');
    sql.split([' ', ';']).next().unwrap_or_default()
}

/// Returns how many rows an `UPDATE` has: those of its `VALUES`, or one.
fn rows_of_values(sql: &str) -> u64 {
    let values = sql.split_once("VALUES ").map_or("", |(_, values)| values);
    values.matches("($").count().max(1) as u64
}

/// Returns the table of an `INSERT` or a `COPY`, and how many columns it names.
pub(super) fn table_and_columns(sql: &str) -> Option<(String, usize)> {
    let (_, behind) = sql.split_once(' ')?;
    let behind = behind.strip_prefix("INTO ").unwrap_or(behind);
    let (table, columns) = behind.split_once(" (")?;
    let columns = columns.split(')').next()?.split(',').count();
    Some((first_name(table), columns))
}

/// Returns the name that a text begins with, without its quotes.
fn first_name(text: &str) -> String {
    let name = text.split([' ', '(']).next().unwrap_or_default();
    name.trim_matches(['"', '`']).to_owned()
}
