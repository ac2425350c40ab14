//! The stock of a warehouse: articles that a supplier's list names, and movements that change how many there are.
//!
//! ```text
//! $ DATABASE_URL=mysql://root@localhost/test cargo run -p ordid-mysql-async --example stock
//! ```
//!
//! It makes its tables in this database, and drops them at the end.

#![allow(clippy::print_stdout, reason = "a program prints")]

use mysql_async::{Conn, Pool, TxOpts, prelude::*};
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_mysql_async::{OnConflict, UnitOfWork};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "art", mysql_async)]
struct ArticleId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "mov", mysql_async)]
struct MovementId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "title", mysql_async)]
struct TitleId(Uuid);

/// What an article is called. It has no version: the supplier's list replaces it, whatever it was.
#[derive(OrderedKey)]
#[ordid(table = "stock_titles", columns)]
struct Title {
    id: TitleId,
    code: String,
    text: String,
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "stock_articles", columns)]
struct Article {
    id: ArticleId,
    code: String,
    pieces: i64,
    #[ordid(version)]
    version: i64,
}

#[derive(OrderedKey)]
#[ordid(table = "stock_movements")]
struct Movement {
    id: MovementId,
    #[ordid(parent)]
    article: ArticleId,
    pieces: i64,
}

const TABLES: [&str; 3] = [
    "CREATE TABLE stock_titles (id BINARY(16) NOT NULL PRIMARY KEY, code VARCHAR(20) NOT NULL UNIQUE, \
     text VARCHAR(100) NOT NULL)",
    "CREATE TABLE stock_articles (id BINARY(16) NOT NULL PRIMARY KEY, code VARCHAR(20) NOT NULL UNIQUE, \
     pieces BIGINT NOT NULL, version BIGINT NOT NULL)",
    "CREATE TABLE stock_movements (id BINARY(16) NOT NULL PRIMARY KEY, article BINARY(16) NOT NULL, \
     pieces BIGINT NOT NULL, FOREIGN KEY (article) REFERENCES stock_articles (id))",
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url =
        std::env::var("DATABASE_URL").map_err(|_| "set DATABASE_URL to a database's address")?;
    let pool = Pool::from_url(url)?;
    let mut conn = pool.get_conn().await?;
    for sql in TABLES {
        conn.query_drop(sql).await?;
    }
    let outcome = run(&pool, &mut conn).await;
    conn.query_drop("DROP TABLE stock_movements, stock_articles, stock_titles")
        .await?;
    drop(conn);
    pool.disconnect().await?;
    outcome
}

async fn run(pool: &Pool, conn: &mut Conn) -> Result<(), Box<dyn std::error::Error>> {
    ordid_mysql_async::create_flushes_table(pool).await?;

    // The supplier's list, twice: the second time only titles are written. A title keeps its key.
    for edition in ["", ", 2nd edition"] {
        let mut work = UnitOfWork::new();
        for (code, text) in [("B-1", "A book"), ("M-1", "A map")] {
            let title = Title {
                id: TitleId::generate(),
                code: code.into(),
                text: format!("{text}{edition}"),
            };
            let by_code = OnConflict::of(Title::code).set(Title::text);
            work.upsert_with(title, by_code);
        }
        work.flush(pool).await?;
    }
    let mut work = UnitOfWork::new();
    for code in ["B-1", "M-1"] {
        work.add(Article {
            id: ArticleId::generate(),
            code: code.into(),
            pieces: 0,
            version: 0,
        });
    }
    work.flush(pool).await?;

    // Movements, and the number of pieces that they lead to, in the transaction in which it was read.
    let mut transaction = conn.start_transaction(TxOpts::default()).await?;
    let sql = "SELECT id, code, pieces, version FROM stock_articles WHERE code = ? FOR UPDATE";
    let row: Option<(ArticleId, String, i64, i64)> = transaction.exec_first(sql, ("B-1",)).await?;
    let (id, code, pieces, version) = row.ok_or("no such article")?;
    let mut article = Article {
        id,
        code,
        pieces,
        version,
    };
    let mut work = UnitOfWork::new();
    for pieces in [10, -3] {
        article.pieces += pieces;
        work.add(Movement {
            id: MovementId::generate(),
            article: id,
            pieces,
        });
    }
    work.update_columns(article, Article::pieces);
    work.flush_in(&mut transaction).await?;
    transaction.commit().await?;

    let sql = "SELECT a.id, t.text, a.pieces FROM stock_articles AS a JOIN stock_titles AS t ON t.code = a.code ORDER BY a.id";
    let articles: Vec<(ArticleId, String, i64)> = conn.query(sql).await?;
    for (id, title, pieces) in &articles {
        println!("{id}  {title}  {pieces}");
    }
    assert!(articles.iter().all(|it| it.1.ends_with(", 2nd edition")));
    let pieces: Vec<i64> = articles.iter().map(|it| it.2).collect();
    assert_eq!(pieces, [7, 0]);
    Ok(())
}
