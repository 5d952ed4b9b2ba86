//! Listens on an address and answers requests: a bounded number of connections, none of which may dawdle over its headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::error::{Error, Result};
use crate::explorer::Explorer;
use crate::guard::Guard;
use crate::routes;

/// Connections at once: 32 browsers with six each, and some to spare. More wait in the system's queue.
const MOST_CONNECTIONS: usize = 256;
/// How long a connection may be without a whole request.
const HEADER_TIME: Duration = Duration::from_secs(30);
const MOST_HEADER_BYTES: usize = 16 << 10;

/// Where to listen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// An address or a name that others can reach; the loopback address where there is none.
    pub bind: Option<String>,
    /// 0: any free port.
    pub port: u16,
}

/// A server that listens.
pub struct Server {
    runtime: tokio::runtime::Runtime,
    listener: TcpListener,
    guard: Guard,
    shown: String,
}

impl Server {
    /// Listens; nothing is answered before [`Server::run`].
    pub fn listen(address: &Address) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(64)
            .thread_name("explore")
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| Error::Request(format!("the server cannot start: {error}")))?;
        let host = address.bind.clone().unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string());
        let bare: Option<IpAddr> = host.parse().ok();
        let refused = |error| Error::Address { address: format!("{host}:{}", address.port), error };
        let listener = runtime
            .block_on(async {
                match bare {
                    Some(ip) => TcpListener::bind(SocketAddr::new(ip, address.port)).await,
                    None => TcpListener::bind((host.as_str(), address.port)).await,
                }
            })
            .map_err(refused)?;
        let local = listener.local_addr().map_err(refused)?;
        let token = address.bind.as_ref().map(|_| new_token()).transpose()?;
        let shown = match bare.map(|ip| if ip.is_unspecified() { own_address(ip) } else { ip }) {
            Some(IpAddr::V6(ip)) => format!("[{ip}]"),
            Some(ip) => ip.to_string(),
            None => host,
        };
        let guard = Guard { port: local.port(), name: address.bind.clone(), token };
        Ok(Self { runtime, listener, guard, shown })
    }

    /// The page's address, with the token where there is one.
    pub fn url(&self) -> String {
        let token = self.guard.token.as_ref().map_or_else(String::new, |token| format!("?token={token}"));
        format!("http://{}:{}/{token}", self.shown, self.guard.port)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.guard.port
    }

    /// Answers requests until `stop`.
    pub fn run(self, explorer: Arc<Explorer>, stop: &AtomicBool) {
        let router = routes::router(Arc::clone(&explorer), Arc::new(self.guard));
        let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        self.runtime.block_on(async {
            loop {
                let accepted = async {
                    let permit = Arc::clone(&connections).acquire_owned().await;
                    (permit, self.listener.accept().await)
                };
                tokio::select! {
                    (permit, accepted) = accepted => match accepted {
                        Ok((stream, _)) => {
                            let service = TowerToHyperService::new(router.clone());
                            tokio::spawn(async move {
                                let _permit = permit;
                                let _ = stream.set_nodelay(true);
                                let mut builder = http1::Builder::new();
                                builder
                                    .timer(TokioTimer::new())
                                    .header_read_timeout(HEADER_TIME)
                                    .max_buf_size(MOST_HEADER_BYTES)
                                    .max_headers(64);
                                // A client that breaks off is no matter.
                                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                            });
                        }
                        // Too many open files, say: others may go first.
                        Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                    },
                    () = tokio::time::sleep(Duration::from_millis(100)) => {}
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        explorer.stop();
        self.runtime.shutdown_background();
    }
}

/// The address by which others reach this machine, of the kind of `any`: the one that it would send from. Nothing is sent.
fn own_address(any: IpAddr) -> IpAddr {
    let (elsewhere, loopback): (IpAddr, IpAddr) = match any {
        IpAddr::V4(_) => (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(_) => (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(), Ipv6Addr::LOCALHOST.into()),
    };
    let found = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((elsewhere, 9))?;
        socket.local_addr()
    });
    found.map_or(loopback, |address| address.ip())
}

/// 128 random bits of the system in 32 digits.
fn new_token() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Request(format!("the system has no random numbers for a token: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
