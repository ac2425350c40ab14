use proptest::prelude::*;
use uuid::Uuid as Raw;

use super::*;
use crate::storage::Dialect;

fn order_is_kept<C: Stores<Raw>>(a: Raw, b: Raw) -> bool {
    C::sort_key(a).cmp(&C::sort_key(b)) == a.cmp(&b)
}

/// A version 7 UUID of any random bits.
fn v7(bits: u128) -> Raw {
    Raw::from_u128(bits & !(0xf << 76) & !(0b11 << 62) | 7 << 76 | 0b10 << 62)
}

proptest! {
    #[test]
    fn stored_values_come_back(bits: u128) {
        let raw = Raw::from_u128(bits);
        prop_assert_eq!(Uuid::decode(&Uuid::encode(raw)).unwrap(), raw);
        prop_assert_eq!(Binary16::decode(&Binary16::encode(raw)).unwrap(), raw);
        prop_assert_eq!(Blob::decode(&Blob::encode(raw)).unwrap(), raw);
        prop_assert_eq!(Text::decode(&Text::encode(raw)).unwrap(), raw);
        prop_assert_eq!(Char36::decode(&Char36::encode(raw)).unwrap(), raw);
        prop_assert_eq!(Char22::decode(&Char22::encode(raw)).unwrap(), raw);
        // MariaDB takes bytes and returns text.
        prop_assert_eq!(MariaDbUuid::decode(&Char36::encode(raw)).unwrap(), raw);
    }

    #[test]
    fn columns_that_compare_bytes_keep_any_order(a: u128, b: u128) {
        let (a, b) = (Raw::from_u128(a), Raw::from_u128(b));
        prop_assert!(order_is_kept::<Uuid>(a, b));
        prop_assert!(order_is_kept::<Binary16>(a, b));
        prop_assert!(order_is_kept::<Blob>(a, b));
        prop_assert!(order_is_kept::<Text>(a, b));
        prop_assert!(order_is_kept::<Char36>(a, b));
        prop_assert!(order_is_kept::<Char22>(a, b));
    }

    #[test]
    fn mariadb_uuid_keeps_the_order_of_version_7(a: u128, b: u128) {
        prop_assert!(order_is_kept::<MariaDbUuid>(v7(a), v7(b)));
    }
}

#[test]
fn mariadb_uuid_does_not_keep_the_order_of_version_4() {
    let low: Raw = "00000000-0000-4000-8000-000000000002".parse().unwrap();
    let high: Raw = "ffffffff-ffff-4fff-8fff-000000000001".parse().unwrap();
    assert!(low < high && MariaDbUuid::sort_key(low) > MariaDbUuid::sort_key(high));
}

#[test]
fn a_wrong_form_names_the_column_to_declare() {
    let message = |stored: &[u8]| Binary16::decode(stored).unwrap_err().to_string();
    assert_eq!(
        message(b"017f22e2-79b0-7cc3-98c4-dc0c0c07398f"),
        "a `binary16` column holds 16 bytes, found 36 bytes \
         \"017f22e2-79b0-7cc3-98c4-dc0c0c07398f\": this is a UUID as text; declare `char36` \
         (`mariadb_uuid` for MariaDB's UUID), or `text` on PostgreSQL and SQLite"
    );
    assert!(message(b"0NQ_LnK8m~Cv5uYuAOTzUG").ends_with("declare `char22`"));
    assert!(message(b"").starts_with("a `binary16` column holds 16 bytes, found 0 bytes"));
    let error = Char22::decode(&[7; 16]).unwrap_err();
    assert!(error.is_parse());
    assert!(
        error
            .to_string()
            .ends_with("declare `binary16`, or `blob` on SQLite")
    );
    assert!(MariaDbUuid::decode(&[7; 16]).is_err());
}

#[test]
fn declarations_spell_out_the_collation() {
    fn ddl<C: ColumnOn<D>, D: Dialect>() -> &'static str {
        C::TYPE
    }
    assert_eq!(ddl::<Uuid, Postgres>(), "uuid");
    assert_eq!(ddl::<Text, Postgres>(), "text COLLATE \"C\"");
    assert_eq!(ddl::<Char22, Postgres>(), "text COLLATE \"C\"");
    assert_eq!(ddl::<Binary16, MySql>(), "BINARY(16)");
    assert_eq!(
        ddl::<Char36, MariaDb>(),
        "CHAR(36) CHARACTER SET ascii COLLATE ascii_bin"
    );
    assert_eq!(ddl::<MariaDbUuid, MariaDb>(), "UUID");
    assert_eq!(ddl::<Text, Sqlite>(), "TEXT COLLATE BINARY");
}
