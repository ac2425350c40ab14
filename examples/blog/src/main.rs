//! A blog: authors, posts, tags, and posts that have many tags, in SeaORM's entity-first format.
//!
//! ```text
//! cargo run --release -p blog -- seed            # its own posts, or those of a folder
//! cargo run --release -p blog -- list
//! cargo run --release -p blog -- show four-fields
//! cargo run --release -p blog -- tag four-fields forms paper
//! ```
//!
//! The database is an SQLite file, or what `DATABASE_URL` says: `postgres://`, `mysql://` (MariaDB, too),
//! `sqlite://`.
//!
//! What ordered keys are good for, here:
//!
//! - [`seed`] reads everything, knows every key, and flushes authors, tags, posts and what is between
//!   posts and tags in one transaction of a statement a table. SeaORM by itself saves nested models row
//!   by row.
//! - A post's key carries the time at which it was published, also where that was years ago
//!   (`PostId::generate_at`): there is no column for it, and [`list`](read::list) is newest first by the
//!   primary key, page by page.
//! - [`tag`] gives a post its tags once, however often it is asked to: `insert_or_skip` tells which were
//!   new, on MySQL and MariaDB, too.
//!
//! [`entity`] is what an application would write, [`migration`] makes the tables.

use std::{
    env,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use sea_orm::{ConnectOptions, Database, DatabaseConnection};
use sea_orm_migration::MigratorTrait as _;

mod entity;
mod migration;
mod read;
mod seed;
mod tag;

use entity::post::PostId;

/// A blog over SQLite, PostgreSQL, MySQL or MariaDB.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The database's URL; without it, `blog.sqlite` in the folder for temporary files.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, global = true)]
    database: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Adds the posts that are not there yet.
    Seed {
        /// A folder of `*.txt`: `title:`, `author:`, `date:` and `tags:`, an empty line, and the text;
        /// without it, the posts that come with the program.
        folder: Option<PathBuf>,
    },
    /// Lists posts, newest first.
    List {
        /// Only with this tag.
        #[arg(long)]
        tag: Option<String>,
        /// Only before this post: the last of the page before.
        #[arg(long)]
        before: Option<PostId>,
        #[arg(long, default_value_t = 10)]
        limit: u64,
    },
    /// Shows a post.
    Show {
        /// Its id, or its name.
        post: String,
    },
    /// Gives a post tags.
    Tag {
        /// Its id, or its name.
        post: String,
        #[arg(required = true)]
        tags: Vec<String>,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where stderr is closed there is nobody to tell.
            let _ = writeln!(io::stderr(), "blog: {}", told(&error));
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    let db = open(cli.database).await?;
    let told = match cli.command {
        Command::Seed { folder } => seed::seed(&db, folder.as_deref()).await?,
        Command::List { tag, before, limit } => {
            read::list(&db, tag.as_deref(), before, limit).await?
        }
        Command::Show { post } => read::show(&db, &post).await?,
        Command::Tag { post, tags } => tag::tag(&db, &post, &tags).await?,
    };
    db.close().await.context("cannot close the database")?;
    match io::stdout().write_all(told.as_bytes()) {
        // Whoever reads may stop reading: `| head`.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("stdout"),
        _ => Ok(()),
    }
}

/// Writes an error with its causes in one line, each once: SeaORM's say what theirs say.
fn told(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let cause = cause.to_string().replace('\n', " ");
        if !line.contains(&cause) {
            line += if line.is_empty() { "" } else { ": " };
            line += &cause;
        }
    }
    line
}

/// Connects, and brings the tables up to date.
async fn open(url: Option<String>) -> anyhow::Result<DatabaseConnection> {
    let url = url.unwrap_or_else(|| {
        let file = env::temp_dir().join("blog.sqlite");
        format!("sqlite://{}?mode=rwc", file.display())
    });
    // SeaORM would repeat the address, which may hold a password.
    if !["postgres", "postgresql", "mysql", "sqlite"].contains(&url.split(':').next().unwrap_or(""))
    {
        bail!("the URL of the database must begin with postgres://, mysql:// or sqlite://");
    }
    let mut options = ConnectOptions::new(url);
    let patience = Duration::from_secs(5);
    options.connect_timeout(patience).acquire_timeout(patience);
    let db = Database::connect(options)
        .await
        .context("cannot open the database")?;
    migration::Migrator::up(&db, None)
        .await
        .context("cannot migrate")?;
    Ok(db)
}
