//! The catalogue's schemes. `cargo xtask lists` writes this file.

#[rustfmt::skip]
use crate::options::{Scheme, clustered, key192, object_id, push_id, signed, snowflake, spread, spread_snowflake, unsigned, uuid, uuid_of_node};

/// The schemes, by name.
#[rustfmt::skip]
pub(crate) const SCHEMES: &[Scheme] = &[
    uuid("comb_efcore", "CombEfCore"),
    uuid("comb_nhibernate", "CombNHibernate"),
    uuid("comb_rt_binary", "CombRtBinary"),
    uuid("comb_rt_legacy", "CombRtLegacy"),
    uuid("comb_rt_postgresql", "CombRtPostgreSql"),
    uuid("comb_rt_sql", "CombRtSql"),
    signed("instagram", "Instagram"),
    uuid("newid", "NewId"),
    object_id("object_id", "ObjectIdScheme"),
    uuid("ordered_text_22", "OrderedText22"),
    uuid("ordered_text_22_push", "OrderedText22Push"),
    uuid("ordered_text_22_time64", "OrderedText22Time64"),
    uuid("ordered_text_22_time64_push", "OrderedText22Time64Push"),
    key192("ordered_text_32", "OrderedText32"),
    key192("ordered_text_32_push", "OrderedText32Push"),
    unsigned("percona_64", "Percona64"),
    push_id("push_id", "FirebasePushId"),
    signed("sequence", "Sequence"),
    uuid("sequential_guid_as_binary", "SequentialGuidAsBinary"),
    uuid("sequential_guid_as_string", "SequentialGuidAsString"),
    uuid("sequential_guid_at_end", "SequentialGuidAtEnd"),
    snowflake("snowflake", "Snowflake"),
    spread_snowflake("snowflake_spread", "SnowflakeSpread"),
    signed("tickets", "Tickets"),
    uuid("ulid", "Ulid"),
    uuid_of_node("uuid_create_sequential", "UuidCreateSequential"),
    unsigned("uuid_short", "UuidShort"),
    uuid_of_node("uuid_v1", "UuidV1"),
    uuid_of_node("uuid_v1_rearranged", "UuidV1Rearranged"),
    uuid("uuid_v4", "UuidV4"),
    clustered("uuid_v4_clustered", "UuidV4Clustered"),
    clustered("uuid_v4_clustered_compat", "UuidV4ClusteredCompat"),
    uuid("uuid_v5", "UuidV5"),
    uuid_of_node("uuid_v6", "UuidV6"),
    uuid("uuid_v7", "UuidV7"),
    spread("uuid_v7_spread", "UuidV7Spread"),
    uuid("uuid_v7_sub_millis", "UuidV7SubMillis"),
    uuid("uuid_v7_unguessable", "UuidV7Unguessable"),
    uuid("uuid_v8_sha256", "UuidV8Sha256"),
    uuid("uuid_v8_sql_server", "UuidV8SqlServer"),
];

/// The layouts of `snowflake`.
#[rustfmt::skip]
pub(crate) const LAYOUTS: &[&str] = &[
    "Twitter",
    "BaiduUid",
    "Discord",
    "Sonyflake",
    "SonyflakeV2",
    "WideSequence",
    "Yitter",
];
