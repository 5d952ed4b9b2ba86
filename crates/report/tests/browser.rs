//! A report in a real browser: what pointing shows, whether wide tables say so, at the widths of a laptop and of a phone. Skipped
//! where there is no Chromium (`apt install chromium`).
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use evaluate::protocol::Task;
use evaluate::results::{Data, FORMAT, Measured, ProbeResult, Ranking, Retrieval, RetrievalError, Subject};
use evaluate::{Preset, Protocol, Results};
use report::run_material::RunMaterial;
use report::run_page::{self, Beginning};
use train::Config;
use train::metrics::{Kind, Record};

/// The browser, where there is one.
fn browser() -> Option<PathBuf> {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        println!("skipped: there is no Chromium");
    }
    found.map(PathBuf::from)
}

fn results(method: &str, rotation: f64) -> Results {
    let probe = |value: f64| ProbeResult {
        value: Measured { value, spread: 0.01 },
        top5: None,
        floor: 0.23,
        input_width: 8,
        curve: Vec::new(),
        by_object: Vec::new(),
    };
    let ranking = Ranking { mrr: rotation, h1: 0.1, h2: 0.2, h5: 0.3, h10: 0.4, queries: 10 };
    let error = RetrievalError {
        rotation: 0.3,
        translation: Some(0.4),
        scale: None,
        shear: None,
        perspective: None,
        queries: 10,
        candidates: 10,
    };
    let sets: BTreeMap<String, RetrievalError> =
        ["train-train", "val-all", "val-val"].map(|set| (set.to_owned(), error)).into();
    let tasks =
        [Task::Classification, Task::Rotation, Task::TranslationObject, Task::TranslationBase, Task::Colour];
    Results {
        format: FORMAT,
        subject: Subject {
            name: method.to_owned(),
            method: method.to_owned(),
            backbone: "resnet18".into(),
            trained_for: "rotation".into(),
            epochs: Some(3),
            weights_key: method.to_owned(),
            ..Subject::default()
        },
        data: Data {
            kind: "3DIEBench-T".into(),
            path: "T".into(),
            classes: 55,
            side: 128,
            ..Data::default()
        },
        protocol: Protocol::new(Preset::Paper, 0, 100, 100),
        representations: tasks.map(|task| (task, probe(rotation))).into(),
        embeddings: BTreeMap::new(),
        retrieval: Some(Retrieval {
            train: ranking,
            val: ranking,
            pre: sets.clone(),
            chance: ranking,
            chance_train: None,
            pre_chance: sets,
            by_object: Vec::new(),
        }),
        by_object: Default::default(),
        by_class: Default::default(),
        also: Vec::new(),
        device: "cpu".into(),
        seconds: BTreeMap::new(),
    }
}

fn run(method: &str, rotation: f64) -> RunMaterial {
    let record = |kind, epoch: u64, name: &str, value: f64| {
        let mut values = serde_json::Map::new();
        values.insert(name.to_owned(), value.into());
        Record { kind, epoch, step: epoch * 9, values, timing: Default::default() }
    };
    let held_out = |epoch: u64| {
        record(Kind::HeldOut, epoch, "probe/rotation_r2/representation", rotation * epoch as f64 / 3.0)
    };
    let loss = |epoch: u64| record(Kind::Epoch, epoch, "loss", 10.0 / epoch as f64);
    let mut settings = Config::settings(method, "paper").unwrap();
    settings.set("image_size=128").unwrap();
    RunMaterial {
        name: format!("run-{method}"),
        config: Some(Config::resolve(settings).unwrap()),
        records: (1..=3).map(held_out).chain((1..=3).map(loss)).collect(),
        evaluations: vec![(PathBuf::from("nowhere"), results(method, rotation))],
        ..RunMaterial::default()
    }
}

/// The page after `script` ran in it, in a window of `width` pixels: the text that the script leaves in `document.title`.
fn title_after(browser: &Path, page: &Path, width: usize, script: &str) -> String {
    let html = std::fs::read_to_string(page).unwrap();
    let end = "</body>";
    let asked = page.with_file_name("asked.html");
    let script = format!("<script>addEventListener('load', () => {{ {script} }});</script>\n{end}");
    std::fs::write(&asked, html.replace(end, &script)).unwrap();
    // A window may not be as narrow as a phone; a frame may.
    let frame = page.with_file_name("frame.html");
    let text = format!(
        "<!doctype html><body style=\"margin:0\"><iframe id=\"f\" src=\"asked.html\" style=\"border:0;width:{width}px;height:844px\">\
         </iframe><script>addEventListener('load', () => {{ document.title = \
         document.getElementById('f').contentDocument.title; }});</script></body>"
    );
    std::fs::write(&frame, text).unwrap();
    // A browser that crashes says nothing about the page.
    for _ in 0..3 {
        let profile = tempfile::tempdir().unwrap();
        let output = Command::new(browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--allow-file-access-from-files",
                "--window-size=1400,900",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(["--virtual-time-budget=10000", "--dump-dom"])
            .arg(format!("file://{}", frame.display()))
            .output()
            .unwrap();
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
        if let Some(title) = title {
            return title.to_owned();
        }
        let was_killed = output.status.code().is_none();
        assert!(was_killed, "no answer: {dom} {}", String::from_utf8_lossy(&output.stderr));
    }
    panic!("the browser crashed three times")
}

#[test]
fn a_report_can_be_pointed_at_and_says_where_it_is_wide() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let runs = [run("equicaps", 0.75), run("sie", 0.5), run("vicreg", 0.45)];
    let introduction = "Made by `equicaps report`.";
    let beginning = Beginning { title: "A `test`", introduction, missing: &["T-sen-s0"] };
    run_page::write(&runs, &page, beginning).unwrap();
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains("<code>equicaps report</code>") && text.contains("Not evaluated yet: T-sen-s0."));
    let without_script = text.split("<script>").next().unwrap();
    let body = without_script.split("<body>").nth(1).unwrap();
    assert!(
        !body.split("<h1>").nth(1).unwrap().split("</h1>").nth(1).unwrap().contains('`'),
        "raw backticks"
    );
    // Pointing at the end of a curve says whose it is and how high; the row of the table lights up.
    let point = "
        const group = [...document.querySelectorAll('g[data-of=\"run-sie\"]')].find((g) => g.querySelector('polyline'));
        const line = group.querySelector('polyline');
        const svg = line.closest('svg');
        svg.scrollIntoView();
        const last = line.getAttribute('points').split(' ').pop().split(',').map(Number);
        const at = new DOMPoint(last[0], last[1]).matrixTransform(svg.getScreenCTM());
        svg.dispatchEvent(new PointerEvent('pointermove', { clientX: at.x, clientY: at.y, bubbles: true }));
        const tip = document.getElementById('tip');
        const lit = [...document.querySelectorAll('tr.lit th')].map((th) => th.firstChild.textContent);
        document.title = `${getComputedStyle(tip).display} ${tip.textContent} rows ${lit[0]}`;";
    let said = title_after(&browser, &page, 1280, point);
    assert_eq!(said, "block run-sie: epoch 3: R\u{b2} 0.5 rows sie");
    // The scatter of the first figure has a point for each method; its click goes to the row.
    let scatter = "
        const circles = [...document.querySelectorAll('g[data-of=\"equicaps\"] circle')];
        const group = circles[0].parentElement;
        document.title = `${circles.length} ${group.dataset.name}`;";
    let said = title_after(&browser, &page, 1280, scatter);
    assert!(said.contains("equicaps: top-1 (%) 75, rotation R\u{b2} 0.75"), "{said}");
    // Nothing makes the page itself wider than the window; what is wider scrolls, and says so.
    let widths = "
        const wide = [...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth + 1);
        const said = wide.filter((box) => getComputedStyle(box.previousElementSibling).display === 'block'
            && box.previousElementSibling.textContent.includes('scroll sideways'));
        const page = document.documentElement;
        document.title = `${page.scrollWidth <= page.clientWidth} ${wide.length > 0} ${wide.length === said.length}`;";
    assert_eq!(title_after(&browser, &page, 390, widths), "true true true");
    assert_eq!(title_after(&browser, &page, 1280, widths).split(' ').next(), Some("true"));
    let all = title_after(&browser, &page, 1280, widths);
    assert!(all.ends_with("true"), "{all}");
}

#[test]
fn a_report_of_many_runs_stays_small_and_folds_what_is_long() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let names = ["equicaps", "sie", "vicreg", "simclr", "sen", "equimod", "capsie", "supervised"];
    let many = |index: usize| {
        let method = names[index % names.len()];
        let mut made = run(method, 0.3 + 0.02 * index as f64);
        made.name = format!("run-{index}");
        made.config_text = Some("seed = 0".to_owned());
        let loss = |epoch: u64| {
            let mut values = serde_json::Map::new();
            values.insert("loss".to_owned(), (10.0 + (epoch * 7919 % 101) as f64).into());
            Record { kind: Kind::Epoch, epoch, step: epoch * 9, values, timing: Default::default() }
        };
        made.records = (1..=2000).map(loss).collect();
        made.evaluations[0].1.subject.weights_key = made.name.clone();
        made
    };
    let runs: Vec<RunMaterial> = (0..24).map(many).collect();
    let beginning = Beginning { title: "Many", introduction: "", missing: &["another"; 40] };
    run_page::write(&runs, &page, beginning).unwrap();
    // 24 runs with 2,000 epochs each.
    let bytes = std::fs::metadata(&page).unwrap().len();
    assert!(bytes < 1 << 20, "{bytes} bytes");
    let found = "
        const folds = [...document.querySelectorAll('main > details, section > details')];
        const said = folds.map((fold) => fold.querySelector('summary').textContent).join('; ');
        const losses = folds.find((fold) => fold.textContent.includes('Losses of')).querySelectorAll('svg').length;
        folds.forEach((fold) => { fold.open = true; });
        const page = document.documentElement;
        document.title = `${said} | ${losses} | ${page.scrollWidth <= page.clientWidth}`;";
    for width in [390, 1280] {
        let said = title_after(&browser, &page, width, found);
        let wanted = "24 runs; 40 runs are not evaluated yet; Losses of 24 runs; ";
        assert!(said.starts_with(wanted) && said.ends_with(" | 24 | true"), "{said}");
        assert!(said.contains("Configurations and environments (24 runs)"), "{said}");
    }
    // What all rows share is said once.
    let text = std::fs::read_to_string(&page).unwrap();
    let first = text.split("id=\"table-ours\"").nth(1).unwrap().split("</figure>").next().unwrap();
    assert_eq!(first.matches("128 px").count(), 1, "{first}");
}
