//! A cluster, to whose nodes a flush goes in turn, as a pool over several hosts does: Galera, or a group of MySQL with
//! several primaries. A COMMIT is agreed on by all nodes, but another node than the one that answered it may show it late,
//! and knows only its own locks.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use ordid_harness::{Policy, Server};
use ordid_sqlx::{EngineProfile, Flushed, Retry};
use sqlx::{Connection as _, Executor as _, MySql, mysql::MySqlConnection};
use tokio::sync::{Mutex, MutexGuard};

use super::{
    Changes, Failed, Flusher, Found, Graph, Library, PATIENCE, Remote as _, Shape, Site,
    cut::EAGER, times,
};
mod chunked;
mod counted;
mod cut_off;
mod leased;
mod primary;
mod staged;
mod within;

use crate::{
    proxy::{At, Fault, Proxy},
    servers::Options,
    soak,
    trials::{Outcome, ignored, run},
};

/// All of the packet of a COMMIT: the server has it, and its answer does not arrive.
const ANSWER: Fault = Fault::Cut(At::Commit(11));

/// The replication between the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Three nodes of MariaDB.
    Galera,
    /// MySQL Group Replication: three members, each a primary.
    GroupReplication,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Galera, Self::GroupReplication];

    /// The name of its servers, by which they are skipped.
    const fn name(self) -> &'static str {
        match self {
            Self::Galera => "galera",
            Self::GroupReplication => "group_replication",
        }
    }

    fn start(self) -> Result<[Server; 3], ordid_harness::Error> {
        match self {
            Self::Galera => ordid_harness::galera(),
            Self::GroupReplication => ordid_harness::group_replication(),
        }
    }

    /// What makes a session wait until the node has what all of them have agreed on.
    const fn waits(self) -> &'static str {
        match self {
            Self::Galera => "SET SESSION wsrep_sync_wait = 7",
            Self::GroupReplication => "SET SESSION group_replication_consistency = 'BEFORE'",
        }
    }

    /// How many nodes are in the part of the cluster that a node is in; NULL where it does not serve.
    const fn members(self) -> &'static str {
        match self {
            Self::Galera => {
                "SELECT CAST(MAX(variable_value) AS SIGNED) FROM information_schema.global_status WHERE \
                 variable_name = 'wsrep_cluster_size' AND EXISTS (SELECT 1 FROM \
                 information_schema.global_status WHERE variable_name = 'wsrep_ready' AND \
                 variable_value = 'ON')"
            }
            Self::GroupReplication => {
                "SELECT CAST(MAX(online) AS SIGNED) FROM (SELECT COUNT(*) AS online, MAX(member_id = \
                 @@server_uuid) AS here FROM performance_schema.replication_group_members WHERE \
                 member_state = 'ONLINE') AS found WHERE here = 1 AND @@super_read_only = 0"
            }
        }
    }

    /// Cuts a node off from the others.
    const fn cuts_off(self) -> &'static str {
        match self {
            Self::Galera => "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'",
            Self::GroupReplication => "STOP GROUP_REPLICATION",
        }
    }

    /// A node that was cut off is one of them again.
    const fn rejoins(self) -> &'static str {
        match self {
            Self::Galera => "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'",
            Self::GroupReplication => "START GROUP_REPLICATION",
        }
    }

    const fn profile(self) -> EngineProfile {
        match self {
            Self::Galera => EngineProfile::GALERA,
            Self::GroupReplication => EngineProfile::GROUP_REPLICATION,
        }
    }

    /// The state of an INSERT of a node whose tables are locked.
    const fn is_locked(self) -> &'static str {
        match self {
            Self::Galera => "Waiting for backup lock%",
            Self::GroupReplication => "Waiting for global read lock%",
        }
    }
}

/// When a test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Over each library.
    Always,
    /// Over `SQLx`, and in the soak over the others.
    OverSqlx,
    /// In the soak.
    Soak,
}

/// Adds the tests of a library, which share a cluster. The longer ones run over `SQLx` alone, or not at all, but in the
/// soak.
pub fn trials<L: Library>(cluster: &Cluster, trials: &mut Vec<Trial>) {
    let is_sqlx = L::MySql::PREFIX.is_empty();
    let mut add = |name: &str, when: When, test: Test| {
        let name = format!("{}::{}{name}", cluster.kind.name(), L::MySql::PREFIX);
        let cluster = cluster.clone();
        let long = match when {
            _ if soak() => None,
            When::OverSqlx if !is_sqlx => {
                Some("long over this library: see cargo xtask soak".to_owned())
            }
            When::Soak => Some("long: see cargo xtask soak".to_owned()),
            _ => None,
        };
        let skipped = cluster.skipped.clone();
        trials.push(match skipped.or(long) {
            Some(reason) => ignored(name, reason),
            None => Trial::test(name, move || run(async || test(cluster).await)),
        });
    };
    macro_rules! add {
        ($name:literal, $when:expr, $test:expr) => {
            add($name, $when, |cluster| {
                Box::pin(async move { $test(cluster.lock().await?).await })
            });
        };
    }
    // A group takes some seconds to give up a member that was killed, and more to take it in again. What is the same over
    // both is tested over Galera, and over a group in the soak.
    let (if_behind, if_aborted, if_killed, if_same) = match cluster.kind {
        Kind::Galera => {
            let sqlx = When::OverSqlx;
            (When::Always, sqlx, sqlx, sqlx)
        }
        Kind::GroupReplication => (When::OverSqlx, When::OverSqlx, When::Soak, When::Soak),
    };
    add!(
        "a_lost_commit_is_not_refused_by_a_node_that_is_behind",
        if_behind,
        behind::<L::MySql>
    );
    add!(
        "a_cluster_is_found_by_its_settings",
        if_behind,
        found::<L::MySql>
    );
    add!(
        "flushes_over_all_nodes_with_commits_that_are_cut_are_written_once_or_unknown",
        if_same,
        random::<L::MySql>
    );
    add!(
        "a_transaction_that_another_node_aborts_is_no_success",
        if_aborted,
        aborted::<L::MySql>
    );
    add!(
        "a_node_that_is_killed_leaves_all_rows_or_none",
        if_killed,
        killed::<L::MySql>
    );
    add!(
        "a_node_that_is_cut_off_leaves_all_rows_or_none",
        if_same,
        cut_off::in_its_midst::<L::MySql>
    );
    add!(
        "a_node_that_is_cut_off_at_commit_leaves_all_rows_or_none",
        When::OverSqlx,
        cut_off::at_commit::<L::MySql>
    );
    if cluster.kind == Kind::Galera && is_sqlx {
        add!(
            "a_users_transaction_that_another_node_aborts_is_over",
            When::Always,
            within::aborted_on_galera
        );
    }
    if cluster.kind == Kind::GroupReplication {
        add!(
            "a_users_transaction_that_another_node_aborts_is_over",
            When::OverSqlx,
            within::aborted_in_a_group::<L::MySql>
        );
        add!(
            "a_member_that_is_silent_at_commit_leaves_all_rows_or_none",
            When::OverSqlx,
            cut_off::silent_at_commit::<L::MySql>
        );
        add!(
            "a_flush_goes_on_with_the_primary_of_a_group",
            When::OverSqlx,
            primary::changes::<L::MySql>
        );
    }
    if is_sqlx {
        // These know no library but SQLx.
        add!(
            "rows_in_chunks_are_written_once_though_a_node_is_killed",
            if_killed,
            chunked::killed
        );
        add!(
            "rows_in_chunks_are_written_once_though_another_node_aborts_a_chunk",
            When::Always,
            chunked::aborted
        );
        add!(
            "disposable_nodes_are_unique_and_one_apart",
            if_same,
            counted::disposable_nodes
        );
        add!(
            "ids_of_mappings_are_unique_and_one_apart",
            if_same,
            counted::mappings
        );
        add!(
            "many_rows_go_through_a_temporary_table",
            if_same,
            staged::rows
        );
        add!("numbers_of_counters_are_unique", if_same, counted::counters);
        add!(
            "tickets_are_unique_while_nodes_join_and_leave",
            if_same,
            counted::tickets
        );
        add!(
            "leased_nodes_have_one_holder_while_nodes_are_killed_and_cut_off",
            if_killed,
            leased::leases
        );
    }
}

type Test = fn(Cluster) -> std::pin::Pin<Box<dyn Future<Output = Outcome>>>;

/// The cluster of a test program, which is started when a test first asks for it, and serves one test at a time.
#[derive(Debug, Clone)]
pub struct Cluster {
    kind: Kind,
    servers: Arc<Mutex<Option<[Server; 3]>>>,
    skipped: Option<String>,
}

impl Cluster {
    /// Follows the policy for the servers.
    ///
    /// # Errors
    ///
    /// If the environment names a server that is none.
    pub fn find(kind: Kind) -> Outcome<Self> {
        let skipped = match ordid_harness::policy(kind.name())? {
            Policy::StartPrivate => match ordid_harness::installed(kind.name()) {
                Err(error) if error.is_unavailable() => Some(error.to_string()),
                _ => None,
            },
            Policy::Skip(reason) => Some(reason),
            Policy::Use(_) => Some("only a private cluster is killed and cut off".to_owned()),
        };
        let servers = Arc::default();
        Ok(Self {
            kind,
            servers,
            skipped,
        })
    }

    async fn lock(&self) -> Outcome<Nodes<'_>> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut servers = self.servers.lock().await;
        let started = match &mut *servers {
            Some(started) => started,
            none => none.insert(self.kind.start()?),
        };
        let ports = started.each_ref().map(Server::port);
        let base: Options<MySql> = started[0].url().parse()?;
        let name = format!("ordid_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let admin = Site::<MySql>::open(base.clone());
        admin.execute(&format!("CREATE DATABASE {name}")).await?;
        let options = base.database(&name);
        let sites = ports.map(|port| Site::<MySql>::open(options.clone().port(port)));
        Site::<MySql>::create(options.clone()).await?;
        let nodes = Nodes {
            kind: self.kind,
            servers,
            sites,
        };
        nodes.agree().await?;
        Ok(nodes)
    }
}

/// The nodes, and a database that is empty.
struct Nodes<'c> {
    kind: Kind,
    servers: MutexGuard<'c, Option<[Server; 3]>>,
    sites: [Site<MySql>; 3],
}

impl Nodes<'_> {
    fn address(&self, node: usize) -> Outcome<SocketAddr> {
        MySql::address(self.sites[node].options())
    }

    /// A proxy whose connections go to these nodes in turn.
    async fn proxy(&self, nodes: &[usize]) -> Outcome<Proxy> {
        let addresses: Outcome<Vec<_>> = nodes.iter().map(|&node| self.address(node)).collect();
        Ok(Proxy::over(addresses?).await?)
    }

    fn through(&self, proxy: &Proxy) -> Options<MySql> {
        MySql::through(self.sites[0].options(), proxy.port())
    }

    async fn connect(&self, node: usize) -> Outcome<MySqlConnection> {
        Ok(MySqlConnection::connect_with(self.sites[node].options()).await?)
    }

    /// Waits until each node has what all of them have agreed on.
    async fn agree(&self) -> Outcome {
        for node in 0..self.sites.len() {
            let deadline = Instant::now() + PATIENCE;
            while let Err(error) = self.agreed(node).await {
                if Instant::now() > deadline {
                    return Err(format!("node {node}: {error}").into());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }

    async fn agreed(&self, node: usize) -> Outcome {
        let mut connection = self.connect(node).await?;
        connection.execute(self.kind.waits()).await?;
        connection
            .execute("SELECT COUNT(*) FROM ordid_flushes")
            .await?;
        Ok(connection.close().await?)
    }

    /// Waits until nobody can still change anything, and holds the outcome against what is on each node.
    async fn judge<W: Flusher<Database = MySql>>(
        &self,
        graph: &Graph,
        work: &W,
        outcome: &Result<Flushed, Failed>,
    ) -> Outcome<Found> {
        for site in &self.sites {
            site.settle().await?;
        }
        self.agree().await?;
        let mut found = Vec::new();
        for site in &self.sites {
            found.push(site.judge(graph, work, outcome).await?);
        }
        match found.iter().all(|it| *it == found[0]) {
            true => Ok(found[0]),
            false => Err(format!("the nodes differ: {found:?}, after {outcome:?}").into()),
        }
    }

    /// Flushes what was not written to a node, without a fault.
    async fn again<W: Flusher<Database = MySql>>(
        &self,
        node: usize,
        graph: &Graph,
        work: &mut W,
    ) -> Outcome {
        let outcome = work.flush_to(self.sites[node].options(), PATIENCE).await;
        match self.judge(graph, work, &outcome).await? {
            Found::All if outcome.is_ok() => Ok(()),
            found => Err(format!("again: {found:?}, {outcome:?}").into()),
        }
    }

    /// How many nodes are in the part of the cluster that this node is in; none where it does not serve.
    async fn members(&self, node: usize) -> Outcome<i64> {
        let mut connection = self.connect(node).await?;
        if self.kind == Kind::Galera {
            connection
                .execute("SET SESSION wsrep_sync_wait = 0")
                .await?;
        }
        let found: Option<i64> = sqlx::query_scalar(self.kind.members())
            .fetch_one(&mut connection)
            .await?;
        connection.close().await?;
        Ok(found.unwrap_or(0))
    }

    /// Waits until the node is in a part of so many.
    async fn wait_for_members(&self, node: usize, members: i64) -> Outcome {
        self.wait_for_members_within(node, members, PATIENCE).await
    }

    async fn wait_for_members_within(
        &self,
        node: usize,
        members: i64,
        within: Duration,
    ) -> Outcome {
        let deadline = Instant::now() + within;
        loop {
            let found = self.members(node).await;
            if matches!(found, Ok(found) if found == members) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("node {node} sees {found:?} nodes, not {members}").into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Cuts a node off from the others.
    async fn cut_off(&self, node: usize) -> Outcome {
        Ok(self.sites[node].execute(self.kind.cuts_off()).await?)
    }

    /// The node, which was cut off, hears the others again, and they hear it.
    async fn rejoin(&self, node: usize) -> Outcome {
        Ok(self.sites[node].execute(self.kind.rejoins()).await?)
    }
}

/// Every third unit of work has the library's own profile, which asks the server whether it is in a cluster.
fn work<W: Flusher>(kind: Kind, graph: &Graph, retry: Retry, has_marker: bool) -> W {
    let mut work = W::begin(retry);
    if graph.unit % 3 != 0 {
        work = work.with_engine(kind.profile());
    }
    if has_marker {
        work = work.with_marker();
    }
    work.add_graph(graph);
    work
}

/// The answer of one node is lost. The next attempt asks a node that has not taken the rows in, and sends them there.
async fn behind<W: Flusher<Database = MySql>>(nodes: Nodes<'_>) -> Outcome {
    let waits = format!(
        "SELECT COUNT(*) FROM /*M! information_schema *//*!50700 performance_schema */.processlist WHERE db = \
         DATABASE() AND info LIKE 'INSERT%' AND state LIKE '{}'",
        nodes.kind.is_locked()
    );
    for unit in 0..times(6, 60) {
        let has_marker = unit % 2 == 0;
        let is_asked_only = unit % 3 == 0;
        let graph = Graph::new(unit, Shape::SMALL);
        let retry = if is_asked_only { Retry::NONE } else { EAGER };
        let mut work: W = self::work(nodes.kind, &graph, retry, has_marker);
        // All connections but the first go to node 1, however many the library makes.
        let proxy = nodes.proxy(&[0, 1, 1, 1, 1, 1, 1, 1]).await?;
        proxy.plan([ANSWER]);
        let mut holder = nodes.connect(1).await?;
        // Node 1 applies nothing until the locks are gone.
        holder.execute("FLUSH TABLES WITH READ LOCK").await?;
        let is_over = AtomicBool::new(false);
        let catching_up = async {
            if !is_asked_only {
                while !is_over.load(Ordering::Relaxed)
                    && nodes.sites[1].numbers(&waits).await? == [0]
                {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                holder.execute("UNLOCK TABLES").await?;
            }
            Outcome::Ok(())
        };
        let options = nodes.through(&proxy);
        let flushing = async {
            let outcome = work.flush_to(&options, PATIENCE).await;
            is_over.store(true, Ordering::Relaxed);
            outcome
        };
        let (outcome, caught_up) = tokio::join!(flushing, catching_up);
        caught_up?;
        // Its locks go with it.
        holder.close().await?;
        let what = |error| format!("unit {unit}: {error}");
        let found = nodes.judge(&graph, &work, &outcome).await.map_err(what)?;
        assert_eq!(found, Found::All, "the node had the COMMIT");
        if let Err(error) = &outcome {
            assert!(error.is_commit_unknown, "unit {unit}: {error}");
            nodes.again(1, &graph, &mut work).await.map_err(what)?;
        }
        if is_asked_only {
            assert!(
                outcome.is_err(),
                "unit {unit}: node 1 did not show the rows"
            );
        }
    }
    Ok(())
}

/// A number below this.
fn below(seed: &mut u64, end: u64) -> u64 {
    // Knuth's multiplier; the low bits are not used.
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % end
}

/// Its version does not say that a server is in a cluster.
async fn found<W: Flusher<Database = MySql>>(nodes: Nodes<'_>) -> Outcome {
    let expected = match nodes.kind {
        Kind::Galera => "Galera",
        Kind::GroupReplication => "MySQL Group Replication",
    };
    for site in &nodes.sites {
        let found = W::detect_engine(site.options()).await?;
        assert_eq!(found, Some(expected));
    }
    Ok(())
}

/// Each connection of each flush goes to a node by chance, and its COMMIT is cut off, held back or lost by chance.
async fn random<W: Flusher<Database = MySql>>(nodes: Nodes<'_>) -> Outcome {
    let mut seed = 18;
    let (mut ok, mut unknown, mut refused, mut met) = (0, 0, 0, 0);
    let shape = Shape {
        customers: 3,
        orders: 5,
        items: 4,
    };
    for unit in 0..times(25, 1_000) {
        let graph = Graph::new(unit, shape);
        let attempts = 1 + u32::try_from(below(&mut seed, 5))?;
        let mut work: W = self::work(
            nodes.kind,
            &graph,
            EAGER.with_attempts(attempts),
            below(&mut seed, 2) == 0,
        );
        let mut order = Vec::new();
        let mut faults = Vec::new();
        for _ in 0..6 {
            order.push(usize::try_from(below(&mut seed, 3))?);
            faults.push(match below(&mut seed, 6) {
                0 => Fault::None,
                1 => Fault::HoldCommit,
                2 => Fault::Cut(At::Commit(5)),
                _ => ANSWER,
            });
        }
        let proxy = nodes.proxy(&order).await?;
        proxy.plan(faults.iter().copied());
        let delay = Duration::from_millis(below(&mut seed, 60));
        let releasing = async {
            tokio::time::sleep(delay).await;
            proxy.release();
        };
        let options = nodes.through(&proxy);
        let (outcome, ()) = tokio::join!(work.flush_to(&options, PATIENCE), releasing);
        let what = |error| format!("unit {unit}, {order:?}, {faults:?}: {error}");
        let traffic = proxy.traffic();
        let hit = traffic.iter().zip(&faults);
        met += usize::from(
            hit.into_iter()
                .any(|(it, fault)| it.commit.is_some() && *fault != Fault::None),
        );
        nodes.judge(&graph, &work, &outcome).await.map_err(what)?;
        match &outcome {
            Ok(_) => ok += 1,
            Err(error) if error.is_commit_unknown => unknown += 1,
            Err(_) => refused += 1,
        }
        if outcome.is_err() {
            nodes
                .again(order[0], &graph, &mut work)
                .await
                .map_err(what)?;
        }
    }
    eprintln!(
        "{}: {ok} written, {unknown} unknown, {refused} refused",
        std::any::type_name::<W>()
    );
    assert!(ok > 0 && met > 5, "no fault met a COMMIT");
    Ok(())
}

/// After each chunk, another node commits an update of the same rows. The server aborts the transaction of the flush
/// and says so at its next statement; a COMMIT after that would say that it was carried out.
async fn aborted<W: Flusher<Database = MySql>>(nodes: Nodes<'_>) -> Outcome {
    let (mut aborts, kind) = (0, nodes.kind);
    // Inserts of three tables, updates, deletes. The last two hold locks that are in the way of another node.
    for chunk in if soak() { 1..=5 } else { 4..=5 } {
        for retry in [Retry::NONE, EAGER] {
            let number = 2 * chunk + u32::from(retry == EAGER);
            let changes = Changes::prepare::<W>(&nodes.sites[0], number).await?;
            nodes.agree().await?;
            let mut work = changes.work::<W>(retry);
            if chunk % 2 == 0 {
                work = work.with_engine(kind.profile());
            }
            let [there, here] =
                [&nodes.sites[1], &nodes.sites[0]].map(|site| site.options().clone());
            let unit = changes.old_unit();
            let mut left = chunk;
            work.tell(move |_| {
                left = left.saturating_sub(1);
                if left != 0 {
                    return;
                }
                left = u32::MAX;
                let (there, here) = (there.clone(), here.clone());
                let other = std::thread::spawn(move || conflict(kind, &there, &here, unit));
                other
                    .join()
                    .expect("not panicked")
                    .expect("the update is committed");
            });
            let outcome = work.flush_to(nodes.sites[0].options(), PATIENCE).await;
            nodes.agree().await?;
            let found = changes.look(&nodes.sites[0]).await?;
            let what = format!("after chunk {chunk}: {found:?}, {outcome:?}");
            let before = aborts;
            match &outcome {
                Ok(flushed) => {
                    assert_eq!(found, Found::All, "{what}");
                    aborts += flushed.retries;
                }
                Err(error) => {
                    assert!(error.is_transient && !error.is_commit_unknown, "{what}");
                    assert_eq!(found, Found::None, "{what}");
                    aborts += 1;
                }
            }
            assert!(chunk < 4 || aborts > before, "nothing was aborted {what}");
        }
    }
    Ok(())
}

/// Updates old rows on a node, and returns when another one has aborted who was in the way.
fn conflict(kind: Kind, there: &Options<MySql>, here: &Options<MySql>, unit: i64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        for sql in [
            format!("UPDATE customers SET position = position WHERE unit = {unit}"),
            format!("UPDATE customers SET position = position + 0, bucket = bucket + 2 WHERE unit = {unit}"),
            format!("UPDATE customers SET bucket = bucket - 2 WHERE unit = {unit}"),
            format!("UPDATE items SET position = position + 1000 WHERE unit = {unit}"),
            format!("UPDATE items SET position = position - 1000 WHERE unit = {unit}"),
        ] {
            Site::<MySql>::open(there.clone()).execute(&sql).await?;
        }
        let mut connection = MySqlConnection::connect_with(here).await?;
        connection.execute(kind.waits()).await?;
        connection.execute("SELECT COUNT(*) FROM customers").await?;
        Ok(connection.close().await?)
    })
}

/// A node is killed after a chunk, or a little after the last one: at COMMIT. The flush goes on with another node.
async fn killed<W: Flusher<Database = MySql>>(mut nodes: Nodes<'_>) -> Outcome {
    for unit in 0..times(1, 30) {
        let graph = Graph::new(unit, Shape::SMALL);
        let retry = EAGER.with_attempts(20);
        let mut work: W = self::work(nodes.kind, &graph, retry, unit % 2 == 1);
        let pid = nodes.servers.as_ref().ok_or("it runs")?[2].pid()?;
        let delay = Duration::from_micros(u64::from(unit) % 8 * 500);
        let mut left = if unit % 4 == 0 { 2 } else { 3 };
        work.tell(move |_| {
            left -= i32::from(left > 0);
            if left == 0 {
                left = -1;
                let killing = std::thread::spawn(move || {
                    std::thread::sleep(delay);
                    kill_at_once(pid).expect("the node runs");
                });
                if delay.is_zero() {
                    killing.join().expect("killed");
                }
            }
        });
        let proxy = nodes.proxy(&[2, 0, 1]).await?;
        let outcome = work.flush_to(&nodes.through(&proxy), PATIENCE).await;
        let what = |error| format!("unit {unit}: {error}");
        nodes.wait_for_members(0, 2).await?;
        if let Some([.., third]) = &mut *nodes.servers {
            // It has ended by itself; `kill` also waits for that.
            let _ = third.kill();
            third.restart()?;
        }
        nodes.wait_for_members(2, 3).await?;
        nodes.judge(&graph, &work, &outcome).await.map_err(what)?;
        if let Err(error) = &outcome {
            eprintln!("unit {unit}: {error}");
            work.tell(|_| ());
            nodes.again(2, &graph, &mut work).await.map_err(what)?;
        }
    }
    Ok(())
}

/// Kills a node's process (`kill -9`) without waiting for its end.
fn kill_at_once(pid: u32) -> Outcome {
    send("-9", pid)
}

fn send(signal: &str, pid: u32) -> Outcome {
    let kill = std::process::Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()?;
    match kill.success() {
        true => Ok(()),
        false => Err("there is no such process".into()),
    }
}
