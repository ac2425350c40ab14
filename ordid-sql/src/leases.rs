//! Nodes and numbers in tables: leases, counters, sequences and tickets, written once for all libraries. An
//! adapter implements [`StoreDriver`] and re-exports them under its own names.

pub mod blocking;
mod nodes;
pub mod numbers;
#[cfg(test)]
mod scripted;
mod segments;
mod store;

pub use nodes::{Disposable, Leased, NodeKind, Nodes, SqlDisposableNode, SqlLease};
pub use segments::{PgSequence, SqlCounter, TicketChoice, TicketForm, Tickets64};
pub use store::{Remedy, StoreDriver, Unanswered};
