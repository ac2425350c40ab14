//! What Babelfish 4.3 refuses and SQL Server takes, as far as a request shows it.

use super::{
    answer::Failure,
    request::{Parameter, Request},
};

/// The number of every error of PostgreSQL that has no number of SQL Server.
pub const OTHER: u32 = 33_557_097;

/// The type of a NULL that has no other type: [MS-TDS] 2.2.5.4.1.
const NULL: u8 = 0x1f;

/// Returns the error with which Babelfish answers a request, if it refuses it.
pub(crate) fn refuses(request: &Request) -> Option<Failure> {
    let untyped = |parameter: &Parameter| parameter.ty.bytes.first() == Some(&NULL);
    let (number, message) = if let Some(at) = request.arguments().iter().position(untyped) {
        let message = "The incoming tabular data stream (TDS) protocol stream is incorrect. \
                       Unsupported data type";
        (8009, format!("{message} of parameter {}.", at + 1))
    } else if has_bracket_in_name(&request.text()) {
        (OTHER, "syntax error near ']'".to_owned())
    } else {
        return None;
    };
    Some(Failure {
        number,
        class: 16,
        message,
        rolls_back: false,
    })
}

/// Returns whether a name in brackets has a doubled bracket in it.
fn has_bracket_in_name(sql: &str) -> bool {
    sql.split('[').skip(1).any(|name| {
        let behind = name.split_once(']').map(|(_, behind)| behind);
        behind.is_some_and(|behind| behind.starts_with(']'))
    })
}
