//! What databases return, read by each column.

use ordid_core::{
    key::{Key192, ObjectId, PushId, RawKey},
    layout::Comparison,
    storage::{Found, StoredValue as _, Stores, column},
    uuid::Uuid,
};

use crate::{draw::FromStart, text};

/// Columns that are written in the order in which their database compares bytes, which is not theirs.
const REORDERED: [&str; 1] = ["unique_identifier_permuted"];

macro_rules! each {
    ({ $data:ident } $($name:ident $column:ident: [$($raw:ty)+] $($dialect:ident)+;)+) => {
        $($(read::<column::$column, $raw>($data);)+)+
    };
}

/// Takes the bytes for a value of every column.
pub fn columns(data: &[u8]) {
    ordid_core::__for_each_column! { each { data } }
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

fn read<C: Stores<R>, R: FromStart>(data: &[u8]) {
    let first = R::from_start(data)[0];
    let written = C::encode(first);
    if !matches!(written.found(), Found::Bytes(_)) {
        // Bytes are no integer.
        assert_eq!(decoded::<C, R>(data), None, "{}", C::NAME);
        return;
    }
    // Whatever was written comes back, and so does what it is sorted by, but from MariaDB's UUID: its
    // comparison rearranges some versions, and which of two forms a sort key had is not in it.
    assert_eq!(C::decode(written.found()), Ok(first), "{}", C::NAME);
    if C::COMPARISON != Comparison::MariaDbUuid {
        assert_eq!(
            C::from_sort_key(C::sort_key(first)),
            Ok(first),
            "{}",
            C::NAME
        );
    }
    // Whatever is read is what would be written; most columns are compared as they are stored.
    if let Some(raw) = decoded::<C, R>(data) {
        assert_eq!(C::encode(raw).found(), Found::Bytes(data), "{}", C::NAME);
        if C::COMPARISON == Comparison::Bytes && !REORDERED.contains(&C::NAME) {
            assert_eq!(C::sort_key(raw).as_ref(), data, "{}", C::NAME);
        }
    }
}
