//! The server by plain sockets: what it answers, what it refuses, and that broken or many clients do not stop it.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::Device;
use explore::{Address, Explorer, Options, Server};
use serde_json::Value;

/// A server that runs until it is dropped.
struct Running {
    port: u16,
    url: String,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    fn start(bind: Option<&str>) -> Self {
        let options = Options {
            runs: Vec::new(),
            data: Some("procedural:3x2".to_owned()),
            meshes: None,
            device: Device::cpu(),
            renderer: None,
        };
        let explorer = Explorer::open(options, &mut |text| panic!("{text}")).unwrap();
        let server = Server::listen(&Address { bind: bind.map(str::to_owned), port: 0 }).unwrap();
        let (port, url, stop) = (server.port(), server.url(), Arc::new(AtomicBool::new(false)));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.run(Arc::new(explorer), &flag));
        Self { port, url, stop, thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    }

    /// Status, headers and body of the answer to `text`.
    fn raw(&self, text: &str) -> (u16, String, Vec<u8>) {
        let mut stream = self.connect();
        // A server that has seen enough may close before everything is written.
        let _ = stream.write_all(text.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return (0, String::new(), bytes);
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let status = head.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        (status, head, bytes[end + 4..].to_vec())
    }

    fn get(&self, path: &str) -> (u16, String, Vec<u8>) {
        self.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
            self.port
        ))
    }

    fn post(&self, path: &str, body: &str) -> (u16, Value) {
        let (status, _, body) = self.raw(&format!(
            "POST {path} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        ));
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// The answer of a network, when it is ready.
    fn when_ready(&self, path: &str, body: &str) -> Value {
        let end = Instant::now() + Duration::from_secs(300);
        loop {
            match self.post(path, body) {
                (202, _) if Instant::now() < end => std::thread::sleep(Duration::from_millis(100)),
                (200, answer) => return answer,
                other => panic!("{path} {body}: {other:?}"),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn the_page_and_its_files_are_there_and_nothing_else() {
    let server = Running::start(None);
    let (status, head, page) = server.get("/");
    let page = String::from_utf8(page).unwrap();
    assert_eq!(status, 200);
    assert!(page.contains("<title>EquiCaps explorer</title>"));
    assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
    // Every file that the page and its modules name is served.
    let mut names = vec!["main.js".to_owned(), "style.css".to_owned(), "icon.svg".to_owned()];
    let mut index = 0;
    while index < names.len() {
        let (status, head, text) = server.get(&format!("/{}", names[index]));
        assert_eq!(status, 200, "{}", names[index]);
        assert!(head.contains("x-content-type-options: nosniff"));
        let text = String::from_utf8(text).unwrap();
        assert!(!text.contains("http://") || text.contains("www.w3.org"), "{}", names[index]);
        for found in text.split("from \"./").skip(1) {
            let name = found.split('"').next().unwrap().to_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        index += 1;
    }
    assert!(names.len() > 10, "{names:?}");
    for path in [
        "/../Cargo.toml",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/secret",
        "//etc/passwd",
        "/api/../../x",
        "/api/none",
        "/main.js/x",
    ] {
        assert_eq!(server.get(path).0, 404, "{path}");
    }
}

#[test]
fn pictures_are_rendered_and_wrong_questions_get_a_sentence() {
    let server = Running::start(None);
    let (status, head, jpeg) =
        server.get("/api/image?object=2&rx=10&ry=-20&rz=30&floor_hue=0.5&spot_theta=20&side=96");
    assert_eq!((status, &jpeg[..2]), (200, &[0xff, 0xd8][..]));
    assert!(head.contains("content-type: image/jpeg"));
    // Where the time went, for browsers and `equicaps bench explore`.
    let timing = head.lines().find_map(|line| line.strip_prefix("server-timing: ")).unwrap();
    let parts: Vec<(&str, f64)> = timing
        .split(", ")
        .filter_map(|part| part.split_once(";dur="))
        .map(|(name, milliseconds)| (name, milliseconds.parse().unwrap()))
        .collect();
    assert_eq!(parts.iter().map(|part| part.0).collect::<Vec<_>>(), ["wait", "render", "encode"]);
    assert!(parts[1].1 > 0.0, "{timing}");
    let other = server.get("/api/image?object=2&rx=10&ry=-20&rz=60&floor_hue=0.5&spot_theta=20&side=96").2;
    assert_ne!(jpeg, other);
    // Scale and shear deform the object; as they are by default, they do nothing.
    let scene = "/api/image?object=2&rx=10&ry=-20&rz=30&floor_hue=0.5&spot_theta=20&side=96";
    assert_eq!(server.get(&format!("{scene}&scale_x=1&shear_yz=0")).2, jpeg);
    assert_ne!(server.get(&format!("{scene}&scale_z=1.4")).2, jpeg);
    assert_ne!(server.get(&format!("{scene}&shear_xy=0.4")).2, jpeg);
    assert_eq!(server.get("/api/image?object=1&view=3&side=64").0, 200);
    for wrong in [
        "/api/image?object=99",
        "/api/image?object=0&view=9999",
        "/api/image?object=0&side=100000",
        "/api/image?object=0&rx=nan",
        "/api/image?object=0&rx=1e30",
        "/api/image?object=0&scale_x=0",
        "/api/image?object=0&scale_y=nan",
        "/api/image?object=0&shear_xy=99",
        "/api/image?object=-1",
        "/api/image?object=0&quality=best",
        "/api/curves?run=7",
        "/api/map?run=0&how=umap",
    ] {
        assert_eq!(server.get(wrong).0, 400, "{wrong}");
    }
    let sentence: Value = serde_json::from_slice(&server.get("/api/image?object=99").2).unwrap();
    assert_eq!(sentence["error"], "there is no object 99 (there are 6)");
    for wrong in ["", "{", "[]", r#"{"scene":{"object":"x"}}"#] {
        let status = server.post("/api/look", wrong).0;
        assert!((400..500).contains(&status), "{wrong}: {status}");
    }
    assert_eq!(server.post("/api/look", r#"{"run":5,"scene":{"object":0}}"#).0, 400);
    assert_eq!(server.post("/api/look", r#"{"epoch":12345,"scene":{"object":0}}"#).0, 404);
}

#[test]
fn requests_of_others_and_large_ones_are_refused() {
    let server = Running::start(None);
    let port = server.port;
    let ask = |headers: &str| {
        server.raw(&format!("GET /api/state HTTP/1.1\r\n{headers}Connection: close\r\n\r\n")).0
    };
    assert_eq!(ask(&format!("Host: localhost:{port}\r\n")), 200);
    assert_eq!(ask(&format!("Host: rebound.example:{port}\r\n")), 421);
    assert_eq!(ask(&format!("Host: localhost:{port}\r\nOrigin: http://elsewhere.example\r\n")), 403);
    assert_eq!(ask(&format!("Host: localhost:{port}\r\nSec-Fetch-Site: cross-site\r\n")), 403);
    let large = "x".repeat(200 << 10);
    assert_eq!(server.post("/api/look", &large).0, 413);
    let header = server.raw(&format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nX: {large}\r\n\r\n")).0;
    assert!(header == 431 || header == 0, "{header}");
    assert_eq!(server.raw("nonsense\r\n\r\n").0, 400);
    // A form of another page cannot send JSON.
    let form = format!(
        "POST /api/look HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
    );
    assert_eq!(server.raw(&form).0, 415);
}

#[test]
fn an_address_for_others_needs_its_token() {
    let server = Running::start(Some("127.0.0.1"));
    let (_, token) = server.url.split_once("/?token=").unwrap();
    assert_eq!(token.len(), 32);
    assert_ne!(token, Running::start(Some("127.0.0.1")).url.split_once("/?token=").unwrap().1);
    assert_eq!((server.get("/").0, server.get("/api/state").0, server.get("/main.js").0), (401, 401, 401));
    assert_eq!(server.get("/?token=00000000000000000000000000000000").0, 401);
    let (status, head, _) = server.get(&format!("/?token={token}"));
    assert_eq!(status, 303);
    assert!(
        head.contains(&format!("set-cookie: equicaps_token={token}; httponly; samesite=strict")),
        "{head}"
    );
    let with = |header: &str| {
        let text = format!(
            "GET /api/state HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{header}\r\nConnection: close\r\n\r\n",
            server.port
        );
        server.raw(&text).0
    };
    assert_eq!(
        (with(&format!("Cookie: equicaps_token={token}")), with("Cookie: equicaps_token=x")),
        (200, 401)
    );
}

#[test]
fn many_clients_are_answered_beside_broken_ones() {
    let server = Running::start(None);
    // Some say nothing, some break off in the middle.
    let silent: Vec<TcpStream> = (0..40).map(|_| server.connect()).collect();
    for _ in 0..20 {
        let mut stream = server.connect();
        stream
            .write_all(b"POST /api/look HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            .unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    }
    std::thread::scope(|scope| {
        for client in 0..32 {
            let server = &server;
            scope.spawn(move || {
                for step in 0..6 {
                    let path = format!("/api/image?object={}&rz={}&side=48", client % 6, 7 * step);
                    let (status, _, jpeg) = server.get(&path);
                    assert_eq!((status, &jpeg[..2]), (200, &[0xff, 0xd8][..]), "{path}");
                }
                assert_eq!(server.get("/api/state").0, 200);
            });
        }
    });
    drop(silent);
}

#[test]
fn a_network_looks_steers_and_maps() {
    let server = Running::start(None);
    let looked = server.when_ready("/api/look", r#"{"scene":{"object":1,"view":2},"k":5}"#);
    assert_eq!(looked["by_representation"].as_array().unwrap().len(), 5);
    let capsules = looked["capsules"][0].as_u64().unwrap() as usize;
    assert_eq!(looked["activations"].as_array().unwrap().len(), capsules);
    assert_eq!(looked["poses"].as_array().unwrap().len(), 9 * capsules);
    // The view itself is no neighbour of itself; a live view at its pose has it as the nearest.
    let is_it = |found: &Value| found["object"] == 1 && found["view"] == 2;
    assert!(!looked["by_poses"].as_array().unwrap().iter().any(is_it));
    let scene = serde_json::to_string(&{
        let mut scene = looked["scene"].clone();
        scene.as_object_mut().unwrap().remove("view");
        scene
    });
    let live = server.when_ready("/api/look", &format!(r#"{{"scene":{},"k":1}}"#, scene.unwrap()));
    assert!(is_it(&live["by_representation"][0]), "{}", live["by_representation"][0]);
    assert!(live["by_representation"][0]["degrees"].as_f64().unwrap() < 0.01);

    let steered =
        server.when_ready("/api/steer", r#"{"scene":{"object":1,"view":2},"rotate":[0,0,40],"k":3}"#);
    let found = steered["found"].as_array().unwrap();
    assert!(found.len() == 3 && found.iter().all(|view| view["object"] == 1), "{found:?}");
    assert!(!found.iter().any(is_it));
    let best = steered["best"]["degrees"].as_f64().unwrap();
    assert!(found.iter().all(|view| view["degrees"].as_f64().unwrap() >= best - 1e-9));
    let all = server.when_ready(
        "/api/steer",
        r#"{"scene":{"object":1,"view":2},"rotate":[0,0,40],"all_objects":true,"k":40}"#,
    );
    assert!(all["found"].as_array().unwrap().iter().any(|view| view["object"] != 1));
    let matrix = r#"{"scene":{"object":0},"matrix":[[1,2,3],[4,5,6],[7,8,9]]}"#;
    assert_eq!(server.post("/api/steer", matrix).0, 400);

    for how in ["pca", "tsne"] {
        let (status, _, bytes) = server.get(&format!("/api/map?by=poses&how={how}"));
        assert_eq!(status, 200);
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
        let (rows, columns) =
            (header["rows"].as_u64().unwrap() as usize, header["columns"].as_array().unwrap().len());
        assert_eq!(bytes.len(), 4 + length + 4 * rows * columns);
        assert_eq!(header["rows"], header["all"]);
    }
    let (status, _, errors) = server.get("/api/errors?limit=4");
    let errors: Value = serde_json::from_slice(&errors).unwrap();
    assert_eq!((status, errors["views"].as_array().unwrap().len()), (200, 4));
    let angle = |index: usize| errors["views"][index]["rotation_degrees"].as_f64().unwrap();
    assert!(angle(0) >= angle(1) && angle(1) >= angle(2));
    let state: Value = serde_json::from_slice(&server.get("/api/state").2).unwrap();
    let held_out =
        state["data"]["objects"].as_array().unwrap().iter().filter(|object| object["held_out"] == true);
    assert_eq!(errors["objects"].as_array().unwrap().len(), held_out.count());
    assert!(!errors["classes"].as_array().unwrap().is_empty());
}
