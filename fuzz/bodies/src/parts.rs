//! Keys put together from any fields.

use arbitrary::Unstructured;
use ordid_core::{
    clock::Timestamp,
    scheme::{
        Layout, UuidShort,
        comb::DateTimeParts,
        compact::{CompactLayout, Need},
        object_id::LegacyParts,
    },
};

use crate::{
    draw::{Draw, any},
    schemes::SCHEMES,
};

/// Takes the bytes for the fields of every scheme's keys.
pub fn parts(data: &[u8]) {
    for scheme in SCHEMES {
        (scheme.parts)(data);
    }

    let mut left = Unstructured::new(data);
    let legacy = LegacyParts::draw(&mut left);
    match legacy.pack() {
        Ok(raw) => assert_eq!(LegacyParts::of(&raw), legacy),
        Err(error) => assert!(error.is_layout(), "{error}"),
    }

    let mut left = Unstructured::new(data);
    let (ticks, guid) = (u64::draw(&mut left), Draw::draw(&mut left));
    let _ = DateTimeParts::nhibernate_at(ticks, guid);
    let _ = DateTimeParts::rt_legacy_at(ticks, guid);

    let mut left = Unstructured::new(data);
    let (server_id, second, n) = (any(&mut left), any(&mut left), u64::draw(&mut left));
    let _ = UuidShort::nth_since_start(server_id, second, n);
    let _ = UuidShort::bounds_of(server_id, Timestamp::saturating_from_unix_millis(n));

    let mut left = Unstructured::new(data);
    let need = Need {
        from_unix_millis: Draw::draw(&mut left),
        years: Draw::draw(&mut left),
        ids_per_second: Draw::draw(&mut left),
        nodes: Draw::draw(&mut left),
    };
    if let Ok(layout) = CompactLayout::try_for_need(need) {
        assert!(layout.bits() <= 63, "{layout:?}");
        assert!(
            layout.ends_at_unix_millis() >= need.from_unix_millis,
            "{layout:?}"
        );
    }
}

pub(crate) fn of<S: Layout<Parts: Draw>>(data: &[u8]) {
    let parts = S::Parts::draw(&mut Unstructured::new(data));
    match S::pack(parts) {
        Ok(raw) if S::check(&raw) => {
            let unpacked = S::unpack(&raw).expect("a key of the scheme comes apart");
            assert_eq!(unpacked, parts, "{}", S::NAME);
        }
        // COMBs put together GUIDs of any version, as their originals do: see `UnixParts::guid`.
        Ok(_) => assert!(S::NAME.starts_with("comb_"), "{} {parts:?}", S::NAME),
        Err(error) => assert!(error.is_layout(), "{} {error}", S::NAME),
    }
}
