//! The words of `#[ordid(...)]`: options, schemes and adapters.

use crate::schemes::LAYOUTS;
pub(crate) use crate::schemes::SCHEMES;

/// An option: its name, and how it is written.
pub(crate) struct Opt {
    pub(crate) name: &'static str,
    pub(crate) usage: &'static str,
    /// The crate that an adapter's word stands for.
    pub(crate) adapter: Option<&'static str>,
}

const fn opt(name: &'static str, usage: &'static str) -> Opt {
    Opt {
        name,
        usage,
        adapter: None,
    }
}

/// A word for an adapter: `sqlx(...)` is short for `adapter = ::ordid_sqlx(...)`.
macro_rules! adapter {
    ($word:literal = $krate:literal) => {
        Opt {
            adapter: Some($krate),
            ..opt(
                $word,
                concat!(
                    $word,
                    "`, `",
                    $word,
                    "(column)` or `",
                    $word,
                    "(engine = column)"
                ),
            )
        }
    };
}

/// Where an attribute stands, with the options that are valid there.
pub(crate) struct Place {
    /// The place in words, as in "`key` is an option of a field".
    pub(crate) name: &'static str,
    /// An attribute as it may be written there.
    pub(crate) example: &'static str,
    pub(crate) options: &'static [Opt],
}

const CRATE: Opt = opt("crate", "crate = path::to::ordid");

/// `#[derive(KeyType)]`'s struct.
pub(crate) const KEY_TYPE: Place = Place {
    name: "a key type (`#[derive(KeyType)]`)",
    example: "#[ordid(prefix = \"ord\")]",
    options: &[
        opt("accept", "accept = any_version"),
        opt(
            "adapter",
            "adapter = my_crate`, `adapter = my_crate(column)` or `adapter = my_crate(engine = column)",
        ),
        CRATE,
        adapter!("diesel" = "ordid_diesel"),
        opt("json", "json = number"),
        opt("mask", "mask = MASK"),
        adapter!("mysql_async" = "ordid_mysql_async"),
        adapter!("oracle" = "ordid_oracle"),
        opt("prefix", "prefix = \"ord\""),
        adapter!("rusqlite" = "ordid_rusqlite"),
        opt(
            "scatter",
            "scatter(buckets = 16)` or `scatter(buckets = 16, lowest_bit = 80)",
        ),
        opt("scheme", "scheme = uuid_v7"),
        adapter!("sea_orm" = "ordid_seaorm"),
        opt("short", "short = SHORT"),
        adapter!("sqlx" = "ordid_sqlx"),
        adapter!("tiberius" = "ordid_tiberius"),
        adapter!("tokio_postgres" = "ordid_tokio_postgres"),
    ],
};

/// `#[derive(OrderedKey)]`'s struct.
pub(crate) const ENTITY: Place = Place {
    name: "an entity's struct (`#[derive(OrderedKey)]`)",
    example: "#[ordid(table = \"orders\")]",
    options: &[
        opt("columns", "columns"),
        CRATE,
        opt(
            "diesel",
            "diesel` or `diesel(crate = path::to::ordid_diesel)",
        ),
        opt("rename_all", "rename_all = \"snake_case\""),
        opt("schema", "schema = \"shop\""),
        opt("sea_orm", "sea_orm(crate = path::to::ordid_seaorm)"),
        opt("table", "table = \"orders\""),
        opt("uncounted", "uncounted"),
    ],
};

/// A field of `#[derive(OrderedKey)]`'s struct.
pub(crate) const FIELD: Place = Place {
    name: "an entity's field",
    example: "#[ordid(key)]",
    options: &[
        opt("column", "column = \"total_cents\""),
        opt("deferrable", "deferrable"),
        opt("key", "key"),
        opt(
            "parent",
            "parent`, `parent = Customer` or `parent = Issue(tenant, issue)",
        ),
        opt("returning", "returning"),
        opt("skip", "skip"),
        opt("version", "version"),
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
    pub(crate) parameters: &'static [Parameter],
    /// How the type is made with the parameters.
    pub(crate) made: Made,
}

impl Scheme {
    /// Returns whether its keys are of version 7.
    pub(crate) fn is_maskable(&self) -> bool {
        self.name.starts_with("uuid_v7") && !self.is_spread()
    }

    /// Returns whether its keys begin with a bucket.
    pub(crate) fn is_spread(&self) -> bool {
        self.parameters.iter().any(|it| it.name == BUCKETS.name)
    }

    /// Returns whether its keys are integers.
    pub(crate) fn is_integer(&self) -> bool {
        matches!(self.raw_name, "i64" | "u64")
    }
}

/// How a scheme's type is made with its parameters.
pub(crate) enum Made {
    /// It has none, or a parameter's word names another type.
    Named,
    /// This type of `ordid::scheme` is generic over the scheme and the parameter, and this function
    /// of `ordid::__private` checks the parameter.
    Wrapped {
        module: &'static str,
        wrapper: &'static str,
        check: &'static str,
    },
    /// It is generic over a layout, which is a parameter, or is put together from several in one of these ways; and over
    /// the number of buckets, if it has them.
    Snowflake(&'static [Way]),
    /// It is generic over the number of buckets.
    Spread,
}

/// What a scheme is made with: `snowflake(layout = Sonyflake)`.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// How it is written.
    pub(crate) usage: &'static str,
    pub(crate) kind: Kind,
}

/// What a parameter's value is.
pub(crate) enum Kind {
    /// A type: by its name alone one of these of a module of `ordid::scheme`, by its path any.
    Type {
        module: &'static str,
        presets: &'static [&'static str],
    },
    /// One of these words; each stands for a type of `ordid::scheme`, given as module and name.
    Word(&'static [(&'static str, &'static [&'static str])]),
    /// A whole number, no less and no more than these.
    Number(u64, u64),
    /// As [`Number`](Self::Number), a power of two.
    PowerOfTwo(u64, u64),
    /// The start of a day in UTC, or milliseconds since 1970.
    Epoch,
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
        parameters: &[],
        made: Made::Named,
    }
}

pub(crate) const fn uuid(name: &'static str, type_name: &'static str) -> Scheme {
    of(name, type_name, "uuid::Uuid", "Uuid")
}

pub(crate) const fn signed(name: &'static str, type_name: &'static str) -> Scheme {
    of(name, type_name, "i64", "i64")
}

pub(crate) const fn unsigned(name: &'static str, type_name: &'static str) -> Scheme {
    of(name, type_name, "u64", "u64")
}

pub(crate) const fn push_id(name: &'static str, type_name: &'static str) -> Scheme {
    of(name, type_name, "ordid::key::PushId", "PushId")
}

pub(crate) const fn key192(name: &'static str, type_name: &'static str) -> Scheme {
    of(name, type_name, "ordid::key::Key192", "Key192")
}

pub(crate) const fn object_id(name: &'static str, type_name: &'static str) -> Scheme {
    Scheme {
        parameters: &[Parameter {
            name: "machine",
            usage: "machine = Random` or `machine = HostAndProcess",
            kind: Kind::Word(&[
                ("Random", &["ObjectIdScheme"]),
                ("HostAndProcess", &["object_id", "ObjectIdLegacy"]),
            ]),
        }],
        ..of(name, type_name, "ordid::key::ObjectId", "ObjectId")
    }
}

pub(crate) const fn snowflake(name: &'static str, type_name: &'static str) -> Scheme {
    Scheme {
        parameters: SNOWFLAKE,
        made: Made::Snowflake(SNOWFLAKE_WAYS),
        ..signed(name, type_name)
    }
}

const BUCKETS: Parameter = Parameter {
    name: "buckets",
    usage: "buckets = 16",
    kind: Kind::PowerOfTwo(2, 256),
};

/// The buckets of a scheme that has them, where none are written.
pub(crate) const DEFAULT_BUCKETS: u64 = 16;

/// A scheme of UUIDs that begin with a bucket.
pub(crate) const fn spread(name: &'static str, type_name: &'static str) -> Scheme {
    Scheme {
        parameters: &[BUCKETS],
        made: Made::Spread,
        ..uuid(name, type_name)
    }
}

/// A `snowflake` behind a bucket.
pub(crate) const fn spread_snowflake(name: &'static str, type_name: &'static str) -> Scheme {
    Scheme {
        parameters: SPREAD_SNOWFLAKE,
        made: Made::Snowflake(SPREAD_WAYS),
        ..signed(name, type_name)
    }
}

/// A parameter that names a type, of the user or of this module of the schemes.
const fn type_parameter(
    name: &'static str,
    usage: &'static str,
    module: &'static str,
    presets: &'static [&'static str],
) -> Parameter {
    Parameter {
        name,
        usage,
        kind: Kind::Type { module, presets },
    }
}

const NODE: Parameter = type_parameter(
    "node",
    "node = Random",
    "node",
    &["Random", "Fixed", "DangerExact"],
);

/// A scheme whose generators have a `UuidNode`.
pub(crate) const fn uuid_of_node(name: &'static str, type_name: &'static str) -> Scheme {
    Scheme {
        parameters: &[NODE],
        made: Made::Wrapped {
            module: "node",
            wrapper: "WithNode",
            check: "check_node",
        },
        ..uuid(name, type_name)
    }
}

const PERIOD: Parameter = type_parameter(
    "period",
    "period = Minute",
    "uuid_v4_clustered",
    &["Week", "Minute", "Seconds"],
);

pub(crate) const fn clustered(name: &'static str, type_name: &'static str) -> Scheme {
    Scheme {
        parameters: &[PERIOD],
        made: Made::Wrapped {
            module: "uuid_v4_clustered",
            wrapper: "ByPeriod",
            check: "check_period",
        },
        ..uuid(name, type_name)
    }
}

const EPOCH: Parameter = Parameter {
    name: "epoch",
    usage: "epoch = \"2026-01-01\"` or `epoch = 1_767_225_600_000",
    kind: Kind::Epoch,
};
const UNIT: Parameter = number("unit", "unit = 10", 1, u32::MAX as u64);
const TIME: Parameter = number("time", "time = 41", 1, 63);
const NODE_BITS: Parameter = number("node", "node = 10", 0, 63);
// Without a sequence, a clock that steps back by a unit would look like a full one.
const SEQUENCE: Parameter = number("sequence", "sequence = 12", 1, 63);
const YEARS: Parameter = number("years", "years = 20", 1, u32::MAX as u64);
const IDS: Parameter = number(
    "ids_per_second",
    "ids_per_second = 1_000",
    1,
    u32::MAX as u64,
);
const NODES: Parameter = number("nodes", "nodes = 4", 1, u32::MAX as u64);

/// The parameters of `snowflake`; [`SNOWFLAKE_WAYS`] says which go together.
const SNOWFLAKE: &[Parameter] = &[
    type_parameter("layout", "layout = Sonyflake", "snowflake", LAYOUTS),
    EPOCH,
    UNIT,
    TIME,
    NODE_BITS,
    SEQUENCE,
    YEARS,
    IDS,
    NODES,
];

/// The parameters of `snowflake_spread`. No preset of `snowflake` has room for a bucket.
const SPREAD_SNOWFLAKE: &[Parameter] = &[
    BUCKETS,
    type_parameter("layout", "layout = MyLayout", "snowflake", &[]),
    EPOCH,
    UNIT,
    TIME,
    NODE_BITS,
    SEQUENCE,
    YEARS,
    IDS,
    NODES,
];

const fn number(name: &'static str, usage: &'static str, least: u64, most: u64) -> Parameter {
    Parameter {
        name,
        usage,
        kind: Kind::Number(least, most),
    }
}

/// The ways to say what a `snowflake` is laid out like, with all that each needs beside what it may
/// have, and how it is written.
const SNOWFLAKE_WAYS: &[Way] = &[
    Way {
        needs: &["layout"],
        may_have: &["epoch"],
        usage: "snowflake(layout = Sonyflake)",
    },
    Way {
        needs: &["epoch", "time", "node", "sequence"],
        may_have: &["unit"],
        usage: "snowflake(epoch = \"2026-01-01\", time = 41, node = 10, sequence = 12)",
    },
    Way {
        needs: &["epoch", "years", "ids_per_second"],
        may_have: &["nodes"],
        usage: "snowflake(epoch = \"2026-01-01\", years = 20, ids_per_second = 1_000, nodes = 4)",
    },
];

/// The same of a `snowflake_spread`.
const SPREAD_WAYS: &[Way] = &[
    Way {
        usage: "snowflake_spread(buckets = 16, layout = MyLayout)",
        ..SNOWFLAKE_WAYS[0]
    },
    Way {
        usage: "snowflake_spread(buckets = 16, epoch = \"2026-01-01\", time = 41, node = 8, sequence = 10)",
        ..SNOWFLAKE_WAYS[1]
    },
    Way {
        usage: "snowflake_spread(buckets = 16, epoch = \"2026-01-01\", years = 20, ids_per_second = 1_000, nodes = 4)",
        ..SNOWFLAKE_WAYS[2]
    },
];

/// Parameters that go together.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) needs: &'static [&'static str],
    pub(crate) may_have: &'static [&'static str],
    pub(crate) usage: &'static str,
}

/// Names of types that are nobody's raw key or parameter.
pub(crate) const NOT_RAW: &[&str] = &[
    "bool", "char", "str", "String", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16",
    "u32", "u64", "u128", "usize", "f32", "f64", "Box", "Option", "Vec",
];

/// The scheme of a key type that names none.
pub(crate) const DEFAULT_SCHEME: &str = "uuid_v7";

/// Returns the crate that an adapter's word stands for.
pub(crate) fn adapter_crate(word: &str) -> Option<&'static str> {
    KEY_TYPE
        .options
        .iter()
        .find(|option| option.name == word)?
        .adapter
}
