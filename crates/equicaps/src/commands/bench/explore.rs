//! `equicaps bench explore`: pictures per second of the explorer's page while objects are turned, from a request to the last
//! byte of its picture. The server runs in this process on a free port of the loopback address; clients ask as the page
//! does, for the next picture when the one before has come, over connections that stay open.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use explore::{Address, Explorer, Options, Server};
use render::Quality;
use serde::Serialize;
use train::config::PrecisionName;

use crate::commands::frame;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Pictures of a client before the clock starts: objects are loaded, kernels compiled, tables made.
const WARM_UP: usize = 3;
/// Degrees from one picture to the next.
const STEP: f64 = 3.0;
/// How long a picture may take, at most.
const PATIENCE: Duration = Duration::from_secs(120);

/// Arguments of `equicaps bench explore`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps bench explore --device cpu
  equicaps bench explore --device cuda:0 --clients 1,4,32")]
pub struct Arguments {
    /// Where the explorer renders: auto (a GPU where there is a usable one), cpu, cuda, cuda:1, ...
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,
    /// Pages that are turned at once; each number is measured on its own
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,4", value_parser = clap::value_parser!(u16).range(1..=64))]
    clients: Vec<u16>,
    /// Side of a picture in pixels
    #[arg(long, value_name = "PX", default_value_t = 256, value_parser = clap::value_parser!(u16).range(16..=768))]
    size: u16,
    /// Quality preset on the CPU: fast (while the hand moves) or standard (when it rests); on a GPU it is standard
    #[arg(long, value_name = "Q", default_value = "fast", value_parser = quality)]
    quality: Quality,
    /// How long to measure each number of clients
    #[arg(long, value_name = "S", default_value = "5", value_parser = frame::seconds)]
    seconds: f64,
}

fn quality(text: &str) -> Result<Quality, String> {
    match text {
        "fast" => Ok(Quality::Fast),
        "standard" => Ok(Quality::Standard),
        _ => Err("the explorer renders fast or standard pictures".to_owned()),
    }
}

/// Runs the benchmark.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let device = crate::device::open(&arguments.device, PrecisionName::F32)?;
    let name = device.name();
    let (data, meshes, runs) = (None, None, Vec::new());
    let renderer = crate::commands::explore::renderer(&device)?;
    // On a GPU the explorer has one quality for all.
    let quality = if renderer.is_some() { Quality::Standard } else { arguments.quality };
    let options = Options { runs, data, meshes, device, renderer };
    let explorer = Explorer::open(options, &mut |text| terminal.warn(text))?;
    let objects = explorer.data.views.objects().len();
    let server = Server::listen(&Address::default())?;
    let port = server.port();
    let Arguments { size, seconds, .. } = *arguments;
    terminal.note(format!("{objects} built-in objects on {name}, {quality} quality, {size} x {size} pixels"));
    let stop = Arc::new(AtomicBool::new(false));
    let serving = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || server.run(Arc::new(explorer), &stop))
    };
    let measure = |clients: &u16| {
        let turned = |client: u16| {
            let object = usize::from(client) % objects.max(1);
            move || turn(port, object, size, quality, Duration::from_secs_f64(seconds))
        };
        let threads: Vec<_> = (0..*clients).map(|client| std::thread::spawn(turned(client))).collect();
        let all: Vec<Turned> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a client broke off"))))
            .collect::<anyhow::Result<_>>()?;
        Ok(Rate::of(*clients, &all))
    };
    let rates = arguments.clients.iter().map(measure).collect::<anyhow::Result<Vec<Rate>>>();
    stop.store(true, Ordering::Relaxed);
    let _ = serving.join();
    Outcome::new(&Rates {
        device: name,
        quality: quality.to_string(),
        size,
        threads: rayon::current_num_threads(),
        rates: rates?,
    })
}

/// One picture: what the client and the server measured, in milliseconds.
#[derive(Clone, Copy)]
struct Picture {
    all: f64,
    wait: f64,
    render: f64,
    encode: f64,
    bytes: usize,
}

/// What one client got, and in what time.
struct Turned {
    pictures: Vec<Picture>,
    seconds: f64,
}

/// Turns an object for a while.
fn turn(port: u16, object: usize, size: u16, quality: Quality, time: Duration) -> anyhow::Result<Turned> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut next = {
        let mut angle = 0.0;
        move || {
            angle = (angle + STEP) % 180.0;
            let scene = format!(
                "object={object}&rx=20&rz={angle}&floor_hue=0.58&spot_theta=25&spot_phi=40&spot_hue=0.12"
            );
            ask(&mut reader, port, &format!("/api/image?{scene}&side={size}&quality={quality}"))
        }
    };
    for _ in 0..WARM_UP {
        next()?;
    }
    let began = Instant::now();
    let mut pictures = Vec::new();
    while began.elapsed() < time {
        pictures.push(next()?);
    }
    Ok(Turned { pictures, seconds: began.elapsed().as_secs_f64() })
}

/// Asks for one picture and reads all of it.
fn ask(reader: &mut BufReader<TcpStream>, port: u16, path: &str) -> anyhow::Result<Picture> {
    let began = Instant::now();
    write!(reader.get_mut(), "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")?;
    let (mut line, mut bytes, mut timing) = (String::new(), 0, String::new());
    reader.read_line(&mut line)?;
    let is_good = line.split_whitespace().nth(1) == Some("200");
    let status = line.trim_end().to_owned();
    loop {
        line.clear();
        let is_over = reader.read_line(&mut line)? == 0 || line.trim_end().is_empty();
        let Some((name, value)) = line.trim_end().split_once(": ").filter(|_| !is_over) else { break };
        match name {
            "content-length" => bytes = value.parse().context("the length of a picture")?,
            "server-timing" => value.clone_into(&mut timing),
            _ => {}
        }
    }
    let mut body = vec![0; bytes];
    reader.read_exact(&mut body).context("the explorer broke off")?;
    anyhow::ensure!(is_good, "the explorer answered {status}: {}", String::from_utf8_lossy(&body));
    let part = |name: &str| {
        let parts = timing.split(", ").filter_map(|part| part.split_once(";dur="));
        parts.filter(|(of, _)| *of == name).find_map(|(_, ms)| ms.parse().ok()).unwrap_or(0.0)
    };
    let all = 1e3 * began.elapsed().as_secs_f64();
    Ok(Picture { all, wait: part("wait"), render: part("render"), encode: part("encode"), bytes })
}

/// How fast pictures came.
#[derive(Serialize)]
struct Rates {
    device: String,
    quality: String,
    size: u16,
    threads: usize,
    rates: Vec<Rate>,
}

/// The same for one number of clients.
#[derive(Serialize)]
struct Rate {
    clients: u16,
    pictures: usize,
    /// Of all clients together.
    pictures_per_s: f64,
    median_ms: f64,
    p95_ms: f64,
    jpeg_bytes_mean: f64,
    /// Shares of a client's time: rendering, encoding, waiting for other pictures, and everything else: requests, answers and
    /// the change between threads.
    share_rendering: f64,
    share_encoding: f64,
    share_waiting: f64,
    share_other: f64,
}

impl Rate {
    fn of(clients: u16, all: &[Turned]) -> Self {
        let pictures: Vec<Picture> = all.iter().flat_map(|turned| turned.pictures.iter().copied()).collect();
        let mut times: Vec<f64> = pictures.iter().map(|picture| picture.all).collect();
        times.sort_by(f64::total_cmp);
        let quantile = |q: f64| times.get((q * times.len() as f64) as usize).copied().unwrap_or(0.0);
        let sum = |of: fn(&Picture) -> f64| pictures.iter().map(of).sum::<f64>();
        let total = sum(|picture| picture.all).max(1e-9);
        let [rendering, encoding, waiting] =
            [sum(|picture| picture.render), sum(|picture| picture.encode), sum(|picture| picture.wait)]
                .map(|sum| sum / total);
        Self {
            clients,
            pictures: pictures.len(),
            pictures_per_s: all.iter().map(|turned| turned.pictures.len() as f64 / turned.seconds).sum(),
            median_ms: quantile(0.5),
            p95_ms: quantile(0.95),
            jpeg_bytes_mean: sum(|picture| picture.bytes as f64) / pictures.len().max(1) as f64,
            share_rendering: rendering,
            share_encoding: encoding,
            share_waiting: waiting,
            share_other: (1.0 - rendering - encoding - waiting).max(0.0),
        }
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headings = [
            "clients",
            "pictures/s",
            "median ms",
            "95 % below, ms",
            "rendering %",
            "encoding %",
            "waiting %",
            "other %",
            "JPEG kB",
        ];
        let row = |rate: &Rate| {
            let percent = |share: f64| format!("{:.0}", 100.0 * share);
            vec![
                rate.clients.to_string(),
                format!("{:.0}", rate.pictures_per_s),
                format!("{:.1}", rate.median_ms),
                format!("{:.1}", rate.p95_ms),
                percent(rate.share_rendering),
                percent(rate.share_encoding),
                percent(rate.share_waiting),
                percent(rate.share_other),
                format!("{:.1}", rate.jpeg_bytes_mean / 1e3),
            ]
        };
        formatter.write_str(frame::text_table(&headings, self.rates.iter().map(row)).trim_end())
    }
}
