//! `schemars`: JSON Schema. The schema is named by the key type, and others refer to it.

use alloc::{borrow::Cow, format};

use schemars::{Schema, json_schema};

use super::schema::{StringForm, largest_number};
use crate::KeyType;

/// Body of a key type's `schema_id`: two modules may have key types of one name.
pub fn schema_id<K: KeyType>(module: &str) -> Cow<'static, str> {
    Cow::Owned(format!("{module}::{}", K::NAME))
}

/// Body of a key type's `json_schema`.
pub fn json_schema<K: KeyType>() -> Schema {
    if let Some(largest) = largest_number::<K>() {
        return json_schema!({
            "type": "integer",
            "title": K::NAME,
            "format": "int64",
            "minimum": 0,
            "maximum": largest,
        });
    }
    let form = StringForm::of::<K>();
    let mut schema = json_schema!({ "type": "string", "title": K::NAME });
    if let Some(format) = form.format {
        schema.insert("format".into(), format.into());
    }
    if let Some(pattern) = form.pattern {
        schema.insert("pattern".into(), pattern.into());
    }
    schema
}
