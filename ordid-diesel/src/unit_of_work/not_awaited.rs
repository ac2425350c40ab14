//! The functions for diesel-async if the feature `async` is off. They cannot be called, and the compiler says why.

use std::future::{Pending, pending};

use ordid_sql::Flushed;

use super::UnitOfWork;
use crate::{Error, ShardedUnitOfWork, backend::Backend};

/// The trait of what a flush takes with the feature `async`. Without the feature, no type implements it.
#[diagnostic::on_unimplemented(
    message = "ordid-diesel is built without the feature `async`",
    label = "takes the feature `async` of ordid-diesel",
    note = "turn it on: `cargo add ordid-diesel --features async`"
)]
pub trait Awaited {}

macro_rules! not_awaited {
    ($($work:ident: $flushed:ty { $($name:ident($connection:ident: $type:ty);)+ })+) => {$(
        impl<DB: Backend> $work<DB> {$(
            #[doc(hidden)]
            pub fn $name<C: Awaited>(&mut self, $connection: $type) -> Pending<Result<$flushed, Error>> {
                let _ = $connection;
                pending()
            }
        )+}
    )+};
}

not_awaited! {
    UnitOfWork: Flushed {
        flush_async(connection: &mut C);
        flush_in_async(connection: &mut C);
        flush_with_async(connect: C);
    }
    ShardedUnitOfWork: Vec<Flushed> {
        flush_async(connections: &mut [C]);
        flush_with_async(connect: C);
    }
}
