//! Flushes to engines that cannot be had here, against peers that have their names, errors and nothing else: what is sent,
//! what is tried again, and what is asked where an engine does not know what became of a COMMIT.
//!
//! The texts and codes are those of the engines' documentation: see `ordid_recorders::conversation::codes`.

mod entities;
mod mysql;
mod postgres;
