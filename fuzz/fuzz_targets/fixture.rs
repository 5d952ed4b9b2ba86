//! libFuzzer on the parser `fixture`.
#![no_main]

#[path = "../src/entries.rs"]
#[allow(dead_code)]
mod entries;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let parse = entries::ALL.iter().find(|(name, _)| *name == "fixture").map(|(_, parse)| *parse);
    parse.expect("a parser")(bytes);
});
