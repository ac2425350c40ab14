//! The list of schemes.

use ordid_core::{
    Scheme,
    clock::Timestamp,
    scheme::{
        self, Compact, Layout, Snowflake, TimeOrdered, compact::CompactNeed, compact::Need,
        snowflake,
    },
};

use crate::{
    draw::{Draw, FromStart},
    layouts, parts, text, time,
};

/// What is done with a scheme.
#[derive(Debug, Clone, Copy)]
pub struct Bodies {
    /// The scheme's name.
    pub name: &'static str,
    pub(crate) text: fn(Option<&str>, &str),
    pub(crate) layout: fn(&[u8]),
    pub(crate) parts: fn(&[u8]),
    pub(crate) bounds: Option<fn(Timestamp)>,
}

impl Bodies {
    /// Of a scheme whose keys have no ranges by time.
    const fn of<S: Layout<Raw: FromStart, Parts: Draw>>() -> Self {
        Self {
            name: S::NAME,
            text: text::of::<S>,
            layout: layouts::of::<S>,
            parts: parts::of::<S>,
            bounds: None,
        }
    }

    const fn ordered<S: TimeOrdered<Raw: FromStart, Parts: Draw>>() -> Self {
        Self {
            bounds: Some(time::bounds::<S>),
            ..Self::of::<S>()
        }
    }
}

/// A compact layout, as users make them.
#[derive(Debug)]
enum Invoices {}

impl CompactNeed for Invoices {
    const NAME: &'static str = "compact";
    const NEED: Need = Need {
        from_unix_millis: 1_640_995_200_000,
        years: 30,
        ids_per_second: 10_000,
        nodes: 3,
    };
}

/// Every scheme of ordid-core.
pub const SCHEMES: [Bodies; 43] = [
    Bodies::of::<scheme::UuidCreateSequential>(),
    Bodies::of::<scheme::UuidShort>(),
    Bodies::of::<scheme::UuidV4>(),
    Bodies::of::<scheme::UuidV4Clustered>(),
    Bodies::of::<scheme::UuidV4ClusteredCompat>(),
    Bodies::ordered::<Snowflake<Compact<Invoices>>>(),
    Bodies::ordered::<Snowflake<snowflake::BaiduUid>>(),
    Bodies::ordered::<Snowflake<snowflake::Bits<40, 7, 16, 10>>>(),
    Bodies::ordered::<Snowflake<snowflake::Discord>>(),
    Bodies::ordered::<Snowflake<snowflake::Sonyflake>>(),
    Bodies::ordered::<Snowflake<snowflake::SonyflakeV2>>(),
    Bodies::ordered::<Snowflake<snowflake::WideSequence>>(),
    Bodies::ordered::<Snowflake<snowflake::Yitter>>(),
    Bodies::ordered::<Snowflake>(),
    Bodies::ordered::<scheme::CombEfCore>(),
    Bodies::ordered::<scheme::CombNHibernate>(),
    Bodies::ordered::<scheme::CombRtBinary>(),
    Bodies::ordered::<scheme::CombRtLegacy>(),
    Bodies::ordered::<scheme::CombRtPostgreSql>(),
    Bodies::ordered::<scheme::CombRtSql>(),
    Bodies::ordered::<scheme::FirebasePushId>(),
    Bodies::ordered::<scheme::Instagram>(),
    Bodies::ordered::<scheme::Medo>(),
    Bodies::ordered::<scheme::NewId>(),
    Bodies::ordered::<scheme::ObjectIdScheme>(),
    Bodies::ordered::<scheme::OrderedText22>(),
    Bodies::ordered::<scheme::OrderedText22Push>(),
    Bodies::ordered::<scheme::OrderedText22Time64>(),
    Bodies::ordered::<scheme::OrderedText22Time64Push>(),
    Bodies::ordered::<scheme::OrderedText32>(),
    Bodies::ordered::<scheme::OrderedText32Push>(),
    Bodies::ordered::<scheme::Percona64>(),
    Bodies::ordered::<scheme::SequentialGuidAsBinary>(),
    Bodies::ordered::<scheme::SequentialGuidAsString>(),
    Bodies::ordered::<scheme::SequentialGuidAtEnd>(),
    Bodies::ordered::<scheme::Ulid>(),
    Bodies::ordered::<scheme::UuidV1>(),
    Bodies::ordered::<scheme::UuidV1Rearranged>(),
    Bodies::ordered::<scheme::UuidV6>(),
    Bodies::ordered::<scheme::UuidV7>(),
    Bodies::ordered::<scheme::UuidV7SubMillis>(),
    Bodies::ordered::<scheme::UuidV7Unguessable>(),
    Bodies::ordered::<scheme::UuidV8SqlServer>(),
];

/// A raw key as its scheme writes it.
pub(crate) fn text_of<S: Scheme>(raw: S::Raw, prefix: Option<&str>) -> String {
    struct Text<'p, S: Scheme>(S::Raw, Option<&'p str>);

    impl<S: Scheme> std::fmt::Display for Text<'_, S> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            S::write_text(self.0, self.1, f)
        }
    }

    Text::<S>(raw, prefix).to_string()
}
