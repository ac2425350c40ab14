//! See `ordid_fuzz_bodies::columns`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ordid_fuzz_bodies::columns(data));
