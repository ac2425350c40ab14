//! The switch of MySQL and MariaDB, whose DDL is no part of a transaction: the process is killed at each of its statements.
//!
//! A proxy between the command and the server hands on what both say. When the command sends the chosen statement, the server
//! gets it, and the process gets the signal 9.

use std::{
    collections::BTreeSet,
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use libtest_mimic::{Failed, Trial};

use super::{block, definitions, hostile::Move, writers};
use crate::place::{Result, Servers, execute};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    for server in ["mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "move::a_switch_that_is_killed_at_any_statement_is_completed_and_loses_nothing",
            killed,
        ));
        trials.push(servers.trial(
            server,
            "move::a_switch_of_uuids_that_is_killed_at_any_statement_is_completed",
            killed_with_uuids,
        ));
        trials.push(servers.trial(
            server,
            "move::a_statement_of_a_switch_that_is_refused_is_sent_again_under_the_locks_or_the_half_switch_is_said",
            refused,
        ));
    }
}

/// What the proxy waits for.
#[derive(Default)]
struct Aim {
    /// The statement under LOCK TABLES that is the last one, counted from 1; LOCK TABLES is 0.
    number: usize,
    child: Option<Child>,
    /// The statement at which the process was killed.
    killed_at: Option<String>,
    /// How often the statement is answered by an error instead, and the server does not get it.
    refusals: usize,
    /// The statement that was refused.
    refused: Option<String>,
    /// How often tables were locked.
    locks: usize,
}

impl Aim {
    /// Whether this is the statement, or the same one again.
    fn refuses(&mut self, count: Option<usize>, statement: &str) -> bool {
        let is_it = match &self.refused {
            Some(refused) => refused == statement,
            None => count == Some(self.number),
        };
        if !is_it || self.refusals == 0 {
            return false;
        }
        self.refusals -= 1;
        self.refused = Some(statement.to_owned());
        true
    }
}

/// An answer of the server: error 1114.
fn table_is_full() -> Vec<u8> {
    let mut answer = b"\xff\x5a\x04#HY000The table 'x' is full".to_vec();
    let length = u8::try_from(answer.len()).expect("it is short");
    answer.splice(0..0, [length, 0, 0, 1]);
    answer
}

/// A proxy of one server.
struct Killer {
    url: String,
    aim: Arc<Mutex<Aim>>,
}

impl Killer {
    fn new(url: &str) -> Result<Self> {
        let (head, rest) = url.split_once('@').ok_or("a URL without a user")?;
        let (server, database) = rest.split_once('/').ok_or("a URL without a database")?;
        let database = database.split('?').next().unwrap_or_default();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let aim = Arc::new(Mutex::new(Aim::default()));
        let this = Self {
            // What is encrypted cannot be read.
            url: format!(
                "{head}@{}/{database}?ssl-mode=disabled",
                listener.local_addr()?
            ),
            aim: Arc::clone(&aim),
        };
        let server = server.to_owned();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&server) else {
                    return;
                };
                let aim = Arc::clone(&aim);
                thread::spawn(move || hand_on(client, server, &aim));
            }
        });
        Ok(this)
    }

    /// Runs the command until it sends this statement under its locks; the statement, or `None` if it sends fewer.
    fn run(&self, number: usize, arguments: &[&str]) -> Result<Option<String>> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ordid"))
            .args(arguments)
            .env("DATABASE_URL", &self.url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stderr = child.stderr.take().ok_or("no stderr")?;
        *self.aim() = Aim {
            number,
            child: Some(child),
            ..Aim::default()
        };
        let mut said = String::new();
        stderr.read_to_string(&mut said)?;
        let mut aim = self.aim();
        let child = aim.child.as_mut().ok_or("no child")?;
        let status = child.wait()?;
        match (aim.killed_at.take(), status.code()) {
            (Some(statement), _) => Ok(Some(statement)),
            (None, Some(0)) => Ok(None),
            (None, _) => Err(format!("{arguments:?} at {number}: {status}: {said}").into()),
        }
    }

    /// Runs the command while this statement under its locks is refused so often: the statement, how often tables were locked, the exit
    /// code, and what is on stderr.
    fn refuse(
        &self,
        number: usize,
        refusals: usize,
        arguments: &[&str],
    ) -> Result<(String, usize, Option<i32>, String)> {
        *self.aim() = Aim {
            number,
            refusals,
            ..Aim::default()
        };
        let output = Command::new(env!("CARGO_BIN_EXE_ordid"))
            .args(arguments)
            .env("DATABASE_URL", &self.url)
            .stdin(Stdio::null())
            .output()?;
        let mut aim = self.aim();
        let statement = aim.refused.take().ok_or("no statement was refused")?;
        let stderr = String::from_utf8(output.stderr)?;
        Ok((statement, aim.locks, output.status.code(), stderr))
    }

    fn aim(&self) -> std::sync::MutexGuard<'_, Aim> {
        self.aim.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands on packets of MySQL's protocol, until the statement comes at which the process is killed.
fn hand_on(mut client: TcpStream, mut server: TcpStream, aim: &Mutex<Aim>) {
    let (Ok(mut answers), Ok(mut back)) = (server.try_clone(), client.try_clone()) else {
        return;
    };
    thread::spawn(move || {
        // It ends with the connection.
        let _ = std::io::copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Both);
    });
    let mut count = None;
    let mut packet = Vec::new();
    loop {
        packet.resize(4, 0);
        if client.read_exact(&mut packet).is_err() {
            break;
        }
        let length = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]);
        packet.resize(4 + usize::try_from(length).expect("24 bits"), 0);
        if client.read_exact(&mut packet[4..]).is_err() {
            break;
        }
        // COM_QUERY; those that only read leave the tables as they are.
        let statement = match packet.get(4) {
            Some(3) => Some(String::from_utf8_lossy(&packet[5..]).into_owned()),
            _ => None,
        };
        if let Some(statement) = &statement {
            if statement.starts_with("LOCK TABLES") {
                count = Some(0);
            } else if let Some(count) = &mut count
                && !["SELECT", "SET SESSION"]
                    .iter()
                    .any(|it| statement.starts_with(it))
            {
                *count += 1;
            }
            let mut aim = aim.lock().unwrap_or_else(PoisonError::into_inner);
            aim.locks += usize::from(statement.starts_with("LOCK TABLES"));
            if aim.refuses(count, statement) {
                if client.write_all(&table_is_full()).is_err() {
                    break;
                }
                continue;
            }
        }
        if server.write_all(&packet).is_err() {
            break;
        }
        let Some(statement) = statement else {
            continue;
        };
        let mut aim = aim.lock().unwrap_or_else(PoisonError::into_inner);
        if count == Some(aim.number)
            && aim.killed_at.is_none()
            && let Some(child) = &mut aim.child
            // The signal 9.
            && child.kill().is_ok()
        {
            aim.killed_at = Some(statement);
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

/// What is in the tables: a line for each row, with the names of what it refers to, and not their keys.
fn rows(url: &str) -> Result<BTreeSet<String>> {
    const ALL: &str = "SELECT concat('order ', o.ref, ' of ', coalesce(p.ref, '-')) FROM orders o LEFT JOIN orders p ON p.id = o.parent_id
        UNION ALL SELECT concat('line ', l.token, ' of ', coalesce(o.ref, '-')) FROM order_lines l LEFT JOIN orders o ON o.id = l.order_id
        UNION ALL SELECT concat('remark ', m.token, ' of ', coalesce(o.ref, if(m.order_id IS NULL, '-', 'nothing'))) FROM remarks m LEFT
        JOIN orders o ON o.id = m.order_id";
    let rows = block(url, ALL)?;
    let count = rows.len();
    let rows: BTreeSet<String> = rows.into_iter().flatten().collect();
    match rows.len() == count {
        true => Ok(rows),
        false => Err("a row is there twice".into()),
    }
}

/// The tables, while rows are written when the process is dead: what has to be in them.
struct Tables<'a> {
    url: &'a str,
    expected: BTreeSet<String>,
    made: usize,
}

impl Tables<'_> {
    /// Sends a statement, which may be refused as triggers are missing; whether it was taken.
    fn write(&self, statement: &str) -> Result<bool> {
        match execute(self.url, statement) {
            Ok(()) => Ok(true),
            Err(error) => {
                let text = format!("{error:?}");
                // The key of a program that names no columns is then in another place, or both keys are there.
                let is_known = ["Incorrect datetime value", "Column count doesn't match"]
                    .iter()
                    .chain(&writers::REFUSED_BETWEEN)
                    .any(|it| text.contains(it));
                match is_known {
                    true => Ok(false),
                    false => Err(format!("{statement}: {text}").into()),
                }
            }
        }
    }

    /// Inserts, changes and deletes rows, as programs do that have nothing heard of a move.
    fn write_all(&mut self) -> Result {
        self.made += 1;
        let n = self.made;
        let id = |name: &str| {
            format!("(SELECT id FROM (SELECT id FROM orders WHERE ref = '{name}') AS o)")
        };
        if self.write(&format!(
            "INSERT INTO orders (ref, note) VALUES ('w{n}', 'n')"
        ))? {
            self.expected.insert(format!("order w{n} of -"));
        }
        // Without the columns' names, as it is before the switch.
        if self.write(&format!(
            "INSERT INTO orders VALUES (NULL, 'v{n}', 'n', NULL, NOW(6))"
        ))? {
            self.expected.insert(format!("order v{n} of -"));
        }
        if self.write(&format!(
            "INSERT INTO orders (ref, note, parent_id) VALUES ('p{n}', 'n', {})",
            id("r1")
        ))? {
            self.expected.insert(format!("order p{n} of r1"));
        }
        if self.write(&format!(
            "INSERT INTO order_lines (order_id, line_no, token) VALUES ({}, {n} + 10, 'l{n}')",
            id("r2")
        ))? {
            self.expected.insert(format!("line l{n} of r2"));
        }
        if self.write(&format!(
            "INSERT INTO remarks (order_id, token) VALUES ({}, 'k{n}')",
            id("r3")
        ))? {
            self.expected.insert(format!("remark k{n} of r3"));
        }
        if self.write(&format!(
            "INSERT INTO remarks (order_id, token) VALUES (NULL, 'z{n}')"
        ))? {
            self.expected.insert(format!("remark z{n} of -"));
        }
        // A remark goes from one order to another, and back the next time.
        let (from, to) = if n % 2 == 1 {
            ("r4", "r5")
        } else {
            ("r5", "r4")
        };
        if self.expected.contains(&format!("remark moving of {from}"))
            && self.write(&format!(
                "UPDATE remarks SET order_id = {} WHERE token = 'moving'",
                id(to)
            ))?
        {
            self.expected.remove(&format!("remark moving of {from}"));
            self.expected.insert(format!("remark moving of {to}"));
        }
        // An order that goes, with its line and without its remark.
        if self.write(&format!("DELETE FROM orders WHERE ref = 'd{n}'"))? {
            self.expected.remove(&format!("order d{n} of -"));
            self.expected.remove(&format!("line dl{n} of d{n}"));
            if self.expected.remove(&format!("remark dm{n} of d{n}")) {
                self.expected.insert(format!("remark dm{n} of -"));
            }
        }
        Ok(())
    }

    fn check(&self, what: &str) -> Result {
        let found = rows(self.url)?;
        let lost: Vec<&String> = self.expected.difference(&found).collect();
        let more: Vec<&String> = found.difference(&self.expected).collect();
        match lost.is_empty() && more.is_empty() {
            true => Ok(()),
            false => Err(format!("{what}: lost {lost:?}, too many {more:?}").into()),
        }
    }

    /// The triggers, the foreign keys and the columns of the plan have to be there, and old and new keys be pairs.
    fn check_switched(&self, what: &str) -> Result {
        let count = |query: &str| Ok::<_, Failed>(block(self.url, query)?[0][0].clone());
        let expect = |query: &str, value: &str| match count(query)? {
            found if found == value => Ok(()),
            found => Err(Failed::from(format!(
                "{what}: {query}: {found} and not {value}"
            ))),
        };
        expect(
            "SELECT count(*) FROM information_schema.triggers WHERE trigger_schema = database()",
            "6",
        )?;
        expect(
            "SELECT count(*) FROM information_schema.key_column_usage WHERE table_schema = database() AND referenced_table_name = \
             'orders'",
            "6",
        )?;
        for (table, column) in [
            ("orders", "parent_id"),
            ("order_lines", "order_id"),
            ("remarks", "order_id"),
        ] {
            expect(
                &format!(
                    "SELECT count(*) FROM {table} c LEFT JOIN orders o ON o.id = c.{column} WHERE NOT (o.ordid_old_id <=> \
                     c.ordid_old_{column})"
                ),
                "0",
            )?;
        }
        expect(
            "SELECT count(*) FROM orders WHERE length(id) <> 16 OR ordid_old_id = 0",
            "0",
        )
    }
}

/// From one statement at which it is killed to the next: the long form has all of them, and the short form leaves some out.
fn stride() -> usize {
    match std::env::var_os("ORDID_TEST_SOAK") {
        Some(_) => 1,
        None => 7,
    }
}

fn killed(url: &str) -> Result {
    super::create(url, 20)?;
    for n in 1..60 {
        execute(
            url,
            &format!(
                "INSERT INTO orders (ref, note) VALUES ('d{n}', 'n');
                 INSERT INTO order_lines (order_id, line_no, token) SELECT id, 0, 'dl{n}' FROM orders WHERE ref = 'd{n}';
                 INSERT INTO remarks (order_id, token) SELECT id, 'dm{n}' FROM orders WHERE ref = 'd{n}'"
            ),
        )?;
    }
    execute(
        url,
        "INSERT INTO remarks (order_id, token) SELECT id, 'moving' FROM orders WHERE ref = 'r4'",
    )?;
    let before = definitions(url)?;
    let killer = Killer::new(url)?;
    let mut tables = Tables {
        url,
        expected: rows(url)?,
        made: 0,
    };
    let (mut forth, mut back) = (0, 0);
    loop {
        let this = Move::planned(url)?;
        this.apply(&["--no-switch"])?;
        let there = killer.run(forth, &["apply", &this.file, "--resume"])?;
        if let Some(statement) = &there {
            tables.write_all()?;
            this.apply(&["--resume"])?;
            let what = format!("killed at {forth}, {statement}");
            tables.check(&what)?;
            tables.check_switched(&what)?;
        }
        let gone = killer.run(back, &["apply", &this.file, "--rollback"])?;
        if let Some(statement) = &gone {
            tables.write_all()?;
            // The journal is dropped last: then the rollback is done.
            match statement.starts_with("DROP TABLE") && statement.contains("ordid_move_") {
                true => drop(this.refused(&["--rollback"], 2)?),
                false => drop(this.apply(&["--rollback"])?),
            }
            let what = format!("on the way back killed at {back}, {statement}");
            tables.check(&what)?;
        }
        let after = definitions(url)?;
        if before != after {
            return Err(format!("{forth}, {back}: before: {before:?}\nafter: {after:?}").into());
        }
        if there.is_none() && gone.is_none() {
            break;
        }
        forth += stride();
        // The way back has more statements, those of the undo.
        back += 2 * stride() - 1;
    }
    if forth <= 15 || back <= 15 {
        return Err(format!("only {forth} and {back} statements").into());
    }
    finished(&killer, &mut tables)
}

/// The end, whose first statements are sent under locks, too: each run goes on where the one before was killed.
fn finished(killer: &Killer, tables: &mut Tables<'_>) -> Result {
    let this = Move::planned(tables.url)?;
    this.apply(&[])?;
    let mut number = 0;
    while let Some(statement) = killer.run(number, &["apply", &this.file, "--finish"])? {
        tables.write_all()?;
        let found = rows(tables.url)?;
        if found != tables.expected {
            return Err(format!("the end was killed at {number}, {statement}: {found:?}").into());
        }
        number += 1;
    }
    if number < 9 {
        return Err(format!("only {number} statements of the end").into());
    }
    let left = "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = database() UNION ALL SELECT column_name FROM \
                information_schema.columns WHERE table_schema = database() AND column_name LIKE 'ordid%' UNION ALL SELECT index_name FROM \
                information_schema.statistics WHERE table_schema = database() AND index_name LIKE 'ordid%'";
    let left = block(tables.url, left)?;
    let keys = "SELECT table_name, column_name, constraint_name FROM information_schema.key_column_usage WHERE table_schema = database() \
                AND referenced_table_name = 'orders' AND referenced_column_name = 'id'";
    let mut keys = block(tables.url, keys)?;
    // Servers do not agree on the order of an underscore.
    keys.sort();
    let expected = [
        ["order_lines", "order_id", "lines_order"],
        ["orders", "parent_id", "orders_parent"],
        ["remarks", "order_id", "remarks_fk"],
    ];
    match left.is_empty() && keys == expected {
        true => Ok(()),
        false => Err(format!("left: {left:?}; foreign keys: {keys:?}").into()),
    }
}

fn killed_with_uuids(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE orders (id char(36) NOT NULL PRIMARY KEY, ref varchar(20) NOT NULL UNIQUE);
         INSERT INTO orders VALUES ('6f1d2c1e-7a1b-4c8e-9d55-0d7f3f0a9c11', 'r1')",
    )?;
    let killer = Killer::new(url)?;
    // The short form: when the old key has its default, and no trigger fills it.
    let is_short = stride() > 1;
    let mut number = if is_short { 5 } else { 0 };
    let begin = number;
    loop {
        let this = Move::planned(url)?;
        this.apply(&["--no-switch"])?;
        let Some(statement) = killer.run(number, &["apply", &this.file, "--resume"])? else {
            return match number > 5 {
                true => Ok(()),
                false => Err(format!("only {number} statements").into()),
            };
        };
        let write =
            |name: &str| execute(url, &format!("INSERT INTO orders (ref) VALUES ('{name}')"));
        // Before the renames the program has to make the key.
        let is_taken = write("between").is_ok();
        this.apply(&["--resume"])?;
        write("later")?;
        let rows = "SELECT count(*), count(DISTINCT ordid_old_id), min(length(ordid_old_id)), min(length(id)) FROM orders";
        let found = &block(url, rows)?[0];
        let count = (2 + usize::from(is_taken)).to_string();
        if *found != [count.as_str(), &count, "36", "16"] {
            return Err(
                format!("killed at {number}, {statement}: {found:?} and not {count} rows").into(),
            );
        }
        this.apply(&["--rollback"])?;
        let old = &block(
            url,
            "SELECT count(DISTINCT id) FROM orders WHERE length(id) = 36",
        )?[0][0];
        if *old != count {
            return Err(format!("killed at {number}, {statement}: {old} old keys").into());
        }
        execute(url, "DELETE FROM orders WHERE ref <> 'r1'")?;
        if is_short && number > begin {
            return Ok(());
        }
        number += 1;
    }
}

fn refused(url: &str) -> Result {
    super::create(url, 20)?;
    execute(
        url,
        "INSERT INTO remarks (order_id, token) SELECT id, 'moving' FROM orders WHERE ref = 'r4'",
    )?;
    let killer = Killer::new(url)?;
    let mut tables = Tables {
        url,
        expected: rows(url)?,
        made: 0,
    };
    let is_half = |said: &str| said.contains("the switch is half done: ");
    // A trigger that is dropped, and names that are exchanged; 1 is the journal's entry.
    for number in [3, 9] {
        let this = Move::planned(url)?;
        this.apply(&["--no-switch"])?;
        let (statement, locks, code, said) =
            killer.refuse(number, 2, &["apply", &this.file, "--resume"])?;
        let what = format!("{statement} refused twice, {locks} locks: {code:?}: {said}");
        if code != Some(0) || locks != 1 || is_half(&said) {
            return Err(what.into());
        }
        tables.check(&what)?;
        tables.check_switched(&what)?;
        this.apply(&["--rollback"])?;

        let this = Move::planned(url)?;
        this.apply(&["--no-switch"])?;
        let (statement, _, code, said) =
            killer.refuse(number, usize::MAX, &["apply", &this.file, "--resume"])?;
        let what = format!("{statement} refused: {code:?}: {said}");
        let is_told =
            is_half(&said) && said.contains("is full; ") && said.contains("with --resume at once");
        if code != Some(3) || !is_told {
            return Err(what.into());
        }
        tables.write_all()?;
        this.apply(&["--resume"])?;
        tables.check(&what)?;
        tables.check_switched(&what)?;
        this.apply(&["--rollback"])?;
    }
    Ok(())
}
