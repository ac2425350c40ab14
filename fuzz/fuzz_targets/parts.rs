//! See `ordid_fuzz_bodies::parts`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ordid_fuzz_bodies::parts(data));
