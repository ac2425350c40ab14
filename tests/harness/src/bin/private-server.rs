//! Starts a private server, prints its URL and folder, and keeps it until standard input ends.
//!
//! ```text
//! cargo run -p ordid-harness --bin private-server -- postgres
//! ```

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    ordid_harness::conclude(run())
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or(
        "name a server: postgres, mariadb, mysql, pgbouncer, h2, redis, zookeeper or etcd",
    )?;
    let server = ordid_harness::start(&name)?;
    let mut stdout = io::stdout();
    writeln!(stdout, "{}\n{}", server.url(), server.folder().display())?;
    stdout.flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
