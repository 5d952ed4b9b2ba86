//! `equicaps explore`: a page in the browser where a person sees what a run has learnt.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use explore::{Address, Explorer, Options, Server};
use render::Quality;
use serde_json::json;
use train::config::PrecisionName;

use crate::interrupt;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Arguments of `equicaps explore`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  The small network inside this program, on built-in objects:
    equicaps explore
  A run with its own data, also while it trains:
    equicaps explore runs/first
  Two runs on a dataset, on a fixed port:
    equicaps explore runs/equicaps runs/vicreg --data views --port 8020 --no-open

The page is served on the loopback address alone; the first line on standard output is its address,
Ctrl-C ends it. With --bind others can reach it, and the address holds a token that they need.
Views are rendered live where the objects are at hand: built-in ones, or meshes (--meshes).")]
pub struct Arguments {
    /// Runs' folders, checkpoints, or `builtin` [default: builtin]
    #[arg(value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Data to look at: a dataset's folder, a folder of meshes, or procedural:CLASSESxOBJECTS [default: those of the first run]
    #[arg(long, value_name = "DATA")]
    data: Option<String>,
    /// The meshes that a dataset was rendered from, for live views
    #[arg(long, value_name = "DIR")]
    meshes: Option<PathBuf>,
    /// Port; 0 is any free one
    #[arg(long, value_name = "P", default_value_t = 0)]
    port: u16,
    /// Do not open the page in a browser
    #[arg(long)]
    no_open: bool,
    /// Let others reach the page, on all of this machine's addresses or on one; a token is then needed
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "0.0.0.0")]
    bind: Option<String>,
    /// Device: auto (a GPU where there is a usable one), cpu, cuda, cuda:1, ...
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,
}

impl Arguments {
    /// The page of some runs, with everything else as it is by default.
    pub fn of_runs(runs: Vec<PathBuf>) -> Self {
        let device = "cpu".to_owned();
        Self { runs, data: None, meshes: None, port: 0, no_open: false, bind: None, device }
    }
}

/// Serves the page until it is interrupted; its address is the first line on standard output.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    serve(arguments, terminal, |url| terminal.result(url, &json!({ "address": url })))
}

/// Serves the page until it is interrupted; `announce` gets its address, and says it at once: it may be read by a program.
pub fn serve(
    arguments: &Arguments,
    terminal: &Terminal,
    announce: impl FnOnce(&str) -> std::io::Result<()>,
) -> anyhow::Result<Outcome> {
    interrupt::means_nothing_is_lost("interrupted");
    let stop = interrupt::flag();
    let device = crate::device::open(&arguments.device, PrecisionName::F32)?;
    let renderer = renderer(&device)?;
    let options = Options {
        runs: arguments.runs.clone(),
        data: arguments.data.clone(),
        meshes: arguments.meshes.clone(),
        device,
        renderer,
    };
    let explorer = Explorer::open(options, &mut |text| terminal.warn(text))?;
    let server = Server::listen(&Address { bind: arguments.bind.clone(), port: arguments.port })?;
    let url = server.url();
    announce(&url)?;
    let opened = !arguments.no_open && open(&url);
    let how = if opened { "opened in your browser" } else { "open this address in a browser" };
    terminal.note(format!("{how}; Ctrl-C ends the explorer"));
    interrupt::means("the explorer is closed");
    server.run(Arc::new(explorer), stop);
    Ok(Outcome::nothing())
}

/// What renders beside networks on `device`; nothing where that is the CPU, which needs none.
pub fn renderer(device: &engine::Device) -> anyhow::Result<Option<render::cuda::Renderer>> {
    match device {
        engine::Device::Cpu(_) => Ok(None),
        device => crate::device::renderer(&device.name(), Quality::Standard),
    }
}

/// Asks the desktop to show the page; whether there is one to ask.
fn open(url: &str) -> bool {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let mut command = match std::env::consts::OS {
        "macos" => Command::new("open"),
        "windows" => {
            let mut command = Command::new("rundll32");
            command.arg("url.dll,FileProtocolHandler");
            command
        }
        _ if has_display => Command::new("xdg-open"),
        _ => return false,
    };
    let command = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

/// The command that shows `runs`, to be copied.
pub fn command_line(runs: &[PathBuf]) -> String {
    let words: Vec<String> = runs.iter().map(|run| dataset::shell_word(run).to_string()).collect();
    format!("equicaps explore {}", words.join(" "))
}
