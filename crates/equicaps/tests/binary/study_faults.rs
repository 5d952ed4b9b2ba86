//! `equicaps study` where something is lost or in the way: what it says, and how it goes on.

use serde_json::{Value, json};

use crate::study::{call, study};
use crate::support::{failure, ok, ok_json};

#[test]
fn what_is_lost_or_in_the_way_is_said_and_how_to_go_on() {
    let root = tempfile::tempdir().unwrap();
    study(root.path(), 1, "");
    // Nobody is sent back to the command that was given.
    let said = ok(&mut call(root.path(), &["--report"]));
    assert!(said.ends_with("nothing has been evaluated yet: there is no report\n"), "{said}");
    ok(&mut call(root.path(), &["--only", "vicreg"]));
    // A folder that is no run any more is not overwritten, which the plan knows, too.
    let config = root.path().join("tiny/runs/T-vicreg-s0/config.toml");
    let text = std::fs::read(&config).unwrap();
    std::fs::remove_file(&config).unwrap();
    for dry in [&["--only", "vicreg", "--dry-run"][..], &["--only", "vicreg"]] {
        let (code, said) = failure(&mut call(root.path(), dry));
        let expected = "tiny/runs/T-vicreg-s0 holds no run but other files (such as ";
        assert!(code == 1 && said.contains(expected), "{said}");
        assert!(said.contains("; move or remove it to train the run anew"), "{said}");
    }
    let plan = call(root.path(), &["--only", "vicreg", "--dry-run"]).output().unwrap();
    assert!(plan.stdout.is_empty(), "there is no run in the plan: {plan:?}");
    std::fs::write(&config, text).unwrap();
    // Images that somebody removed do not come back by themselves.
    let data = root.path().join("tiny/data/T");
    let folders = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path());
    folders.filter(|path| path.is_dir()).for_each(|path| std::fs::remove_dir_all(path).unwrap());
    let (_, said) = failure(&mut call(root.path(), &["--only", "equicaps"]));
    let advice = "remove tiny/data/T, and the same command renders it anew";
    assert!(said.contains("T-equicaps-s0") && !said.contains("runs: "), "{said}");
    // A report of what is there tries nothing, and fails with nothing.
    let reported = ok_json(&mut call(root.path(), &["--report"]));
    assert_eq!((&reported["failed"], &reported["finished"]), (&json!({}), &1.into()), "{reported}");
    assert_eq!(reported["left"], json!(["T-equicaps-s0"]), "{reported}");
    let why = reported["failed_before"]["T-equicaps-s0"].as_str().unwrap_or_default();
    assert!(why.contains("cannot read tiny/data/T/") && why.contains(advice), "{reported}");
    let said = ok(&mut call(root.path(), &["--report"]));
    assert!(said.contains("failed the last time: T-equicaps-s0: "), "{said}");
    std::fs::remove_dir_all(&data).unwrap();
    let made = ok_json(&mut call(root.path(), &[]));
    assert_eq!((&made["finished"], &made["failed_before"]), (&2.into(), &json!({})), "{made}");
    assert_ne!(made["report"], Value::Null);
}
