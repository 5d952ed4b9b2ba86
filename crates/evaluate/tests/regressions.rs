//! Every input that once broke a parser, in `fuzz/regressions/PARSER`, given to it again: no panic, no hang. The functions
//! are those that are fuzzed.

#[path = "../../../fuzz/src/entries.rs"]
#[allow(clippy::expect_used, missing_docs)]
mod entries;

#[test]
fn inputs_that_once_broke_something_do_so_no_more() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions");
    let mut count = 0;
    for (name, parse) in entries::ALL {
        parse(b"");
        let Ok(files) = std::fs::read_dir(root.join(name)) else { continue };
        for file in files.flatten() {
            parse(&std::fs::read(file.path()).unwrap());
            count += 1;
        }
    }
    assert!(count > 0, "there are regressions in {}", root.display());
}
