//! The lists that are made of the catalogue of schemes or of the list of columns are what they say.

use ordid_tests::lists::{lists, missing};

#[test]
fn lists_that_are_written_from_the_catalogue_say_what_it_says() {
    for list in lists() {
        let found = list.found().unwrap();
        let missing: Vec<_> = list
            .text
            .lines()
            .filter(|line| !found.lines().any(|other| other == *line))
            .collect();
        assert!(
            found == list.text,
            "run `cargo xtask lists`: {} does not have {missing:#?}",
            list.path
        );
    }
}

#[test]
fn the_readme_names_every_scheme() {
    let readme = include_str!("../../README.md");
    let missing = missing(readme);
    assert!(
        missing.is_empty(),
        "the table \"Pick your key\" of README.md does not have {missing:?}: \
         `cargo run -p catalogue -- --markdown` prints it"
    );
}

macro_rules! columns {
    ($($name:ident $column:ident: [$($raw:ident)+] $($dialect:ident)+;)+) => {
        [$(stringify!($name)),+]
    };
}

#[test]
fn the_matrix_names_every_column() {
    let columns = ordid_core::__for_each_column! { columns };
    let text = include_str!("../../PLATFORM.md");
    let missing: Vec<_> = columns
        .iter()
        .filter(|name| !text.contains(&format!("`{name}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "run `cargo xtask conformance`: PLATFORM.md does not have the columns {missing:?}"
    );
}
