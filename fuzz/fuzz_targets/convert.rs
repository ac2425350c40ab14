//! See `ordid_fuzz_bodies::convert`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ordid_fuzz_bodies::convert(data));
