//! Serves the notes, whose routes are in the library.

use std::{
    io::{self, Write as _},
    net::SocketAddr,
    path::PathBuf,
};

use anyhow::Context as _;
use clap::Parser;
use offline::{App, router};
use tokio::net::TcpListener;

/// A server of notes whose keys are made in the page, offline too.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// The SQLite file; without it, `offline.sqlite` in the folder for temporary files.
    #[arg(long)]
    database: Option<PathBuf>,
    /// The folder of the page's compiled keys.
    #[arg(long, default_value = "target/offline-keys")]
    keys: PathBuf,
    /// The address to listen at; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:3000")]
    listen: SocketAddr,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let file = cli
        .database
        .unwrap_or_else(|| std::env::temp_dir().join("offline.sqlite"));
    let app = App::open(&file, cli.keys)
        .await
        .with_context(|| format!("cannot open {}", file.display()))?;
    let listener = TcpListener::bind(cli.listen)
        .await
        .with_context(|| format!("cannot listen at {}", cli.listen))?;
    let address = listener.local_addr()?;
    writeln!(
        io::stdout(),
        "listening at http://{address}, database {}",
        file.display()
    )
    .context("stdout")?;
    axum::serve(listener, router(app))
        .with_graceful_shutdown(async {
            // Without a handler, Ctrl-C ends the program at once.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
        .await
        .context("cannot serve")
}
