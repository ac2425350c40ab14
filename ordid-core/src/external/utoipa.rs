//! `utoipa`: OpenAPI. The schema is named by the key type, and is one of a parameter as well.

use alloc::string::ToString as _;

use utoipa::openapi::{
    KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat,
    schema::{SchemaType, Type},
};

use super::schema::{StringForm, largest_number};
use crate::KeyType;

/// Body of a key type's `schema`.
pub fn open_api_schema<K: KeyType>() -> RefOr<Schema> {
    if let Some(largest) = largest_number::<K>() {
        return ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::Integer))
            .title(Some(K::NAME))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(0_u64))
            .maximum(Some(largest))
            .into();
    }
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
