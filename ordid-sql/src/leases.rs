//! Nodes and numbers in tables: the statements for leases, node counters and number counters, and the
//! connections that send them.

pub mod connections;
pub mod nodes;
pub mod numbers;
