//! The connections to rank 0 at `MASTER_ADDR:MASTER_PORT`, for ranks that were not started by MPI: they carry NCCL's id,
//! and then stay open, so that a rank that ends is noticed at once, and the few bytes on which hosts agree before a step
//! have a way. Tensors never travel here.
//!
//! A frame is a length (8 bytes), a kind (1 byte) and that many bytes.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine::{Collective, Memory, Source, Sum};

use crate::launch::Launch;
use crate::watch::Watch;
use crate::{Error, Result};

/// How long ranks look for each other at the start.
const PATIENCE: Duration = Duration::from_secs(120);
/// What a connection begins with.
const GREETING: &[u8; 8] = b"equicaps";
/// Most bytes of a frame: what hosts agree on is small.
const MOST: u64 = 64 << 20;

const DATA: u8 = 1;
const ALIVE: u8 = 2;
/// A rank is lost: which, and how.
const LOST: u8 = 3;
const FAREWELL: u8 = 4;

/// A rank among others: rank 0 has a line to every other, the others one to rank 0.
#[derive(Debug)]
pub(crate) struct Star {
    rank: usize,
    ranks: usize,
    lines: Arc<Vec<Line>>,
    watch: Arc<Watch>,
}

/// One connection.
#[derive(Debug)]
struct Line {
    /// Who is at the other end.
    to: usize,
    writer: Mutex<TcpStream>,
    arrived: Mutex<VecDeque<Vec<u8>>>,
    bell: Condvar,
}

impl Line {
    fn send(&self, kind: u8, bytes: &[u8]) -> std::io::Result<()> {
        let mut frame = Vec::with_capacity(9 + bytes.len());
        frame.extend((bytes.len() as u64).to_le_bytes());
        frame.push(kind);
        frame.extend(bytes);
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).write_all(&frame)
    }

    /// The next data; an error when a rank is lost meanwhile.
    fn next(&self, watch: &Watch) -> engine::Result<Vec<u8>> {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(bytes) = arrived.pop_front() {
                return Ok(bytes);
            }
            watch.check()?;
            let wait = Duration::from_millis(100);
            arrived = self.bell.wait_timeout(arrived, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Reads until the connection ends.
    fn listen(&self, mut stream: TcpStream, lines: &[Self], watch: &Watch) {
        let lost = loop {
            match read_frame(&mut stream) {
                Ok((DATA, bytes)) => {
                    self.arrived.lock().unwrap_or_else(PoisonError::into_inner).push_back(bytes);
                    self.bell.notify_all();
                    watch.hear(self.to);
                }
                Ok((ALIVE, _)) => watch.hear(self.to),
                Ok((LOST, text)) => {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    let (rank, how) = text.split_once(' ').unwrap_or(("0", "ended"));
                    break Some((rank.parse().unwrap_or(0), how.to_owned()));
                }
                Ok((FAREWELL, _)) => break None,
                Ok(_) | Err(_) => break Some((self.to, "ended".to_owned())),
            }
        };
        let Some((rank, how)) = lost.filter(|_| !watch.has_ended()) else { return };
        watch.lose(rank, &how);
        for line in lines.iter().filter(|line| line.to != rank) {
            let _ = line.send(LOST, format!("{rank} {how}").as_bytes());
        }
    }
}

fn read_frame(stream: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let [length @ .., kind] = head;
    let length = u64::from_le_bytes(length);
    if length > MOST {
        return Err(std::io::Error::other("a frame is too long"));
    }
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes)?;
    Ok((kind, bytes))
}

impl Star {
    /// Finds the others.
    pub(crate) fn meet(launch: &Launch, address: &str, watch: Arc<Watch>) -> Result<Self> {
        let streams =
            if launch.rank == 0 { listen(launch, address)? } else { vec![(0, connect(launch, address)?)] };
        let mut readers = Vec::new();
        let mut lines = Vec::new();
        for (to, stream) in streams {
            let copied = stream.try_clone().and_then(|copy| stream.set_nodelay(true).map(|()| copy));
            readers
                .push(copied.map_err(|error| Error::Here(format!("the connection of rank {to}: {error}")))?);
            lines.push(Line {
                to,
                writer: Mutex::new(stream),
                arrived: Mutex::default(),
                bell: Condvar::new(),
            });
        }
        let lines = Arc::new(lines);
        for (index, reader) in readers.into_iter().enumerate() {
            let (lines, watch) = (Arc::clone(&lines), Arc::clone(&watch));
            std::thread::spawn(move || lines[index].listen(reader, &lines, &watch));
        }
        let (said, kept) = (Arc::clone(&lines), Arc::clone(&watch));
        let is_first = launch.rank == 0;
        std::thread::spawn(move || {
            kept.keep(|| {
                for line in said.iter() {
                    let _ = line.send(ALIVE, &[]);
                    if !is_first {
                        // Rank 0 hears the others, and tells who is lost.
                        (1..).take_while(|&rank| kept.knows(rank)).for_each(|rank| kept.hear(rank));
                    }
                }
            });
            if kept.has_ended() {
                said.iter().for_each(|line| {
                    let _ = line.send(FAREWELL, &[]);
                });
            } else if let Some((rank, how)) = kept.silent() {
                said.iter().filter(|line| line.to != rank).for_each(|line| {
                    let _ = line.send(LOST, format!("{rank} {how}").as_bytes());
                });
            }
        });
        Ok(Self { rank: launch.rank, ranks: launch.ranks, lines, watch })
    }
}

/// Rank 0: the connections of all others, in their order.
fn listen(launch: &Launch, address: &str) -> Result<Vec<(usize, TcpStream)>> {
    let port = address.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
    let port = port.ok_or_else(|| Error::Here(format!("MASTER_PORT of {address} is no port number")))?;
    let wrong = |error: std::io::Error| Error::Here(format!("rank 0 cannot listen at port {port}: {error}"));
    let listener = TcpListener::bind(("0.0.0.0", port)).map_err(wrong)?;
    listener.set_nonblocking(true).map_err(wrong)?;
    let (start, mut streams) = (Instant::now(), Vec::<(usize, TcpStream)>::new());
    while streams.len() + 1 < launch.ranks {
        match listener.accept() {
            Ok((stream, _)) => {
                // Whoever does not greet is somebody else.
                if let Some((rank, ranks)) = greeted(&stream) {
                    if ranks != launch.ranks {
                        return Err(Error::Here(format!(
                            "rank {rank} counts {ranks} ranks, rank 0 {}",
                            launch.ranks
                        )));
                    }
                    if rank == 0 || rank >= ranks || streams.iter().any(|(known, _)| *known == rank) {
                        return Err(Error::Here(format!("two processes say that they are rank {rank}")));
                    }
                    streams.push((rank, stream));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if start.elapsed() > PATIENCE {
                    let here = |rank: &usize| streams.iter().any(|(known, _)| known == rank);
                    let missing: Vec<String> =
                        (1..launch.ranks).filter(|rank| !here(rank)).map(|rank| rank.to_string()).collect();
                    return Err(Error::Here(format!(
                        "ranks {} of {} have not come to {address} within {} s",
                        missing.join(", "),
                        launch.ranks,
                        PATIENCE.as_secs()
                    )));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(wrong(error)),
        }
    }
    streams.sort_by_key(|(rank, _)| *rank);
    Ok(streams)
}

/// Who is at the other end of a new connection.
fn greeted(mut stream: &TcpStream) -> Option<(usize, usize)> {
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let mut greeting = [0; 24];
    stream.read_exact(&mut greeting).ok()?;
    stream.set_read_timeout(None).ok()?;
    let number = |at: usize| greeting[at..at + 8].try_into().map(u64::from_le_bytes).map(|n| n as usize).ok();
    (greeting[..8] == *GREETING).then_some((number(8)?, number(16)?))
}

/// Another rank: the connection to rank 0.
fn connect(launch: &Launch, address: &str) -> Result<TcpStream> {
    let start = Instant::now();
    loop {
        let found = address.to_socket_addrs().and_then(|mut all| {
            let first = all.next().ok_or_else(|| std::io::Error::other("no such host"))?;
            TcpStream::connect_timeout(&first, Duration::from_secs(5))
        });
        match found {
            Ok(mut stream) => {
                let mut greeting = GREETING.to_vec();
                greeting.extend((launch.rank as u64).to_le_bytes());
                greeting.extend((launch.ranks as u64).to_le_bytes());
                let sent = stream.write_all(&greeting);
                return sent
                    .map(|()| stream)
                    .map_err(|error| Error::Here(format!("rank 0 at {address}: {error}")));
            }
            Err(error) if start.elapsed() > PATIENCE => {
                return Err(Error::Here(format!("rank 0 is not to be found at {address}: {error}")));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

const NO_TENSORS: &str =
    "ranks on CPUs meet by MPI: start them by mpirun, with an equicaps built with --features mpi";

impl Collective for Star {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn all_reduce_sum(&self, _: Sum, _: Memory<'_>) -> engine::Result<()> {
        Err(engine::Error::Ranks(NO_TENSORS.to_owned()))
    }

    fn all_gather(&self, _: &mut [(Source<'_>, Memory<'_>)]) -> engine::Result<()> {
        Err(engine::Error::Ranks(NO_TENSORS.to_owned()))
    }

    fn broadcast(&self, _: Memory<'_>) -> engine::Result<()> {
        Err(engine::Error::Ranks(NO_TENSORS.to_owned()))
    }

    fn exchange(&self, own: &[u8]) -> engine::Result<Vec<Vec<u8>>> {
        let gone = |rank: usize| {
            move |error: std::io::Error| engine::Error::Ranks(format!("rank {rank} is gone: {error}"))
        };
        if self.rank > 0 {
            let line = &self.lines[0];
            line.send(DATA, own).map_err(gone(0))?;
            return Ok(unpack(&line.next(&self.watch)?));
        }
        let mut all = vec![own.to_vec()];
        for line in self.lines.iter() {
            all.push(line.next(&self.watch)?);
        }
        let packed = pack(&all);
        for line in self.lines.iter() {
            line.send(DATA, &packed).map_err(gone(line.to))?;
        }
        Ok(all)
    }
}

fn pack(all: &[Vec<u8>]) -> Vec<u8> {
    let mut packed = Vec::new();
    for bytes in all {
        packed.extend((bytes.len() as u64).to_le_bytes());
        packed.extend(bytes);
    }
    packed
}

fn unpack(mut packed: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some((length, rest)) = packed.split_first_chunk::<8>() {
        let (bytes, rest) = rest.split_at((u64::from_le_bytes(*length) as usize).min(rest.len()));
        all.push(bytes.to_vec());
        packed = rest;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Launcher;

    fn free_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    fn star(rank: usize, address: &str) -> (Star, Arc<Watch>) {
        let by = Launcher::Address(address.to_owned());
        let launch = Launch { rank, ranks: 3, local_rank: rank, local_ranks: 3, by };
        let watch = Watch::new(rank, 3, |_| ());
        (Star::meet(&launch, address, Arc::clone(&watch)).unwrap(), watch)
    }

    #[test]
    fn bytes_of_any_length_come_to_everybody_and_who_ends_is_named() {
        let address = format!("127.0.0.1:{}", free_port());
        std::thread::scope(|scope| {
            for rank in 0..3_usize {
                let address = &address;
                scope.spawn(move || {
                    let (star, watch) = star(rank, address);
                    for round in 0..20 {
                        let all = star.exchange(&vec![rank as u8; rank * round]).unwrap();
                        assert_eq!(all, (0..3).map(|r| vec![r as u8; r * round]).collect::<Vec<_>>());
                    }
                    if rank == 2 {
                        // Ends without a word, as a process that is killed.
                        let line = star.lines[0].writer.lock().unwrap();
                        line.shutdown(std::net::Shutdown::Both).unwrap();
                        watch.end();
                        return;
                    }
                    let sentence = star.exchange(&[1]).unwrap_err().to_string();
                    assert!(sentence.contains("rank 2"), "rank {rank}: {sentence}");
                    watch.end();
                });
            }
        });
    }
}
