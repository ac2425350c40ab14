//! The list of schemes.

use std::marker::PhantomData;

use ordid_core::{
    Scheme,
    clock::Timestamp,
    scheme::{
        compact::{CompactNeed, Need},
        *,
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
    const fn of<S: Layout<Raw: FromStart, Parts: Draw>>(bounds: Option<fn(Timestamp)>) -> Self {
        Self {
            name: S::NAME,
            text: text::of::<S>,
            layout: layouts::of::<S>,
            parts: parts::of::<S>,
            bounds,
        }
    }
}

/// The ranges by time of a scheme that has them. The constant of this type is found before that of
/// the trait, if the scheme has it.
struct Ranges<S>(PhantomData<S>);

impl<S: TimeOrdered<Raw: FromStart, Parts: Draw>> Ranges<S> {
    const BOUNDS: Option<fn(Timestamp)> = Some(time::bounds::<S>);
}

trait NoRanges {
    const BOUNDS: Option<fn(Timestamp)> = None;
}

impl<S> NoRanges for Ranges<S> {}

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

macro_rules! bodies {
    ($($name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $($text:literal),+;)+) => {
        &[
            bodies!(@of Snowflake<Compact<Invoices>>),
            bodies!(@of Snowflake<snowflake::Bits<40, 7, 16, 10>>),
            $(bodies!(@of $scheme)),+
        ]
    };
    (@of $scheme:ty) => { Bodies::of::<$scheme>(<Ranges<$scheme>>::BOUNDS) };
}

/// Every scheme of the catalogue, and layouts that users write themselves.
pub const SCHEMES: &[Bodies] = ordid_core::__for_each_scheme! { bodies };

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
