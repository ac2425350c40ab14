//! `cargo xtask check`.

use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::docs;
use crate::lanes::{self, Step};
use crate::packages;
use crate::published;
use crate::run::{self, Result};

/// The benches are a workspace of their own.
pub(crate) const BENCH: &str = "bench/Cargo.toml";
/// So is the program without `std`.
const NO_STD: &str = "tests/no-std/Cargo.toml";
/// And the adapter that ordid does not know.
const THIRD_PARTY: &str = "tests/third-party/Cargo.toml";
/// And the code that the guide shows for Toasty.
const TOASTY: &str = "tests/toasty/Cargo.toml";
/// The packages of `tests/features` are a workspace, too. They lack a feature, so they do not compile.
const FEATURES: &str = "tests/features/Cargo.toml";
/// And the fuzz targets.
const FUZZ: &str = "fuzz/Cargo.toml";

/// These workspaces use many packages that are compiled for their lints alone.
const LARGE: [&str; 3] = [BENCH, FUZZ, TOASTY];

/// The packages whose features are checked beside those of the others: about half of the time.
const BESIDE: [&str; 6] = [
    "ordid-diesel",
    "ordid-oracle",
    "ordid-redis",
    "ordid-tiberius",
    "ordid-tokio-postgres",
    "ordid-zookeeper",
];

/// And what is built with `protoc`.
pub(crate) const ETCD: &str = "ordid-etcd/Cargo.toml";

/// Installs what is missing, and runs every check, up to the first that fails. The short form leaves out what takes most of
/// the time and seldom fails: the documentation of the API, the pages of the guide, the lints of [`LARGE`] workspaces, and
/// selections of features: each package is checked with none, and with what the workspace's tests turn on.
pub(crate) fn check(is_short: bool) -> Result<ExitCode> {
    packages::install(|| {
        let needed = [
            packages::c_compiler(),
            packages::cpp_compiler(),
            packages::openssl(),
            &packages::c_clients(),
        ];
        Ok(needed.concat())
    })?;
    step("format", &mut run::cargo(&["fmt", "--all", "--check"]))?;
    let others = [
        ("bench", BENCH),
        ("fuzz", FUZZ),
        ("no-std", NO_STD),
        ("third-party", THIRD_PARTY),
        ("toasty", TOASTY),
    ];
    let mut others = Vec::from(others);
    others.retain(|(_, manifest)| run::root().join(manifest).exists());
    // All formats come first, since they need seconds and the lints need minutes.
    for (name, manifest) in others.iter().chain(&[("features", FEATURES)]) {
        let format = ["fmt", "--all", "--check", "--manifest-path", manifest];
        step(&format!("format of {name}"), &mut run::cargo(&format))?;
    }
    let lints = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    step("lints", &mut run::cargo(&lints))?;
    let api = ["doc", "--workspace", "--no-deps", "--locked"];
    if !is_short {
        step("docs", run::cargo(&api).env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    println!("== guide");
    match is_short {
        true => docs::check()?,
        false => drop(docs::build()?),
    }

    lanes::succeed(lanes_of_features(&others, is_short)?)?;
    package()?;
    println!("\nevery check passed");
    Ok(ExitCode::SUCCESS)
}

/// Returns the checks of each selection of features, and of the other workspaces. Most compile one crate, which takes one
/// core, so there are two lanes. The second one has a build folder of its own, as cargo builds once at a time in a folder.
fn lanes_of_features(others: &[(&str, &str)], is_short: bool) -> Result<[Vec<Step>; 2]> {
    // In the workspace, other packages turn on features that these tests would not be built without.
    let core = ["check", "-p", "ordid-core", "--all-targets", "--locked"];
    let core = Step::new("tests of ordid-core by themselves", run::cargo(&core));
    let (beside, here): (Vec<_>, Vec<_>) = packages()?
        .into_iter()
        .partition(|package| BESIDE.contains(&&*package.name));
    if beside.len() != BESIDE.len() {
        return Err(format!("a package of {BESIDE:?} is not published"));
    }
    let steps = |packages: &[Package]| -> Vec<Step> {
        packages.iter().flat_map(|it| it.lints(is_short)).collect()
    };
    let mut beside = steps(&beside);
    for (name, manifest) in others
        .iter()
        .filter(|it| !is_short || !LARGE.contains(&it.1))
    {
        let mut lints = run::cargo(&["clippy", "--workspace", "--all-targets", "--locked"]);
        lints.args(["--manifest-path", manifest, "--", "-D", "warnings"]);
        beside.push(Step::new(format!("lints of {name}"), lints));
    }
    beside.extend(etcd());
    let folder = run::target().join("beside");
    for step in &mut beside {
        step.command.env("CARGO_TARGET_DIR", &folder);
    }
    let here = [core].into_iter().chain(steps(&here)).collect();
    Ok([here, beside])
}

/// Lints and documents ordid-etcd where it can be built: nobody has to install `protoc` for the others.
fn etcd() -> Vec<Step> {
    let manifest = ["--manifest-path", ETCD];
    let mut format = run::cargo(&["fmt", "--check"]);
    format.args(manifest);
    let mut steps = vec![Step::new("format of etcd", format)];
    if !packages::protoc().is_empty() {
        println!("== lints of etcd: left out, `protoc` is not installed");
        return steps;
    }
    for features in ["", "metrics,tracing"] {
        let mut lints = run::cargo(&["clippy", "--all-targets", "--locked"]);
        lints.args(manifest).args(["--features", features]);
        lints.args(["--", "-D", "warnings"]);
        steps.push(Step::new("lints of etcd", lints));
    }
    let mut docs = run::cargo(&["doc", "--no-deps", "--locked"]);
    docs.args(manifest).env("RUSTDOCFLAGS", "-D warnings");
    steps.push(Step::new("docs of etcd", docs));
    steps
}

/// Packs what gets published, as for a registry, and looks at what a package would not have. Nothing
/// is compiled: that was done.
fn package() -> Result<()> {
    println!("== packages");
    let (members, etcd) = (
        run::metadata(&[])?,
        run::metadata(&["--manifest-path", ETCD])?,
    );
    let published: Vec<&Value> = [&members, &etcd]
        .into_iter()
        .flat_map(published::packages)
        .collect();
    let mut mistakes = published::mistakes(&published);
    for package in &published {
        let manifest = package.get("manifest_path").and_then(Value::as_str);
        if let Some(folder) = manifest.and_then(|manifest| Path::new(manifest).parent()) {
            let outside = published::included_from_outside(folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
            mistakes.extend(outside);
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes.join("\n"));
    }
    // The working tree is what is checked. Everything that it locks is there by now.
    let flags = ["package", "--no-verify", "--allow-dirty", "--offline"];
    let mut command = run::cargo(&flags);
    for package in published::packages(&members) {
        if let Some(name) = package.get("name").and_then(Value::as_str) {
            command.args(["-p", name]);
        }
    }
    run::succeed(&mut command)?;
    // The lock file of a workspace of its own would need a core that no registry has yet.
    let mut command = run::cargo(&flags);
    run::succeed(command.args(["--exclude-lockfile", "--manifest-path", ETCD]))
}

fn step(heading: &str, command: &mut Command) -> Result<()> {
    println!("== {heading}");
    run::succeed(command)
}

/// A package that gets published, and so meets feature combinations that the workspace never
/// builds.
#[derive(Debug, PartialEq)]
struct Package {
    name: String,
    features: Vec<String>,
    /// Features of which only one can be on, by `package.metadata.ordid.exclusive`.
    exclusive: Vec<String>,
}

impl Package {
    /// The lints of each selection of features.
    fn lints(&self, is_short: bool) -> Vec<Step> {
        let lints = |features: &Vec<String>| {
            let mut lints = run::cargo(&["clippy", "-p", &self.name, "--locked"]);
            lints.args(features).args(["--", "-D", "warnings"]);
            let what = match features.is_empty() {
                true => "default".to_owned(),
                false => features.join(" "),
            };
            Step::new(format!("features of {}: {what}", self.name), lints)
        };
        self.selections(is_short).iter().map(lints).collect()
    }

    /// The flags of `cargo clippy` for no feature, the default, each feature alone, and all; where
    /// some exclude each other, all the others with each of them. The short form has the first.
    fn selections(&self, is_short: bool) -> Vec<Vec<String>> {
        let own = |flags: &[&str]| flags.iter().map(|&flag| flag.to_owned()).collect();
        if self.features.is_empty() {
            return vec![own(&[])];
        }
        let mut selections = vec![own(&["--no-default-features"])];
        if is_short {
            return selections;
        }
        selections.push(own(&[]));
        for feature in self.features.iter().filter(|it| *it != "default") {
            selections.push(own(&["--no-default-features", "--features", feature]));
        }
        if self.exclusive.is_empty() {
            selections.push(own(&["--all-features"]));
        }
        for one in &self.exclusive {
            let excluded = |feature: &&String| !self.exclusive.contains(feature) || *feature == one;
            let features: Vec<_> = self.features.iter().filter(excluded).cloned().collect();
            selections.push(own(&["--features", &features.join(",")]));
        }
        selections
    }
}

fn packages() -> Result<Vec<Package>> {
    publishable(&run::metadata(&[])?)
        .ok_or_else(|| "`cargo metadata` wrote an unknown form".to_owned())
}

fn publishable(metadata: &Value) -> Option<Vec<Package>> {
    metadata.get("packages")?;
    let mut packages = Vec::new();
    for package in published::packages(metadata) {
        let features = package.get("features")?.as_object()?.keys();
        let exclusive = package.pointer("/metadata/ordid/exclusive");
        let exclusive = exclusive.and_then(Value::as_array).into_iter().flatten();
        packages.push(Package {
            name: package.get("name")?.as_str()?.to_owned(),
            features: features.filter(|name| is_public(name)).cloned().collect(),
            exclusive: exclusive
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        });
    }
    Some(packages)
}

fn is_public(feature: &str) -> bool {
    !feature.starts_with('_') && !feature.starts_with("internal-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_public_feature_is_checked_alone() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "xtask", "publish": [], "features": { "x": [] } },
            { "name": "ordid-derive", "publish": null, "features": {} },
            { "name": "ordid-core", "publish": null,
              "features": { "default": ["std"], "std": [], "_test": [], "internal-doc": [] } },
            { "name": "ordid-tiberius", "publish": null, "features": { "a": [], "b": [], "c": [] },
              "metadata": { "ordid": { "exclusive": ["a", "b"] } } },
        ]});
        let packages = publishable(&metadata).expect("the form is known");
        let names: Vec<&str> = packages
            .iter()
            .map(|package| package.name.as_str())
            .collect();
        assert_eq!(names, ["ordid-derive", "ordid-core", "ordid-tiberius"]);
        let flags = |package: &Package| -> Vec<String> {
            package
                .selections(false)
                .iter()
                .map(|flags| flags.join(" "))
                .collect()
        };
        assert_eq!(packages[1].selections(true), [["--no-default-features"]]);
        assert_eq!(flags(&packages[0]), [""]);
        assert_eq!(
            flags(&packages[1]),
            [
                "--no-default-features",
                "",
                "--no-default-features --features std",
                "--all-features"
            ]
        );
        assert_eq!(
            flags(&packages[2])[5..],
            ["--features a,c", "--features b,c"]
        );
        assert_eq!(publishable(&serde_json::json!({})), None);
    }
}
