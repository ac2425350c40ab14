//! Key types in Toasty without an adapter: tests the code of the guide, which is in `tests/toasty`.

use ordid_tests::workspaces;

#[test]
fn key_types_work_in_toasty_without_an_adapter() {
    let (out, _) = workspaces::cargo("test", "toasty");
    for ran in ["test tests::the_code_of_the_guide_runs ... ok", "8 passed"] {
        assert!(out.contains(ran), "{ran}: {out}");
    }
}

#[test]
fn the_guide_shows_the_code_that_runs() {
    let chapter = include_str!("../../docs/src/start/toasty.md");
    // GitHub shows `rs` as Rust. It is no doctest, since the packages of this workspace cannot have Toasty.
    let (_, shown) = chapter.split_once("```rs\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    assert!(shown.starts_with("use ordid::"), "{shown}");
    let whole = format!("\n{shown}\nmod tests {{");
    assert!(
        include_str!("../toasty/src/lib.rs").contains(&whole),
        "{shown}"
    );
}
