//! Key types in Toasty without an adapter: tests the code of COOKBOOK.md, which is in `tests/toasty`.

use ordid_tests::workspaces;

#[test]
fn key_types_work_in_toasty_without_an_adapter() {
    let (out, _) = workspaces::cargo("test", "toasty");
    for ran in [
        "test tests::the_code_of_the_cookbook_runs ... ok",
        "8 passed",
    ] {
        assert!(out.contains(ran), "{ran}: {out}");
    }
}

#[test]
fn the_cookbook_shows_the_code_that_runs() {
    let cookbook = include_str!("../../COOKBOOK.md");
    let (_, section) = cookbook.split_once("\n## Typed ids in Toasty\n").unwrap();
    // GitHub shows `rs` as Rust. It is no doctest, since the packages of this workspace cannot have Toasty.
    let (_, shown) = section.split_once("```rs\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    assert!(shown.starts_with("use ordid::"), "{shown}");
    let whole = format!("\n{shown}\nmod tests {{");
    assert!(
        include_str!("../toasty/src/lib.rs").contains(&whole),
        "{shown}"
    );
}
