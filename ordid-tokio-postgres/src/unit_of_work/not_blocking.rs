//! The functions for the crate `postgres` if the feature `postgres` is off. They cannot be called, and the compiler says
//! why.

use ordid_sql::Flushed;

use super::{ShardedUnitOfWork, UnitOfWork};
use crate::Error;

/// The trait of what a flush takes with the feature `postgres`. Without the feature, no type implements it.
#[diagnostic::on_unimplemented(
    message = "ordid-tokio-postgres is built without the feature `postgres`",
    label = "takes the feature `postgres` of ordid-tokio-postgres",
    note = "turn it on: `cargo add ordid-tokio-postgres --features postgres`"
)]
pub trait Blocking {}

macro_rules! not_blocking {
    ($($work:ident: $flushed:ty { $($name:ident($client:ident: $type:ty);)+ })+) => {$(
        impl $work {$(
            #[doc(hidden)]
            pub fn $name<C: Blocking>(&mut self, $client: $type) -> Result<$flushed, Error> {
                let _ = $client;
                unreachable!("no type implements the trait")
            }
        )+}
    )+};
}

not_blocking! {
    UnitOfWork: Flushed {
        flush_blocking(client: &mut C);
        flush_in_blocking(transaction: &mut C);
        flush_with_blocking(connect: C);
    }
    ShardedUnitOfWork: Vec<Flushed> {
        flush_blocking(clients: &mut [C]);
        flush_with_blocking(connect: C);
    }
}
