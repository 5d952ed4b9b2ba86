//! What studies say, and what is wrong with them.

use super::*;

const SMALL: &str = r#"
title = "A study"
[data.T]
procedural = "5x4"
views = 6
strict = true
range = ["rot_x=0,1", "rot_y=0,1"]
[data.there]
path = "3DIEBench"
objects = 52400
[all]
preset = "paper"
set = { epochs = 3, "network.width" = 8, checkpoints = { milestones = [1, 2] } }
[evaluate]
preset = "quick"
tasks = ["rotation", "colour"]
[[runs]]
data = ["T", "there"]
method = ["equicaps", "sie"]
seed = [0, 1]
[[runs]]
data = "T"
method = "equicaps"
transform = ["rotation", "rotation+base"]
vary = { "network.capsules" = [16, 64], "loss.regularise" = ["poses"] }
evaluate = { epochs = [1, 2], untrained = true }
"#;

fn refusal(text: &str) -> String {
    Study::parse("study.toml", text).unwrap_err().to_string()
}

#[test]
fn blocks_are_products_in_their_order() {
    let study = Study::parse("study.toml", SMALL).unwrap();
    let names: Vec<&str> = study.runs.iter().map(|run| run.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "T-equicaps-s0",
            "T-equicaps-s1",
            "T-sie-s0",
            "T-sie-s1",
            "there-equicaps-s0",
            "there-equicaps-s1",
            "there-sie-s0",
            "there-sie-s1",
            "T-equicaps-regularise_poses-capsules16-s0",
            "T-equicaps-regularise_poses-capsules64-s0",
            "T-equicaps-rotation+base-regularise_poses-capsules16-s0",
            "T-equicaps-rotation+base-regularise_poses-capsules64-s0",
        ]
    );
    let run = &study.runs[10];
    assert_eq!(run.options.join(" "), "--method equicaps --transform rotation+base --seed 0 --preset paper");
    let expected = [
        "checkpoints.milestones=[1, 2]",
        "epochs=3",
        "network.width=8",
        "loss.regularise=poses",
        "network.capsules=16",
    ];
    assert_eq!(run.set, expected);
    let evaluations: Vec<String> = run.evaluations.iter().map(|words| words.join(" ")).collect();
    let common = "--preset quick --tasks rotation --tasks colour";
    let ends = ["--epochs 1", "--epochs 2", "--untrained"];
    assert_eq!(evaluations, ends.map(|end| format!("{common} {end}")));
    let Data::Rendered { options, line } = &study.data["T"] else { panic!("{:?}", study.data["T"]) };
    assert_eq!(
        (options.join(" ").as_str(), *line),
        ("--procedural 5x4 --range rot_x=0,1 --range rot_y=0,1 --strict --views 6", 3)
    );
    let seeded = study.with_seed(7);
    assert!(seeded.runs.iter().all(|run| run.options.join(" ").contains("--seed 7")));
}

#[test]
fn mistakes_are_named_with_their_line() {
    let data = "[data.T]\nprocedural = \"5x4\"\n";
    for (text, expected) in [
        ("[data.T\n", "study.toml, line 1: "),
        ("runs = 3\n", "study.toml, line 1: "),
        (
            &format!("{data}[[runs]]\nmetod = \"sie\"\n"),
            "line 4: unknown field `metod`, expected one of `run`, `name`, `data`",
        ),
        (&format!("{data}[[runs]]\nmethod = \"sie\"\n"), "line 3: these runs have no data"),
        (&format!("{data}[[runs]]\ndata = \"T\"\n"), "line 3: these runs have no method"),
        (
            &format!("{data}[[runs]]\ndata = \"U\"\nmethod = \"sie\"\n"),
            "line 3: there are no data \"U\" (data: T)",
        ),
        (
            &format!("{data}[[runs]]\nrun = \"a\"\ndata = \"T\"\nmethod = [\"sie\", \"sen\"]\n"),
            "line 3: `run` names one run, but these are 2",
        ),
        (&format!("{data}[[runs]]\ndata = \"T\"\nmethod = []\n"), "line 3: the list of method is empty"),
        (&format!("{data}[[runs]]\ndata = \"T\"\nmethod = \"../x\"\n"), "cannot be the name of a folder"),
        (&format!("runs = []\n{data}out = \"x\"\n"), "line 2: a study itself says `out` when it renders"),
        (&format!("runs = []\n{data}"), "study.toml has no runs"),
        ("runs = []\n[data.T]\npath = \"a\"\nviews = 4\n", "not `views`"),
        (
            &format!("{data}[[runs]]\ndata = \"T\"\nmethod = \"sie\"\nset = {{ seed = 7 }}\n"),
            "line 3: `seed` is a word of its own beside `set`",
        ),
        (
            &format!("{data}[[runs]]\ndata = \"T\"\nmethod = \"sie\"\nseed = [0, -1]\n"),
            "line 3: seed takes a whole number from 0 on, or a list of them, not -1",
        ),
        (
            &format!("{data}[[runs]]\ndata = \"T\"\nmethod = 3\n"),
            "line 3: method takes text in quotation marks, or a list of such texts, not 3",
        ),
        (
            &format!(
                "{data}[[runs]]\ndata = \"T\"\nmethod = \"sie\"\nset = {{ epochs = 3 }}\nvary = {{ epochs = [4] }}\n"
            ),
            "line 3: epochs is in `set` and in `vary`",
        ),
        (
            &format!("{data}[all]\nrun = \"a\"\n[[runs]]\ndata = \"T\"\nmethod = \"sie\"\n"),
            "line 3: `run` names one run",
        ),
        (
            &format!("{data}[evaluate]\nuntrained = \"yes\"\n[[runs]]\ndata = \"T\"\nmethod = \"sie\"\n"),
            "untrained takes true or false, not \"yes\"",
        ),
        (
            &format!("{data}[evaluate]\nepochs = []\n[[runs]]\ndata = \"T\"\nmethod = \"sie\"\n"),
            "the list of epochs is empty",
        ),
        (
            &format!("{data}[evaluate]\ntasks = []\n[[runs]]\ndata = \"T\"\nmethod = \"sie\"\n"),
            "the list of tasks is empty",
        ),
        (
            &format!(
                "{data}[[runs]]\ndata = \"T\"\nmethod = \"sie\"\n[[runs]]\ndata = \"T\"\nmethod = \"sie\"\nset = {{ epochs = 4 }}\n"
            ),
            "line 6: the run T-sie-s0 is there already, with other settings, in line 3; give these runs a name",
        ),
    ] {
        let message = refusal(text);
        assert!(message.contains(expected) && !message.contains('\n'), "{text}: {message}");
    }
}

#[test]
fn blocks_change_settings_of_all_however_they_are_written() {
    let text = r#"
        [data.T]
        procedural = "5x4"
        [all]
        set = { epochs = 3, "loss.variance" = 5.0, loss = { covariance = 2.0, invariance = 0.5 } }
        [[runs]]
        data = "T"
        method = "equicaps"
        set = { loss = { variance = 1.0 }, "loss.invariance" = 0.0 }
        vary = { "network.projector" = [[32, 32, 32]], "epochs" = [5] }
    "#;
    let study = Study::parse("study.toml", text).unwrap();
    let expected = [
        "loss.covariance=2.0",
        "loss.invariance=0.0",
        "loss.variance=1.0",
        "epochs=5",
        "network.projector=[32, 32, 32]",
    ];
    assert_eq!(study.runs[0].set, expected);
    assert_eq!(study.runs[0].name, "T-equicaps-epochs5-projector_[32,32,32]-s0");
    // What is varied in all is said once in a block that sets it.
    let text = text.replace("epochs = 3, ", "").replace("[[runs]]", "vary = { epochs = [3, 4] }\n[[runs]]");
    let text =
        text.replace("vary = { \"network.projector\" = [[32, 32, 32]], \"epochs\" = [5] }", "seed = 2");
    let study = Study::parse("study.toml", &text.replace("set = { loss = {", "set = { epochs = 9, loss = {"))
        .unwrap();
    assert_eq!((study.runs.len(), study.runs[0].set[0].as_str()), (1, "epochs=9"));
}

#[test]
fn products_have_a_limit() {
    let list: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let list = list.join(", ");
    let text = format!(
        "[data.T]\nprocedural = \"5x4\"\n[[runs]]\ndata = \"T\"\nmethod = \"sie\"\nseed = [{list}]\nvary = {{ epochs = [{list}] }}\n"
    );
    assert!(refusal(&text).contains("more than 10000 runs"), "{}", refusal(&text));
}

#[test]
fn damaged_files_are_refused_or_read_and_never_more() {
    // Bytes replaced, left out and repeated.
    let bytes = SMALL.as_bytes();
    for index in 0..4000_u64 {
        let mut random = random::Random::new(index, random::Stream::new("damage"), 0);
        let mut below = |bound: usize| random.below(bound.max(1) as u64) as usize;
        let mut damaged = bytes.to_vec();
        for _ in 0..3 {
            let at = below(damaged.len());
            match below(3) {
                0 => damaged[at] = below(128) as u8,
                1 => _ = damaged.remove(at),
                _ => {
                    let end = (at + below(40)).min(damaged.len());
                    let part = damaged[at..end].to_vec();
                    damaged.splice(at..at, part);
                }
            }
        }
        let text = String::from_utf8_lossy(&damaged);
        if let Err(error) = Study::parse("study.toml", &text) {
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}
