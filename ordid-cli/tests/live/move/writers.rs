//! Writers that use three tables the whole time, and know what has to be in them.
//!
//! Each writer has orders of its own, by their reference, and a model of them in memory: what it has committed. At the
//! end the tables have to be equal to the models.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use sqlx::{AssertSqlSafe, Connection as _, MySqlConnection, PgConnection, Row as _};

use crate::place::Result;

/// What MySQL and MariaDB say of rows that refer to others, between a switch that was killed and the next run.
pub(crate) const REFUSED_BETWEEN: [&str; 5] = [
    "Cannot add or update a child row",
    "cannot be null",
    "doesn't have a default value",
    "Incorrect integer value",
    "Data too long",
];

/// What MariaDB rarely says to a statement that waited for a switch: it had listed the tables of the triggers before it waited, and
/// does not find one of the new triggers' among them, which it names by its alias. The statement does nothing.
const REFUSED_BY_ALIAS: &str = ".it' doesn't exist";

/// A connection to a server.
pub(crate) enum Connection {
    Postgres(PgConnection),
    MySql(MySqlConnection),
}

impl Connection {
    pub(crate) async fn open(url: &str) -> sqlx::Result<Self> {
        Ok(match url.starts_with("postgres") {
            true => Self::Postgres(PgConnection::connect(url).await?),
            false => {
                let mut connection = MySqlConnection::connect(url).await?;
                sqlx::raw_sql("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    .execute(&mut connection)
                    .await?;
                Self::MySql(connection)
            }
        })
    }

    /// Returns the setting under which the server fails a statement that waits for a lock for half a minute. The move waits 500 ms, or a
    /// second on MySQL and MariaDB.
    fn gives_up(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "SET lock_timeout = '30s'",
            Self::MySql(_) => "SET lock_wait_timeout = 30, innodb_lock_wait_timeout = 30",
        }
    }

    pub(crate) async fn execute(&mut self, sql: &str) -> sqlx::Result<u64> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        Ok(match self {
            Self::Postgres(connection) => sql.execute(connection).await?.rows_affected(),
            Self::MySql(connection) => sql.execute(connection).await?.rows_affected(),
        })
    }

    /// Reads the rows of a query, as texts; NULL is empty.
    pub(crate) async fn rows(&mut self, sql: &str) -> sqlx::Result<Vec<Vec<String>>> {
        macro_rules! cells {
            ($connection:ident, $sql:ident) => {
                $sql.fetch_all($connection)
                    .await?
                    .iter()
                    .map(|row| {
                        (0..row.len())
                            .map(|at| {
                                let cell = row.try_get_unchecked::<Option<String>, _>(at);
                                cell.map(Option::unwrap_or_default)
                            })
                            .collect()
                    })
                    .collect()
            };
        }
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Self::Postgres(connection) => cells!(connection, sql),
            Self::MySql(connection) => cells!(connection, sql),
        }
    }
}

/// An order, as its writer has committed it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Order {
    note: String,
    parent: String,
    lines: BTreeMap<u64, String>,
    remarks: BTreeSet<String>,
}

/// What is in the tables: orders by their reference, and remarks of no order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Model {
    orders: BTreeMap<String, Order>,
    lost: BTreeSet<String>,
}

impl Model {
    /// Reads the tables.
    pub(crate) async fn read(connection: &mut Connection) -> sqlx::Result<Self> {
        let mut model = Self::default();
        let orders =
            "SELECT o.ref, o.note, p.ref FROM orders o LEFT JOIN orders p ON p.id = o.parent_id";
        for row in connection.rows(orders).await? {
            let order = Order {
                note: row[1].clone(),
                parent: row[2].clone(),
                ..Order::default()
            };
            let before = model.orders.insert(row[0].clone(), order);
            assert!(before.is_none(), "{} is there twice", row[0]);
        }
        let lines = "SELECT o.ref, l.line_no, l.token FROM order_lines l LEFT JOIN orders o ON o.id = l.order_id";
        for row in connection.rows(lines).await? {
            let order = model
                .orders
                .get_mut(&row[0])
                .unwrap_or_else(|| panic!("a line of no order: {row:?}"));
            order
                .lines
                .insert(row[1].parse().expect("a number"), row[2].clone());
        }
        let remarks = "SELECT o.ref, m.token, m.order_id IS NULL FROM remarks m LEFT JOIN orders o ON o.id = m.order_id";
        for row in connection.rows(remarks).await? {
            match model.orders.get_mut(&row[0]) {
                Some(order) => order.remarks.insert(row[1].clone()),
                None => {
                    assert!(
                        matches!(row[2].as_str(), "t" | "1"),
                        "a remark of no order: {row:?}"
                    );
                    model.lost.insert(row[1].clone())
                }
            };
        }
        Ok(model)
    }

    /// The orders of a writer, of so many.
    fn share(&self, writer: usize, writers: usize) -> Self {
        let owner = |reference: &str| {
            let digits: String = reference.chars().filter(char::is_ascii_digit).collect();
            digits.parse::<usize>().expect("a reference has a number") % writers
        };
        let orders = self
            .orders
            .iter()
            .filter(|(reference, _)| owner(reference) == writer);
        Self {
            orders: orders
                .map(|(reference, order)| (reference.clone(), order.clone()))
                .collect(),
            lost: BTreeSet::new(),
        }
    }
}

/// Counts of what the writers have seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Transactions that were committed.
    pub(crate) committed: AtomicU64,
    /// Transactions that were tried again after a deadlock or a serialization failure.
    pub(crate) again: AtomicU64,
    /// Transactions that were refused between a switch that was killed and the next run.
    pub(crate) between: AtomicU64,
    /// The longest statement, in microseconds.
    pub(crate) longest: AtomicU64,
    /// Errors of another kind.
    pub(crate) errors: Mutex<Vec<String>>,
}

/// Writers that run.
pub(crate) struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<Model>>>,
    pub(crate) seen: Arc<Seen>,
    lost: BTreeSet<String>,
}

impl Writers {
    /// Starts them on what is in the tables.
    pub(crate) fn start(url: &str, model: &Model, count: usize) -> Self {
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Seen::default()));
        let threads = (0..count)
            .map(|number| {
                let model = model.share(number, count);
                let mut children = HashMap::new();
                for order in model.orders.values() {
                    *children.entry(order.parent.clone()).or_default() += 1;
                }
                let mut writer = Writer {
                    names: model.orders.keys().cloned().collect(),
                    children,
                    model,
                    number,
                    count,
                    made: 0,
                    random: 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1),
                    seen: Arc::clone(&seen),
                };
                let (stop, url) = (Arc::clone(&stop), url.to_owned());
                std::thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()?;
                    runtime.block_on(async {
                        let mut connection = Connection::open(&url).await?;
                        connection.execute(connection.gives_up()).await?;
                        while !stop.load(Ordering::Relaxed) {
                            writer.step(&mut connection).await?;
                        }
                        Ok(writer.model)
                    })
                })
            })
            .collect();
        Self {
            stop,
            threads,
            seen,
            lost: model.lost.clone(),
        }
    }

    /// Ends them, and returns what has to be in the tables.
    pub(crate) fn end(self) -> Result<(Model, Arc<Seen>)> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Model {
            lost: self.lost,
            ..Model::default()
        };
        for thread in self.threads {
            let model = thread.join().map_err(|_| "a writer panicked")??;
            all.orders.extend(model.orders);
            all.lost.extend(model.lost);
        }
        Ok((all, self.seen))
    }
}

struct Writer {
    model: Model,
    /// The references of the orders, and of some that are gone: walking through the model for one would take the machine's time.
    names: Vec<String>,
    /// How many orders have this one as their parent.
    children: HashMap<String, usize>,
    number: usize,
    count: usize,
    made: u64,
    random: u64,
    seen: Arc<Seen>,
}

impl Writer {
    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).expect("31 bits") % below.max(1)
    }

    fn any(&mut self) -> String {
        while !self.names.is_empty() {
            let at = self.random(self.names.len());
            if self.model.orders.contains_key(&self.names[at]) {
                return self.names[at].clone();
            }
            self.names.swap_remove(at);
        }
        String::new()
    }

    /// Enters an order as it is now, or that it is gone.
    fn enter(&mut self, reference: String, order: Option<Order>) {
        let before = match order {
            Some(order) => {
                *self.children.entry(order.parent.clone()).or_default() += 1;
                let before = self.model.orders.insert(reference.clone(), order);
                if before.is_none() {
                    self.names.push(reference);
                }
                before
            }
            None => self.model.orders.remove(&reference),
        };
        if let Some(count) = before.and_then(|it| self.children.get_mut(&it.parent)) {
            *count -= 1;
        }
    }

    /// Decides on a transaction, sends it until it is committed, and enters it into the model.
    async fn step(&mut self, connection: &mut Connection) -> Result {
        let mut next = self.model.clone_without();
        let reference = self.any();
        self.made += 1;
        let token = format!("t{}x{}", self.number, self.made);
        let id_of = |reference: &str| {
            format!("(SELECT id FROM (SELECT id FROM orders WHERE ref = '{reference}') AS o)")
        };
        let mut statements = Vec::new();
        let Some(mut order) = self.model.orders.get(&reference).cloned() else {
            return Ok(());
        };
        match self.random(8) {
            0..3 => {
                let made = usize::try_from(self.made).expect("a test is short");
                let made = 1_000_000_000 + made * self.count + self.number;
                let reference = format!("w{made}");
                let mut order = Order {
                    note: token.clone(),
                    ..Order::default()
                };
                statements.push(format!(
                    "INSERT INTO orders (ref, note) VALUES ('{reference}', '{token}')"
                ));
                for line in 0..2 {
                    statements.push(format!(
                        "INSERT INTO order_lines (order_id, line_no, token) SELECT id, {line}, '{token}' FROM orders WHERE ref = '{reference}'"
                    ));
                    order.lines.insert(line, token.clone());
                }
                statements.push(format!(
                    "INSERT INTO remarks (order_id, token) VALUES ({}, '{token}')",
                    id_of(&reference)
                ));
                order.remarks.insert(token);
                next.orders.insert(reference, Some(order));
            }
            3 => {
                statements.push(format!(
                    "UPDATE orders SET note = '{token}' WHERE ref = '{reference}'"
                ));
                order.note = token;
                next.orders.insert(reference, Some(order));
            }
            4 => {
                let line = order.lines.keys().next_back().map_or(0, |last| last + 1);
                statements.push(format!("INSERT INTO order_lines (order_id, line_no, token) VALUES ({}, {line}, '{token}')", id_of(&reference)));
                order.lines.insert(line, token);
                next.orders.insert(reference, Some(order));
            }
            5 => {
                // A remark goes to another order.
                let other = self.any();
                let Some(remark) = order.remarks.pop_first() else {
                    return Ok(());
                };
                statements.push(format!(
                    "UPDATE remarks SET order_id = {} WHERE token = '{remark}'",
                    id_of(&other)
                ));
                next.orders.insert(reference, Some(order));
                let mut there = match next.orders.get(&other) {
                    Some(Some(order)) => order.clone(),
                    _ => self.model.orders[&other].clone(),
                };
                there.remarks.insert(remark);
                next.orders.insert(other, Some(there));
            }
            6 => {
                let other = self.any();
                statements.push(format!(
                    "UPDATE orders SET parent_id = {} WHERE ref = '{reference}'",
                    id_of(&other)
                ));
                order.parent = other;
                next.orders.insert(reference, Some(order));
            }
            _ => {
                if self.children.get(&reference).is_some_and(|it| *it > 0) {
                    return Ok(());
                }
                statements.push(format!("DELETE FROM orders WHERE ref = '{reference}'"));
                next.lost.extend(order.remarks);
                next.orders.insert(reference, None);
            }
        }
        let mut was_by_alias = false;
        loop {
            match self.send(connection, &statements).await {
                Ok(()) => break,
                Err(error) => {
                    let text = error.to_string();
                    let is_contention = [
                        "deadlock",
                        "Deadlock",
                        "could not serialize",
                        "Record has changed",
                        "newer than this transaction",
                    ];
                    // Sent again, it works.
                    let is_by_alias = !was_by_alias && text.contains(REFUSED_BY_ALIAS);
                    was_by_alias |= is_by_alias;
                    // MySQL and MariaDB let the tables go when a process that switches them is killed. Until the next run, rows
                    // that refer to others are refused, as triggers are missing.
                    let is_between = matches!(connection, Connection::MySql(_))
                        && REFUSED_BETWEEN.iter().any(|it| text.contains(it));
                    if is_between {
                        self.seen.between.fetch_add(1, Ordering::Relaxed);
                    } else if !is_by_alias && !is_contention.iter().any(|it| text.contains(it)) {
                        self.seen
                            .errors
                            .lock()
                            .expect("nobody panics")
                            .push(format!("{text}: {statements:?}"));
                    }
                    self.seen.again.fetch_add(1, Ordering::Relaxed);
                    connection.execute("ROLLBACK").await?;
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
            let errors = self.seen.errors.lock().expect("nobody panics");
            if errors.len() > 20 {
                return Err(format!("too many errors, such as {}", errors[0]).into());
            }
        }
        self.seen.committed.fetch_add(1, Ordering::Relaxed);
        for (reference, order) in next.orders {
            self.enter(reference, order);
        }
        self.model.lost.extend(next.lost);
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(())
    }

    async fn send(&self, connection: &mut Connection, statements: &[String]) -> sqlx::Result<()> {
        let timed = |begun: Instant| {
            let micros = u64::try_from(begun.elapsed().as_micros()).expect("a test is short");
            self.seen.longest.fetch_max(micros, Ordering::Relaxed);
        };
        connection.execute("BEGIN").await?;
        for statement in statements {
            let begun = Instant::now();
            let rows = connection.execute(statement).await?;
            timed(begun);
            assert_eq!(rows, 1, "{statement}");
        }
        let begun = Instant::now();
        connection.execute("COMMIT").await?;
        timed(begun);
        Ok(())
    }
}

/// What a transaction changes.
struct Change {
    orders: BTreeMap<String, Option<Order>>,
    lost: BTreeSet<String>,
}

impl Model {
    fn clone_without(&self) -> Change {
        Change {
            orders: BTreeMap::new(),
            lost: BTreeSet::new(),
        }
    }

    /// Names the first difference.
    pub(crate) fn check(&self, expected: &Self) -> Result {
        for (reference, order) in &expected.orders {
            match self.orders.get(reference) {
                None => return Err(format!("{reference} is lost").into()),
                Some(found) if found != order => {
                    return Err(format!("{reference} is {found:?} and not {order:?}").into());
                }
                Some(_) => {}
            }
        }
        if let Some(reference) = self
            .orders
            .keys()
            .find(|it| !expected.orders.contains_key(*it))
        {
            return Err(format!("{reference} is there, and nobody wrote it").into());
        }
        match self.lost == expected.lost {
            true => Ok(()),
            false => Err("the remarks of no order differ".into()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.orders.len()
    }
}
