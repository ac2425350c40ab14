//! What crates need that get published: a description, a pinned dependency on each other, and no file
//! outside of their folder.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use serde_json::Value;

/// What registries show of a crate.
const FIELDS: [&str; 5] = [
    "description",
    "license",
    "readme",
    "repository",
    "rust_version",
];

/// Returns the packages of `cargo metadata` that get published.
pub(crate) fn packages(metadata: &Value) -> Vec<&Value> {
    let packages = metadata.get("packages").and_then(Value::as_array);
    packages
        .into_iter()
        .flatten()
        // `publish = false` is an empty list of registries; null is any registry.
        .filter(|package| {
            !package
                .get("publish")
                .and_then(Value::as_array)
                .is_some_and(Vec::is_empty)
        })
        .collect()
}

/// Returns what is wrong with the manifests of these packages. Crates of ordid share hidden items, so
/// each depends on exactly the version of the others that it was tested with.
pub(crate) fn mistakes(packages: &[&Value]) -> Vec<String> {
    let text = |value: &Value, field: &str| -> Option<String> {
        value.get(field)?.as_str().map(str::to_owned)
    };
    let mut mistakes = Vec::new();
    for package in packages {
        let name = text(package, "name").unwrap_or_default();
        for field in FIELDS {
            if text(package, field).is_none() {
                mistakes.push(format!("{name} has no `{field}`"));
            }
        }
        let dependencies = package.get("dependencies").and_then(Value::as_array);
        for dependency in dependencies.into_iter().flatten() {
            let (of, req) = (text(dependency, "name"), text(dependency, "req"));
            let (of, req) = (of.unwrap_or_default(), req.unwrap_or_default());
            let is_dev = text(dependency, "kind").as_deref() == Some("dev");
            // Tests may use what is not published, by its path alone.
            if dependency.get("path").is_some() && !req.starts_with('=') && !(is_dev && req == "*")
            {
                mistakes.push(format!(
                    "{name} depends on {of} by `{req}`: pin it by `version = \"=..\"`"
                ));
            }
        }
    }
    mistakes
}

/// Returns the files that sources below a crate's folder include from outside of it, and that a
/// package would not have.
///
/// # Errors
///
/// If a file cannot be read.
pub(crate) fn included_from_outside(folder: &Path) -> io::Result<Vec<String>> {
    let mut outside = Vec::new();
    let mut folders = vec![folder.join("src")];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let source = fs::read_to_string(&path)?;
                for included in included(&source) {
                    if leaves(folder, &path, included) {
                        outside.push(format!("{} includes {included}", path.display()));
                    }
                }
            }
        }
    }
    Ok(outside)
}

/// The paths in `include_str!("..")`, its sisters, and `#[path = ".."]`.
fn included(source: &str) -> impl Iterator<Item = &str> {
    const BEFORE: [&str; 4] = [
        "include_str!(\"",
        "include_bytes!(\"",
        "include!(\"",
        "[path = \"",
    ];
    BEFORE.into_iter().flat_map(|before| {
        let found = source.split(before).skip(1);
        found.filter_map(|rest| rest.split('"').next())
    })
}

fn leaves(folder: &Path, file: &Path, included: &str) -> bool {
    let mut path = PathBuf::from(file);
    path.pop();
    for component in Path::new(included).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            other => path.push(other),
        }
    }
    !path.starts_with(folder)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn crates_are_pinned_and_described() {
        let metadata = json!({ "packages": [
            { "name": "xtask", "publish": [], "dependencies": [] },
            { "name": "ordid-core", "publish": null, "description": "d", "license": "l",
              "readme": "r", "repository": "u", "rust_version": "1.89", "dependencies": [
                { "name": "uuid", "req": "^1.0", "kind": null },
                { "name": "ordid-tests", "req": "*", "kind": "dev", "path": "/tests" },
              ] },
            { "name": "ordid-sqlx", "publish": null, "description": "d", "license": "l",
              "readme": null, "repository": "u", "rust_version": "1.94", "dependencies": [
                { "name": "ordid-core", "req": "^0.1.0", "kind": null, "path": "/core" },
                { "name": "ordid-derive", "req": "=0.1.0", "kind": null, "path": "/derive" },
                { "name": "ordid", "req": "^0.1.0", "kind": "dev", "path": "/ordid" },
              ] },
        ]});
        let packages = packages(&metadata);
        assert_eq!(packages.len(), 2);
        assert_eq!(
            mistakes(&packages),
            [
                "ordid-sqlx has no `readme`",
                "ordid-sqlx depends on ordid-core by `^0.1.0`: pin it by `version = \"=..\"`",
                "ordid-sqlx depends on ordid by `^0.1.0`: pin it by `version = \"=..\"`",
            ]
        );
    }

    #[test]
    fn included_files_have_to_be_in_the_folder() {
        let source = r#"
            #[doc = include_str!("../README.md")]
            const A: &[u8] = include_bytes!("../../tests/vectors/a.json");
            #[path = "../../../other/src/b.rs"]
        "#;
        let found: Vec<_> = included(source).collect();
        assert_eq!(found.len(), 3);
        let folder = Path::new("/repository/ordid-core");
        let outside = |included| leaves(folder, &folder.join("src/key/text.rs"), included);
        assert!(!outside("../../README.md"));
        assert!(!outside("../../tests/vectors/a.json"));
        assert!(outside("../../../README.md"));
        assert!(outside("../../../ordid/src/b.rs"));
    }
}
