//! What the benches share.
//!
//! Each bench runs its cases in alternating rounds, so that a disturbance of the machine meets
//! all of them, and compares inside a round: a ratio is a median over rounds, with its spread.

pub mod machine;
pub mod programs;
pub mod rates;
pub mod round;
pub mod spread;
pub mod table;
