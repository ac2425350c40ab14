//! Schemes and columns, by the names that users write.

use ordid_core::{
    clock::{Clock, Timestamp},
    scheme::catalogue::{self, AnyColumn, CATALOGUE, Entry},
};

use crate::{engine::Engine, failure::Failure};

/// A scheme that a user has named.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named(pub(crate) &'static Entry);

impl std::str::FromStr for Named {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        catalogue::find(name).map(Self).ok_or_else(|| {
            let near = nearest(name, CATALOGUE.iter().map(|entry| entry.name));
            format!("there is no scheme of this name{near}; `ordid schemes` lists them")
        })
    }
}

/// Returns `, did you mean ..?` with the name that is nearest to what was written, if one is near.
pub(crate) fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> String {
    let distances = names.map(|name| (distance(written, name), name));
    match distances.min() {
        Some((distance, name)) if distance <= written.len().div_ceil(3) => {
            format!("; did you mean `{name}`?")
        }
        _ => String::new(),
    }
}

/// The least number of characters to add, to leave out or to change.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, left) in left.chars().enumerate() {
        let mut above_left = row[0];
        row[0] = index + 1;
        for (column, right) in right.iter().enumerate() {
            let changed = above_left + usize::from(left != *right);
            above_left = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(above_left + 1);
        }
    }
    row[right.len()]
}

/// Returns the columns of an engine that store the scheme's keys, those that keep their order first.
pub(crate) fn columns(scheme: &'static Entry, engine: Engine) -> Vec<AnyColumn> {
    let mut columns = scheme.columns();
    columns.retain(|column| column.dialect == engine.name());
    columns.sort_by_key(|column| !column.keeps_order_of(scheme));
    columns
}

/// Returns the column of this name, or the one that keeps the order of the scheme's keys.
///
/// # Errors
///
/// The engine has no such column for these keys, or the keys lose their order in it.
pub(crate) fn ordered_column(
    scheme: &'static Entry,
    engine: Engine,
    name: Option<&str>,
) -> Result<AnyColumn, Failure> {
    let columns = columns(scheme, engine);
    let ordered = columns
        .iter()
        .filter(|column| column.keeps_order_of(scheme));
    let ordered: Vec<&AnyColumn> = ordered.collect();
    let others = || match ordered.iter().map(|column| column.name).collect::<Vec<_>>() {
        names if names.is_empty() => format!("no column of {engine} keeps their order"),
        names => format!("they keep it in {}", names.join(", ")),
    };
    let found = match name {
        None => ordered.first().copied(),
        Some(name) => columns.iter().find(|column| column.name == name),
    };
    match (found, name) {
        (Some(column), _) if column.keeps_order_of(scheme) => Ok(*column),
        (Some(column), _) => Err(Failure::wrong(format_args!(
            "`{}` keys lose their order in the column `{}` of {engine}: it {}; {}",
            scheme.name,
            column.name,
            column.comparison.describe(),
            others()
        ))),
        (None, Some(name)) => Err(Failure::wrong(format_args!(
            "{engine} has no column `{name}` for `{}` keys; {}",
            scheme.name,
            others()
        ))),
        (None, None) => Err(Failure::wrong(format_args!(
            "`{}` keys: {}",
            scheme.name,
            others()
        ))),
    }
}

/// A clock that stands still.
pub(crate) struct Still(pub(crate) Timestamp);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_scheme_is_answered_with_the_nearest_one() {
        let message = "uuid_7".parse::<Named>().unwrap_err();
        assert_eq!(
            message,
            "there is no scheme of this name; did you mean `uuid_v7`?; `ordid schemes` lists them"
        );
        assert!(
            !"zzzzzz"
                .parse::<Named>()
                .unwrap_err()
                .contains("did you mean")
        );
    }

    #[test]
    fn a_column_that_loses_the_order_is_refused_with_those_that_keep_it() {
        let refused = |engine, name| {
            let scheme = catalogue::find("uuid_v7").unwrap();
            match ordered_column(scheme, engine, name) {
                Err(Failure::WrongUse(message)) => message,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            refused(Engine::SqlServer, Some("unique_identifier")),
            "`uuid_v7` keys lose their order in the column `unique_identifier` of SQL Server: it compares bytes 10 to 15 \
             first; they keep it in unique_identifier_permuted, binary16"
        );
        assert!(refused(Engine::Mysql, Some("uuid")).starts_with("MySQL has no column `uuid`"));
        let scheme = catalogue::find("uuid_v7").unwrap();
        let column = ordered_column(scheme, Engine::Mysql, None).unwrap();
        assert_eq!(column.name, "binary16");
    }
}
