//! `ordid new`: makes keys.
//!
//! JSON Lines, one object a key: `key` (its text), `scheme`, `time` (RFC 3339, or null).

use std::sync::Arc;

use clap::Args;
use ordid_core::{
    clock::{Clock, SystemClock, Timestamp},
    key::text::try_check_prefix,
    scheme::catalogue::{AnyGenerator, AnyKey, Entry},
};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    failure::{Failure, Outcome},
    output::Output,
    progress::Progress,
    scheme::{Named, Still},
    time,
};

/// Arguments of `ordid new`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The scheme of the keys; `ordid schemes` lists them
    #[arg(default_value = "uuid_v7", hide_possible_values = true)]
    scheme: Named,
    /// How many keys to make
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    count: u64,
    /// The time that the keys begin at
    #[arg(long, value_name = "TIME", value_parser = time::parse, allow_hyphen_values = true, long_help = time::help!("Make keys of this time and after it"))]
    at: Option<Timestamp>,
    /// A prefix: the keys of 128 bits become TypeIDs
    #[arg(long, value_parser = prefix)]
    prefix: Option<String>,
    /// The number of the node (worker, machine, shard, server), for schemes that have one; no other generator may have
    /// it at the same time
    #[arg(long, value_name = "NUMBER")]
    node: Option<u64>,
    /// The name to make a key of, for `uuid_v5` and `uuid_v8_sha256`
    #[arg(long)]
    name: Option<String>,
    /// The namespace of the name: dns, url, oid, x500, or a UUID
    #[arg(long, value_parser = namespace, requires = "name", default_value = "dns")]
    namespace: Uuid,
}

/// Reads a prefix.
pub(super) fn prefix(text: &str) -> Result<String, String> {
    let checked = try_check_prefix(text).map_err(|error| error.to_string());
    checked.map(|()| text.to_owned())
}

fn namespace(text: &str) -> Result<Uuid, String> {
    match text {
        "dns" => Ok(Uuid::NAMESPACE_DNS),
        "url" => Ok(Uuid::NAMESPACE_URL),
        "oid" => Ok(Uuid::NAMESPACE_OID),
        "x500" => Ok(Uuid::NAMESPACE_X500),
        _ => text
            .parse()
            .map_err(|_| "a namespace is dns, url, oid, x500 or a UUID".to_owned()),
    }
}

/// A key, in JSON.
#[derive(Serialize)]
struct Made<'a> {
    key: &'a str,
    scheme: &'static str,
    time: Option<String>,
}

impl Arguments {
    /// Makes the keys and prints them.
    ///
    /// # Errors
    ///
    /// The scheme cannot make such keys, or the output cannot be written.
    pub(crate) fn run(self, output: &mut Output) -> Result<Outcome, Failure> {
        let scheme = self.scheme.0;
        if let Some(name) = &self.name {
            let key = scheme.key_of_name(&self.namespace, name.as_bytes());
            let key = key.ok_or_else(|| {
                Failure::wrong(format_args!(
                    "keys of {} are not made of names",
                    scheme.name
                ))
            })?;
            if self.count != 1 || self.at.is_some() || self.node.is_some() {
                return Err(Failure::wrong(
                    "a name makes one key, without time and node: leave --count, --at and --node out",
                ));
            }
            self.print(output, key)?;
            return Ok(Outcome::Fine);
        }
        if let Some(time) = self.at {
            self.count_at(scheme, time)?;
        }
        let generator = self.generator(scheme)?;
        let mut progress = Progress::new("keys", self.count);
        for _ in 0..self.count {
            let key = generator.generate().map_err(Failure::could_not)?;
            self.print(output, key)?;
            progress.add(1);
        }
        progress.finish();
        Ok(Outcome::Fine)
    }

    /// Makes the keys of a time once without printing them: it may have fewer, and no key is printed if some are missing.
    fn count_at(&self, scheme: &'static Entry, time: Timestamp) -> Result<(), Failure> {
        let generator = self.generator(scheme)?;
        for number in 0..self.count {
            match generator.generate() {
                Ok(key) if key.timestamp().is_none() => {
                    return Err(Failure::wrong(format_args!(
                        "keys of {} do not tell a time, so --at means nothing to them",
                        scheme.name
                    )));
                }
                Ok(_) => {}
                Err(error) if number > 0 && error.is_overflow() => {
                    return Err(Failure::wrong(format_args!(
                        "there are {number} keys of {} at {time} and in the seconds after it that a generator may run ahead \
                         of its clock: ask for no more",
                        scheme.name
                    )));
                }
                Err(error) if error.is_clock() || error.is_overflow() => {
                    return Err(Failure::wrong(error));
                }
                Err(error) => return Err(Failure::could_not(error)),
            }
        }
        Ok(())
    }

    fn generator(&self, scheme: &'static Entry) -> Result<AnyGenerator, Failure> {
        let clock: Arc<dyn Clock> = match self.at {
            None => Arc::new(SystemClock),
            Some(time) => Arc::new(Still(time)),
        };
        scheme
            .generator(self.node, Arc::clone(&clock))
            .map_err(|error| {
                let option = if scheme.key_of_name(&Uuid::nil(), b"").is_some() {
                    "; give one by --name"
                } else if self.node.is_none() && scheme.generator(Some(0), clock).is_ok() {
                    "; give it by --node"
                } else {
                    ""
                };
                Failure::wrong(format_args!("{error}{option}"))
            })
    }

    fn print(&self, output: &mut Output, key: AnyKey) -> Result<(), Failure> {
        let text = key.text(self.prefix.as_deref());
        if !output.is_json() {
            return output.line(&text);
        }
        output.json_line(&Made {
            key: &text,
            scheme: key.entry().name,
            time: key.timestamp().map(|time| time.to_string()),
        })
    }
}
