//! The adapters of SQL Server and Oracle against recorders: what is sent, and what becomes of answers, errors and lost
//! connections.

#[cfg(target_os = "linux")]
mod oracle;
mod sql_server;
