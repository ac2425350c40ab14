//! Cases of names, with the words split as SQLx splits them.

/// A case, by the name that SQLx gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Lower,
    Snake,
    Upper,
    ScreamingSnake,
    Kebab,
    Camel,
    Pascal,
    /// SeaORM's alone.
    ScreamingKebab,
    /// SeaORM's alone.
    Title,
}

impl Case {
    /// The names of all cases.
    pub(crate) const NAMES: &'static [&'static str] = &[
        "lowercase",
        "snake_case",
        "UPPERCASE",
        "SCREAMING_SNAKE_CASE",
        "kebab-case",
        "camelCase",
        "PascalCase",
    ];

    /// Returns the case of this name.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "lowercase" => Self::Lower,
            "snake_case" => Self::Snake,
            "UPPERCASE" => Self::Upper,
            "SCREAMING_SNAKE_CASE" => Self::ScreamingSnake,
            "kebab-case" => Self::Kebab,
            "camelCase" => Self::Camel,
            "PascalCase" => Self::Pascal,
            _ => return None,
        })
    }

    /// Returns the case of this name in `#[sea_orm(rename_all = "...")]`.
    pub(crate) fn by_sea_orm_name(name: &str) -> Option<Self> {
        Some(match name {
            "camel_case" => Self::Pascal,
            "mixed_case" => Self::Camel,
            "snek_case" => Self::Snake,
            "kebab_case" => Self::Kebab,
            "shouty_snake_case" | "shouty_snek_case" => Self::ScreamingSnake,
            "SCREAMING-KEBAB-CASE" => Self::ScreamingKebab,
            "title_case" => Self::Title,
            _ => return Self::by_name(name),
        })
    }

    /// Returns the name in this case.
    pub(crate) fn apply(self, name: &str) -> String {
        let lower = |separator: &str| {
            words(name)
                .iter()
                .map(|word| word.to_lowercase())
                .collect::<Vec<_>>()
                .join(separator)
        };
        match self {
            Self::Lower => name.to_lowercase(),
            Self::Upper => name.to_uppercase(),
            Self::Snake => lower("_"),
            Self::Kebab => lower("-"),
            Self::ScreamingSnake => words(name)
                .iter()
                .map(|word| word.to_uppercase())
                .collect::<Vec<_>>()
                .join("_"),
            Self::ScreamingKebab => lower("-").to_uppercase(),
            Self::Title => words(name)
                .iter()
                .map(|word| capitalized(word))
                .collect::<Vec<_>>()
                .join(" "),
            Self::Pascal => words(name).iter().map(|word| capitalized(word)).collect(),
            Self::Camel => words(name)
                .iter()
                .enumerate()
                .map(|(i, word)| {
                    if i == 0 {
                        word.to_lowercase()
                    } else {
                        capitalized(word)
                    }
                })
                .collect(),
        }
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().collect::<String>() + &letters.as_str().to_lowercase(),
        None => String::new(),
    }
}

/// Splits a name into words: at what is neither letter nor digit, before an upper-case letter that
/// follows a lower-case one, and before the last letter of an acronym (`XMLHttp`: `XML`, `Http`).
///
/// These are the rules of the crate `heck`, which SQLx uses.
fn words(name: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for part in name.split(|c: char| !c.is_alphanumeric()) {
        let mut start = 0;
        // The case of the last cased letter in the word: upper, lower or none yet.
        let mut upper = None;
        let mut letters = part.char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            let Some(&(next_at, next)) = letters.peek() else {
                words.push(&part[start..]);
                break;
            };
            let with_letter = match letter {
                _ if letter.is_lowercase() => Some(false),
                _ if letter.is_uppercase() => Some(true),
                _ => upper,
            };
            if with_letter == Some(false) && next.is_uppercase() {
                words.push(&part[start..next_at]);
                start = next_at;
                upper = None;
            } else if upper == Some(true) && letter.is_uppercase() && next.is_lowercase() {
                words.push(&part[start..at]);
                start = at;
                upper = None;
            } else {
                upper = with_letter;
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_those_of_sqlx() {
        // From heck 0.5, which sqlx-macros-core 0.9 calls.
        for (name, expected) in [
            (
                "customer_id",
                "customer_id customer_id CUSTOMER_ID CUSTOMER_ID customer-id customerId CustomerId",
            ),
            (
                "XMLHttpKey",
                "xmlhttpkey xml_http_key XMLHTTPKEY XML_HTTP_KEY xml-http-key xmlHttpKey XmlHttpKey",
            ),
            ("line_2", "line_2 line_2 LINE_2 LINE_2 line-2 line2 Line2"),
            (
                "utf8Text",
                "utf8text utf8_text UTF8TEXT UTF8_TEXT utf8-text utf8Text Utf8Text",
            ),
            ("__a__b", "__a__b a_b __A__B A_B a-b aB AB"),
            ("aBc", "abc a_bc ABC A_BC a-bc aBc ABc"),
            (
                "ABC123DEF456",
                "abc123def456 abc123def456 ABC123DEF456 ABC123DEF456 abc123def456 abc123def456 Abc123def456",
            ),
            (
                "größe_x",
                "größe_x größe_x GRÖSSE_X GRÖSSE_X größe-x größeX GrößeX",
            ),
        ] {
            let found: Vec<_> = Case::NAMES
                .iter()
                .map(|case| Case::by_name(case).expect("named above").apply(name))
                .collect();
            assert_eq!(found.join(" "), expected);
        }
        assert_eq!(Case::by_name("Snake_Case"), None);
    }
}
