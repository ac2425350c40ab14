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

#[derive(OrderedKey, Clone)]
#[ordid(table = "stock_articles", columns)]
struct Article {
    id: ArticleId,
    code: String,
    title: String,
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

const TABLES: [&str; 2] = [
    "CREATE TABLE stock_articles (id BINARY(16) NOT NULL PRIMARY KEY, code VARCHAR(20) NOT NULL UNIQUE, \
     title VARCHAR(100) NOT NULL, pieces BIGINT NOT NULL, version BIGINT NOT NULL)",
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
    conn.query_drop("DROP TABLE stock_movements, stock_articles")
        .await?;
    drop(conn);
    pool.disconnect().await?;
    outcome
}

async fn run(pool: &Pool, conn: &mut Conn) -> Result<(), Box<dyn std::error::Error>> {
    ordid_mysql_async::create_flushes_table(pool).await?;

    // The supplier's list, twice: the second time only titles are written. An article keeps its key.
    for edition in ["", ", 2nd edition"] {
        let mut work = UnitOfWork::new();
        for (code, title) in [("B-1", "A book"), ("M-1", "A map")] {
            let article = Article {
                id: ArticleId::generate(),
                code: code.into(),
                title: format!("{title}{edition}"),
                pieces: 0,
                version: 0,
            };
            let by_code = OnConflict::of(Article::code).set(Article::title);
            work.upsert_with(article, by_code);
        }
        work.flush(pool).await?;
    }

    // Movements, and the number of pieces that they lead to, in the transaction in which it was read.
    let mut transaction = conn.start_transaction(TxOpts::default()).await?;
    let sql =
        "SELECT id, code, title, pieces, version FROM stock_articles WHERE code = ? FOR UPDATE";
    let row: Option<(ArticleId, String, String, i64, i64)> =
        transaction.exec_first(sql, ("B-1",)).await?;
    let (id, code, title, pieces, version) = row.ok_or("no such article")?;
    let mut article = Article {
        id,
        code,
        title,
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

    let sql = "SELECT id, title, pieces FROM stock_articles ORDER BY id";
    let articles: Vec<(ArticleId, String, i64)> = conn.query(sql).await?;
    for (id, title, pieces) in &articles {
        println!("{id}  {title}  {pieces}");
    }
    let pieces: Vec<i64> = articles.iter().map(|it| it.2).collect();
    assert_eq!(pieces, [7, 0]);
    Ok(())
}
