//! The reports of `bench`, `doctor` and `plan`: what they say, and the HTML file that shows it.
//!
//! [`Report::write`] makes one file that needs no other: style and pictures are inside, there is no script, and a content
//! security policy makes browsers refuse every request. Everything that comes from a database is escaped.
//!
//! Pictures are SVG that [`svg`] writes itself. A chart library writes colours and sizes as fixed attributes; here they
//! are classes, so that one picture serves light, dark and paper, and each has a title and a description for readers who
//! do not see it.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use crate::failure::Failure;

// The tests of the browser include this file from their own folder, where it would look for these in another one.
#[path = "report/html.rs"]
mod html;
#[path = "report/svg.rs"]
mod svg;

/// A report, as a single file that asks nobody for anything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    /// The subject, in a line.
    pub(crate) title: String,
    /// The first thing to know, in a sentence or two.
    pub(crate) lead: String,
    /// Its parts, the most important first.
    pub(crate) sections: Vec<Section>,
    /// Machine, versions and settings, by name: the end of the report.
    pub(crate) facts: Vec<(String, String)>,
}

/// A part of a report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    /// The subject.
    pub(crate) heading: String,
    /// Paragraphs.
    pub(crate) paragraphs: Vec<String>,
    /// Pictures, each of which has its figures in one of the tables.
    pub(crate) pictures: Vec<Picture>,
    /// Tables.
    pub(crate) tables: Vec<Figures>,
    /// SQL, or another text whose lines are kept.
    pub(crate) code: Vec<String>,
}

/// A table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    /// The caption, in a line. It may be empty if the section's heading says the same.
    pub(crate) caption: String,
    /// The names of its columns.
    pub(crate) header: Vec<String>,
    /// Its rows, each of as many cells. The first cell names the row. A column of numbers is aligned to the right.
    pub(crate) rows: Vec<Vec<String>>,
}

/// A picture.
#[derive(Debug, Clone)]
pub(crate) enum Picture {
    /// Lines over a number.
    Lines {
        /// The caption.
        title: String,
        /// The name and unit of what goes to the right.
        x: String,
        /// The name and unit of what goes up.
        y: String,
        /// The lines: their names, and their points.
        lines: Vec<(String, Vec<(f64, f64)>)>,
    },
    /// Bars beside each other.
    Bars {
        /// The caption.
        title: String,
        /// The unit of their lengths.
        unit: String,
        /// The bars: their names and lengths.
        bars: Vec<(String, f64)>,
    },
}

impl Report {
    /// Returns the report as an HTML document.
    pub(crate) fn html(&self) -> String {
        html::document(self)
    }

    /// Writes the report into a file. A file that exists is replaced as a whole, or stays as it is.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let cannot = |error| cannot_write(path, &error);
        // A pipe or a device is no file that another one could replace.
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return fs::write(path, self.html()).map_err(cannot);
        }
        let mut file = beside(path).map_err(cannot)?;
        file.write_all(self.html().as_bytes()).map_err(cannot)?;
        file.persist(path).map_err(|error| cannot(error.error))?;
        Ok(())
    }

    /// Checks that a report can be written to this path, before work that takes long.
    ///
    /// # Errors
    ///
    /// It cannot.
    pub(crate) fn check_path(path: &Path) -> Result<(), Failure> {
        if path.is_dir() {
            let error = io::Error::from(io::ErrorKind::IsADirectory);
            return Err(cannot_write(path, &error));
        }
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Ok(());
        }
        beside(path)
            .map(drop)
            .map_err(|error| cannot_write(path, &error))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    // A hint of the caller's: the temporary file's own name would only confuse.
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "its folder does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::NotADirectory => "its folder is a file".to_owned(),
        _ => error.to_string(),
    };
    Failure::could_not(format_args!(
        "cannot write the report to {}: {reason}",
        path.display()
    ))
}

/// Makes the temporary file that takes the path's place when it is complete.
fn beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ordid-report-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As any new file has it; the process's mask takes the rest away.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}
