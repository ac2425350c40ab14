//! The reports of `bench`, `doctor` and `plan`: what they say, whatever shows it.

/// A report, as a single file that asks nobody for anything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    /// What it is about, in a line.
    pub(crate) title: String,
    /// What a reader has to know first, in a sentence or two.
    pub(crate) lead: String,
    /// Its parts, the most important first.
    pub(crate) sections: Vec<Section>,
    /// Machine, versions and settings, by name: the end of the report.
    pub(crate) facts: Vec<(String, String)>,
}

/// A part of a report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    /// What it is about.
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
    /// The names of its columns.
    pub(crate) header: Vec<String>,
    /// Its rows, each of as many cells.
    pub(crate) rows: Vec<Vec<String>>,
}

/// A picture.
#[derive(Debug, Clone)]
pub(crate) enum Picture {
    /// Lines over a number.
    Lines {
        /// What it shows.
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
        /// What it shows.
        title: String,
        /// The unit of their lengths.
        unit: String,
        /// The bars: their names and lengths.
        bars: Vec<(String, f64)>,
    },
}
