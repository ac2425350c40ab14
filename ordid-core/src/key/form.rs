//! What keys look like to other libraries: facts about their forms that a schema or a serializer
//! has to know, and nothing of those libraries.

/// What a key's text looks like, in the terms of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextForm {
    /// A `format` that JSON Schema names, such as `uuid`.
    Format(&'static str),
    /// A regular expression of ECMA-262 that the canonical text matches as a whole: without anchors,
    /// and with a group around alternatives, since a prefix may be put in front.
    Pattern(&'static str),
}

/// How a raw key is carried by formats that are not for people, such as CBOR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BinaryForm {
    /// [`RawKey::to_bytes`](super::RawKey::to_bytes) as a byte string.
    Bytes,
    /// A signed integer. The key has 8 bytes, in two's complement.
    I64,
    /// An unsigned integer. The key has 8 bytes.
    U64,
}
