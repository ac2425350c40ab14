//! Text forms: one canonical string per key.

use ordid_core::{
    Error, RawKey, Scheme,
    key::{CompositeKey, Generated, Key192, KeyType, ObjectId, PushId, text::try_check_prefix},
    page::Cursor,
    scheme::Ulid,
    uuid::Uuid,
};

use crate::schemes::{SCHEMES, text_of};

/// Longest message for any text: what is hostile is not repeated at length.
const MESSAGE_MAX: usize = 2_000;

/// Reads the text as a key of every scheme, without a prefix, with the one it shows, and with others.
pub fn text(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let own = [text.split_once('_'), text.rsplit_once('_')].map(|parts| {
        parts
            .map(|(prefix, _)| prefix)
            .filter(|prefix| try_check_prefix(prefix).is_ok())
    });
    let mut prefixes = vec![None, Some(""), Some("order")];
    prefixes.extend(own.into_iter().filter(Option::is_some));
    prefixes.dedup();
    for prefix in prefixes {
        for scheme in SCHEMES {
            (scheme.text)(prefix, text);
        }
    }

    // Where the raw key's own form is not its scheme's.
    same_of::<Uuid>(text);
    same_of::<Key192>(text);
    same_of::<ObjectId>(text);
    same_of::<PushId>(text);
    same_of::<i64>(text);
    same_of::<u64>(text);

    cursor_of::<Uuid>(text);
    cursor_of::<CompositeKey<(Uuid, i32)>>(text);

    match Ulid::parse_lenient(text) {
        Ok(key) => {
            let strict: Generated<Ulid> = key.to_string().parse().expect("canonical text is read");
            assert_eq!(strict.into_raw(), key.into_raw());
            assert_eq!(text.len(), key.to_string().len());
        }
        Err(error) => refused(&error),
    }
}

pub(crate) fn refused(error: &Error) {
    assert!(error.is_parse(), "{error}");
    let length = error.to_string().len();
    assert!(length < MESSAGE_MAX, "a message of {length} bytes");
}

pub(crate) fn of<S: Scheme>(prefix: Option<&str>, text: &str) {
    let parsed = S::parse_text(prefix, text);
    assert_eq!(S::read_text(prefix, text).as_ref(), parsed.as_ref().ok());
    match parsed {
        Ok(raw) => assert_eq!(text_of::<S>(raw, prefix), text, "{} {prefix:?}", S::NAME),
        Err(error) => refused(&error),
    }
    if prefix.is_none() {
        match text.parse::<Generated<S>>() {
            Ok(key) => assert_eq!(key.to_string(), text, "{}", S::NAME),
            Err(error) => assert!(error.is_parse() || error.is_layout(), "{error}"),
        }
    }
}

fn cursor_of<K: KeyType>(text: &str) {
    match text.parse::<Cursor<K>>() {
        Ok(cursor) => assert_eq!(cursor.to_string(), text),
        Err(error) => refused(&error),
    }
}

fn same_of<R: RawKey>(text: &str) {
    struct Text<R>(R);

    impl<R: RawKey> std::fmt::Display for Text<R> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.write_text(None, f)
        }
    }

    let parsed = R::parse_text(None, text);
    assert_eq!(R::read_text(None, text).as_ref(), parsed.as_ref().ok());
    match parsed {
        Ok(raw) => assert_eq!(Text(raw).to_string(), text),
        Err(error) => refused(&error),
    }
}
