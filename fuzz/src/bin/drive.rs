//! The stable driver: mutates seeds, gives them to every parser for a while, and prints a table of executions, panics,
//! hangs and memory. What panics or hangs is written to `fuzz/found/PARSER`.
//!
//!     cargo run --release --manifest-path fuzz/Cargo.toml -- --seconds 60 [--only obj,ply] [--seed 1]

#[path = "../../../crates/scene/tests/cube/mod.rs"]
#[allow(dead_code)]
mod cube;
#[path = "../entries.rs"]
mod entries;

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use random::{Random, Stream};

/// Counts what is allocated and its peak.
struct Counting;

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = CURRENT.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CURRENT.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// An input that takes longer hangs.
const HANG: Duration = Duration::from_secs(5);

/// What is being parsed now, for the watchman.
static NOW: Mutex<Option<(&'static str, Instant, Vec<u8>)>> = Mutex::new(None);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value =
        |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1).cloned());
    let seconds: f64 = value("--seconds").and_then(|text| text.parse().ok()).unwrap_or(60.0);
    let seed: u64 = value("--seed").and_then(|text| text.parse().ok()).unwrap_or(0);
    let only = value("--only").unwrap_or_default();
    let chosen = |name: &str| only.is_empty() || only.split(',').any(|one| one == name);
    let targets: Vec<_> = entries::ALL.into_iter().filter(|(name, _)| chosen(name)).collect();
    let share = Duration::from_secs_f64(seconds / targets.len().max(1) as f64);
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::spawn(watch);
    println!(
        "{:<12} {:>12} {:>8} {:>12} {:>16}",
        "parser", "executions", "panics", "slowest ms", "most memory KB"
    );
    let mut bad = 0;
    for (name, parse) in targets {
        let seeds = seeds(name);
        let mut row = (0_u64, 0_u64, Duration::ZERO, 0_usize);
        let began = Instant::now();
        while began.elapsed() < share {
            let mut random = Random::new(seed, Stream::new(name), row.0);
            let input = mutate(&seeds, &mut random);
            let before = CURRENT.load(Ordering::Relaxed);
            PEAK.store(before, Ordering::Relaxed);
            let start = Instant::now();
            *NOW.lock().expect("a lock") = Some((name, start, input.clone()));
            let panicked = catch_unwind(AssertUnwindSafe(|| parse(&input))).is_err();
            *NOW.lock().expect("a lock") = None;
            let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
            row = (row.0 + 1, row.1 + u64::from(panicked), row.2.max(start.elapsed()), row.3.max(peak));
            if panicked {
                keep(name, &input);
            }
        }
        let (executions, panics, slowest, memory) = row;
        bad += panics;
        let (slowest, memory) = (slowest.as_secs_f64() * 1e3, memory / 1024);
        println!("{name:<12} {executions:>12} {panics:>8} {slowest:>12.1} {memory:>16}");
    }
    std::process::exit(i32::from(bad > 0));
}

/// Ends the program where an input hangs.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let now = NOW.lock().expect("a lock");
        if let Some((name, start, input)) = &*now
            && start.elapsed() > HANG
        {
            keep(name, input);
            println!("{name}: an input takes more than {} s", HANG.as_secs());
            std::process::exit(1);
        }
    }
}

fn keep(name: &str, input: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("found").join(name);
    let _ = std::fs::create_dir_all(&folder);
    let _ = std::fs::write(folder.join(format!("{:08x}", crc32fast::hash(input))), input);
}

/// One seed with a few changes of the usual kinds.
fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    const INTERESTING: [u64; 10] =
        [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
    const WORDS: [&[u8]; 12] = [
        b"-1",
        b"nan",
        b"1e999",
        b"4294967296",
        b"18446744073709551615",
        b"null",
        b"{}",
        b"[",
        b"\"",
        b"\0",
        b"../",
        b"\n",
    ];
    let mut below = |bound: usize| random.below(bound.max(1) as u64) as usize;
    let mut input = seeds[below(seeds.len())].clone();
    for _ in 0..1 + below(6) {
        let length = input.len();
        let at = below(length);
        match below(8) {
            0 if length > 0 => input[at] ^= 1 << below(8),
            1 if length > 0 => input[at] = below(256) as u8,
            2 => input.truncate(at),
            3 => {
                let word = WORDS[below(WORDS.len())];
                input.splice(at..at, word.iter().copied());
            }
            4 => {
                let width = [1, 2, 4, 8][below(4)];
                let number = INTERESTING[below(INTERESTING.len())];
                let bytes = if below(2) == 0 { number.to_le_bytes() } else { number.to_be_bytes() };
                let bytes = if below(2) == 0 { &bytes[..width] } else { &bytes[8 - width..] };
                for (to, from) in input.iter_mut().skip(at).zip(bytes) {
                    *to = *from;
                }
            }
            5 => {
                let end = (at + below(64)).min(length);
                let part = input[at..end].to_vec();
                let times = 1 + below(20);
                input.splice(at..at, part.repeat(times));
            }
            6 => {
                let end = (at + below(64)).min(length);
                input.drain(at..end);
            }
            _ => {
                let other = &seeds[below(seeds.len())];
                let from = below(other.len());
                let end = (from + below(256)).min(other.len());
                let part = other[from..end].to_vec();
                input.splice(at..at, part);
            }
        }
        input.truncate(1 << 20);
    }
    input
}

/// Valid inputs, made by the program's own writers where it has them, and all that found something before.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    if let Ok(entries) = std::fs::read_dir(root.join("regressions").join(name)) {
        seeds.extend(entries.flatten().filter_map(|entry| std::fs::read(entry.path()).ok()));
    }
    let ending = |file: &str| file.rsplit('.').next().unwrap_or(file).to_owned();
    seeds.extend(
        cube::every_cube().into_iter().filter(|(file, _)| ending(file) == name).map(|(_, bytes)| bytes),
    );
    let pixels: Vec<u8> = (0..32 * 32 * 3).map(|i| (i % 251) as u8).collect();
    let order = dataset::jpeg::ChannelOrder::Rgb;
    let jpeg = || dataset::jpeg::encode(&pixels, 32, order).expect("encodes");
    let arrays = || {
        vec![
            scene::npy::encode_f64(&[2, 7], &[0.5; 14]),
            scene::npy::encode_i64(&[3, 3], &[512, 5, 7, 1, 2, 3, 4, 5, 6]),
            scene::npy::encode_unicode(&[2], &["/a/b/".to_owned(), "/a/c/".to_owned()]),
        ]
    };
    match name {
        "mtl" => seeds.push(b"newmtl a\nKd 0.5 0.5 0.5\nmap_Kd -s 2 2 1 x.png\nd 0.5\nillum 2\n".to_vec()),
        "npy" | "index" => seeds.extend(arrays()),
        "object_list" => {
            seeds.push(b"a/b\nc/d\n# e\n".to_vec());
            seeds.extend(arrays());
        }
        "tar" => {
            let mut archive = Vec::new();
            dataset::tar::append(&mut archive, "a/b/00.jpg", b"12345");
            dataset::tar::append(&mut archive, &"long/".repeat(40), b"67");
            archive.extend_from_slice(&dataset::tar::END);
            seeds.push(archive);
        }
        "jpeg" | "image" => seeds.push(jpeg()),
        "dataset" => {
            seeds.push([b"\0", entries::CARD.as_bytes()].concat());
            seeds.push([b"\x01".as_slice(), br#"[{"label": 0, "synset": "a", "name": "a"}]"#].concat());
            for (which, array) in [(5_u8, 0), (4, 1), (3, 1), (2, 2)] {
                seeds.push([vec![which], arrays()[array].clone()].concat());
            }
        }
        "checkpoint" => {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("seed.safetensors");
            let mut checkpoint = train::checkpoint::Checkpoint::default();
            let numbers = train::checkpoint::Numbers::F32(vec![1.0, 2.0, 3.0, 4.0]);
            checkpoint.insert("backbone.conv1.weight", &[2, 2], numbers);
            checkpoint.write_to(&path).expect("writes");
            seeds.push(std::fs::read(&path).expect("reads"));
        }
        "torch_file" => {
            let data = root.join("../crates/train/tests/data");
            seeds.extend(
                ["torch_save.pth", "published.pth"]
                    .iter()
                    .filter_map(|file| std::fs::read(data.join(file)).ok()),
            );
        }
        "config" => seeds.push(methods::presets::DEFAULTS.as_bytes().to_vec()),
        "metrics" => {
            let line = r#"{"kind":"step","epoch":1,"step":1,"values":{"loss":1.5},"timing":{"seconds":0.1}}"#;
            seeds.push([line, line, line].join("\n").into_bytes());
        }
        "results" => seeds.push(
            br#"{"format":1,"subject":{},"data":{},"protocol":{},"representations":{},"device":"cpu"}"#
                .to_vec(),
        ),
        _ => {}
    }
    assert!(!seeds.is_empty(), "no seed for {name}");
    seeds
}
