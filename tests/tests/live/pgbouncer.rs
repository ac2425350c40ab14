//! Flushes, leases, counters and mapping tables through PgBouncer in its mode `transaction`: each transaction gets one
//! of three connections to the server, whatever client it comes from, so nothing may rely on a session.

use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use libtest_mimic::Trial;
use ordid::{
    KeyType as _,
    clock::{Clock as _, SystemClock},
    coordination::{AsyncNodeAllocator as _, AsyncSegmentSource as _, LeaseTerms},
    uuid::Uuid,
};
use ordid_sqlx::{
    EngineProfile, MappingTable, PgSequence, Retry, SqlCounter, SqlLease, UnitOfWork,
};
use ordid_tests::{
    proxy::{At, Fault, Traffic},
    servers::{Options, Servers},
};
use sqlx::{Pool, Postgres, Row as _, pool::PoolOptions, raw_sql};
use tokio::task::JoinSet;

use crate::{
    Outcome,
    database::{Live, Work, read},
    keys::Native,
    on_scratch,
    retry::{self, Child, Parent, Remote as _},
};

/// Clients at a time, more than the server's connections.
const CLIENTS: i32 = 12;
/// Flushes of each.
const FLUSHES: i32 = 6;
/// Parents of a flush: some chunks of the same text, which is what is prepared and kept.
const PARENTS: i32 = 2_500;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($($test:ident),+ $(,)?) => {$(
            let name = stringify!($test);
            on_scratch::<Postgres, _, _>(trials, servers, "pgbouncer", name, async |pool| {
                $test(&Bouncer::new(pool).await?).await
            });
        )+};
    }
    add!(
        flushes_at_once_write_each_row_once_and_leave_no_statement,
        flushes_without_a_statement_cache_write_each_row_once,
        the_profile_of_postgres_leaves_statements_on_the_server,
        an_answer_to_commit_that_is_lost_is_found_out,
        changes_are_found_by_their_record,
        leases_have_a_holder_each,
        counters_give_each_number_once,
        mapping_tables_give_each_uuid_one_integer,
    );
}

/// A database behind PgBouncer, and the way around it by which the tests look into it.
struct Bouncer {
    pooled: Pool<Postgres>,
    direct: Pool<Postgres>,
}

impl Bouncer {
    async fn new(pool: Pool<Postgres>) -> Outcome<Self> {
        let port = raw_sql("SELECT inet_server_port()").fetch_one(&pool);
        let port: i32 = port.await?.try_get(0)?;
        let options = (*pool.connect_options()).clone();
        let direct = Pool::connect_with(options.port(u16::try_from(port)?)).await?;
        Ok(Self {
            pooled: pool,
            direct,
        })
    }

    fn options(&self) -> Options<Postgres> {
        (*self.pooled.connect_options()).clone()
    }

    /// Returns how many statements are prepared by name, over all connections to the server.
    async fn prepared(&self) -> Outcome<i64> {
        let sql = "SELECT pg_backend_pid(), (SELECT count(*) FROM pg_prepared_statements)";
        // All are open at the same time, so each has another connection.
        let (mut open, mut counts) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let mut transaction = self.pooled.begin().await?;
            let row = raw_sql(sql).fetch_one(&mut *transaction).await?;
            counts.push((row.try_get::<i32, _>(0)?, row.try_get::<i64, _>(1)?));
            open.push(transaction);
        }
        for transaction in open {
            transaction.rollback().await?;
        }
        counts.sort_unstable();
        counts.dedup();
        assert_eq!(counts.len(), 3, "three connections: {counts:?}");
        Ok(counts.into_iter().map(|(_, count)| count).sum())
    }
}

/// Inserts a family, and then renames the parents and deletes the children.
async fn one_client(pool: Pool<Postgres>, client: i32, flushes: i32) -> Result<(), String> {
    for flush in 0..flushes {
        let mut parents: Vec<_> = (0..PARENTS)
            .map(|number| Parent {
                id: Native::generate(),
                name: format!("{client} {flush} {number}"),
            })
            .collect();
        let child = Child {
            id: Native::generate(),
            parent: parents[0].id,
            number: flush,
        };
        let mut work = unit();
        work.add(child.clone());
        for parent in &parents {
            work.add(parent.clone());
        }
        let flushed = work.flush(&pool).await.map_err(|it| it.to_string())?;
        assert_eq!(i32::try_from(flushed.rows()), Ok(PARENTS + 1));
        let mut work = unit();
        for parent in &mut parents {
            parent.name.push('x');
            work.update(parent.clone());
        }
        work.delete(&child);
        work.flush(&pool).await.map_err(|it| it.to_string())?;
    }
    Ok(())
}

fn unit() -> Work<UnitOfWork<Postgres>> {
    crate::database::begin().with_engine(EngineProfile::PGBOUNCER)
}

async fn many_clients(bouncer: &Bouncer, options: Options<Postgres>) -> Outcome {
    let direct = &bouncer.direct;
    retry::create(direct).await?;
    Postgres::create_flushes(direct).await?;
    let pool = PoolOptions::new()
        .max_connections(u32::try_from(CLIENTS)?)
        .connect_with(options)
        .await?;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(one_client(pool.clone(), client, FLUSHES));
    }
    let mut failed = Vec::new();
    while let Some(client) = clients.join_next().await {
        failed.extend(client?.err());
    }
    assert!(failed.is_empty(), "{failed:#?}");
    pool.close().await;
    let renamed = i64::from(CLIENTS * FLUSHES * PARENTS);
    let flushes = i64::from(CLIENTS * FLUSHES);
    assert_eq!(retry::changed(direct).await?, [renamed, 0, flushes]);
    assert_eq!(Postgres::count(direct, "parents").await?, renamed);
    assert_eq!(
        bouncer.prepared().await?,
        0,
        "statements stay on the server"
    );
    Ok(())
}

async fn flushes_at_once_write_each_row_once_and_leave_no_statement(bouncer: &Bouncer) -> Outcome {
    many_clients(bouncer, bouncer.options()).await
}

/// SQLx's own setting makes it worse: it prepares by name all the same, and forgets the name.
async fn flushes_without_a_statement_cache_write_each_row_once(bouncer: &Bouncer) -> Outcome {
    many_clients(bouncer, bouncer.options().statement_cache_capacity(0)).await
}

/// The fault that the profile is for.
async fn the_profile_of_postgres_leaves_statements_on_the_server(bouncer: &Bouncer) -> Outcome {
    retry::create(&bouncer.direct).await?;
    let mut engine = EngineProfile::PGBOUNCER;
    for (prepares, left) in [(false, 0), (true, 1)] {
        engine.prepares = prepares;
        let mut work = unit().with_engine(engine);
        for number in 0..PARENTS {
            work.add(Parent {
                id: Native::generate(),
                name: format!("{prepares} {number}"),
            });
        }
        work.flush(&bouncer.pooled).await?;
        assert_eq!(bouncer.prepared().await?, left);
    }
    Ok(())
}

/// Short delays: nobody has to wait for a server to start.
fn quick() -> Retry {
    Retry::DEFAULT.with_delays(Duration::from_millis(10), Duration::from_millis(100))
}

/// Flushes once for each fault, which strikes where the COMMIT of the flush before was.
async fn commits(
    bouncer: &Bouncer,
    mut work: impl AsyncFnMut() -> Outcome<Work<UnitOfWork<Postgres>>>,
    mut check: impl AsyncFnMut(Fault) -> Outcome,
) -> Outcome {
    let direct = &bouncer.direct;
    let mut traffic = Traffic::default();
    for (way, retries) in [0, 0, 1, 1].into_iter().enumerate() {
        let proxy = retry::proxy(&bouncer.pooled).await?;
        let (up, down) = traffic.commit.unwrap_or_default();
        let fault = [
            Fault::None,
            Fault::Swallow(down),
            Fault::Cut(At::Up(up)),
            Fault::Hold(up),
        ][way];
        proxy.plan([fault]);
        let behind = Postgres::through(&bouncer.pooled, &proxy).await?;
        // Asking the catalog each time, so that each conversation is as long as the first.
        let mut work = work().await?.with_retry(quick()).with_new_memory();
        let landing = async {
            if fault == Fault::Hold(up) {
                retry::land(direct, &proxy).await?;
            }
            Outcome::Ok(())
        };
        let (flushed, landed) = tokio::join!(work.flush(&behind), landing);
        landed?;
        assert_eq!(flushed?.retries, retries, "{fault:?}");
        check(fault).await?;
        if fault == Fault::None {
            traffic = proxy.last_traffic();
        }
        behind.close().await;
        retry::empty(direct).await?;
    }
    Ok(())
}

async fn an_answer_to_commit_that_is_lost_is_found_out(bouncer: &Bouncer) -> Outcome {
    let direct = &bouncer.direct;
    retry::create(direct).await?;
    let work = async || {
        let work = retry::inserts(&retry::family());
        Ok(work.with_engine(EngineProfile::PGBOUNCER))
    };
    commits(bouncer, work, async |fault| {
        assert_eq!(retry::count(direct).await?, 35, "{fault:?}");
        Ok(())
    })
    .await
}

async fn changes_are_found_by_their_record(bouncer: &Bouncer) -> Outcome {
    let direct = &bouncer.direct;
    retry::create(direct).await?;
    Postgres::create_flushes(direct).await?;
    let work = async || {
        let family = retry::family();
        retry::inserts(&family).flush(direct).await?;
        let work = retry::changes(&family);
        Ok(work.with_engine(EngineProfile::PGBOUNCER))
    };
    let mut flushes = 0;
    commits(bouncer, work, async |fault| {
        flushes += 1;
        assert_eq!(retry::changed(direct).await?, [5, 27, flushes], "{fault:?}");
        Ok(())
    })
    .await
}

async fn leases_have_a_holder_each(bouncer: &Bouncer) -> Outcome {
    let terms = LeaseTerms::new(0..u64::try_from(CLIENTS)?)?;
    let leases = || {
        let leases = SqlLease::<Postgres>::new(bouncer.options(), terms.clone());
        leases.with_engine(EngineProfile::PGBOUNCER)
    };
    leases().create().await?;
    let mut holders = JoinSet::new();
    for _ in 0..CLIENTS {
        let leases = leases();
        holders.spawn(async move {
            let mut grant = leases.acquire(SystemClock.now(), None).await?;
            for _ in 0..10 {
                grant = leases.renew(&grant, SystemClock.now()).await?;
            }
            Ok::<_, ordid::Error>((leases, grant))
        });
    }
    let mut held = Vec::new();
    while let Some(holder) = holders.join_next().await {
        held.push(holder??);
    }
    let nodes: BTreeSet<u64> = held.iter().map(|(_, grant)| grant.node()).collect();
    assert_eq!(nodes.len(), held.len(), "a node has two holders");
    let full = leases().acquire(SystemClock.now(), None).await;
    assert!(full.is_err(), "all nodes are held");
    for (leases, grant) in held {
        leases.release(&grant, None).await?;
    }
    leases().acquire(SystemClock.now(), None).await?;
    assert_eq!(bouncer.prepared().await?, 0);
    Ok(())
}

async fn counters_give_each_number_once(bouncer: &Bouncer) -> Outcome {
    const BLOCK: u32 = 10;

    let block = NonZeroU32::new(BLOCK).expect("above zero");
    let counter = || {
        let counter = SqlCounter::<Postgres>::new(bouncer.options(), "orders")?;
        Ok::<_, ordid::Error>(counter.with_engine(EngineProfile::PGBOUNCER))
    };
    let sequence = || {
        let sequence = PgSequence::new(bouncer.options(), "numbers", block)?;
        Ok::<_, ordid::Error>(sequence.with_engine(EngineProfile::PGBOUNCER))
    };
    counter()?.create(1).await?;
    sequence()?.create().await?;
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (counter, sequence) = (counter()?, sequence()?);
        clients.spawn(async move {
            let mut numbers = [Vec::new(), Vec::new()];
            for _ in 0..20 {
                numbers[0].extend(counter.reserve(block).await?.values());
                numbers[1].extend(sequence.reserve(block).await?.values());
            }
            Ok::<_, ordid::Error>(numbers)
        });
    }
    let mut all = [BTreeSet::new(), BTreeSet::new()];
    let mut given = 0;
    while let Some(numbers) = clients.join_next().await {
        let numbers = numbers??;
        given += numbers[0].len();
        for (all, numbers) in all.iter_mut().zip(numbers) {
            all.extend(numbers);
        }
    }
    let expected = usize::try_from(CLIENTS)? * 20 * usize::try_from(BLOCK)?;
    assert_eq!(
        (given, all[0].len(), all[1].len()),
        (expected, expected, expected)
    );
    assert_eq!(bouncer.prepared().await?, 0);
    Ok(())
}

async fn mapping_tables_give_each_uuid_one_integer(bouncer: &Bouncer) -> Outcome {
    let table = MappingTable::<Postgres>::new("ids")?.with_engine(EngineProfile::PGBOUNCER);
    table.create(&bouncer.pooled).await?;
    let uuids: Vec<Uuid> = (0..300).map(|_| Uuid::generate()).collect();
    let pool = PoolOptions::new().max_connections(u32::try_from(CLIENTS)?);
    let pool = pool.connect_with(bouncer.options()).await?;
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (table, pool, uuids) = (table.clone(), pool.clone(), uuids.clone());
        clients.spawn(async move {
            let mut ids = Vec::new();
            for uuids in uuids.chunks(30) {
                ids.extend(table.insert_or_get_many(&pool, uuids).await?);
                let last = table.insert_or_get(&pool, uuids[29]).await?;
                assert_eq!(Some(&last), ids.last());
            }
            Ok::<_, ordid_sqlx::MappingError>(ids)
        });
    }
    let mut all = BTreeSet::new();
    while let Some(ids) = clients.join_next().await {
        all.insert(ids??);
    }
    assert_eq!(all.len(), 1, "the clients disagree");
    let ids = all.pop_first().unwrap_or_default();
    assert_eq!(
        table.keys(&pool, &ids).await?,
        uuids.iter().copied().map(Some).collect::<Vec<_>>()
    );

    // In a transaction of the caller's, one that SQLx knows and one that it does not.
    let (kept, gone) = (Uuid::generate(), Uuid::generate());
    let mut transaction = pool.begin().await?;
    table.insert_or_get(&mut transaction, gone).await?;
    transaction.rollback().await?;
    let mut connection = pool.acquire().await?;
    for (uuid, end) in [(gone, "ROLLBACK"), (kept, "COMMIT")] {
        raw_sql("BEGIN").execute(&mut *connection).await?;
        table.insert_or_get(&mut connection, uuid).await?;
        raw_sql(end).execute(&mut *connection).await?;
    }
    drop(connection);
    assert_eq!(table.get(&pool, gone).await?, None);
    assert!(table.get(&pool, kept).await?.is_some());
    pool.close().await;
    assert_eq!(bouncer.prepared().await?, 0);
    let rows: Vec<(i64,)> = read(&bouncer.direct, "SELECT count(*) FROM ids").await?;
    assert_eq!(rows, [(301,)]);
    Ok(())
}
