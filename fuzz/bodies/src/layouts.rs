//! Raw keys of any bits, taken apart and put together.

use ordid_core::{
    RawKey as _, Scheme as _,
    key::{Generated, ObjectId, PushId},
    layout::{Comparison, guid},
    scheme::{Layout, Ulid, object_id::LegacyParts},
};

use crate::{
    draw::{FromStart, uuid},
    schemes::{SCHEMES, text_of},
};

/// Takes the first bytes for a raw key of every scheme.
pub fn layouts(data: &[u8]) {
    for scheme in SCHEMES {
        (scheme.layout)(data);
    }

    let raw = uuid(data);
    for comparison in Comparison::ALL {
        let _ = comparison.sort_key(raw.as_bytes());
    }
    assert_eq!(guid::swap(&guid::swap(raw.as_bytes())), *raw.as_bytes());
    let key = guid::sql_server_sort_key(raw.as_bytes());
    assert_eq!(guid::from_sql_server_sort_key(&key), *raw.as_bytes());

    if let Ok(next) = Ulid::successor(raw) {
        assert!(raw < next && Ulid::timestamp(&raw) == Ulid::timestamp(&next));
    }
    for raw in PushId::from_start(data) {
        if let Ok(next) = raw.successor() {
            assert!(raw < next && raw.timestamp() == next.timestamp());
        }
    }
    for raw in ObjectId::from_start(data) {
        let parts = LegacyParts::of(&raw);
        assert_eq!(parts.pack().expect("each field fits"), raw);
    }
}

pub(crate) fn of<S: Layout<Raw: FromStart>>(data: &[u8]) {
    let keys = S::Raw::from_start(data);
    let given = keys[0];
    any_raw::<S>(given);
    if !S::check(&given)
        && let Some(raw) = keys.into_iter().find(S::check)
    {
        any_raw::<S>(raw);
    }
}

fn any_raw<S: Layout>(raw: S::Raw) {
    let name = S::NAME;
    let is_of = S::check(&raw);
    assert!(!raw.describe().is_empty());
    match Generated::<S>::check(raw, name) {
        Ok(key) => assert!(is_of && key.into_raw() == raw),
        Err(error) => assert!(!is_of && error.is_layout(), "{error}"),
    }

    let timestamp = S::timestamp(&raw);
    assert!(S::cmp(&raw, &raw).is_eq());
    for prefix in [None, Some("o_o")] {
        let text = text_of::<S>(raw, prefix);
        let read = S::parse_text(prefix, &text).expect("what was written is read");
        assert_eq!(read, raw, "{name} {text}");
    }

    let unpacked = S::unpack(&raw);
    assert_eq!(unpacked.is_ok(), is_of, "{name} {raw:?}");
    match unpacked {
        Ok(parts) => {
            let packed = S::pack(parts).expect("the fields of a key fit");
            assert_eq!(packed, raw, "{name} {parts:?}");
            let inspection = S::inspect(&raw).expect("a key that comes apart");
            assert_eq!(inspection.scheme, name);
            if let Some(moment) = inspection.moment {
                let shown = moment.timestamp();
                assert!(shown.is_none() || shown == timestamp, "{name} {raw:?}");
            }
        }
        Err(error) => {
            assert!(error.is_layout(), "{error}");
            assert!(S::inspect(&raw).is_err_and(|error| error.is_layout()));
        }
    }
}
