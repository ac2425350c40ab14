//! Nodes and numbers in tables: the statements of leases, node counters and number counters, and the
//! connections that they are sent over.

pub mod connections;
pub mod nodes;
pub mod numbers;
