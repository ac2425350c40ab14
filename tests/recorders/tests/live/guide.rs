//! The SQL of the guide's pages of SQL Server and Babelfish.

use ordid::{KeyType as _, uuid::Uuid};
use ordid_tests::{login::batch, snippets};

use super::{CustomerId, Outcome, Scratch, count};

/// Executes every block. A table with a foreign key then takes rows, has them in the order of their keys, and refuses
/// one without a parent.
pub(crate) async fn sql_runs(scratch: Scratch) -> Outcome {
    let Scratch {
        mut client,
        database,
    } = scratch;
    let (page, keys): (_, Vec<Uuid>) = match database.is_babelfish() {
        true => ("babelfish", (0..3).map(|_| Uuid::generate()).collect()),
        false => {
            let keys = (0..3).map(|_| CustomerId::generate().to_raw());
            ("sql-server", keys.collect())
        }
    };
    for snippet in snippets::of_engine(page)? {
        let tables = snippet.tables();
        if let Some(tables) = &tables {
            batch(&mut client, &tables.create_parent()).await?;
        }
        batch(&mut client, &snippet.text).await?;
        let Some(tables) = tables else {
            continue;
        };
        for statement in tables.insert(&[keys[2], keys[0], keys[1]]) {
            batch(&mut client, &statement).await?;
        }
        for (below, key) in keys.iter().enumerate() {
            let found = count(&mut client, &tables.below(*key)).await?;
            assert_eq!(found, Some(i32::try_from(below)?), "{page}");
        }
        let orphan = tables.insert_orphan(Uuid::generate());
        assert!(batch(&mut client, &orphan).await.is_err(), "{orphan}");
    }
    Ok(())
}
