//! What is compared with what.

use bench_common::programs::Place;

/// A scheme, or a text form, and the fastest crate that makes the same.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) own: Place,
    /// The same by the coarse clock.
    pub(crate) coarse: Option<Place>,
    pub(crate) peer: Option<(Place, &'static str)>,
    /// What the peer gives up that ordid keeps.
    pub(crate) gives_up: &'static str,
    /// Fill too: not where the layout holds so few keys a second that it would time the waiting.
    pub(crate) fills: bool,
}

macro_rules! programs {
    ($($function:ident: $program:literal;)+) => {$(
        const fn $function(maker: &'static str) -> Place {
            let program = $program;
            Place { program, maker }
        }
    )+};
}

programs! {
    ordid: "round-schemes-ordid";
    peers: "round-schemes-peers";
    uuid: "round-schemes-uuid";
    text: "round-schemes-text";
}

/// `uuid` with `fast-rng`, which ratios refer to.
pub(crate) const REFERENCE: Place = uuid("now-v7");

const FORK: &str = "its fork's child repeats keys";
/// The layout has a key for each 100 ns: whoever asks for more than ten million a second waits, or
/// goes on without order.
const NO_ORDER: &str =
    "order above 10 million keys a second, where ordid waits; its fork's child repeats keys";
const TICKER: &str = "clock steps never followed; its fork's child hangs or repeats";

macro_rules! schemes {
    (fills: $fills:literal; $($maker:literal $(beside $peer:expr, $title:literal, $gives_up:expr)?;)+) => {
        &[$(Row {
            own: ordid($maker),
            coarse: Some(ordid(concat!($maker, "-coarse"))),
            peer: first(&[$(($peer, $title))?]),
            gives_up: concat_or_none(&[$($gives_up)?]),
            fills: $fills,
        }),+]
    };
}

const fn first(peers: &[(Place, &'static str)]) -> Option<(Place, &'static str)> {
    match peers {
        [peer, ..] => Some(*peer),
        [] => None,
    }
}

const fn concat_or_none(texts: &[&'static str]) -> &'static str {
    match texts {
        [text, ..] => text,
        [] => "",
    }
}

/// The schemes, first those that others make too. Where no crate makes one, its ratio to v7 is what
/// there is.
pub(crate) const SCHEMES: &[Row] = schemes! {
    fills: true;
    "snowflake_wide" beside peers("ferroid-atomic-wide"), "ferroid atomic", TICKER;
    "snowflake" beside peers("snowflaked-sync"), "snowflaked sync", FORK;
    "discord" beside peers("ferroid-atomic"), "ferroid atomic", TICKER;
    "object_id" beside peers("bson"), "bson", "its counter wraps; its fork's child repeats keys";
    "ulid" beside peers("ulid-in-mutex"), "ulid in a Mutex", "the next key is the last + 1; its fork's child repeats keys";
    "uuid_v1" beside uuid("now-v1"), "uuid", NO_ORDER;
    "uuid_v6" beside uuid("now-v6"), "uuid", NO_ORDER;
    "uuid_v7" beside uuid("now-v7"), "uuid", FORK;
    "uuid_v7_sub_millis" beside uuid("now-v7"), "uuid v7", FORK;
    "uuid_v7_unguessable" beside uuid("now-v7"), "uuid v7", FORK;
    "masked" beside uuid("now-v7-uuid47"), "uuid, masked by uuid47", FORK;
    "comb_efcore";
    "comb_nhibernate";
    "comb_rt_binary";
    "comb_rt_legacy";
    "comb_rt_postgresql";
    "comb_rt_sql";
    "newid";
    "ordered_text_22";
    "ordered_text_22_push";
    "ordered_text_22_time64";
    "ordered_text_22_time64_push";
    "ordered_text_32";
    "ordered_text_32_push";
    "push_id";
    "sequential_guid_as_binary";
    "sequential_guid_as_string";
    "sequential_guid_at_end";
    "uuid_create_sequential";
    "uuid_short";
    "uuid_v1_rearranged";
    "uuid_v8_sql_server";
};

/// Those whose layouts hold few keys a second: made in bursts that they hold. Of Baidu's, compact and
/// Percona's no crate is known, and the nearest stands there.
pub(crate) const LIMITED: &[Row] = schemes! {
    fills: false;
    "sonyflake" beside peers("sonyflake"), "sonyflake", "clock steps go unseen; its fork's child repeats keys";
    "yitter" beside peers("idgenerator"), "idgenerator", "its keys fall when the clock steps back; its fork's child repeats keys";
    "instagram" beside peers("ferroid-atomic-instagram"), "ferroid atomic", TICKER;
    "baidu_uid" beside peers("ferroid-atomic"), "no crate; ferroid's Twitter", TICKER;
    "compact" beside peers("ferroid-atomic"), "no crate; ferroid's Twitter", TICKER;
    "percona_64" beside peers("ferroid-atomic"), "no crate; ferroid's Twitter", TICKER;
};

/// Keys under a grant, beside the same scheme whose node is given: what the grant costs.
pub(crate) const GRANTED: &[Row] = &[granted(
    ordid("snowflake_wide-granted"),
    ordid("snowflake_wide"),
    true,
)];

/// Those whose layouts hold few keys a second.
pub(crate) const GRANTED_LIMITED: &[Row] = &[
    granted(ordid("snowflake-granted"), ordid("snowflake"), false),
    granted(ordid("sonyflake-granted"), ordid("sonyflake"), false),
];

const fn granted(own: Place, without: Place, fills: bool) -> Row {
    Row {
        own,
        coarse: None,
        peer: Some((without, "no grant; target at most 1.1")),
        gives_up: "a node that nobody else has",
        fills,
    }
}

const fn row(
    maker: &'static str,
    peer: Option<(Place, &'static str)>,
    gives_up: &'static str,
) -> Row {
    Row {
        own: ordid(maker),
        coarse: None,
        peer,
        gives_up,
        fills: true,
    }
}

/// Those that are random, and have no clock to choose.
pub(crate) const RANDOM: &[Row] = &[
    row("uuid_v4", Some((uuid("new-v4"), "uuid")), FORK),
    row("uuid_v4_clustered", None, ""),
    row("uuid_v4_clustered_compat", None, ""),
];

macro_rules! texts {
    ($($form:literal by $library:literal $(whose parser $gives_up:literal)?;)+ beside $more:expr;) => {
        &[$(
            texts!(@ concat!("display-", $form), concat!("display-", $form, "-library"), $library, ""),
            texts!(@ concat!("to-string-", $form), concat!("to-string-", $form, "-library"), $library, ""),
            texts!(@ concat!("parse-", $form), concat!("parse-", $form, "-library"), $library,
                concat_or_none(&[$($gives_up)?])),
        )+ $more]
    };
    (@ $own:expr, $peer:expr, $library:literal, $gives_up:expr) => {
        Row {
            own: text($own),
            coarse: None,
            peer: Some((text($peer), $library)),
            gives_up: $gives_up,
                fills: false,
        }
    };
}

/// Text forms beside the crate that is made for them, or beside the library that others make them with.
pub(crate) const TEXTS: &[Row] = texts! {
    "hyphenated" by "uuid" whose parser "takes capitals, other forms and other versions";
    "typeid" by "type-safe-id; to_string of mti, which copies a text that it keeps" whose parser "takes other versions";
    "ulid" by "ulid" whose parser "takes lower case, and texts of more than 128 bits";
    "ordered-22" by "data-encoding";
    "ordered-32" by "data-encoding";
    "push-id" by "data-encoding";
    "object-id" by "bson" whose parser "takes capitals";
    "decimal" by "core" whose parser "takes a sign and leading zeros";
    beside Row {
        own: text("parse-hyphenated-strict"),
        coarse: None,
        peer: Some((
            text("parse-hyphenated-strict-library"),
            "uuid, the same refused by hand",
        )),
        gives_up: "",
        fills: false,
    };
};
