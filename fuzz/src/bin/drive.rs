//! The stable driver: mutates seeds, gives them to every parser for a while, and prints a table of executions, panics,
//! hangs, crashes and memory. Every parser has a process of its own, which may end as it likes. Inputs that found
//! something are written to `fuzz/found/PARSER`, the slowest to `fuzz/found/PARSER.slowest`.
//!
//!     cargo run --release --manifest-path fuzz/Cargo.toml -- --seconds 600 [--only obj,ply] [--seed 1]

#[path = "../entries.rs"]
mod entries;
#[path = "../memory.rs"]
mod memory;
#[path = "../mutate.rs"]
mod mutate;
#[path = "../seeds.rs"]
mod seeds;

use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use random::{Random, Stream};

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// An input that takes more processor time hangs. The largest JPEG that is allowed (2^28 pixels) takes a few seconds.
const HANG: Duration = Duration::from_secs(20);
/// Status of a process whose parser hangs, or took too much memory.
const HANGS: i32 = 50;
const BLOWN_UP: i32 = 51;

/// What is being parsed now, for the watchman.
static NOW: Mutex<Option<(&'static str, Instant, Vec<u8>)>> = Mutex::new(None);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value =
        |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1).cloned());
    let number = |name: &str| value(name).and_then(|text| text.parse::<f64>().ok());
    let seconds = number("--seconds").unwrap_or(60.0);
    let seed = number("--seed").unwrap_or(0.0) as u64;
    if let Some(name) = value("--parser") {
        let first = number("--first").unwrap_or(0.0) as u64;
        return drive(&name, seed, first, Duration::from_secs_f64(seconds));
    }
    let only = value("--only").unwrap_or_default();
    let chosen = |name: &str| only.is_empty() || only.split(',').any(|one| one == name);
    let targets: Vec<_> = entries::ALL.into_iter().filter(|(name, _)| chosen(name)).collect();
    let share = Duration::from_secs_f64(seconds / targets.len().max(1) as f64);
    println!(
        "{:<12} {:>10} {:>7} {:>6} {:>8} {:>8} {:>11} {:>15}",
        "parser", "executions", "panics", "hangs", "crashes", "blow-ups", "slowest ms", "most memory KB"
    );
    let mut bad = 0;
    for (name, _) in targets {
        let row = campaign(name, seed, share);
        bad += row.panics + row.hangs + row.crashes + row.blow_ups;
        let Row { executions, panics, hangs, crashes, blow_ups, slowest, memory } = row;
        println!(
            "{name:<12} {executions:>10} {panics:>7} {hangs:>6} {crashes:>8} {blow_ups:>8} {slowest:>11.1} {:>15}",
            memory / 1024
        );
    }
    std::process::exit(i32::from(bad > 0));
}

/// What came of a parser.
#[derive(Default)]
struct Row {
    executions: u64,
    panics: u64,
    hangs: u64,
    crashes: u64,
    blow_ups: u64,
    /// Milliseconds.
    slowest: f64,
    /// Bytes.
    memory: usize,
}

/// Lets processes work on a parser for `time`: another one goes on behind the input that ended the one before.
fn campaign(name: &'static str, seed: u64, time: Duration) -> Row {
    let began = Instant::now();
    let mut row = Row::default();
    let mut first = 0;
    while began.elapsed() < time && row.hangs + row.crashes + row.blow_ups < 20 {
        let rest = (time - began.elapsed()).as_secs_f64();
        let mut command = Command::new(std::env::current_exe().expect("a program"));
        command.args(["--parser", name, "--seed", &seed.to_string(), "--first", &first.to_string()]);
        command.args(["--seconds", &rest.to_string()]).stdin(Stdio::null()).stderr(Stdio::null());
        let status = command.stdout(Stdio::null()).status().expect("a process");
        let mut state = [0; 32];
        let read = std::fs::File::open(progress(name)).and_then(|file| file.read_exact_at(&mut state, 0));
        read.expect("what the process wrote");
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| state[8 * at + i]));
        row.executions += word(0) + 1 - first;
        row.panics += word(1);
        row.slowest = row.slowest.max(f64::from_bits(word(2)));
        row.memory = row.memory.max(word(3) as usize);
        first = word(0) + 1;
        match status.code() {
            Some(0) => break,
            Some(HANGS) => row.hangs += 1,
            Some(BLOWN_UP) => row.blow_ups += 1,
            // A signal: the input is that of the last number.
            _ => {
                row.crashes += 1;
                keep(name, &input(&seeds::seeds(name), name, seed, word(0)));
            }
        }
    }
    let _ = std::fs::remove_file(progress(name));
    row
}

/// Number `number` of a parser's inputs.
fn input(seeds: &[Vec<u8>], name: &str, seed: u64, number: u64) -> Vec<u8> {
    mutate::mutate(seeds, &mut Random::new(seed, Stream::new(name), number))
}

fn progress(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("found").join(format!("{name}.progress"))
}

/// Gives a parser inputs from number `first` on.
fn drive(name: &str, seed: u64, first: u64, time: Duration) {
    let (name, parse) = entries::ALL.into_iter().find(|(known, _)| *known == name).expect("a parser");
    let _ = std::fs::create_dir_all(progress(name).parent().expect("a folder"));
    let state = std::fs::File::create(progress(name)).expect("a file");
    let panicked_at: &'static Mutex<String> = Box::leak(Box::default());
    std::panic::set_hook(Box::new(|info| {
        if let (Some(place), Ok(mut at)) = (info.location(), panicked_at.lock()) {
            *at = place.to_string();
        }
    }));
    std::thread::spawn(watch);
    let seeds = seeds::seeds(name);
    let mut words = [first, 0, 0, 0];
    let mut places = HashSet::new();
    let mut slowest = Vec::new();
    let began = Instant::now();
    for number in first.. {
        words[0] = number;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        state.write_all_at(&bytes, 0).expect("writes");
        if began.elapsed() >= time {
            let _ = std::fs::write(progress(name).with_extension("slowest"), &slowest);
            break;
        }
        let input = input(&seeds, name, seed, number);
        let start = Instant::now();
        *NOW.lock().expect("a lock") = Some((name, start, input.clone()));
        let before = memory::begin();
        let panicked = catch_unwind(AssertUnwindSafe(|| parse(&input))).is_err();
        let peak = memory::peak_since(before) as u64;
        *NOW.lock().expect("a lock") = None;
        words[1] += u64::from(panicked);
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        if milliseconds > f64::from_bits(words[2]) {
            words[2] = milliseconds.to_bits();
            slowest.clone_from(&input);
        }
        words[3] = words[3].max(peak);
        // One input a place is enough.
        if panicked && places.insert(panicked_at.lock().map(|at| at.clone()).unwrap_or_default()) {
            keep(name, &input);
        }
    }
}

/// Ends the process where an input hangs or takes too much memory.
fn watch() {
    memory::be_watchman();
    // The input that was seen last, by its start, and the processor time then.
    let mut seen: Option<(Instant, Duration)> = None;
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = NOW.lock().expect("a lock");
        let Some((name, start, input)) = &*now else { continue };
        let used = processor_time();
        let before = match seen {
            Some((known, before)) if known == *start => before,
            _ => seen.insert((*start, used)).1,
        };
        // A busy machine makes everything slow.
        let is_hanging = used - before > HANG || start.elapsed() > 20 * HANG;
        if memory::is_beyond() || is_hanging {
            keep(name, input);
            std::process::exit(if memory::is_beyond() { BLOWN_UP } else { HANGS });
        }
    }
}

/// Processor time of this process, in hundredths of a second as Linux counts it; elsewhere the clock's.
fn processor_time() -> Duration {
    static BEGAN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let clock = BEGAN.get_or_init(Instant::now).elapsed();
    let Ok(text) = std::fs::read_to_string("/proc/self/stat") else { return clock };
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

fn keep(name: &str, input: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("found").join(name);
    let _ = std::fs::create_dir_all(&folder);
    let _ = std::fs::write(folder.join(format!("{:08x}", crc32fast::hash(input))), input);
}
