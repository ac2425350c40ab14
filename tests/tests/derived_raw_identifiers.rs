//! Keywords as names: the text has no `r#`.

use ordid::{KeyType, OrderedKey, uuid::Uuid};

#[derive(KeyType)]
#[allow(non_camel_case_types)]
struct r#struct(Uuid);

#[derive(OrderedKey)]
#[allow(non_camel_case_types)]
struct r#move {
    #[ordid(key)]
    r#type: r#struct,
    #[ordid(parent = r#move)]
    r#where: Option<r#struct>,
    r#crate_name: i64,
}

#[test]
fn it_compiles_and_runs() {
    assert_eq!(r#move::TABLE, "move");
    assert_eq!(r#move::KEY_COLUMN, "type");
    assert_eq!(r#move::COLUMNS, ["type", "where", "crate_name"]);
    assert_eq!(r#struct::NAME, "struct");
    let row = r#move {
        r#type: r#struct::generate(),
        r#where: None,
        crate_name: 1,
    };
    assert_eq!(row.key(), Some(row.r#type));
    assert_eq!((row.r#where, row.r#crate_name), (None, 1));
}
