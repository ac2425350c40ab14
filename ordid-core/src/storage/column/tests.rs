use alloc::string::String;

use proptest::prelude::*;
use uuid::Uuid as Raw;

use super::*;
use crate::{
    layout::mariadb_uuid_is_refused,
    storage::{ComparesBytes, Dialect, StoredValue as _},
};

/// What holds of every column: values come back, sort keys lead back, and sort keys compare as the
/// column's rule says.
fn laws<C: Stores<R>, R: RawKey>(left: R, right: R, expected: core::cmp::Ordering) {
    for raw in [left, right] {
        assert_eq!(
            C::decode(C::encode(raw).found()).unwrap(),
            raw,
            "{}",
            C::NAME
        );
        let key = C::sort_key(raw);
        assert_eq!(C::from_sort_key(key).unwrap(), raw, "{}", C::NAME);
        assert_eq!(<Unordered<C> as Stores<R>>::sort_key(raw), key);
        assert_eq!(<Unordered<C> as Stores<R>>::encode(raw), C::encode(raw));
    }
    let order = C::sort_key(left).cmp(&C::sort_key(right));
    assert_eq!(order, expected, "{} of {left:?} and {right:?}", C::NAME);
}

fn compares_as_keys<C: Stores<R> + ComparesBytes, R: RawKey>(left: R, right: R) {
    laws::<C, R>(left, right, left.cmp(&right));
}

/// Columns of binary and text whose stored bytes the database compares by `memcmp`: the sort key is
/// what is stored.
fn stored_is_the_sort_key<C: Stores<R>, R: RawKey>(raw: R) {
    assert_eq!(
        C::encode(raw).found(),
        Found::Bytes(C::sort_key(raw).as_ref()),
        "{}",
        C::NAME
    );
}

fn compares_by_rule<C: Stores<Raw>>(left: Raw, right: Raw) {
    let key = |raw: Raw| C::COMPARISON.sort_key(raw.as_bytes());
    laws::<C, Raw>(left, right, key(left).cmp(&key(right)));
}

macro_rules! for_all {
    ($check:ident: $($column:ident),+; $raw:tt) => {
        $($check::<$column, _>$raw;)+
    };
}

/// Keys that differ early, late, or not at all.
fn pair<const N: usize>() -> impl Strategy<Value = ([u8; N], [u8; N])>
where
    [u8; N]: Arbitrary,
{
    (any::<[u8; N]>(), any::<[u8; N]>(), 0..=N).prop_map(|(left, other, same)| {
        let mut right = left;
        right[same..].copy_from_slice(&other[same..]);
        (left, right)
    })
}

proptest! {
    #[test]
    fn columns_of_128_bits((left, right) in pair::<16>()) {
        let (left, right) = (Raw::from_bytes(left), Raw::from_bytes(right));
        for_all!(
            compares_as_keys: Uuid, Bytea, Blob, Binary16, Raw16, BabelfishUniqueIdentifier,
            UniqueIdentifierPermuted, Text, Char36, Char26, Char22; (left, right));
        for_all!(
            stored_is_the_sort_key: Uuid, Bytea, Blob, Binary16, Raw16, BabelfishUniqueIdentifier,
            Text, Char36, Char26, Char22, Binary16DotNet, Raw16DotNet, Binary16Swapped; (left));
        compares_by_rule::<Binary16DotNet>(left, right);
        compares_by_rule::<Raw16DotNet>(left, right);
        compares_by_rule::<Binary16Swapped>(left, right);
        compares_by_rule::<UniqueIdentifier>(left, right);
        // What SQL Server compares of a permuted value are the key's own bytes.
        let stored = UniqueIdentifierPermuted::encode(left);
        prop_assert_eq!(UniqueIdentifier::sort_key(Raw::from_bytes(stored)), left.into_bytes());
    }

    #[test]
    fn mariadb_uuid((left, right) in pair::<16>(), version in 1..9u8) {
        // The variant of RFC 9562, of which few are refused.
        let of_version = |mut bytes: [u8; 16]| {
            bytes[6] = version << 4 | bytes[6] & 0x0f;
            bytes[8] = 0x80 | bytes[8] & 0x3f;
            Raw::from_bytes(bytes)
        };
        let (left, right) = (of_version(left), of_version(right));
        for raw in [left, right] {
            prop_assert_eq!(MariaDbUuid::decode(&MariaDbUuid::encode(raw)).unwrap(), raw);
            if !mariadb_uuid_is_refused(raw.as_bytes()) {
                prop_assert_eq!(MariaDbUuid::from_sort_key(MariaDbUuid::sort_key(raw)), Ok(raw));
            }
        }
        if version >= 6 {
            let order = MariaDbUuid::sort_key(left).cmp(&MariaDbUuid::sort_key(right));
            prop_assert_eq!(order, left.cmp(&right));
        }
    }

    #[test]
    fn columns_of_signed_integers(left: i64, right: i64) {
        for_all!(compares_as_keys: BigInt, Integer, Number19; (left, right));
    }

    #[test]
    fn columns_of_unsigned_integers(left: u64, right: u64) {
        for_all!(compares_as_keys: BigIntUnsigned, Number20; (left, right));
    }

    #[test]
    fn columns_of_object_ids((left, right) in pair::<12>()) {
        let (left, right) = (ObjectId::from_bytes(left), ObjectId::from_bytes(right));
        for_all!(compares_as_keys: Bytea, Blob, Binary12, Raw12, Text; (left, right));
        for_all!(stored_is_the_sort_key: Bytea, Blob, Binary12, Raw12, Text; (left));
    }

    #[test]
    fn columns_of_push_ids((left, right) in pair::<15>()) {
        let (left, right) = (PushId::from_bytes(left), PushId::from_bytes(right));
        for_all!(compares_as_keys: Bytea, Blob, Text, Char20; (left, right));
        for_all!(stored_is_the_sort_key: Bytea, Blob, Text, Char20; (left));
    }

    #[test]
    fn columns_of_192_bits((left, right) in pair::<24>()) {
        let (left, right) = (Key192::from_bytes(left), Key192::from_bytes(right));
        for_all!(compares_as_keys: Bytea, Blob, Binary24, Raw24, Text, Char32; (left, right));
        for_all!(stored_is_the_sort_key: Bytea, Blob, Binary24, Raw24, Text, Char32; (left));
    }

    #[test]
    fn text_columns_store_the_keys_own_text(object_id: [u8; 12], push_id: [u8; 15], key: [u8; 24]) {
        fn same<C: Stores<R>, R: RawKey + core::fmt::Display>(raw: R) {
            let text = alloc::format!("{raw}");
            assert_eq!(C::encode(raw).found(), Found::from(&*text));
        }
        same::<Text, _>(ObjectId::from_bytes(object_id));
        same::<Text, _>(PushId::from_bytes(push_id));
        same::<Char20, _>(PushId::from_bytes(push_id));
        same::<Text, _>(Key192::from_bytes(key));
        same::<Char32, _>(Key192::from_bytes(key));
    }
}

#[test]
fn the_smallest_and_largest_integers_are_stored() {
    let rising = [i64::MIN, -1, 0, 1, i64::MAX];
    for pair in rising.windows(2) {
        for_all!(compares_as_keys: BigInt, Integer, Number19; (pair[0], pair[1]));
    }
    assert_eq!(BigInt::decode(7u64).unwrap(), 7);
    assert_eq!(BigIntUnsigned::decode(7i64).unwrap(), 7);
    assert!(BigInt::decode(u64::MAX).unwrap_err().is_parse());
    assert!(Number20::decode(-1i64).unwrap_err().is_parse());
}

#[test]
fn mariadb_uuid_does_not_keep_the_order_of_version_4() {
    let low: Raw = "00000000-0000-4000-8000-000000000002".parse().unwrap();
    let high: Raw = "ffffffff-ffff-4fff-8fff-000000000001".parse().unwrap();
    assert!(low < high && MariaDbUuid::sort_key(low) > MariaDbUuid::sort_key(high));
}

#[test]
fn a_wrong_form_is_named_with_the_column_to_declare() {
    fn message<'a, C: Stores<R>, R: RawKey>(found: impl Into<Found<'a>>) -> String {
        let error = C::decode(found).unwrap_err();
        assert!(error.is_parse());
        alloc::format!("{error}")
    }
    let binary16 = |stored: &[u8]| message::<Binary16, Raw>(stored);
    assert_eq!(
        binary16(b"017f22e2-79b0-7cc3-98c4-dc0c0c07398f"),
        "a `binary16` column holds 16 bytes, found 36 bytes \
         \"017f22e2-79b0-7cc3-98c4-dc0c0c07398f\": this is a UUID as text; declare `char36` \
         (`mariadb_uuid` for MariaDB's UUID), or `text` on PostgreSQL, on SQLite and with SeaORM"
    );
    assert_eq!(
        binary16(b""),
        "a `binary16` column holds 16 bytes, found 0 bytes \"\""
    );
    for (found, fix) in [
        (&b"0NQ_LnK8m~Cv5uYuAOTzUG"[..], "declare `char22`"),
        (b"01ARZ3NDEKTSV4RRFFQ69G5FAV", "declare `char26`"),
        (b"-JhLeOlGIEjaIOFHR0xd", "declare `char20`"),
        (
            b"017f22e279b07cc398c4dc0c0c07398f",
            "rewrite the column with hyphens",
        ),
        (b"0NQ_LnK8m~Cv5uYuAOTzUG0123456789", "declare `char32`"),
        (
            b"56e1fc72e0c917e9c4714161",
            "convert the column to 12 bytes",
        ),
    ] {
        let text = binary16(found);
        assert!(text.ends_with(fix), "{text}");
    }
    for (text, fix) in [
        (message::<Text, ObjectId>(&[7; 12]), "or `raw12` on Oracle"),
        (
            message::<Text, PushId>(&[7; 15]),
            "declare `blob` on SQLite, or `bytea` on PostgreSQL and with SeaORM",
        ),
        (message::<Text, Key192>(&[7; 24]), "or `raw24` on Oracle"),
    ] {
        assert!(text.ends_with(fix), "{text}");
    }
    let text = message::<Char22, Raw>(&[7; 16]);
    assert!(
        text.ends_with(
            "declare `binary16`, `bytea` on PostgreSQL and with SeaORM, `raw16` on Oracle, or `blob` on \
             SQLite"
        ),
        "{text}"
    );
    assert_eq!(
        message::<Uuid, Raw>(12i64),
        "a `uuid` column holds 16 bytes, found the integer 12: this is an integer; declare `bigint`, \
         `integer` on SQLite, or `number19` on Oracle"
    );
    assert_eq!(
        message::<BigInt, i64>(u64::MAX),
        "a `bigint` column holds an integer of 64 bits with a sign, found the integer \
         18446744073709551615: this needs 64 bits without a sign; declare `bigint_unsigned` on MySQL \
         and MariaDB, `number20` on Oracle"
    );
    assert!(message::<BigIntUnsigned, u64>(-1i64).contains("this is a negative integer"));
    assert!(message::<BigInt, i64>("759517997340696579").contains("found 18 bytes"));
    assert!(message::<MariaDbUuid, Raw>(&[7; 16]).contains("declare `binary16`"));
    assert!(message::<Text, ObjectId>(&[0xff; 24]).contains("ASCII"));
    // The right length with the wrong characters is the text's own error.
    assert!(message::<Char20, PushId>("-JhLeOlGIEjaIOFHR0x!").contains("expected 20 characters"));
}

/// MariaDB stores the bytes of a key in columns of other types, and returns other bytes.
#[test]
fn a_length_alone_names_no_column() {
    let id = *b"\x01\x9f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f";
    // The column is a text in latin1, and the server returns it in UTF-8.
    let text: String = id.iter().copied().map(char::from).collect();
    assert_eq!(text.len(), 24);
    let mut padded = [0; 20];
    padded[..16].copy_from_slice(&id);
    for found in [
        text.as_bytes(),
        &padded,
        &[0xff; 12],
        &[0xff; 15],
        &[0xff; 22],
        &[0xff; 25],
        &[0xff; 26],
        &[0xff; 32],
        &[0xff; 36],
        b"0190a6a1-0000-7000-8000-000000000001 ",
    ] {
        let error = Binary16::decode(found).unwrap_err().to_string();
        let start = alloc::format!(
            "a `binary16` column holds 16 bytes, found {} bytes ",
            found.len()
        );
        assert!(error.starts_with(&start), "{error}");
        assert!(
            error.ends_with(
                "\": the column seems to have another type than the key type declares; \
                 compare the table's definition (`SHOW CREATE TABLE`), or run `ordid doctor`"
            ),
            "{error}"
        );
    }
}

#[test]
fn declarations_spell_out_the_collation_and_the_key() {
    #[track_caller]
    fn ddl<C: ColumnOn<D>, D: Dialect>(expected: &str) {
        assert_eq!(C::primary_key("Id"), expected);
    }
    ddl::<Uuid, Postgres>("\"Id\" uuid NOT NULL PRIMARY KEY");
    ddl::<Bytea, Postgres>("\"Id\" bytea NOT NULL PRIMARY KEY");
    ddl::<Text, Postgres>("\"Id\" text COLLATE \"C\" NOT NULL PRIMARY KEY");
    ddl::<Char26, Postgres>("\"Id\" text COLLATE \"C\" NOT NULL PRIMARY KEY");
    ddl::<BigInt, Postgres>("\"Id\" bigint NOT NULL PRIMARY KEY");
    ddl::<Binary16Swapped, MySql>("`Id` BINARY(16) NOT NULL PRIMARY KEY");
    ddl::<BigIntUnsigned, MySql>("`Id` BIGINT UNSIGNED NOT NULL PRIMARY KEY");
    ddl::<Char36, MariaDb>(
        "`Id` CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY",
    );
    ddl::<Char20, MySql>(
        "`Id` CHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY",
    );
    ddl::<MariaDbUuid, MariaDb>("`Id` UUID NOT NULL PRIMARY KEY");
    ddl::<Text, Sqlite>("\"Id\" TEXT COLLATE BINARY NOT NULL PRIMARY KEY");
    ddl::<Integer, Sqlite>("\"Id\" INTEGER NOT NULL PRIMARY KEY");
    ddl::<UniqueIdentifierPermuted, SqlServer>(
        "[Id] uniqueidentifier NOT NULL PRIMARY KEY CLUSTERED",
    );
    ddl::<Binary12, SqlServer>("[Id] binary(12) NOT NULL PRIMARY KEY CLUSTERED");
    ddl::<BabelfishUniqueIdentifier, Babelfish>("[Id] uniqueidentifier NOT NULL PRIMARY KEY");
    ddl::<Raw16DotNet, Oracle>("\"Id\" RAW(16) NOT NULL PRIMARY KEY");
    ddl::<Number20, Oracle>("\"Id\" NUMBER(20) NOT NULL PRIMARY KEY");
    ddl::<Unordered<Blob>, Sqlite>("\"Id\" BLOB NOT NULL PRIMARY KEY");
}

#[test]
fn literals_match_the_stored_values() {
    #[track_caller]
    fn literal<C: ColumnOn<D> + Stores<R>, D: Dialect, R: RawKey>(raw: R, expected: &str) {
        assert_eq!(<C as ColumnOn<D>>::literal(raw), expected);
    }
    let id: Raw = "00112233-4455-6677-8899-aabbccddeeff".parse().unwrap();
    let push_id: PushId = "-JhLeOlGIEjaIOFHR0xd".parse().unwrap();
    literal::<Uuid, Postgres, _>(id, "'00112233-4455-6677-8899-aabbccddeeff'::uuid");
    literal::<Bytea, Postgres, _>(id, "'\\x00112233445566778899AABBCCDDEEFF'::bytea");
    literal::<Text, Postgres, _>(id, "'00112233-4455-6677-8899-aabbccddeeff'");
    literal::<BigInt, Postgres, _>(i64::MIN, "'-9223372036854775808'::bigint");
    literal::<Binary16, MySql, _>(id, "X'00112233445566778899AABBCCDDEEFF'");
    literal::<Binary16Swapped, MySql, _>(id, "X'66774455001122338899AABBCCDDEEFF'");
    literal::<Binary16DotNet, MySql, _>(id, "X'33221100554477668899AABBCCDDEEFF'");
    literal::<BigIntUnsigned, MySql, _>(u64::MAX, "18446744073709551615");
    literal::<Char20, MySql, _>(push_id, "'-JhLeOlGIEjaIOFHR0xd'");
    literal::<MariaDbUuid, MariaDb, _>(id, "'00112233-4455-6677-8899-aabbccddeeff'");
    literal::<Integer, Sqlite, _>(-7, "-7");
    literal::<Binary16, SqlServer, _>(id, "0x00112233445566778899AABBCCDDEEFF");
    literal::<UniqueIdentifier, SqlServer, _>(
        id,
        "CAST('00112233-4455-6677-8899-aabbccddeeff' AS uniqueidentifier)",
    );
    // The inverse of the row of the weights: compared are 10 to 15, 8, 9, 6, 7, 4, 5, 0 to 3.
    literal::<UniqueIdentifierPermuted, SqlServer, _>(
        id,
        "CAST('ffeeddcc-bbaa-9988-6677-001122334455' AS uniqueidentifier)",
    );
    literal::<BigInt, SqlServer, _>(7, "CAST(7 AS bigint)");
    literal::<Raw16, Oracle, _>(id, "HEXTORAW('00112233445566778899AABBCCDDEEFF')");
    literal::<Raw16DotNet, Oracle, _>(id, "HEXTORAW('33221100554477668899AABBCCDDEEFF')");
    literal::<Number19, Oracle, _>(7, "7");
}

fn assert_named<N: crate::storage::column::names::NamedColumn>(name: &str) {
    assert_eq!(<N::Column as Column>::NAME, name);
}

/// Each line of the list, as users write it. A name that `names.rs` does not have does not compile.
macro_rules! are_named {
    ($($name:ident $column:ident: [$($raw:ident)+] $($dialect:ident)+;)+) => {
        $($(are_named!(@$dialect $name $column);)+)+
    };
    (@Postgres $name:ident $column:ident) => { are_named!(@of postgres $name $column); };
    (@MySql $name:ident $column:ident) => { are_named!(@of mysql $name $column); };
    (@MariaDb $name:ident $column:ident) => { are_named!(@of mysql $name $column); };
    (@Sqlite $name:ident $column:ident) => { are_named!(@of sqlite $name $column); };
    (@SqlServer $name:ident $column:ident) => { are_named!(@of sql_server $name $column); };
    (@Babelfish $name:ident $column:ident) => { are_named!(@of babelfish $name $column); };
    (@Oracle $name:ident $column:ident) => { are_named!(@of oracle $name $column); };
    (@of $engine:ident $name:ident $column:ident) => {
        assert_eq!(<super::$column as Column>::NAME, stringify!($name));
        assert_named::<super::names::$engine::$name>(stringify!($name));
    };
}

#[test]
fn every_column_of_the_list_has_its_name_on_its_engines() {
    crate::__for_each_column! { are_named }
}

/// A column that is exported, and forgotten in the list, would be tested by nothing.
#[test]
fn the_list_has_every_column_that_is_exported() {
    macro_rules! types {
        ($($name:ident $column:ident: [$($raw:ident)+] $($dialect:ident)+;)+) => {
            [$(stringify!($column)),+]
        };
    }
    let listed = crate::__for_each_column! { types };
    let source = include_str!("../column.rs");
    let exported = source
        .split("\npub use ")
        .skip(1)
        .filter_map(|rest| rest.split_once("::")?.1.split_once(';'))
        .flat_map(|(names, _)| names.split(|c: char| !c.is_alphanumeric()))
        .filter(|name| !name.is_empty() && *name != "Unordered");
    let missing: alloc::vec::Vec<_> = exported.filter(|name| !listed.contains(name)).collect();
    assert!(
        missing.is_empty(),
        "without a line in `__for_each_column` of storage/column.rs: {missing:?}"
    );
}

/// The guide names them as bounds of a page (`pages.md`), which no key may reach.
#[test]
fn tildes_are_above_the_texts_of_all_keys() {
    fn text<C: ColumnOn<Postgres> + Stores<Raw>>(key: Raw) -> String {
        C::literal(key).trim_matches('\'').to_owned()
    }
    let last = Raw::from_u128(u128::MAX);
    assert!(text::<Char22>(last) < "~".repeat(23));
    assert!(text::<Char22>(last).as_str() > "~", "one is not enough");
    assert!(text::<Text>(last).as_str() < "~");
}
