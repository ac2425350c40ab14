//! Checks what the compiler says if a feature is missing, with the packages of the workspace `tests/features`.
//!
//! None of them compiles. The first error of a package has to contain the words in its `package.metadata.ordid.names`.
//! All of its errors are compared with its `errors.txt`, which has those of Rust 1.95.
//! `TRYBUILD=overwrite cargo test -p ordid-tests --test features` writes these files again; read the difference.

use std::{
    collections::HashSet,
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use ordid_tests::workspaces::target_folder;
use serde_json::Value;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("features")
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(arguments)
        .args(["--locked", "--offline", "--manifest-path"])
        .arg(workspace().join("Cargo.toml"))
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("CARGO_BUILD_TARGET");
    command
}

/// A package that lacks a feature.
struct Case {
    package: String,
    folder: PathBuf,
    names: Vec<String>,
}

fn cases() -> Vec<Case> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let case = |package: &Value| {
        let names = package.pointer("/metadata/ordid/names");
        let names = names.and_then(Value::as_array).unwrap();
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        Case {
            package: package["name"].as_str().unwrap().to_owned(),
            folder: manifest.parent().unwrap().to_owned(),
            names: names
                .iter()
                .map(|it| it.as_str().unwrap().to_owned())
                .collect(),
        }
    };
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(case)
        .collect()
}

/// Compiles a package, and returns the errors as texts.
fn errors(package: &str) -> Vec<String> {
    let output = cargo(&[
        "check",
        "--quiet",
        "--message-format",
        "json",
        "-p",
        package,
    ])
    // Later runs use the same folder, so that the dependencies are compiled once.
    .arg("--target-dir")
    .arg(target_folder().join("features"))
    .output()
    .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut errors = Vec::new();
    for line in lines.lines() {
        let said: Value = serde_json::from_str(line).unwrap();
        let message = &said["message"];
        // The last error counts the others. It has neither a code nor a place.
        let is_error = said["reason"] == "compiler-message" && message["level"] == "error";
        if is_error
            && message["spans"]
                .as_array()
                .is_some_and(|spans| !spans.is_empty())
        {
            let of = said["target"]["name"].as_str().unwrap().replace('_', "-");
            assert_eq!(of, package, "{}", message["rendered"]);
            // The number of times that the compiler repeats an error depends on its cache.
            let text = text(message);
            if !errors.contains(&text) {
                errors.push(text);
            }
        }
    }
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success(),
        "{package} compiles: nothing is missing"
    );
    assert!(!errors.is_empty(), "{package}: {err}");
    errors
}

/// Writes an error without the places in other files, which change with each line of our sources.
fn text(error: &Value) -> String {
    let code = error["code"]["code"].as_str();
    let code = code.map(|code| format!("[{code}]")).unwrap_or_default();
    let mut text = format!("error{code}: {}\n", first_line(error));
    for span in error["spans"].as_array().unwrap() {
        if span["is_primary"] == true {
            let place = span["line_start"].as_u64().unwrap();
            let source = span["text"][0]["text"].as_str().unwrap_or_default().trim();
            let label = span["label"].as_str().unwrap_or("");
            writeln!(text, "  {place}: {source}").unwrap();
            if !label.is_empty() {
                writeln!(text, "     {label}").unwrap();
            }
        }
    }
    for child in error["children"].as_array().unwrap() {
        if is_of_this_run(first_line(child)) {
            continue;
        }
        let level = child["level"].as_str().unwrap();
        write!(text, "  {level}: {}", first_line(child)).unwrap();
        for span in child["spans"].as_array().unwrap() {
            if let Some(label) = span["label"].as_str() {
                write!(text, "; {label}").unwrap();
            }
        }
        text.push('\n');
    }
    text
}

/// Returns whether a note names a file of this run, to which the compiler has written a long name.
fn is_of_this_run(note: &str) -> bool {
    note.starts_with("the full name for the type has been written to")
        || note.contains("`--verbose`")
}

/// Returns the first line of a message. The next lines may list all types that implement a trait, and these change with
/// each version of a library.
fn first_line(message: &Value) -> &str {
    let text = message["message"].as_str().unwrap();
    text.lines().next().unwrap_or_default()
}

#[test]
fn the_first_error_names_the_feature_that_is_missing() {
    let overwrite = env::var_os("TRYBUILD").is_some_and(|value| value == "overwrite");
    let mut mistakes = Vec::new();
    for case in cases() {
        let errors = errors(&case.package);
        for name in &case.names {
            if !errors[0].contains(name) {
                mistakes.push(format!(
                    "{} does not name {name}:\n{}",
                    case.package, errors[0]
                ));
            }
        }
        let found = errors.join("\n");
        let file = case.folder.join("errors.txt");
        if overwrite {
            fs::write(&file, &found).unwrap();
        } else if fs::read_to_string(&file).unwrap_or_default() != found {
            mistakes.push(format!(
                "{} differs from {}:\n{found}",
                case.package,
                file.display()
            ));
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn no_package_has_a_version_that_the_other_workspace_does_not_have() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .join("Cargo.lock");
    let [ours, theirs] = [workspace().join("Cargo.lock"), root].map(|file| {
        let lock = fs::read_to_string(file).unwrap();
        let packages = lock.split("[[package]]").skip(1).map(|package| {
            let lines = package.lines();
            let said: Vec<_> = lines
                .filter(|it| it.starts_with("name = ") || it.starts_with("version = "))
                .collect();
            said.join(", ")
        });
        packages.collect::<HashSet<_>>()
    });
    let own: Vec<_> = ours.difference(&theirs).collect();
    assert!(
        own.iter().all(|package| package.contains("\"missing-")),
        "{own:#?}"
    );
}
