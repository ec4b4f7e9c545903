#![no_main]

libfuzzer_sys::fuzz_target!(init: cuprum_fuzz::limit_memory(), |data: &[u8]| cuprum_fuzz::parse(data));
