//! `juniper`: a scalar named by the key type, whose value is the text that `Display` writes and `FromStr` reads.
//!
//! This holds for key types with `json = number` as well: GraphQL's `Int` has 32 bits, and so has juniper's default scalar
//! value.

use alloc::{boxed::Box, format, string::String};
use core::future;

use juniper::{
    ArcStr, BoxFuture, ExecutionResult, FieldError, FromInputValue, GraphQLType, InputValue,
    ParseScalarResult, ParseScalarValue, Registry, ScalarToken, ScalarValue, Value, meta::MetaType,
};

use crate::{KeyType, Scheme};

/// Body of a key type's `name`, which schemas call when they are built.
//
// `arcstr::literal!` would save the allocation. It says `Some`, which may be another type's name where the macro is expanded.
#[must_use]
pub fn scalar_name<K: KeyType>() -> Option<ArcStr> {
    Some(ArcStr::from(K::NAME))
}

/// Body of a key type's `meta`.
pub fn scalar_meta<K, S>(registry: &mut Registry<S>) -> MetaType<S>
where
    K: GraphQLType<S, TypeInfo = ()>
        + FromInputValue<S, Error = FieldError<S>>
        + ParseScalarValue<S>,
    S: ScalarValue,
{
    registry.build_scalar_type::<K>(&()).into_meta()
}

/// Body of a key type's `resolve`.
///
/// # Errors
///
/// Returns no error.
pub fn resolve<K: KeyType, S: ScalarValue>(key: K) -> ExecutionResult<S> {
    Ok(Value::Scalar(to_scalar(key)))
}

/// Body of a key type's `resolve_async`.
#[must_use]
pub fn resolve_async<'a, K: KeyType, S: ScalarValue + Send>(
    key: K,
) -> BoxFuture<'a, ExecutionResult<S>> {
    Box::pin(future::ready(resolve(key)))
}

/// Body of a key type's `to_scalar_value`.
#[must_use]
pub fn to_scalar<K: KeyType, S: ScalarValue>(key: K) -> S {
    S::from_displayable(&key)
}

/// Body of a key type's `to_input_value`, which default values of arguments use.
#[must_use]
pub fn to_input_value<K: KeyType, S: ScalarValue>(key: K) -> InputValue<S> {
    InputValue::Scalar(to_scalar(key))
}

/// Body of a key type's `from_scalar_value`.
///
/// # Errors
///
/// Returns an error if the scalar is not a string, its text is not canonical, or the key is one of another scheme.
pub fn of_scalar<K: KeyType, S: ScalarValue>(scalar: &S) -> Result<K, FieldError<S>> {
    let Some(text) = scalar.try_as_str() else {
        return Err(no_text::<K, S>());
    };
    match K::Scheme::parse_text(K::PREFIX, text) {
        Ok(raw) => K::from_outside(raw).map_err(FieldError::from),
        Err(error) => Err(format!("not a `{}`: {error}", K::NAME).into()),
    }
}

/// Body of a key type's `from_input_value`.
///
/// # Errors
///
/// Returns the errors of [`of_scalar`], and an error if the value is not a scalar.
pub fn of_input_value<K: KeyType, S: ScalarValue>(
    value: &InputValue<S>,
) -> Result<K, FieldError<S>> {
    value
        .as_scalar()
        .map_or_else(|| Err(no_text::<K, S>()), of_scalar)
}

fn no_text<K: KeyType, S>() -> FieldError<S> {
    format!("expected the text of a `{}`", K::NAME).into()
}

/// Body of a key type's parsing of a token: the token of a string.
///
/// # Errors
///
/// Returns an error if the token is a number. juniper then reads it as a number, which [`of_scalar`] refuses with the
/// reason.
pub fn scalar_of_token<S: ScalarValue>(token: ScalarToken<'_>) -> ParseScalarResult<S> {
    <String as ParseScalarValue<S>>::from_str(token)
}
