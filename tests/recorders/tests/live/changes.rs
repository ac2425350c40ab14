//! Updates, deletes, circles, and a connection that the server ends.

use ordid::{KeyType as _, OrderedKey};
use ordid_tiberius::{Entity, Flavour, UnitOfWork, flushes_table};

use crate::{
    Outcome, Scratch, batch, count,
    entities::{Customer, CustomerId, Tcp, TreeId},
    rows, tables, tds,
};

#[derive(OrderedKey)]
#[ordid(table = "amounts")]
struct Amount {
    #[ordid(key)]
    id: TreeId,
    #[ordid(parent)]
    parent: Option<TreeId>,
    name: String,
    amount: Option<tiberius::numeric::Decimal>,
}

impl Amount {
    fn new(id: TreeId, parent: Option<TreeId>, name: &str, digits: i64) -> Self {
        Self {
            id,
            parent,
            name: name.to_owned(),
            amount: (digits != 0).then(|| tiberius::numeric::Decimal::new(digits, 28)),
        }
    }
}

/// Names and amounts, as the server writes them.
async fn amounts(client: &mut Tcp) -> tiberius::Result<Vec<(String, Option<String>)>> {
    let sql = "SELECT name, CAST(amount AS varchar(50)) FROM amounts ORDER BY name";
    let text = |row: &tiberius::Row, at| row.get::<&str, _>(at).map(str::to_owned);
    let rows = rows(client, sql).await?;
    Ok(rows
        .iter()
        .map(|row| (text(row, 0).unwrap_or_default(), text(row, 1)))
        .collect())
}

/// Updates, deletes, a circle, a row that is not there, a table with a trigger, and `SET NOCOUNT ON`.
pub(crate) async fn changes(scratch: Scratch) -> Outcome {
    let Scratch {
        mut client,
        database,
    } = scratch;
    if database.is_babelfish() {
        changed(&mut client, UnitOfWork::for_babelfish).await
    } else {
        changed(&mut client, UnitOfWork::new).await?;
        batch(&mut client, "SET NOCOUNT ON").await?;
        batch(
            &mut client,
            "CREATE TRIGGER noisy ON amounts AFTER INSERT, UPDATE, DELETE AS INSERT INTO noise VALUES (1), (2), (3)",
        )
        .await?;
        changed(&mut client, UnitOfWork::new).await
    }
}

async fn changed<D>(client: &mut Tcp, work: impl Fn() -> UnitOfWork<D>) -> Outcome
where
    D: Flavour,
    Amount: Entity<D>,
{
    batch(
        client,
        "IF OBJECT_ID(N'amounts') IS NULL CREATE TABLE amounts (
            id uniqueidentifier NOT NULL PRIMARY KEY,
            parent uniqueidentifier REFERENCES amounts (id), name nvarchar(100) NOT NULL,
            amount decimal(38, 28))",
    )
    .await?;
    let noise = "IF OBJECT_ID(N'noise') IS NULL CREATE TABLE noise (number int NOT NULL)";
    batch(client, noise).await?;
    batch(client, flushes_table()).await?;
    batch(client, flushes_table()).await?;

    // A circle, and a decimal of 28 digits behind the point beside a NULL.
    let [one, other] = [TreeId::generate(), TreeId::generate()];
    let mut unit = work();
    unit.add(Amount::new(one, Some(other), "one", 1));
    unit.add(Amount::new(other, Some(one), "other", 0));
    unit.flush(client).await?;
    let smallest = "0.0000000000000000000000000001";
    let named = |rows: [(&str, Option<&str>); 2]| {
        rows.map(|(name, amount)| (name.to_owned(), amount.map(str::to_owned)))
    };
    assert_eq!(
        amounts(client).await?,
        named([("one", Some(smallest)), ("other", None)])
    );

    // One that is not there: neither of the others is changed.
    let mut unit = work();
    let nobody = TreeId::generate();
    for id in [one, other, nobody] {
        unit.update(Amount::new(id, None, "changed", 0));
    }
    let error = unit.flush(client).await.err().ok_or("a row too few")?;
    assert!(error.is_missing_row(), "{error}");
    assert_eq!(error.key(), Some(&nobody.to_string()[..]), "{error}");
    assert_eq!(
        amounts(client).await?,
        named([("one", Some(smallest)), ("other", None)])
    );

    let mut unit = work();
    unit.update(Amount::new(one, Some(other), "ONE", 0));
    unit.update(Amount::new(other, Some(one), "OTHER", 1));
    assert_eq!(unit.flush(client).await?.updated(), 2);
    assert_eq!(
        amounts(client).await?,
        named([("ONE", None), ("OTHER", Some(smallest))])
    );

    let mut unit = work();
    unit.delete(&Amount::new(one, Some(other), "", 0));
    unit.delete(&Amount::new(other, Some(one), "", 0));
    assert_eq!(unit.flush(client).await?.deleted(), 2);
    assert_eq!(count(client, "amounts").await?, Some(0));
    // Those that changed something, and were committed.
    assert_eq!(count(client, "ordid_flushes").await?, Some(2));
    batch(client, "DELETE FROM ordid_flushes").await?;
    Ok(())
}

/// What was sent before goes with the connection, and all is there once.
pub(crate) async fn killed(
    Scratch {
        mut client,
        database,
    }: Scratch,
) -> Outcome {
    tables(&mut client).await?;
    let session = rows(&mut client, "SELECT CAST(@@SPID AS int)").await?;
    let session: Option<i32> = session.first().and_then(|row| row.get(0));
    let mut work = UnitOfWork::new();
    for name in ["Ada", "Grace"] {
        work.add(Customer {
            id: CustomerId::generate(),
            name: name.to_owned(),
            note: None,
        });
    }
    let mut other = tds(database.url()).await?;
    let kill = format!("KILL {}", session.ok_or("no session")?);
    batch(&mut other, &kill).await?;
    let connect = || database.connect();
    let flushed = work.flush_with(&mut client, connect).await?;
    assert_eq!((flushed.rows(), flushed.retries), (2, 1));
    assert_eq!(count(&mut client, "customers").await?, Some(2));
    Ok(())
}
