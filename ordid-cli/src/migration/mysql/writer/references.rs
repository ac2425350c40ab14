//! Fills the columns that refer to the table, and counts what is wrong before the switch.

use ordid_core::storage::{Dialect as _, dialect::MySql};

use super::{NONE, Writer, not};
use crate::migration::{
    model::{Action, Check, References, Statement, Step},
    mysql::quote,
    subject::{Column, Moved, Words, named_by_column, pairs},
};

impl Writer<'_> {
    pub(super) fn references(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (number, table) in self.found.tables.iter().enumerate() {
            for (column, _) in table.references() {
                let name = format!("{}.{}", table.title(), column.name);
                let what = format!("Fills the new column of {name} in chunks");
                let action = match &self.found.primaries[number][..] {
                    [] => self.unnamed_rows(number, table, column),
                    primary => self.named_rows(number, table, column, primary),
                };
                steps.push(
                    Self::step(
                        "references",
                        &what,
                        "the rows of a chunk, until its COMMIT",
                        self.rows(10_000.0),
                        action,
                    )
                    .on(name),
                );
            }
        }
        steps
    }

    /// Fills a column of a table whose rows have a primary key, by which they are listed.
    fn named_rows(
        &self,
        number: usize,
        table: &Moved,
        column: &Column,
        primary: &[String],
    ) -> Action {
        let rows = MySql::quote_table(
            Some(&self.found.schema),
            &named_by_column("ordid_rows_", &table.name, &table.schema),
        );
        let (child, main) = (self.table(table), self.table(self.main()));
        let (from, to) = (quote(&column.name), quote(&column.new_name()));
        let (key, new) = (quote(&self.key().name), quote(&self.key().new_name()));
        let each = |text: &dyn Fn(usize, String) -> String, between: &str| {
            let columns = primary.iter().enumerate();
            let all: Vec<String> = columns.map(|(at, it)| text(at, quote(it))).collect();
            all.join(between)
        };
        Action::References(References {
            read: self.part(),
            session: vec![format!(
                "CREATE TEMPORARY TABLE IF NOT EXISTS {rows} (n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY) \
                 ENGINE=InnoDB AS SELECT {} FROM {child} AS c WHERE FALSE",
                each(&|at, it| format!("c.{it} AS k{at}"), ", ")
            )],
            collect: vec![
                format!("DELETE FROM {rows}"),
                format!(
                    "INSERT INTO {rows} ({}) SELECT {} FROM {} AS w STRAIGHT_JOIN {main} AS it ON it.{key} = \
                     w.old_key AND it.{new} IS NOT NULL STRAIGHT_JOIN {child} AS c ON c.{from} = w.old_key WHERE w.position > {{after}} \
                     AND w.position <= {{last}} AND c.{to} IS NULL ORDER BY w.position LIMIT {{limit}}",
                    each(&|at, _| format!("k{at}"), ", "),
                    each(&|_, it| format!("c.{it}"), ", "),
                    self.work()
                ),
            ],
            rows: format!("SELECT n FROM {rows} ORDER BY n"),
            row: "{row}".to_owned(),
            write: vec![format!(
                "UPDATE {rows} AS r STRAIGHT_JOIN {child} AS c ON {} STRAIGHT_JOIN {main} AS it ON it.{key} = c.{from} SET c.{to} = \
                 it.{new}{} WHERE r.n IN ({{rows}}) AND c.{to} IS NULL",
                each(&|at, it| format!("c.{it} = r.k{at}"), " AND "),
                self.kept(number, "c")
            )],
        })
    }

    /// Fills a column of a table without a primary key: all rows that refer to a part of the work list at once.
    fn unnamed_rows(&self, number: usize, table: &Moved, column: &Column) -> Action {
        let (from, to) = (quote(&column.name), quote(&column.new_name()));
        Action::References(References {
            read: self.part(),
            session: Vec::new(),
            collect: Vec::new(),
            rows: String::new(),
            row: String::new(),
            write: vec![format!(
                "UPDATE {} AS w STRAIGHT_JOIN {} AS it ON it.{} = w.old_key STRAIGHT_JOIN {} AS c ON c.{from} = w.old_key SET \
                 c.{to} = it.{}{} WHERE w.position > {{after}} AND w.position <= {{last}} AND c.{to} IS NULL",
                self.work(),
                self.table(self.main()),
                quote(&self.key().name),
                self.table(table),
                quote(&self.key().new_name()),
                self.kept(number, "c")
            )],
        })
    }

    /// Returns the query for the last position of a part of the work list.
    fn part(&self) -> String {
        format!(
            "SELECT MAX(position) FROM (SELECT position FROM {} WHERE position > {{after}} ORDER BY position LIMIT {{chunk}}) AS it",
            self.work()
        )
    }

    /// A row whose old key changes meanwhile changes its referring rows by ON UPDATE CASCADE, for which InnoDB runs no trigger and
    /// which are no longer in the work list.
    pub(super) fn stragglers(&self) -> Option<Step> {
        let mut statements = Vec::new();
        for (number, table) in self.found.tables.iter().enumerate() {
            for (column, foreign_key) in table.references() {
                if !foreign_key.actions.contains("ON UPDATE CASCADE") {
                    continue;
                }
                let (name, from, to) = (
                    self.table(table),
                    quote(&column.name),
                    quote(&column.new_name()),
                );
                statements.push(
                    Statement::new(format!(
                        "UPDATE {name} AS c JOIN {} AS it ON it.{} = c.{from} SET c.{to} = it.{}{} WHERE c.{to} IS NULL AND c.{from} \
                         IS NOT NULL",
                        self.table(self.main()),
                        quote(&self.key().name),
                        quote(&self.key().new_name()),
                        self.kept(number, "c")
                    ))
                    .unless(not(&format!(
                        "SELECT 1 FROM {name} WHERE {to} IS NULL AND {from} IS NOT NULL"
                    ))),
                );
            }
        }
        (!statements.is_empty()).then(|| {
            Self::online(
                "stragglers",
                "Fills the new columns of rows that refer to rows whose old keys have changed meanwhile",
                "the rows that it changes, if there are any",
                self.rows(1_000_000.0),
                statements,
            )
        })
    }

    pub(super) fn check(&self) -> Step {
        let (main, key, new) = (
            self.table(self.main()),
            quote(&self.key().name),
            quote(&self.key().new_name()),
        );
        let mut checks = self.pairs("new", Column::new_name);
        checks.push(Check::new(
            format!(
                "rows of {} whose keys are not in the order of the work list",
                self.main().title()
            ),
            format!(
                "SELECT COUNT(*) FROM (SELECT it.{new} < LAG(it.{new}) OVER (ORDER BY w.position) AS falls FROM {} AS w JOIN \
                 {main} AS it ON it.{key} = w.old_key) AS pairs WHERE falls",
                self.work()
            ),
        ));
        Self::step(
            "check",
            "Counts and joins old and new keys: nothing is switched unless every row has its key, and every reference its row",
            NONE,
            self.rows(200_000.0),
            Action::Check {
                checks,
                guards: Vec::new(),
            },
        )
    }

    /// Returns the counts by which the other columns are held against those that have the names.
    pub(super) fn pairs(&self, word: &str, other: fn(&Column) -> String) -> Vec<Check> {
        let words = Words {
            quote,
            table: |table| MySql::quote_table(Some(&table.schema), &table.name),
            differ: |left, right| format!("NOT ({left} <=> {right})"),
        };
        pairs(&self.found.tables, words, word, other)
    }

    /// The counts under the lock: links that only one of two columns has. They read an index, which each foreign key has.
    pub(super) fn lost_links(&self, word: &str, other: fn(&Column) -> String) -> Vec<Check> {
        let mut checks = Vec::new();
        for table in &self.found.tables {
            // Also of a column that is NOT NULL: the other one may be NULL until the end of the switch.
            for (column, _) in table.references() {
                checks.push(Check::new(
                    format!("rows of {} without a {word} {}", table.title(), column.name),
                    format!(
                        "SELECT COUNT(*) FROM {} WHERE {} IS NULL AND {} IS NOT NULL",
                        self.table(table),
                        quote(&other(column)),
                        quote(&column.name)
                    ),
                ));
            }
        }
        checks
    }
}
