//! NULL as a word of a statement: Babelfish refuses a parameter that is NULL and has no type.

use std::fmt::Write as _;

use ordid_sql::spi::{Statement, StatementKind};
use tiberius::ColumnData;

/// Returns the type of a NULL that tiberius 0.13 sends without one, as type 0x1F.
pub(crate) const fn untyped(value: &ColumnData<'_>) -> Option<&'static str> {
    Some(match value {
        ColumnData::String(None) => "nvarchar(max)",
        ColumnData::Binary(None) => "varbinary(max)",
        ColumnData::Numeric(None) => "numeric(38, 10)",
        ColumnData::Xml(None) => "xml",
        ColumnData::DateTime(None) => "datetime",
        ColumnData::SmallDateTime(None) => "smalldatetime",
        ColumnData::Time(None) => "time",
        ColumnData::Date(None) => "date",
        ColumnData::DateTime2(None) => "datetime2",
        ColumnData::DateTimeOffset(None) => "datetimeoffset",
        _ => return None,
    })
}

/// Writes NULL in the place of each parameter that has a type here, and numbers the others anew.
///
/// In an `INSERT`, NULL takes the type of the column. In the list of an `UPDATE`, NULL takes the type of the other
/// rows, so it is cast only if all rows are NULL. Beside a cast, the other rows would get the common type, which may
/// round.
pub(crate) fn in_text(statement: &Statement, types: &[Option<&'static str>]) -> String {
    let columns = statement.columns.len();
    let needs_type = |column: usize| {
        let mut of_column = types.iter().skip(column).step_by(columns.max(1));
        statement.kind != StatementKind::Insert && of_column.all(Option::is_some)
    };
    let needs_type: Vec<bool> = (0..columns).map(needs_type).collect();
    let mut sql = String::with_capacity(statement.sql.len());
    let mut rest = &*statement.sql;
    let (mut place, mut number) = (0, 0);
    while let Some(at) = rest.find(['[', '@']) {
        let (before, from) = rest.split_at(at);
        sql.push_str(before);
        let length = match from.strip_prefix("@P") {
            Some(digits) => 2 + digits.len() - digits.trim_start_matches(is_digit).len(),
            // A name in brackets is copied as it is.
            None if from.starts_with('[') => from.find(']').unwrap_or(0) + 1,
            None => 1,
        };
        let (part, behind) = from.split_at(length);
        rest = behind;
        if !part.starts_with("@P") {
            sql.push_str(part);
            continue;
        }
        let _ = match types.get(place) {
            Some(Some(ty)) if needs_type[place % columns] => write!(sql, "CAST(NULL AS {ty})"),
            Some(Some(_)) => write!(sql, "NULL"),
            _ => {
                number += 1;
                write!(sql, "@P{number}")
            }
        };
        place += 1;
    }
    sql.push_str(rest);
    sql
}

const fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(kind: StatementKind, sql: &str, columns: &[usize], rows: usize) -> Statement {
        let mut statement = Statement::insert(
            &ordid_sql::EngineProfile::BABELFISH,
            &ordid_sql::spi::TableNames {
                table: "[t]".to_owned(),
                columns: vec!["[a]".to_owned(); columns.len()],
                keys: vec![0],
                version: None,
                around: Vec::new(),
                returning: Vec::new(),
            },
            columns,
            rows,
        );
        statement.kind = kind;
        statement.sql = sql.into();
        statement
    }

    #[test]
    fn parameters_are_numbered_anew_and_names_are_kept() {
        let insert = statement(
            StatementKind::Insert,
            "INSERT INTO [@P1] ([a@P2], [b]) VALUES (@P1, @P2), (@P3, @P4)",
            &[0, 1],
            2,
        );
        assert_eq!(
            in_text(&insert, &[None, Some("date"), None, Some("date")]),
            "INSERT INTO [@P1] ([a@P2], [b]) VALUES (@P1, NULL), (@P2, NULL)"
        );
    }

    #[test]
    fn a_column_of_nulls_only_has_a_type_in_an_update() {
        let update = |types: &[Option<&'static str>]| {
            let sql = "UPDATE (VALUES (@P1, @P2), (@P3, @P4)); SELECT @@ROWCOUNT";
            in_text(&statement(StatementKind::Update, sql, &[0, 1], 2), types)
        };
        assert_eq!(
            update(&[None, Some("date"), None, Some("date")]),
            "UPDATE (VALUES (@P1, CAST(NULL AS date)), (@P2, CAST(NULL AS date))); SELECT @@ROWCOUNT"
        );
        assert_eq!(
            update(&[None, Some("numeric(38, 10)"), None, None]),
            "UPDATE (VALUES (@P1, NULL), (@P2, @P3)); SELECT @@ROWCOUNT"
        );
    }
}
