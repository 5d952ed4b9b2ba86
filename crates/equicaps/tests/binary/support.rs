//! Calling the program and reading what it says.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

#[cfg(unix)]
pub use rustix::process::Signal;
use serde_json::Value;

/// A call with `arguments`.
pub fn equicaps(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_equicaps"));
    // Without `--device` a GPU would be used where there is one.
    command.args(arguments).stdin(Stdio::null()).env("CUDA_VISIBLE_DEVICES", "");
    command
}

/// Sends a signal: there are systems without a program for it.
#[cfg(unix)]
pub fn signal(id: u32, signal: Signal) {
    let id = rustix::process::Pid::from_raw(id.cast_signed()).unwrap();
    rustix::process::kill_process(id, signal).unwrap();
}

/// A network that trains in milliseconds.
pub const TINY: [&str; 3] = ["image_size=32", "network.width=8", "network.capsules=4"];

/// Adds `--set` for each of `settings`.
pub fn set<'a>(command: &'a mut Command, settings: &[&str]) -> &'a mut Command {
    settings.iter().fold(command, |command, setting| command.args(["--set", setting]))
}

/// Renders 4 small views of each of `size` objects (`CLASSESxOBJECTS`) into `out`.
pub fn render_views(size: &str, out: &Path, more: &[&str]) {
    let mut command = equicaps(&["render", "--quiet", "--procedural", size, "--views", "4", "--size", "32"]);
    ok(command.args(["--quality", "fast"]).args(more).arg("--out").arg(out));
}

/// The exit status of a process that has to end within `patience`.
pub fn exit_status(child: &mut Child, patience: Duration) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if began.elapsed() > patience {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the program did not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Standard output of a call that must succeed.
pub fn ok(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a call that must succeed prints with `--json`.
pub fn ok_json(command: &mut Command) -> Value {
    object(&ok(command.arg("--json")))
}

/// The one object that a call printed.
pub fn object(text: &str) -> Value {
    assert_eq!(text.trim_end().lines().count(), 1, "more than one line: {text}");
    let value: Value = serde_json::from_str(text).unwrap();
    assert!(value.is_object(), "{text}");
    value
}

/// Exit status and standard error of a call that must fail.
pub fn failure(command: &mut Command) -> (i32, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    assert!(!status.success(), "{command:?} succeeded");
    (status.code().unwrap(), String::from_utf8(stderr).unwrap())
}
