//! `serde`: the names that Relay has. By hand, since serde's derive costs syn.

use core::{fmt, marker::PhantomData};

use serde_core::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, IgnoredAny, MapAccess, Visitor},
    ser::SerializeStruct as _,
};

use super::{Connection, Cursor, Edge, Page, PageInfo};
use crate::key::KeyType;

impl<K: KeyType> Serialize for Cursor<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, K: KeyType> Deserialize<'de> for Cursor<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text<K>(PhantomData<K>);

        impl<K: KeyType> Visitor<'_> for Text<K> {
            type Value = Cursor<K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a cursor of `{}`", K::NAME)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Cursor<K>, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text(PhantomData))
    }
}

impl<K: KeyType, N: Serialize> Serialize for Connection<K, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Connection", 2)?;
        fields.serialize_field("edges", &self.edges)?;
        fields.serialize_field("pageInfo", &self.page_info)?;
        fields.end()
    }
}

impl<K: KeyType, N: Serialize> Serialize for Edge<K, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Edge", 2)?;
        fields.serialize_field("cursor", &self.cursor)?;
        fields.serialize_field("node", &self.node)?;
        fields.end()
    }
}

impl<K: KeyType> Serialize for PageInfo<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("PageInfo", 4)?;
        fields.serialize_field("hasNextPage", &self.has_next_page)?;
        fields.serialize_field("hasPreviousPage", &self.has_previous_page)?;
        fields.serialize_field("startCursor", &self.start_cursor)?;
        fields.serialize_field("endCursor", &self.end_cursor)?;
        fields.end()
    }
}

/// A field that is missing or null limits nothing. Other fields are ignored.
impl<'de, K: KeyType> Deserialize<'de> for Page<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Arguments<K>(PhantomData<K>);

        impl<'de, K: KeyType> Visitor<'de> for Arguments<K> {
            type Value = Page<K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`first`, `after`, `last` and `before` of a page")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Page<K>, A::Error> {
                let mut page = Page::ALL;
                while let Some(name) = map.next_key()? {
                    match name {
                        Name::First => {
                            page.first = map.next_value::<Option<Count>>()?.map(|it| it.0)
                        }
                        Name::After => page.after = map.next_value()?,
                        Name::Last => page.last = map.next_value::<Option<Count>>()?.map(|it| it.0),
                        Name::Before => page.before = map.next_value()?,
                        Name::Other => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(page)
            }
        }

        const FIELDS: &[&str] = &["first", "after", "last", "before"];
        deserializer.deserialize_struct("Page", FIELDS, Arguments(PhantomData))
    }
}

enum Name {
    First,
    After,
    Last,
    Before,
    Other,
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an argument")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "first" => Name::First,
                    "after" => Name::After,
                    "last" => Name::Last,
                    "before" => Name::Before,
                    _ => Name::Other,
                })
            }
        }

        deserializer.deserialize_identifier(Text)
    }
}

/// A number, or the text of one: a URL's query has no numbers, and serde's buffer behind `flatten` keeps its
/// texts.
struct Count(u32);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of rows")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Count, E> {
                let count = u32::try_from(number).map(Count);
                count.map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Count, E> {
                let count = u32::try_from(number).map(Count);
                count.map_err(|_| E::invalid_value(de::Unexpected::Signed(number), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Count, E> {
                let count = text.parse().map(Count);
                count.map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Number)
    }
}
