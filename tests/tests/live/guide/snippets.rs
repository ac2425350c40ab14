//! Every block of SQL in the guide runs on its engine.

use std::collections::BTreeSet;

use libtest_mimic::{Failed, Trial};
use ordid::{KeyType as _, uuid::Uuid};
use ordid_tests::{
    servers::Servers,
    snippets::{self, Snippet},
};
use sqlx::{MySql, Pool, Postgres};

use super::TITLES;
use crate::{Outcome, database::Live, on_scratch, sqlite};

/// The engines that run here, by their pages and their servers.
const HERE: [(&str, &str); 4] = [
    ("postgresql", "postgres"),
    ("mysql", "mysql"),
    ("mariadb", "mariadb"),
    ("sqlite", "sqlite"),
];

/// The marks of engines that cannot run here. Their own test programs run the blocks where a server is named.
const MARKS: [&str; 3] = ["sql_server", "babelfish", "oracle"];

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    trials.push(Trial::test("guide::every_block_of_sql_has_a_test", || {
        every_block_has_a_test().map_err(Failed::from)
    }));
    for (engine, server) in HERE {
        for snippet in snippets::of_engine(engine).expect("the guide") {
            let name = format!("guide::sql_of_the_engines_page_{}", snippet.number);
            match server {
                "postgres" => {
                    on_scratch::<Postgres, _, _>(trials, servers, server, &name, |pool| {
                        runs(pool, snippet)
                    })
                }
                "sqlite" => sqlite::add(trials, &name, |pool| runs(pool, snippet)),
                _ => on_scratch::<MySql, _, _>(trials, servers, server, &name, |pool| {
                    runs(pool, snippet)
                }),
            }
        }
    }
}

/// A block without a mark is on a page of an engine that runs here, or has the title of a script that a test runs.
fn every_block_has_a_test() -> Result<(), String> {
    let mut titles = BTreeSet::new();
    let mut blocks = 0;
    for snippet in snippets::all().map_err(|error| error.to_string())? {
        blocks += 1;
        let name = format!("docs/src/{}, block {} of SQL", snippet.page, snippet.number);
        let page = snippet.page.strip_prefix("engines/");
        let engine = page.and_then(|page| page.strip_suffix(".md"));
        let runs_here = HERE.iter().any(|(here, _)| engine == Some(here));
        match (&snippet.mark, snippet.title()) {
            (Some(mark), _) if !MARKS.contains(&mark.as_str()) => {
                return Err(format!("{name} has the unknown mark {mark}"));
            }
            (Some(mark), _) => {
                let page = format!("engines/{}.md", mark.replace('_', "-"));
                if page != snippet.page {
                    return Err(format!("{name} has the mark of another page"));
                }
            }
            (None, _) if runs_here => {}
            (None, Some(title)) => {
                titles.insert(title.to_owned());
            }
            (None, None) => return Err(format!("{name} has neither a title nor a mark")),
        }
    }
    let run: BTreeSet<String> = TITLES.iter().map(|title| (*title).to_owned()).collect();
    if titles != run {
        let differ: Vec<_> = titles.symmetric_difference(&run).collect();
        return Err(format!("these titles have no block or no test: {differ:?}"));
    }
    if blocks < 20 {
        return Err(format!("only {blocks} blocks were found"));
    }
    Ok(())
}

/// Executes a block. A table with a foreign key then takes rows, has them in the order of their keys, and refuses one
/// without a parent.
async fn runs<DB: Live>(pool: Pool<DB>, snippet: Snippet) -> Outcome {
    let tables = snippet.tables();
    if let Some(tables) = &tables {
        DB::script(&pool, &tables.create_parent()).await?;
    }
    DB::script(&pool, &snippet.text).await?;
    let Some(tables) = tables else {
        return Ok(());
    };
    let keys: Vec<Uuid> = (0..3).map(|_| Uuid::generate()).collect();
    for statement in tables.insert(&[keys[2], keys[0], keys[1]]) {
        DB::script(&pool, &statement).await?;
    }
    for (below, key) in keys.iter().enumerate() {
        let found = DB::count(&pool, &tables.below(*key)).await?;
        assert_eq!(found, i64::try_from(below)?, "{}", snippet.page);
    }
    let orphan = tables.insert_orphan(Uuid::generate());
    assert!(DB::script(&pool, &orphan).await.is_err(), "{orphan}");
    Ok(())
}
