//! The order law at compile time: scheme against column.

use core::marker::PhantomData;

use super::{
    Column, ColumnOn, Dialect,
    column::{self, Unordered},
};
use crate::key::{
    BinaryForm, KeyType, RawKey, RisesAsBytes, RisesAsDotNetBytes, RisesAsUuidToBin,
    RisesInMariaDbUuid, RisesInSqlServer, Scheme, TypedKey,
};

/// Checks at compile time that the scheme's keys keep their order in the dialect's column.
///
/// Adapters call it in a `const` for each `engine = column` pair. [`Unordered`] columns take the keys of every
/// scheme.
///
/// # Panics
///
/// If the keys lose their order. The message names the scheme, the database, the column, its comparison rule and the
/// alternatives. In a `const` this is a compile error.
pub const fn assert_keeps_order<S: Scheme, C: ColumnOn<D>, D: Dialect>() {
    if !C::UNORDERED && !S::ORDERS.contains(C::COMPARISON) {
        panic!("{}", Message::<S, C, D>::TEXT.as_str());
    }
}

/// Does the same check as [`assert_keeps_order`], but also compiles for a column that the dialect does not have. It
/// is for adapters whose own traits refuse such a column, so that the user gets one error and not two.
///
/// # Panics
///
/// As [`assert_keeps_order`].
pub const fn assert_named_keeps_order<S: Scheme, C: Column, D: Dialect>() {
    if !C::UNORDERED && !S::ORDERS.contains(C::COMPARISON) {
        panic!("{}", Message::<S, C, D>::TEXT.as_str());
    }
}

/// The page of the guide that says what engines compare, and where each scheme keeps its order.
const ENGINES: &str = "https://github.com/ordid/ordid/blob/main/docs/src/engines.md";

struct Message<S, C, D>(PhantomData<(S, C, D)>);

impl<S: Scheme, C: Column, D: Dialect> Message<S, C, D> {
    const TEXT: Text = Text::new()
        .push("`")
        .push(S::NAME)
        .push("` keys lose their order in the column `")
        .push(C::NAME)
        .push("` of ")
        .push(D::NAME)
        .push(": it ")
        .push(C::COMPARES)
        .push("; ways out: ")
        .push_column(Self::other_column())
        .push_scheme(Self::other_scheme())
        .push("`unordered(")
        .push(C::NAME)
        .push(")`, if order does not matter; see ")
        .push(ENGINES);

    /// Returns a column of the database in which the scheme's keys rise.
    const fn other_column() -> Option<&'static str> {
        let mut i = 0;
        while i < D::COLUMNS.len() {
            let (comparison, name) = D::COLUMNS[i];
            if S::ORDERS.contains(comparison) {
                return Some(name);
            }
            i += 1;
        }
        None
    }

    /// Returns a scheme that rises in the column.
    const fn other_scheme() -> &'static str {
        match (S::Raw::BINARY, size_of::<<S::Raw as RawKey>::Bytes>()) {
            (BinaryForm::I64, _) => "snowflake",
            (BinaryForm::U64, _) => "uuid_short",
            (BinaryForm::Bytes, 16) => C::COMPARISON.scheme(),
            (BinaryForm::Bytes, 12) => "object_id",
            (BinaryForm::Bytes, 15) => "push_id",
            (BinaryForm::Bytes, _) => "ordered_text_32",
        }
    }
}

/// A text that grows at compile time.
struct Text {
    bytes: [u8; 640],
    length: usize,
}

impl Text {
    const fn new() -> Self {
        Self {
            bytes: [0; 640],
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

    const fn push_column(self, name: Option<&str>) -> Self {
        match name {
            Some(name) => self
                .push("the column `")
                .push(name)
                .push("`, which keeps it; "),
            None => self,
        }
    }

    const fn push_scheme(self, name: &str) -> Self {
        self.push("a scheme that rises there, such as `")
            .push(name)
            .push("`; or ")
    }

    const fn as_str(&self) -> &str {
        match core::str::from_utf8(self.bytes.split_at(self.length).0) {
            Ok(text) => text,
            Err(_) => "keys lose their order in this column",
        }
    }
}

/// A key type that keeps its order in a column, or that is stored in an [`Unordered`] one. It is the bound for
/// generic wrappers, where [`assert_keeps_order`] would fail too late.
///
/// `uuid::Uuid` itself may hold any version, so it maps only to columns that compare bytes.
/// An [`Unordered`] column takes every key type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` keys do not keep their order in a `{C}` column",
    label = "order is lost here",
    note = "choose a column that compares bytes, or a key type whose scheme rises there: \
            `#[derive(ordid::KeyType)]`; or give the order up: `Unordered<{C}>`",
    note = "how each engine compares keys: https://github.com/ordid/ordid/blob/main/docs/src/engines.md"
)]
pub trait KeepsOrder<C: Column>: KeyType {}

#[diagnostic::do_not_recommend]
impl<K: KeyType<Scheme: RisesAsBytes>, C: ComparesBytes> KeepsOrder<C> for K {}

#[diagnostic::do_not_recommend]
impl<K: KeyType, C: Column> KeepsOrder<Unordered<C>> for K {}

macro_rules! keeps_order {
    ($($rises:ident: $($column:ident),+;)+) => {
        $($(
            #[diagnostic::do_not_recommend]
            impl<K: TypedKey<Scheme: $rises>> KeepsOrder<column::$column> for K {}
        )+)+
    };
}

keeps_order! {
    RisesInMariaDbUuid: MariaDbUuid;
    RisesInSqlServer: UniqueIdentifier;
    RisesAsDotNetBytes: Binary16DotNet, Raw16DotNet;
    RisesAsUuidToBin: Binary16Swapped;
}

/// A column whose stored values compare as the raw keys do: its [`Comparison`](crate::layout::Comparison) is `Bytes`.
pub trait ComparesBytes: Column {}

macro_rules! compares_bytes {
    ($($column:ident)+) => {
        $(impl ComparesBytes for column::$column {})+
        #[cfg(test)]
        const COMPARE_BYTES: &[(&str, crate::layout::Comparison)] =
            &[$((column::$column::NAME, column::$column::COMPARISON)),+];
    };
}

compares_bytes! {
    Uuid Bytea Blob Binary16 Binary12 Binary24 Raw16 Raw12 Raw24
    UniqueIdentifierPermuted BabelfishUniqueIdentifier
    Text Char36 Char32 Char26 Char22 Char20
    BigInt Integer BigIntUnsigned Number19 Number20
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Timestamp,
        layout::{Comparison, Orders},
        scheme::{catalogue::CATALOGUE, *},
        storage::dialect::{Babelfish, MariaDb, MySql, Oracle, Postgres, SqlServer, Sqlite},
    };

    macro_rules! scattered {
        ($scheme:ident, $raw:ty) => {
            enum $scheme {}

            impl Scheme for $scheme {
                type Raw = $raw;
                const NAME: &'static str = "scattered";
                const ORDERS: Orders = Orders::NONE;
                const EXPECTED: &'static str = "anything";

                fn check(_: &$raw) -> bool {
                    true
                }

                fn timestamp(_: &$raw) -> Option<Timestamp> {
                    None
                }
            }
        };
    }

    scattered!(Scattered, uuid::Uuid);
    scattered!(ScatteredI64, i64);
    scattered!(ScatteredU64, u64);
    scattered!(ScatteredObjectId, crate::key::ObjectId);
    scattered!(ScatteredPushId, crate::key::PushId);
    scattered!(ScatteredKey192, crate::key::Key192);

    fn message<S: Scheme, C: ColumnOn<D>, D: Dialect>() -> &'static str {
        // Not a temporary: the text is a constant.
        let text: &'static Text = const { &Message::<S, C, D>::TEXT };
        text.as_str()
    }

    #[test]
    fn the_message_names_scheme_column_database_rule_and_ways_out() {
        assert_eq!(
            message::<UuidV7, column::UniqueIdentifier, SqlServer>(),
            "`uuid_v7` keys lose their order in the column `unique_identifier` of SQL Server: it \
             compares bytes 10 to 15 first; ways out: the column `unique_identifier_permuted`, which \
             keeps it; a scheme that rises there, such as `uuid_v8_sql_server`; or \
             `unordered(unique_identifier)`, if order does not matter; see https://github.com/ordid/ordid/blob/main/docs/src/engines.md"
        );
        // No column of PostgreSQL has SQL Server's order.
        assert_eq!(
            message::<CombNHibernate, column::Uuid, Postgres>(),
            "`comb_nhibernate` keys lose their order in the column `uuid` of PostgreSQL: it compares \
             byte by byte from the first; ways out: a scheme that rises there, such as `uuid_v7`; or \
             `unordered(uuid)`, if order does not matter; see https://github.com/ordid/ordid/blob/main/docs/src/engines.md"
        );
        let text = message::<CombNHibernate, column::Binary16, MariaDb>();
        assert!(text.contains("the column `mariadb_uuid`"), "{text}");
        let text = message::<CombRtBinary, column::Raw16, Oracle>();
        assert!(text.contains("the column `raw16_dotnet`"), "{text}");
        let text = message::<UuidV1, column::Binary16, MySql>();
        assert!(text.contains("the column `binary16_swapped`"), "{text}");
        let text = message::<ScatteredI64, column::BigInt, MySql>();
        assert!(
            text.contains("of MySQL: it compares the numbers; ways out: a scheme"),
            "{text}"
        );
    }

    #[test]
    fn a_column_that_a_message_offers_keeps_the_order() {
        let rises = |name: &str| {
            let found = CATALOGUE.iter().find(|entry| entry.name == name);
            found.unwrap().orders.unwrap_or(Orders::BYTES)
        };
        for rule in Comparison::ALL {
            assert!(rises(rule.scheme()).contains(rule), "{rule:?}");
        }
        for (name, text) in [
            (
                "snowflake",
                message::<ScatteredI64, column::BigInt, Postgres>(),
            ),
            (
                "uuid_short",
                message::<ScatteredU64, column::BigIntUnsigned, MySql>(),
            ),
            (
                "object_id",
                message::<ScatteredObjectId, column::Blob, Sqlite>(),
            ),
            (
                "push_id",
                message::<ScatteredPushId, column::Char20, MySql>(),
            ),
            (
                "ordered_text_32",
                message::<ScatteredKey192, column::Raw24, Oracle>(),
            ),
            ("uuid_v7", message::<Scattered, column::Blob, Sqlite>()),
        ] {
            assert!(rises(name).contains(Comparison::Bytes));
            assert!(text.contains(&alloc::format!("such as `{name}`")), "{text}");
        }

        fn offered<C: ColumnOn<D>, D: Dialect>() {
            assert!(
                D::COLUMNS.contains(&(C::COMPARISON, C::NAME)),
                "{}",
                C::NAME
            );
        }
        offered::<column::Uuid, Postgres>();
        offered::<column::Binary16, MySql>();
        offered::<column::Binary16DotNet, MySql>();
        offered::<column::Binary16Swapped, MySql>();
        offered::<column::Binary16, MariaDb>();
        offered::<column::Binary16DotNet, MariaDb>();
        offered::<column::Binary16Swapped, MariaDb>();
        offered::<column::MariaDbUuid, MariaDb>();
        offered::<column::Blob, Sqlite>();
        offered::<column::UniqueIdentifier, SqlServer>();
        offered::<column::UniqueIdentifierPermuted, SqlServer>();
        offered::<column::BabelfishUniqueIdentifier, Babelfish>();
        offered::<column::Raw16, Oracle>();
        offered::<column::Raw16DotNet, Oracle>();
        fn count<D: Dialect>() -> usize {
            D::COLUMNS.len()
        }
        assert_eq!(
            count::<Postgres>()
                + count::<MySql>()
                + count::<MariaDb>()
                + count::<Sqlite>()
                + count::<SqlServer>()
                + count::<Babelfish>()
                + count::<Oracle>(),
            14
        );
    }

    #[test]
    fn v7_keeps_its_order_where_bytes_are_compared() {
        const {
            assert_keeps_order::<UuidV7, column::Uuid, Postgres>();
            assert_keeps_order::<UuidV7, column::Binary16, SqlServer>();
            assert_keeps_order::<UuidV7, column::Blob, Sqlite>();
            assert_keeps_order::<UuidV7, column::Char22, MySql>();
            assert_keeps_order::<UuidV7, column::MariaDbUuid, MariaDb>();
            assert_keeps_order::<UuidV7, column::UniqueIdentifierPermuted, SqlServer>();
            assert_keeps_order::<UuidV7, column::BabelfishUniqueIdentifier, Babelfish>();
            assert_keeps_order::<UuidV7, column::Raw16, Oracle>();
            assert_keeps_order::<Snowflake, column::Number19, Oracle>();
        }
    }

    /// Whether a scheme has a marker: the method of the type itself goes before the trait's.
    struct Probe<S>(PhantomData<S>);

    trait Lacks {
        fn bytes(&self) -> bool {
            false
        }
        fn mariadb_uuid(&self) -> bool {
            false
        }
        fn sql_server(&self) -> bool {
            false
        }
        fn dotnet_bytes(&self) -> bool {
            false
        }
        fn uuid_to_bin(&self) -> bool {
            false
        }
    }

    impl<S> Lacks for Probe<S> {}

    macro_rules! has {
        ($($marker:ident = $method:ident),+) => {
            $(impl<S: $marker> Probe<S> {
                fn $method(&self) -> bool {
                    true
                }
            })+
        };
    }

    has!(
        RisesAsBytes = bytes,
        RisesInMariaDbUuid = mariadb_uuid,
        RisesInSqlServer = sql_server,
        RisesAsDotNetBytes = dotnet_bytes,
        RisesAsUuidToBin = uuid_to_bin
    );

    /// The markers, for generic bounds, and the constants, for messages, are two ways to say one
    /// thing.
    #[test]
    fn trait_bounds_and_orders_agree() {
        macro_rules! same {
            ($($scheme:ty),+ $(,)?) => {$({
                let probe = Probe::<$scheme>(PhantomData);
                for (rule, marked) in [
                    (Comparison::Bytes, probe.bytes()),
                    (Comparison::MariaDbUuid, probe.mariadb_uuid()),
                    (Comparison::SqlServer, probe.sql_server()),
                    (Comparison::DotNetBytes, probe.dotnet_bytes()),
                    (Comparison::UuidToBin, probe.uuid_to_bin()),
                ] {
                    let name = <$scheme>::NAME;
                    assert_eq!(<$scheme>::ORDERS.contains(rule), marked, "{name} {rule:?}");
                }
            })+};
        }
        macro_rules! each {
            ($($name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $($text:literal),+;)+) => {
                $(each!(@one [$($kind)+] $scheme);)+
            };
            // Numbers of several counters compare as they are, and rise in no order.
            (@one [reserved] $scheme:ty) => {};
            (@one [$($kind:tt)+] $scheme:ty) => { same!($scheme) };
        }
        crate::__for_each_scheme! { each }
        same!(
            // A parameter changes no order.
            crate::scheme::node::WithNode<UuidV1, crate::scheme::node::Random>,
            crate::scheme::node::WithNode<UuidV6, crate::scheme::node::Random>,
            crate::scheme::node::WithNode<UuidV1Rearranged, crate::scheme::node::Random>,
            crate::scheme::node::WithNode<UuidCreateSequential, crate::scheme::node::Random>,
        );
    }

    #[test]
    fn the_columns_that_compare_bytes_are_those_of_which_it_is_said() {
        macro_rules! columns {
            ($($name:ident $column:ident: $raws:tt $($dialect:ident)+;)+) => {
                [$((column::$column::NAME, column::$column::COMPARISON)),+]
            };
        }
        let columns = crate::__for_each_column! { columns };
        for (name, comparison) in columns {
            let is_said = COMPARE_BYTES.iter().any(|(said, _)| *said == name);
            assert_eq!(is_said, comparison == Comparison::Bytes, "{name}");
        }
    }
}
