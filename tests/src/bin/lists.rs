//! `cargo xtask lists`: writes the lists that are made of the catalogue.

#![allow(clippy::print_stdout, reason = "it talks to people")]

use std::{fs, io};

fn main() -> io::Result<()> {
    for list in ordid_tests::lists::lists() {
        let is_new = list.found()? != list.text;
        if is_new {
            fs::write(list.file(), &list.text)?;
        }
        println!(
            "{} {}",
            list.path,
            if is_new { "written" } else { "says the same" }
        );
    }
    Ok(())
}
