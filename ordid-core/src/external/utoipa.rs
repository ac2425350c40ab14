//! `utoipa`: OpenAPI. The schema is named by the key type, and is one of a parameter as well.

use alloc::string::ToString as _;

use utoipa::openapi::{
    ObjectBuilder, RefOr, Schema, SchemaFormat,
    schema::{SchemaType, Type},
};

use super::schema::StringForm;
use crate::KeyType;

/// Body of a key type's `schema`.
pub fn open_api_schema<K: KeyType>() -> RefOr<Schema> {
    let form = StringForm::of::<K>();
    let format = form
        .format
        .map(|format| SchemaFormat::Custom(format.to_string()));
    ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .title(Some(K::NAME))
        .format(format)
        .pattern(form.pattern)
        .into()
}
