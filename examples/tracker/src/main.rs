//! Serves the tracker, whose routes are in the library.

use std::{
    env,
    io::{self, Write as _},
    net::SocketAddr,
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Parser;
use tokio::net::TcpListener;
use tracker::{Store, check_mask, router};

/// An issue tracker over SQLite or PostgreSQL.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// `postgres://user@host/database`, or the name of an SQLite file; without it, `tracker.sqlite`
    /// in the folder for temporary files.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database: Option<String>,
    /// The address to listen at; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:3000")]
    listen: SocketAddr,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed, the error cannot be shown.
            let _ = writeln!(io::stderr(), "tracker: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    let database = cli.database.unwrap_or_else(|| {
        let file = env::temp_dir().join("tracker.sqlite");
        file.to_string_lossy().into_owned()
    });
    check_mask()?;
    let store = Store::open(&database)
        .await
        .map_err(|error| error.context("cannot open the database"))?;
    let listener = TcpListener::bind(cli.listen)
        .await
        .with_context(|| format!("cannot listen at {}", cli.listen))?;
    let address = listener.local_addr()?;
    let shown = match database.split_once("://") {
        // The rest of the address may contain a password.
        Some((scheme, _)) => scheme,
        None => &database,
    };
    writeln!(
        io::stdout(),
        "listening at http://{address}, database {shown}"
    )
    .context("stdout")?;
    axum::serve(listener, router(store.clone()))
        .with_graceful_shutdown(asked_to_end())
        .await
        .context("cannot serve")?;
    store.close().await;
    Ok(())
}

/// Waits for Ctrl-C or SIGTERM. The server then answers the requests that it has begun before the program ends.
async fn asked_to_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => (),
                _ = terminate.recv() => (),
            }
            return;
        }
    }
    // If there is no handler, the signal ends the program at once.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
