//! `equicaps check faults`, every fault once: nothing crashes, nothing is silently wrong, everything is tried.

use crate::support::{equicaps, ok_json};

#[test]
fn no_fault_crashes_or_passes_unnoticed() {
    let found = ok_json(&mut equicaps(&["check", "faults", "--quiet", "--rounds", "1", "--seed", "7"]));
    let rows = found["rows"].as_array().unwrap();
    let mut told = 0;
    for row in rows {
        let count = |name: &str| row[name].as_u64().unwrap();
        assert_eq!((count("wrong"), count("crashed")), (0, 0), "{row}");
        // What a kill leaves may be an empty file, which cannot be damaged.
        assert!(count("tried") > 0 || row["fault"].as_str().unwrap().contains("killed, then"), "{row}");
        told += count("refused");
    }
    let is_there = |part: &str| rows.iter().any(|row| row["fault"].as_str().unwrap().contains(part));
    let parts = [
        "a bit flipped",
        "cut short",
        "killed 3 times",
        "study",
        "killed, then",
        "cannot grow",
        "two processes",
    ];
    assert!(parts.iter().all(|part| is_there(part)), "{found}");
    // Damage to a checkpoint and to images is told, not passed over.
    assert!(told >= 10, "{found}");
}
