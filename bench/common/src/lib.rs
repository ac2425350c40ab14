//! What the benches share.
//!
//! Each bench runs its cases in alternating rounds, so that a disturbance of the machine meets
//! all of them, and compares inside a round: a ratio is a median over rounds, with its spread.

use std::{error::Error, process::ExitCode};

pub mod machine;
pub mod processors;
pub mod programs;
pub mod rates;
pub mod round;
pub mod spread;
pub mod table;
pub mod times;

/// Any error: a bench only reports it.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Ends a bench.
pub fn conclude(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
