//! The adapters of SQL Server and Oracle against recorders: what is sent, and what becomes of answers, errors and lost
//! connections.

mod lost_commits;
#[cfg(target_os = "linux")]
mod oracle;
mod sql_server;
