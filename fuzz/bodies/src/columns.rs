//! What databases return, read by each column.

use ordid_core::{
    storage::{Stores, column},
    uuid::Uuid,
};

use crate::{draw::uuid, text};

/// Takes the bytes for a value of every column.
pub fn columns(data: &[u8]) {
    same::<column::Binary16>(data);
    same::<column::Blob>(data);
    same::<column::Char22>(data);
    same::<column::Char36>(data);
    same::<column::Text>(data);
    same::<column::Uuid>(data);

    // It is bound in one form and returned in another.
    if let Some(raw) = decoded::<column::MariaDbUuid>(data) {
        assert_eq!(raw.hyphenated().to_string().as_bytes(), data);
    }
}

/// Reads the bytes; what is refused is refused by a short message.
fn decoded<C: Stores<Uuid>>(data: &[u8]) -> Option<Uuid> {
    match C::decode(data) {
        Ok(raw) => Some(raw),
        Err(error) => {
            text::refused(&error);
            None
        }
    }
}

fn same<C: Stores<Uuid>>(data: &[u8]) {
    if let Some(raw) = decoded::<C>(data) {
        assert_eq!(C::encode(raw).as_ref(), data, "{}", C::NAME);
    }
    let raw = uuid(data);
    let stored = C::encode(raw);
    assert_eq!(decoded::<C>(stored.as_ref()), Some(raw), "{}", C::NAME);
    assert_eq!(C::sort_key(raw).as_ref(), stored.as_ref(), "{}", C::NAME);
}
