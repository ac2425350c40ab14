//! What databases return, read by each column.

use ordid_core::{
    key::{Key192, ObjectId, PushId, RawKey},
    storage::{Found, StoredValue as _, Stores, column},
    uuid::Uuid,
};

use crate::{draw::uuid, text};

/// Takes the bytes for a value of every column.
pub fn columns(data: &[u8]) {
    same::<column::Binary16, Uuid>(data);
    same::<column::Blob, Uuid>(data);
    same::<column::Char22, Uuid>(data);
    same::<column::Char26, Uuid>(data);
    same::<column::Char36, Uuid>(data);
    same::<column::Text, Uuid>(data);
    same::<column::Uuid, Uuid>(data);
    same::<column::Text, ObjectId>(data);
    same::<column::Binary12, ObjectId>(data);
    same::<column::Char20, PushId>(data);
    same::<column::Char32, Key192>(data);
    comes_back::<column::Binary16DotNet>(data);
    comes_back::<column::Binary16Swapped>(data);
    comes_back::<column::UniqueIdentifier>(data);
    comes_back::<column::UniqueIdentifierPermuted>(data);

    // It is compared in another form than it is read.
    if let Some(raw) = decoded::<column::MariaDbUuid, Uuid>(data) {
        assert_eq!(column::MariaDbUuid::encode(raw), data);
    }
    // Bytes are no integer.
    assert_eq!(decoded::<column::BigInt, i64>(data), None);
    assert_eq!(decoded::<column::Number20, u64>(data), None);
}

/// Reads the bytes; what is refused is refused by a short message.
fn decoded<C: Stores<R>, R: RawKey>(data: &[u8]) -> Option<R> {
    match C::decode(data) {
        Ok(raw) => Some(raw),
        Err(error) => {
            text::refused(&error);
            None
        }
    }
}

/// Of columns that are compared as they are stored: what is read is what would be written.
fn same<C: Stores<R>, R: RawKey>(data: &[u8]) {
    if let Some(raw) = decoded::<C, R>(data) {
        assert_eq!(C::encode(raw).found(), Found::Bytes(data), "{}", C::NAME);
        assert_eq!(C::sort_key(raw).as_ref(), data, "{}", C::NAME);
        assert_eq!(C::from_sort_key(C::sort_key(raw)), Ok(raw), "{}", C::NAME);
    }
}

fn comes_back<C: Stores<Uuid>>(data: &[u8]) {
    if let Some(raw) = decoded::<C, Uuid>(data) {
        assert_eq!(C::encode(raw).found(), Found::Bytes(data), "{}", C::NAME);
    }
    let raw = uuid(data);
    let decoded = C::decode(C::encode(raw).found());
    assert_eq!(decoded, Ok(raw), "{}", C::NAME);
    assert_eq!(C::from_sort_key(C::sort_key(raw)), Ok(raw), "{}", C::NAME);
}
