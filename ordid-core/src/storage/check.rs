//! The order law at compile time: scheme against column.

use core::marker::PhantomData;

use super::{Column, column};
use crate::key::{KeyType, RisesAsBytes, RisesInMariaDbUuid, Scheme, TypedKey};

/// Fails to compile where the scheme's keys lose their order in the column.
///
/// Derived code calls it in a `const` for each `engine = column` pair.
///
/// # Panics
///
/// With the scheme, the column, its comparison rule and the way out; in a `const` this is a
/// compile error.
pub const fn assert_keeps_order<S: Scheme, C: Column>() {
    if !S::ORDERS.contains(C::COMPARISON) {
        panic!("{}", Message::<S, C>::TEXT.as_str());
    }
}

struct Message<S, C>(PhantomData<(S, C)>);

impl<S: Scheme, C: Column> Message<S, C> {
    const TEXT: Text = Text::new()
        .push("`")
        .push(S::NAME)
        .push("` keys lose their order in a `")
        .push(C::NAME)
        .push("` column: it ")
        .push(C::COMPARISON.describe())
        .push("; choose another column, or a scheme that rises there");
}

/// A text that grows at compile time.
struct Text {
    bytes: [u8; 512],
    length: usize,
}

impl Text {
    const fn new() -> Self {
        Self {
            bytes: [0; 512],
            length: 0,
        }
    }

    const fn push(mut self, text: &str) -> Self {
        let text = text.as_bytes();
        let mut i = 0;
        while i < text.len() && self.length < self.bytes.len() {
            self.bytes[self.length] = text[i];
            self.length += 1;
            i += 1;
        }
        self
    }

    const fn as_str(&self) -> &str {
        match core::str::from_utf8(self.bytes.split_at(self.length).0) {
            Ok(text) => text,
            Err(_) => "keys lose their order in this column",
        }
    }
}

/// A key type that keeps its order in a column: the bound for generic wrappers, where
/// [`assert_keeps_order`] would come too late.
///
/// `uuid::Uuid` itself may hold any version, so it maps only to columns that compare bytes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` keys do not keep their order in a `{C}` column",
    label = "order is lost here",
    note = "choose a column that compares bytes, or a key type whose scheme rises there: \
            `#[derive(ordid::KeyType)]`"
)]
pub trait KeepsOrder<C: Column>: KeyType {}

impl<K: KeyType<Scheme: RisesAsBytes>, C: ComparesBytes> KeepsOrder<C> for K {}

impl<K: TypedKey<Scheme: RisesInMariaDbUuid>> KeepsOrder<column::MariaDbUuid> for K {}

/// A column whose [`Comparison`](crate::layout::Comparison) is `Bytes`.
pub trait ComparesBytes: Column {}

impl ComparesBytes for column::Uuid {}
impl ComparesBytes for column::Binary16 {}
impl ComparesBytes for column::Blob {}
impl ComparesBytes for column::Text {}
impl ComparesBytes for column::Char36 {}
impl ComparesBytes for column::Char22 {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Timestamp,
        layout::{Comparison, Orders},
        scheme::UuidV7,
    };

    enum Scattered {}

    impl Scheme for Scattered {
        type Raw = uuid::Uuid;
        const NAME: &'static str = "scattered";
        const ORDERS: Orders = Orders::NONE;
        const EXPECTED: &'static str = "anything";

        fn check(_: &uuid::Uuid) -> bool {
            true
        }

        fn timestamp(_: &uuid::Uuid) -> Option<Timestamp> {
            None
        }
    }

    #[test]
    fn the_message_names_scheme_column_and_rule() {
        assert_eq!(
            Message::<Scattered, column::Binary16>::TEXT.as_str(),
            "`scattered` keys lose their order in a `binary16` column: it compares byte by byte \
             from the first; choose another column, or a scheme that rises there"
        );
    }

    #[test]
    fn v7_keeps_its_order_in_every_column() {
        const {
            assert_keeps_order::<UuidV7, column::Uuid>();
            assert_keeps_order::<UuidV7, column::Binary16>();
            assert_keeps_order::<UuidV7, column::Blob>();
            assert_keeps_order::<UuidV7, column::Text>();
            assert_keeps_order::<UuidV7, column::Char36>();
            assert_keeps_order::<UuidV7, column::Char22>();
            assert_keeps_order::<UuidV7, column::MariaDbUuid>();
        }
    }

    #[test]
    fn bounds_and_constants_say_the_same() {
        fn bytes<C: ComparesBytes>() -> Comparison {
            C::COMPARISON
        }
        for comparison in [
            bytes::<column::Uuid>(),
            bytes::<column::Binary16>(),
            bytes::<column::Blob>(),
            bytes::<column::Text>(),
            bytes::<column::Char36>(),
            bytes::<column::Char22>(),
        ] {
            assert_eq!(comparison, Comparison::Bytes);
        }
        fn orders<S: RisesAsBytes + RisesInMariaDbUuid>() -> Orders {
            S::ORDERS
        }
        assert!(orders::<UuidV7>().contains(Comparison::Bytes));
        assert!(orders::<UuidV7>().contains(Comparison::MariaDbUuid));
        assert_eq!(column::MariaDbUuid::COMPARISON, Comparison::MariaDbUuid);
    }
}
