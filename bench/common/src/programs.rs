//! The programs of a round, beside the bench that runs them.

use std::{
    collections::HashMap,
    env,
    error::Error,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    round::{Case, NOT_MEASURED},
    times::{Excuse, Times},
};

/// A maker, and the program that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The program's name.
    pub program: &'static str,
    /// The maker's name on its command line.
    pub maker: &'static str,
}

/// The programs of a round, and the makers that each of them offers here.
#[derive(Debug)]
pub struct Programs {
    folder: PathBuf,
    makers: HashMap<&'static str, Vec<String>>,
}

impl Programs {
    /// Asks these programs for their makers.
    ///
    /// # Errors
    ///
    /// If one of them cannot be run.
    pub fn find(names: impl IntoIterator<Item = &'static str>) -> Result<Self, Box<dyn Error>> {
        let program = env::current_exe()?;
        let mut programs = Self {
            folder: program.parent().unwrap_or(Path::new(".")).to_owned(),
            makers: HashMap::new(),
        };
        for name in names {
            if !programs.makers.contains_key(name) {
                let makers = programs.ask(name, &[])?;
                let makers = makers.lines().map(str::to_owned).collect();
                programs.makers.insert(name, makers);
            }
        }
        Ok(programs)
    }

    /// Whether the maker runs on this machine.
    pub fn offer(&self, place: Place) -> bool {
        let makers = self.makers.get(place.program);
        makers.is_some_and(|names| names.iter().any(|name| name == place.maker))
    }

    /// Returns each round's times of these makers. Rounds run the makers in rotating order.
    ///
    /// A maker whose program fails or says that it cannot measure is not asked again, and the others go on.
    pub fn measure(&self, places: &[Place], case: Case, rounds: u32) -> Times {
        let mut times = Times::new(places.len());
        for round in 0..rounds as usize {
            times.begin_round();
            for turn in 0..places.len() {
                let index = (round + turn) % places.len();
                if times.excuse(index).is_some() {
                    continue;
                }
                match self.time(places[index], case) {
                    Ok(nanos) => times.record(index, nanos),
                    Err(excuse) => times.give_up(index, excuse),
                }
            }
        }
        times
    }

    fn time(&self, Place { program, maker }: Place, case: Case) -> Result<f64, Excuse> {
        let failed = |error: Box<dyn Error>| Excuse::Failed(error.to_string());
        let answer = self.ask(program, &[maker, case.name()]).map_err(failed)?;
        match answer.trim() {
            NOT_MEASURED => Err(Excuse::NotMeasured),
            nanos => nanos.parse().map_err(|_| {
                Excuse::Failed(format!(
                    "{program} {maker} printed {nanos:?}, which is no time"
                ))
            }),
        }
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, Box<dyn Error>> {
        let path = self
            .folder
            .join(format!("{program}{}", env::consts::EXE_SUFFIX));
        let output = Command::new(path)
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| {
                format!("cannot run {program}, which `cargo xtask bench` builds: {error}")
            })?;
        if !output.status.success() {
            let arguments = arguments.join(" ");
            return Err(format!("{program} {arguments} failed ({})", output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}
