//! `ordid completions` and `ordid man`: what a shell and `man` know of the command.

use std::{fs, io, path::PathBuf};

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::{
    Cli,
    failure::{Failure, Outcome},
    output::Output,
};

/// Arguments of `ordid completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Prints the script.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "ordid", &mut script);
        output.text(&String::from_utf8_lossy(&script))?;
        Ok(Outcome::Fine)
    }
}

/// Arguments of `ordid man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder to write a page of each command into; without it the main page goes to stdout
    folder: Option<PathBuf>,
}

impl Man {
    /// Writes the pages.
    ///
    /// # Errors
    ///
    /// The folder or the output cannot be written.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let cannot = |error: io::Error| {
            Failure::could_not(format_args!("the manual cannot be written: {error}"))
        };
        match self.folder {
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(Cli::command())
                    .render(&mut page)
                    .map_err(cannot)?;
                output.text(&String::from_utf8_lossy(&page))?;
            }
            Some(folder) => {
                fs::create_dir_all(&folder).map_err(|error| {
                    let folder = folder.display();
                    Failure::could_not(format_args!("{folder} cannot be made a folder: {error}"))
                })?;
                clap_mangen::generate_to(Cli::command(), &folder).map_err(cannot)?;
            }
        }
        Ok(Outcome::Fine)
    }
}
