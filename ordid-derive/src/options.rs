//! The words of `#[ordid(...)]`: options, schemes, adapters and their engines.

/// An option: its name, and how it is written.
pub(crate) struct Opt {
    pub(crate) name: &'static str,
    pub(crate) usage: &'static str,
}

/// Where an attribute stands, with the options that are valid there.
pub(crate) struct Place {
    /// The place in words, as in "`key` is an option of a field".
    pub(crate) name: &'static str,
    /// An attribute as it may be written there.
    pub(crate) example: &'static str,
    pub(crate) options: &'static [Opt],
}

const CRATE: Opt = Opt {
    name: "crate",
    usage: "crate = path::to::ordid",
};

/// `#[derive(KeyType)]`'s struct.
pub(crate) const KEY_TYPE: Place = Place {
    name: "a key type (`#[derive(KeyType)]`)",
    example: "#[ordid(prefix = \"ord\")]",
    options: &[
        CRATE,
        Opt {
            name: "oracle",
            usage: "oracle` or `oracle(oracle = raw16)",
        },
        Opt {
            name: "prefix",
            usage: "prefix = \"ord\"",
        },
        Opt {
            name: "scheme",
            usage: "scheme = uuid_v7",
        },
        Opt {
            name: "sqlx",
            usage: "sqlx` or `sqlx(postgres = uuid, mysql = binary16, sqlite = blob)",
        },
        Opt {
            name: "tiberius",
            usage: "tiberius` or `tiberius(sql_server = unique_identifier)",
        },
    ],
};

/// `#[derive(OrderedKey)]`'s struct.
pub(crate) const ENTITY: Place = Place {
    name: "an entity's struct (`#[derive(OrderedKey)]`)",
    example: "#[ordid(table = \"orders\")]",
    options: &[
        CRATE,
        Opt {
            name: "rename_all",
            usage: "rename_all = \"snake_case\"",
        },
        Opt {
            name: "schema",
            usage: "schema = \"shop\"",
        },
        Opt {
            name: "table",
            usage: "table = \"orders\"",
        },
    ],
};

/// A field of `#[derive(OrderedKey)]`'s struct.
pub(crate) const FIELD: Place = Place {
    name: "an entity's field",
    example: "#[ordid(key)]",
    options: &[
        Opt {
            name: "column",
            usage: "column = \"total_cents\"",
        },
        Opt {
            name: "key",
            usage: "key",
        },
        Opt {
            name: "parent",
            usage: "parent` or `parent = Customer",
        },
        Opt {
            name: "references",
            usage: "references = Customer",
        },
        Opt {
            name: "skip",
            usage: "skip",
        },
    ],
};

/// All places.
pub(crate) const PLACES: &[&Place] = &[&KEY_TYPE, &ENTITY, &FIELD];

/// A scheme: its name, and its type in `ordid::scheme`.
pub(crate) struct Scheme {
    pub(crate) name: &'static str,
    pub(crate) type_name: &'static str,
    /// The raw key as users write it.
    pub(crate) raw: &'static str,
    /// The raw key's name in `ordid::__private`.
    pub(crate) raw_name: &'static str,
    pub(crate) parameter: Option<Parameter>,
}

/// What a scheme's type is generic over: `snowflake(layout = Sonyflake)`.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) usage: &'static str,
    /// The module in `ordid::scheme` that has the presets.
    pub(crate) module: &'static str,
    /// Types that are named without a path; the first is the default.
    pub(crate) presets: &'static [&'static str],
}

const fn of(
    name: &'static str,
    type_name: &'static str,
    raw: &'static str,
    raw_name: &'static str,
) -> Scheme {
    Scheme {
        name,
        type_name,
        raw,
        raw_name,
        parameter: None,
    }
}

const fn uuid(name: &'static str, type_name: &'static str) -> Scheme {
    of(name, type_name, "uuid::Uuid", "Uuid")
}

/// The schemes, by name.
pub(crate) const SCHEMES: &[Scheme] = &[
    uuid("comb_efcore", "CombEfCore"),
    uuid("comb_nhibernate", "CombNHibernate"),
    uuid("comb_rt_binary", "CombRtBinary"),
    uuid("comb_rt_legacy", "CombRtLegacy"),
    uuid("comb_rt_postgresql", "CombRtPostgreSql"),
    uuid("comb_rt_sql", "CombRtSql"),
    of("instagram", "Instagram", "i64", "i64"),
    uuid("newid", "NewId"),
    of(
        "object_id",
        "ObjectIdScheme",
        "ordid::key::ObjectId",
        "ObjectId",
    ),
    uuid("ordered_text_22", "OrderedText22"),
    uuid("ordered_text_22_push", "OrderedText22Push"),
    uuid("ordered_text_22_time64", "OrderedText22Time64"),
    uuid("ordered_text_22_time64_push", "OrderedText22Time64Push"),
    of(
        "ordered_text_32",
        "OrderedText32",
        "ordid::key::Key192",
        "Key192",
    ),
    of(
        "ordered_text_32_push",
        "OrderedText32Push",
        "ordid::key::Key192",
        "Key192",
    ),
    of("percona_64", "Percona64", "u64", "u64"),
    of("push_id", "FirebasePushId", "ordid::key::PushId", "PushId"),
    uuid("sequential_guid_as_binary", "SequentialGuidAsBinary"),
    uuid("sequential_guid_as_string", "SequentialGuidAsString"),
    uuid("sequential_guid_at_end", "SequentialGuidAtEnd"),
    Scheme {
        parameter: Some(Parameter {
            name: "layout",
            usage: "scheme = snowflake(layout = Sonyflake)",
            module: "snowflake",
            presets: &[
                "Twitter",
                "BaiduUid",
                "Discord",
                "Sonyflake",
                "SonyflakeV2",
                "WideSequence",
                "Yitter",
            ],
        }),
        ..of("snowflake", "Snowflake", "i64", "i64")
    },
    uuid("ulid", "Ulid"),
    uuid("uuid_create_sequential", "UuidCreateSequential"),
    of("uuid_short", "UuidShort", "u64", "u64"),
    uuid("uuid_v1", "UuidV1"),
    uuid("uuid_v1_rearranged", "UuidV1Rearranged"),
    uuid("uuid_v4", "UuidV4"),
    uuid("uuid_v4_clustered", "UuidV4Clustered"),
    uuid("uuid_v4_clustered_compat", "UuidV4ClusteredCompat"),
    uuid("uuid_v6", "UuidV6"),
    uuid("uuid_v7", "UuidV7"),
    uuid("uuid_v7_sub_millis", "UuidV7SubMillis"),
    uuid("uuid_v7_unguessable", "UuidV7Unguessable"),
    uuid("uuid_v8_sql_server", "UuidV8SqlServer"),
];

/// The scheme of a key type that names none.
pub(crate) const DEFAULT_SCHEME: &str = "uuid_v7";

/// A crate that adapts a database library, with a macro for each engine.
pub(crate) struct AdapterKind {
    /// The option's name.
    pub(crate) name: &'static str,
    /// The crate's name in paths.
    pub(crate) krate: &'static str,
    pub(crate) engines: &'static [&'static str],
    /// The raw keys it has columns for, by their names in `ordid::__private`.
    pub(crate) raw_names: &'static [&'static str],
    /// How a pair is written.
    pub(crate) usage: &'static str,
}

/// The adapters.
pub(crate) const ADAPTERS: &[AdapterKind] = &[
    AdapterKind {
        name: "oracle",
        krate: "ordid_oracle",
        engines: &["oracle"],
        raw_names: &["Uuid", "i64", "u64", "ObjectId", "Key192"],
        usage: "oracle(oracle = raw16)",
    },
    AdapterKind {
        name: "sqlx",
        krate: "ordid_sqlx",
        engines: &["mysql", "postgres", "sqlite"],
        raw_names: &["Uuid", "i64", "u64", "ObjectId", "PushId", "Key192"],
        usage: "sqlx(postgres = uuid, mysql = binary16, sqlite = blob)",
    },
    AdapterKind {
        name: "tiberius",
        krate: "ordid_tiberius",
        engines: &["babelfish", "sql_server"],
        raw_names: &["Uuid", "i64", "ObjectId", "Key192"],
        usage: "tiberius(sql_server = unique_identifier, babelfish = babelfish_unique_identifier)",
    },
];
