//! Schemes and columns, by the names that users write.

use std::{collections::BTreeSet, ffi::OsStr};

use clap::{
    Arg,
    builder::{PossibleValue, StringValueParser, TypedValueParser, ValueParserFactory},
};
use ordid_core::{
    clock::{Clock, Timestamp},
    scheme::catalogue::{self, AnyColumn, CATALOGUE, Entry},
};

use crate::{engine::Engine, failure::Failure, near};

/// A scheme that a user has named.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named(pub(crate) &'static Entry);

impl std::str::FromStr for Named {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        named(name).map(Self)
    }
}

impl ValueParserFactory for Named {
    type Parser = SchemeName;

    fn value_parser() -> SchemeName {
        SchemeName
    }
}

/// Reads the name of a scheme. It knows all names, so that shells complete them; a wrong one gets [`named`]'s answer, which
/// is shorter than a list of all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemeName;

impl TypedValueParser for SchemeName {
    type Value = Named;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Named, clap::Error> {
        let parser = StringValueParser::new().try_map(|name| name.parse::<Named>());
        parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = CATALOGUE.iter().map(|entry| entry.name);
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

/// Reads a name that other arguments decide about. It takes any text, and knows names, so that shells complete them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known(pub(crate) fn() -> Vec<&'static str>);

impl TypedValueParser for Known {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let Self(names) = self;
        Some(Box::new(names().into_iter().map(PossibleValue::new)))
    }
}

/// Returns the names of all columns of all engines.
pub(crate) fn column_names() -> Vec<&'static str> {
    let columns = CATALOGUE.iter().flat_map(Entry::columns);
    let names: BTreeSet<&str> = columns.map(|column| column.name).collect();
    names.into_iter().collect()
}

/// Returns the keys that a bench may begin with: `auto`, and all schemes.
pub(crate) fn bench_names() -> Vec<&'static str> {
    let schemes = CATALOGUE.iter().map(|entry| entry.name);
    ["auto"].into_iter().chain(schemes).collect()
}

/// Returns the scheme of this name.
///
/// # Errors
///
/// There is none; the message has the name that is nearest, if one is near.
pub(crate) fn named(name: &str) -> Result<&'static Entry, String> {
    catalogue::find(name).ok_or_else(|| {
        let near = near::suggestion(name, CATALOGUE.iter().map(|entry| entry.name));
        format!("there is no scheme `{name}`{near}: `ordid schemes` lists them")
    })
}

/// Returns the columns of an engine that store the scheme's keys, those that keep their order first.
pub(crate) fn columns(scheme: &'static Entry, engine: Engine) -> Vec<AnyColumn> {
    let mut columns = scheme.columns();
    columns.retain(|column| column.dialect == engine.name());
    columns.sort_by_key(|column| !column.keeps_order_of(scheme));
    columns
}

/// Returns the column of this name, or the first that keeps the order of the scheme's keys, or else the first one.
///
/// # Errors
///
/// The engine has no such column for these keys.
pub(crate) fn column(
    scheme: &'static Entry,
    engine: Engine,
    name: Option<&str>,
) -> Result<AnyColumn, Failure> {
    let columns = columns(scheme, engine);
    let name = name.map(|name| name.replace('-', "_"));
    let found = match &name {
        None => columns.first(),
        Some(name) => columns.iter().find(|column| column.name == name),
    };
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
        match (name, names.is_empty()) {
            (Some(name), false) => Failure::wrong(format_args!(
                "{engine} has no column `{name}` for `{}` keys; it has {}",
                scheme.name,
                names.join(", ")
            )),
            _ => Failure::wrong(format_args!(
                "{engine} has no column for `{}` keys",
                scheme.name
            )),
        }
    })
}

/// Returns the column of this name, or the first that keeps the order of the scheme's keys.
///
/// # Errors
///
/// The engine has no such column for these keys, or the keys lose their order in it; the message has the ways out.
pub(crate) fn ordered_column(
    scheme: &'static Entry,
    engine: Engine,
    name: Option<&str>,
) -> Result<AnyColumn, Failure> {
    let column = column(scheme, engine, name)?;
    if column.keeps_order_of(scheme) {
        return Ok(column);
    }
    let columns = columns(scheme, engine).into_iter();
    let ordered = columns.filter(|column| column.keeps_order_of(scheme));
    let way_out = match ordered.map(|column| column.name).collect::<Vec<_>>() {
        names if names.is_empty() => format!("no column of {engine} keeps it"),
        names => format!("they keep it in {}", names.join(", ")),
    };
    let other = CATALOGUE.iter().find(|entry| column.keeps_order_of(entry));
    let other = other.map_or_else(String::new, |entry| {
        format!("; keys of `{}` keep theirs here", entry.name)
    });
    Err(Failure::wrong(format_args!(
        "`{}` keys lose their order in the column `{}` of {engine}: it {}; {way_out}{other}",
        scheme.name,
        column.name,
        column.comparison.describe()
    )))
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
            "there is no scheme `uuid_7`; did you mean `uuid_v7`?: `ordid schemes` lists them"
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
             first; they keep it in unique_identifier_permuted, binary16; keys of `comb_nhibernate` keep theirs here"
        );
        assert!(refused(Engine::Mysql, Some("uuid")).starts_with("MySQL has no column `uuid`"));
        let scheme = catalogue::find("uuid_v7").unwrap();
        let column = ordered_column(scheme, Engine::Mysql, None).unwrap();
        assert_eq!(column.name, "binary16");
    }
}
