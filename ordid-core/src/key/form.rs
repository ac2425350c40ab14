//! What keys look like to other libraries: facts about their forms that a schema or a serializer
//! has to know, and nothing of those libraries.

/// The form of a key's text, in the terms of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextForm {
    /// The name of a JSON Schema `format`, such as `uuid`.
    Format(&'static str),
    /// A regular expression of ECMA-262 that matches the whole canonical text. It has no anchors, and alternatives
    /// are in a group, since a prefix may be put in front.
    Pattern(&'static str),
}

/// How binary formats, such as CBOR, carry a raw key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BinaryForm {
    /// [`RawKey::to_bytes`](super::RawKey::to_bytes) as a byte string.
    Bytes,
    /// A signed integer, from the key's 8 bytes in two's complement.
    I64,
    /// An unsigned integer, from the key's 8 bytes.
    U64,
}
