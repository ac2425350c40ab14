//! Tables for a terminal.

use std::fmt;

/// Rows of text whose columns are as wide as their widest cell.
#[derive(Debug)]
pub struct Table<const N: usize>(Vec<[String; N]>);

impl<const N: usize> Table<N> {
    /// Makes a table with a heading.
    pub fn new(heading: [&str; N]) -> Self {
        Self(vec![heading.map(str::to_owned)])
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.0.push(cells);
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.0 {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let cells = self.0.iter().map(|row| row[column].chars().count());
                let width = cells.max().unwrap_or(0) + 2;
                line += &format!("{cell:width$}");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["case", "ns"]);
        table.row(["a long one".to_owned(), "1".to_owned()]);
        assert_eq!(table.to_string(), "case        ns\na long one  1\n");
    }
}
