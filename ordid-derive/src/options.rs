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
}

/// The schemes; the first is the default.
pub(crate) const SCHEMES: &[Scheme] = &[
    Scheme {
        name: "uuid_v7",
        type_name: "UuidV7",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
    Scheme {
        name: "comb_efcore",
        type_name: "CombEfCore",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
    Scheme {
        name: "comb_nhibernate",
        type_name: "CombNHibernate",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
    Scheme {
        name: "comb_rt_binary",
        type_name: "CombRtBinary",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
    Scheme {
        name: "comb_rt_legacy",
        type_name: "CombRtLegacy",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
    Scheme {
        name: "comb_rt_postgresql",
        type_name: "CombRtPostgreSql",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
    Scheme {
        name: "comb_rt_sql",
        type_name: "CombRtSql",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
    Scheme {
        name: "sequential_guid_as_binary",
        type_name: "SequentialGuidAsBinary",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
    Scheme {
        name: "sequential_guid_as_string",
        type_name: "SequentialGuidAsString",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
    Scheme {
        name: "sequential_guid_at_end",
        type_name: "SequentialGuidAtEnd",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
    Scheme {
        name: "uuid_v7_sub_millis",
        type_name: "UuidV7SubMillis",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
    Scheme {
        name: "uuid_v7_unguessable",
        type_name: "UuidV7Unguessable",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
    Scheme {
        name: "uuid_v8_sql_server",
        type_name: "UuidV8SqlServer",
        raw: "uuid::Uuid",
        raw_name: "Uuid",
    },
];

/// A crate that adapts a database library, with a macro for each engine.
pub(crate) struct AdapterKind {
    /// The option's name.
    pub(crate) name: &'static str,
    /// The crate's name in paths.
    pub(crate) krate: &'static str,
    pub(crate) engines: &'static [&'static str],
    /// How a pair is written.
    pub(crate) usage: &'static str,
}

/// The adapters.
pub(crate) const ADAPTERS: &[AdapterKind] = &[AdapterKind {
    name: "sqlx",
    krate: "ordid_sqlx",
    engines: &["mysql", "postgres", "sqlite"],
    usage: "sqlx(postgres = uuid, mysql = binary16, sqlite = blob)",
}];
