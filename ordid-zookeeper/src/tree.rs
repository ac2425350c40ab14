//! Nodes of the tree: their paths, their data, their versions.

use core::str::FromStr;

use ordid_core::{Error, coordination::CoordinationFailure};
use zookeeper_client::{Client, CreateMode, Error as Cause, Stat};

use crate::{
    Session,
    error::{damaged, failed},
};

/// Refuses a path that the library would refuse at every call.
pub(crate) fn checked(path: String) -> Result<String, Error> {
    let parts = path.strip_prefix('/').unwrap_or_default().split('/');
    let is_part = |part: &str| {
        !(part.is_empty() || part == "." || part == ".." || part.contains(char::is_control))
    };
    if { parts }.all(is_part) {
        return Ok(path);
    }
    Err(Error::coordination(
        CoordinationFailure::Mismatch,
        format!("`{path}` is no path of ZooKeeper: write it as /app/orders"),
    ))
}

/// Makes a node with this data, and those above it. Returns whether it was not there.
pub(crate) async fn create(session: &Session, path: &str, data: &str) -> Result<bool, Error> {
    let client = session.client().await?;
    let options = session.create_options(CreateMode::Persistent);
    if let Some((above, _)) = path.rsplit_once('/').filter(|(above, _)| !above.is_empty()) {
        let made = client.mkdir(above, &options).await;
        made.map_err(|error| failed(above, &error))?;
    }
    match client.create(path, data.as_bytes(), &options).await {
        Ok(_) => Ok(true),
        Err(Cause::NodeExists) => Ok(false),
        Err(error) => Err(failed(path, &error)),
    }
}

/// Reads a number from a node.
pub(crate) async fn number<T: FromStr>(client: &Client, path: &str) -> Result<(T, Stat), Number> {
    let (data, stat) = client.get_data(path).await.map_err(Number::Failed)?;
    match parse(&data) {
        Some(number) => Ok((number, stat)),
        None => Err(Number::Damaged(damaged(path, &data))),
    }
}

/// Why there is no number.
pub(crate) enum Number {
    Failed(Cause),
    Damaged(Error),
}

impl Number {
    pub(crate) fn or(self, failed: impl FnOnce(&Cause) -> Error) -> Error {
        match self {
            Self::Failed(cause) => failed(&cause),
            Self::Damaged(error) => error,
        }
    }
}

pub(crate) fn parse<T: FromStr>(data: &[u8]) -> Option<T> {
    core::str::from_utf8(data).ok()?.parse().ok()
}

/// The version that a write has to expect. It has 31 bits: after as many writes it turns negative, and
/// -1 would mean any.
pub(crate) fn version(path: &str, version: i32) -> Result<Option<i32>, Error> {
    if version >= 0 {
        return Ok(Some(version));
    }
    Err(Error::coordination(
        CoordinationFailure::CounterExhausted,
        format!(
            "ZooKeeper, {path}: it was written 2^31 times, and its versions begin anew: replace it"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_checked_when_they_are_given() {
        for good in ["/a", "/app/orders", "/app/or.ders"] {
            assert_eq!(checked(good.to_owned()).as_deref(), Ok(good));
        }
        for bad in ["", "/", "a", "/a/", "/a//b", "/a/../b", "/./a", "/a\0"] {
            let error = checked(bad.to_owned()).unwrap_err();
            assert_eq!(
                error.coordination_failure(),
                Some(CoordinationFailure::Mismatch),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_version_never_means_any() {
        assert_eq!(version("/a", i32::MAX), Ok(Some(i32::MAX)));
        for over in [-1, i32::MIN] {
            let error = version("/a", over).unwrap_err();
            assert_eq!(
                error.coordination_failure(),
                Some(CoordinationFailure::CounterExhausted)
            );
        }
    }
}
