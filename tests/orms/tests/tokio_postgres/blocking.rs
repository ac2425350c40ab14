//! Clients and transactions of the crate `postgres`, whose calls block. The faults, the graphs and the everyday changes run
//! over them, too.

use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_tests::{flushed::copied, servers::Servers, trials::Outcome};
use ordid_tokio_postgres::{Error, Retry, UnitOfWork};
use postgres::{Client, NoTls};

use sqlx::Postgres;

use crate::{keys::Native, tokio::on_thread};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    ordid_tests::address_tests!(
        trials, servers, Postgres: "postgres", "blocking::";
        clients_and_transactions_are_flushed_into,
        a_pool_of_r2d2_lends_clients,
        a_refused_row_leaves_the_client_as_it_was,
    );
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "cities")]
struct City {
    id: Native,
    name: String,
}

fn cities(count: usize) -> UnitOfWork {
    crate::work((0..count).map(|number| City {
        id: Native::generate(),
        name: number.to_string(),
    }))
}

const CREATE: &str = "CREATE TABLE cities (id uuid PRIMARY KEY, name text NOT NULL)";

fn count(client: &mut Client) -> Result<i64, postgres::Error> {
    client
        .query_one("SELECT count(*) FROM cities", &[])?
        .try_get(0)
}

/// Runs a test on a thread that may block.
async fn blocking(
    url: String,
    test: impl FnOnce(&mut Client, &str) -> Outcome + Send + 'static,
) -> Outcome {
    on_thread(&mut (), move |()| {
        let test = || {
            let mut client = Client::connect(&url, NoTls)?;
            client.batch_execute(CREATE)?;
            test(&mut client, &url)
        };
        // An error of a test is no `Send`.
        test().map_err(|error| error.to_string())
    })
    .await
    .map_err(Into::into)
}

async fn clients_and_transactions_are_flushed_into(url: String) -> Outcome {
    blocking(url, |client, _| {
        assert_eq!(
            copied(&cities(2_000).flush_blocking(client)?),
            (2_000, 2_000)
        );
        let mut work = cities(3);
        let mut transaction = client.transaction()?;
        assert_eq!(work.flush_in_blocking(&mut transaction)?.rows(), 3);
        // The same keys once more: the transaction is as before.
        let error = work.flush_in_blocking(&mut transaction).unwrap_err();
        assert!(
            error.is_unique_violation() && !error.is_transaction_over(),
            "{error}"
        );
        transaction.execute("DELETE FROM cities WHERE name = '0'", &[])?;
        transaction.commit()?;
        assert_eq!(count(client)?, 2_001);

        client.batch_execute("BEGIN")?;
        let error = work.flush_blocking(client).unwrap_err();
        assert!(error.is_connection_state(), "{error}");
        client.batch_execute("ROLLBACK")?;
        assert_eq!(count(client)?, 2_001);
        Ok(())
    })
    .await
}

async fn a_pool_of_r2d2_lends_clients(url: String) -> Outcome {
    blocking(url, |client, url| {
        let manager = r2d2_postgres::PostgresConnectionManager::new(url.parse()?, NoTls);
        let pool = r2d2_postgres::r2d2::Pool::builder()
            .max_size(1)
            .build(manager)?;
        let get = || pool.get();
        assert_eq!(cities(1_500).flush_with_blocking(get)?.rows(), 1_500);
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        client.batch_execute(end)?;
        let flushed = cities(20)
            .with_retry(Retry::DEFAULT)
            .flush_with_blocking(get)?;
        assert_eq!(flushed.rows(), 20);
        assert_eq!(count(client)?, 1_520);

        // The connection stays open and takes no writes, as of a server that has become a standby.
        let read_only = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY";
        pool.get()?.batch_execute(read_only)?;
        let mut work = cities(20).with_retry(Retry::DEFAULT);
        let flushed = work.flush_with_blocking(get)?;
        assert_eq!((flushed.rows(), flushed.retries), (20, 1));
        assert_eq!(count(client)?, 1_540);

        // The user's own client stays the user's.
        client.batch_execute(read_only)?;
        let error = cities(1).flush_blocking(client).unwrap_err();
        assert!(error.is_connection_lost(), "{error}");
        assert_eq!(count(client)?, 1_540);
        Ok(())
    })
    .await
}

/// A row that is refused in the midst of a `COPY` is named, and the client is used on.
async fn a_refused_row_leaves_the_client_as_it_was(url: String) -> Outcome {
    blocking(url, |client, _| {
        client.batch_execute("ALTER TABLE cities ADD CHECK (name <> '1234')")?;
        let mut work = cities(3_000);
        let error: Error = work.flush_blocking(client).unwrap_err();
        assert_eq!(error.constraint(), Some("cities_name_check"), "{error}");
        assert!(error.key().is_some(), "{error}");
        assert_eq!(count(client)?, 0);
        client.batch_execute("ALTER TABLE cities DROP CONSTRAINT cities_name_check")?;
        assert_eq!(copied(&work.flush_blocking(client)?), (3_000, 3_000));
        Ok(())
    })
    .await
}
