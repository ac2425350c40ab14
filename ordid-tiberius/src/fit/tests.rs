use std::borrow::Cow;

use ordid_core::uuid::Uuid;
use tiberius::{
    BaseMetaDataColumn, ColumnFlag, VarLenContext,
    time::{Date, DateTime2, DateTimeOffset, Time},
};

use super::*;

fn sized(ty: VarLenType, length: usize) -> TypeInfo {
    TypeInfo::VarLenSized(VarLenContext::new(ty, length, None))
}

fn decimal(precision: u8, scale: u8) -> TypeInfo {
    TypeInfo::VarLenSizedPrecision {
        ty: VarLenType::Decimaln,
        size: 17,
        precision,
        scale,
    }
}

fn text(text: &str) -> ColumnData<'static> {
    ColumnData::String(Some(Cow::Owned(text.to_owned())))
}

fn bytes(length: usize) -> ColumnData<'static> {
    ColumnData::Binary(Some(Cow::Owned(vec![7; length])))
}

fn time(scale: u8) -> Time {
    Time::new(1, scale)
}

fn moment(scale: u8) -> DateTime2 {
    DateTime2::new(Date::new(738_000), time(scale))
}

#[test]
fn values_of_the_columns_own_type_fit() {
    let number = |value, scale| ColumnData::Numeric(Some(Numeric::new_with_scale(value, scale)));
    let offset = |scale| ColumnData::DateTimeOffset(Some(DateTimeOffset::new(moment(scale), 60)));
    let cases = [
        (
            ColumnData::Bit(Some(true)),
            sized(VarLenType::Bitn, 1),
            true,
        ),
        (
            ColumnData::Bit(Some(true)),
            TypeInfo::FixedLen(FixedLenType::Bit),
            true,
        ),
        (ColumnData::U8(Some(1)), sized(VarLenType::Intn, 1), true),
        (ColumnData::I16(Some(1)), sized(VarLenType::Intn, 2), true),
        (ColumnData::I32(Some(1)), sized(VarLenType::Intn, 4), true),
        (ColumnData::I64(Some(1)), sized(VarLenType::Intn, 8), true),
        (
            ColumnData::I32(Some(1)),
            TypeInfo::FixedLen(FixedLenType::Int4),
            true,
        ),
        // An `INSERT` converts these.
        (ColumnData::I32(Some(1)), sized(VarLenType::Intn, 8), false),
        (ColumnData::I64(Some(1)), sized(VarLenType::Intn, 4), false),
        (
            ColumnData::I32(Some(1)),
            TypeInfo::FixedLen(FixedLenType::Int8),
            false,
        ),
        (ColumnData::I32(Some(1)), decimal(9, 0), false),
        (
            ColumnData::F32(Some(1.0)),
            sized(VarLenType::Floatn, 4),
            true,
        ),
        (
            ColumnData::F32(Some(1.0)),
            sized(VarLenType::Floatn, 8),
            false,
        ),
        (
            ColumnData::F64(Some(1.0)),
            sized(VarLenType::Floatn, 8),
            true,
        ),
        (
            ColumnData::F64(Some(1.0)),
            sized(VarLenType::Money, 8),
            false,
        ),
        (
            ColumnData::Guid(Some(Uuid::nil())),
            sized(VarLenType::Guid, 16),
            true,
        ),
        (
            ColumnData::Guid(Some(Uuid::nil())),
            sized(VarLenType::BigBinary, 16),
            false,
        ),
        (text("abc"), sized(VarLenType::NVarchar, 6), true),
        (text("abcd"), sized(VarLenType::NVarchar, 6), false),
        // Two UTF-16 units.
        (text("a\u{1f600}"), sized(VarLenType::NVarchar, 6), true),
        (text("ab\u{1f600}"), sized(VarLenType::NVarchar, 6), false),
        (text("abc"), sized(VarLenType::NVarchar, 0xffff), true),
        (text("abc"), sized(VarLenType::NVarchar, 4_000), true),
        (text("abc"), sized(VarLenType::NVarchar, 4_002), false),
        (text("abc"), sized(VarLenType::NChar, 6), false),
        (text("abc"), sized(VarLenType::BigVarChar, 3), true),
        (text("abcd"), sized(VarLenType::BigVarChar, 3), false),
        (text("ä"), sized(VarLenType::BigVarChar, 3), false),
        (text("abc"), sized(VarLenType::BigChar, 3), false),
        (bytes(16), sized(VarLenType::BigBinary, 16), true),
        // `binary(16)` would be filled up.
        (bytes(15), sized(VarLenType::BigBinary, 16), false),
        (bytes(15), sized(VarLenType::BigVarBin, 16), true),
        (bytes(17), sized(VarLenType::BigVarBin, 16), false),
        // What `bulk_insert` of tiberius refuses.
        (bytes(65_535), sized(VarLenType::BigVarBin, 0xffff), true),
        (bytes(65_536), sized(VarLenType::BigVarBin, 0xffff), false),
        (
            text(&"a".repeat(32_767)),
            sized(VarLenType::NVarchar, 0xffff),
            true,
        ),
        (
            text(&"a".repeat(32_768)),
            sized(VarLenType::NVarchar, 0xffff),
            false,
        ),
        (number(12_345, 2), decimal(5, 2), true),
        (number(-12_345, 2), decimal(5, 2), true),
        (number(123_456, 2), decimal(5, 2), false),
        (number(1_234, 1), decimal(5, 2), true),
        (number(12_345, 1), decimal(5, 2), false),
        // It would be rounded.
        (number(12_345, 3), decimal(5, 2), false),
        (
            ColumnData::Date(Some(Date::new(1))),
            sized(VarLenType::Daten, 3),
            true,
        ),
        (
            ColumnData::Time(Some(time(7))),
            sized(VarLenType::Timen, 7),
            true,
        ),
        (
            ColumnData::Time(Some(time(7))),
            sized(VarLenType::Timen, 3),
            false,
        ),
        (
            ColumnData::DateTime2(Some(moment(7))),
            sized(VarLenType::Datetime2, 7),
            true,
        ),
        (
            ColumnData::DateTime2(Some(moment(7))),
            sized(VarLenType::Datetime2, 3),
            false,
        ),
        (
            ColumnData::DateTime2(Some(moment(3))),
            sized(VarLenType::Datetime2, 3),
            true,
        ),
        (
            ColumnData::DateTime2(Some(moment(7))),
            sized(VarLenType::Datetimen, 8),
            false,
        ),
        (offset(7), sized(VarLenType::DatetimeOffsetn, 7), true),
        (offset(7), sized(VarLenType::DatetimeOffsetn, 3), false),
    ];
    for (value, ty, expected) in cases {
        assert_eq!(fits(&value, &ty, false), expected, "{value:?} in {ty:?}");
    }
}

#[test]
fn null_fits_where_it_may_be() {
    for (null, ty) in [
        (ColumnData::Bit(None), sized(VarLenType::Bitn, 1)),
        (ColumnData::I64(None), sized(VarLenType::Intn, 8)),
        (ColumnData::F64(None), sized(VarLenType::Floatn, 8)),
        (ColumnData::Guid(None), sized(VarLenType::Guid, 16)),
        (ColumnData::String(None), sized(VarLenType::NVarchar, 20)),
        (ColumnData::String(None), sized(VarLenType::BigVarChar, 20)),
        (ColumnData::Binary(None), sized(VarLenType::BigVarBin, 20)),
        (ColumnData::Binary(None), sized(VarLenType::BigBinary, 20)),
        (ColumnData::Numeric(None), decimal(5, 2)),
        (ColumnData::Date(None), sized(VarLenType::Daten, 3)),
        (ColumnData::DateTime2(None), sized(VarLenType::Datetime2, 7)),
    ] {
        assert!(fits(&null, &ty, true), "{null:?} in {ty:?}");
        assert!(!fits(&null, &ty, false), "{null:?} in {ty:?}, not null");
    }
    let bit = TypeInfo::FixedLen(FixedLenType::Bit);
    assert!(!fits(&ColumnData::Bit(None), &bit, true));
}

fn column(name: &'static str, ty: TypeInfo, flags: &[ColumnFlag]) -> MetaDataColumn<'static> {
    MetaDataColumn {
        base: BaseMetaDataColumn {
            flags: flags.iter().copied().collect(),
            ty,
            table_name: None,
        },
        col_name: Cow::Borrowed(name),
    }
}

#[test]
fn columns_that_the_server_fills_are_not_loaded() {
    let id = || column("id", sized(VarLenType::Guid, 16), &[ColumnFlag::Updateable]);
    let number = |flags: &[ColumnFlag]| column("n", sized(VarLenType::Intn, 8), flags);
    let names = ["id", "n"];
    let fit = |second| Fit::new(&[id(), second], &names, "id").is_ok();
    assert!(fit(number(&[ColumnFlag::Updateable])));
    assert!(fit(number(&[ColumnFlag::UpdateableUnknown])));
    assert!(!fit(number(&[])));
    assert!(!fit(number(&[
        ColumnFlag::UpdateableUnknown,
        ColumnFlag::Identity
    ])));
    assert!(Fit::new(&[id()], &names, "id").is_err());
    assert!(Fit::new(&[id(), id()], &names, "key").is_err());
}

/// Rows of one key column.
fn rises(keys: &[ColumnData<'static>], ty: TypeInfo) -> bool {
    let columns = [column("id", ty, &[ColumnFlag::Updateable])];
    let mut fit = Fit::new(&columns, &["id"], "id").unwrap();
    for key in keys {
        fit.take(key);
        assert!(fit.ends_row());
    }
    fit.rises()
}

#[test]
fn keys_rise_as_the_server_compares_them() {
    let guid = |value| ColumnData::Guid(Some(Uuid::from_u128(value)));
    let ty = || sized(VarLenType::Guid, 16);
    // The last group goes first, then the fourth; the first group counts least.
    assert!(rises(&[guid(1), guid(2), guid(3)], ty()));
    assert!(rises(&[guid(5 << 96 | 1), guid(2)], ty()));
    assert!(!rises(&[guid(1), guid(1)], ty()));
    assert!(!rises(&[guid(2), guid(1 << 96 | 1)], ty()));
    assert!(rises(
        &[guid(u128::MAX >> 64 << 64 | 1), guid(1 << 48 | 1)],
        ty()
    ));

    let number = |value| ColumnData::I64(Some(value));
    assert!(rises(
        &[number(-1), number(0), number(1)],
        sized(VarLenType::Intn, 8)
    ));
    assert!(!rises(&[number(1), number(0)], sized(VarLenType::Intn, 8)));

    let bytes = |value: u8| ColumnData::Binary(Some(Cow::Owned(vec![value; 2])));
    assert!(rises(
        &[bytes(1), bytes(0xff)],
        sized(VarLenType::BigBinary, 2)
    ));
    assert!(!rises(
        &[bytes(0xff), bytes(1)],
        sized(VarLenType::BigBinary, 2)
    ));
    // What has no order here gets no hint.
    assert!(!rises(&[text("a")], sized(VarLenType::NVarchar, 20)));
}
