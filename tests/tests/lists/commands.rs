//! The commands of the documents that add crates name crates, versions and features that there are.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use serde_json::Value;

use super::{chapters, root};

/// What is built here: of each version of a package, its features.
struct Packages(BTreeMap<String, Vec<(String, Vec<String>)>>);

impl Packages {
    fn of_the_workspace() -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["metadata", "--format-version", "1", "--locked", "--offline"]);
        // What other machines need is not downloaded.
        command.args(["--filter-platform", &this_machine(), "--manifest-path"]);
        let output = command.arg(root().join("Cargo.toml")).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut packages = Self(BTreeMap::new());
        for package in metadata["packages"].as_array().unwrap() {
            let features = package["features"].as_object().unwrap();
            packages.insert(
                package["name"].as_str().unwrap(),
                package["version"].as_str().unwrap(),
                features.keys().cloned().collect(),
            );
        }
        packages
    }

    fn insert(&mut self, name: &str, version: &str, features: Vec<String>) {
        let versions = self.0.entry(name.to_owned()).or_default();
        versions.push((version.to_owned(), features));
    }

    /// Says what is wrong with a package of a command: a name, perhaps with `@` and the beginning of a version.
    fn mistake(&self, package: &str, features: &[&str]) -> Option<String> {
        let (name, wanted) = package.split_once('@').unwrap_or((package, ""));
        let Some(versions) = self.0.get(name) else {
            return Some(format!("there is no {name} here"));
        };
        // Without a version, `cargo add` takes the newest one. Of a crate below 1.0, or with two major versions at a time,
        // that may be another than is used here.
        let is_ours = name == "ordid" || name.starts_with("ordid-");
        let is_one = versions
            .iter()
            .all(|(version, _)| version.starts_with("1."));
        if wanted.is_empty() && !is_ours && !is_one {
            return Some(format!("say which version of {name}"));
        }
        let is_wanted = |version: &str| {
            let rest = version.strip_prefix(wanted);
            rest.is_some_and(|rest| wanted.is_empty() || rest.is_empty() || rest.starts_with('.'))
        };
        let mut found = versions.iter().filter(|(version, _)| is_wanted(version));
        let Some((_, there)) = found.next() else {
            return Some(format!("{name} is here as {versions:?}"));
        };
        let missing = features
            .iter()
            .find(|it| !there.iter().any(|has| has == *it))?;
        Some(format!("{name} has no feature {missing}"))
    }
}

/// Returns the target that the compiler builds for here.
fn this_machine() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("it names its host").to_owned()
}

/// Returns the documents that readers copy commands from, each with its path.
fn documents() -> Vec<(String, String)> {
    let mut documents = chapters();
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        for readme in [path.clone(), path.join("README.md")] {
            if readme.extension().is_some_and(|it| it == "md") && readme.is_file() {
                let text = fs::read_to_string(&readme).unwrap();
                documents.push((readme.display().to_string(), text));
            }
        }
    }
    documents
}

/// Adds the packages of a workspace of its own, which need not be there to be downloaded.
fn add_locked(packages: &mut Packages, lock: &Path) {
    let lock = fs::read_to_string(lock).unwrap();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let mut lines = package.lines();
            let value = lines.find_map(|line| line.strip_prefix(name)).unwrap();
            value.trim_matches('"').to_owned()
        };
        let (name, version) = (field("name = "), field("version = "));
        if !packages.0.contains_key(&name) {
            packages.insert(&name, &version, Vec::new());
        }
    }
}

#[test]
fn cargo_adds_what_the_documents_say() {
    let mut packages = Packages::of_the_workspace();
    add_locked(&mut packages, &root().join("ordid-etcd/Cargo.lock"));
    let (mut mistakes, mut commands) = (Vec::new(), 0);
    for (name, text) in documents() {
        for line in text.lines().map(str::trim_start) {
            let Some(command) = line.strip_prefix("$ cargo add ") else {
                continue;
            };
            commands += 1;
            let words = command.split('#').next().unwrap().split_whitespace();
            let (mut added, mut features, mut is_list) = (Vec::new(), Vec::new(), false);
            for word in words {
                match word {
                    _ if is_list => {
                        features.extend(word.split(','));
                        is_list = false;
                    }
                    "--features" => is_list = true,
                    "--dev" | "--no-default-features" => {}
                    package => added.push(package),
                }
            }
            let of_one = added.len() == 1 || features.is_empty();
            assert!(of_one, "{name}: {line}: whose features are these?");
            let wrong = added
                .iter()
                .filter_map(|it| packages.mistake(it, &features));
            mistakes.extend(wrong.map(|it| format!("{name}: {line}: {it}")));
        }
    }
    assert!(mistakes.is_empty(), "{mistakes:#?}");
    assert!(commands > 50, "{commands}");
}

/// Every command of the documents is one of these. A test of `ordid-cli` runs those of `ordid`, and who checks the project runs
/// most of the others.
#[test]
fn other_commands_are_known() {
    let known = [
        "cargo add ",
        "ordid ",
        "cargo run --release -p quickstart",
        "cargo xtask test",
        // Of ordid-etcd, whose tests they run.
        "cargo run -p ordid-harness --bin private-server -- etcd",
        "ORDID_TEST_ETCD_URL=",
        // Makes a secret.
        "openssl rand -hex 16",
    ];
    for (name, text) in documents() {
        for block in text.split("```console\n").skip(1) {
            let block = block.split("```").next().unwrap();
            for command in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
                assert!(
                    known.iter().any(|it| command.starts_with(it)),
                    "{name}: {command}: does a test run it?"
                );
            }
        }
    }
}

/// The chapter about adapters shows the macro of the smallest one.
#[test]
fn the_macro_of_the_guide_is_that_of_the_third_party() {
    // Other comments and attributes stand beside the code there.
    let code = |text: &str| {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|it| !it.starts_with("//") && !it.starts_with("#[doc"));
        lines
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let source = code(include_str!("../../third-party/src/lib.rs"));
    let chapter = include_str!("../../../docs/src/adapters.md");
    let shown = chapter.split("```text\n").skip(1);
    let mut shown = shown.filter_map(|it| it.split("```").next());
    let shown = code(shown.find(|it| it.contains("macro_rules!")).unwrap());
    assert!(shown.len() > 30, "{shown:#?}");
    assert!(
        source.windows(shown.len()).any(|window| window == shown),
        "the macro of tests/third-party is another: {shown:#?}"
    );
}
