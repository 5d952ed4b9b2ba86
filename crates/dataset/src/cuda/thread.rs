//! The one thread that talks to a GPU's renderer.
//!
//! Images for the host are rendered for any number of other threads: all requests that are waiting go into one batch, and
//! the images of one batch are handed out while the device works on the next. Images for device memory are rendered
//! beside the work of another context, request by request in order; neither the host nor the stream of who asked waits
//! for anything but images that are not there yet.

use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread::JoinHandle;

use gpu::{Event, Readback, View};
use render::cuda::{Renderer, Shot};

use super::shots::Shots;
use crate::error::{Error, Result};

/// Images for the host in a batch of the device, at most.
const BATCH: usize = 512;

/// Images that are to stay in device memory.
pub struct DeviceRequest {
    /// Finds out what to render, on the thread: objects may have to be loaded.
    pub shots: Box<dyn FnOnce() -> Shots + Send>,
    /// Side of the images in pixels.
    pub side: usize,
    /// Where they go, one after the other.
    pub target: View,
    /// From here on the target is free.
    pub free: Event,
}

/// Images that are being rendered into device memory.
#[derive(Debug)]
pub struct Rendered {
    /// For each view that was asked for, its number among the images; none where its object cannot be loaded.
    pub numbers: Vec<Option<usize>>,
    /// From here on the images are there.
    pub done: Event,
    /// Whether objects had to leave device memory for others so far.
    pub has_evicted: bool,
}

/// The answer to a [`DeviceRequest`].
#[derive(Debug)]
pub struct Pending(Receiver<Result<Rendered>>);

impl Pending {
    /// Waits until the images are being rendered, and those of all requests before. The answer comes once.
    pub fn wait(&self) -> Result<Rendered> {
        self.0.recv().map_err(|_| stopped())?
    }
}

/// The thread, seen from outside; it ends with this, when everything that was asked for is done.
#[derive(Debug)]
pub struct RenderThread {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

enum Request {
    Host(HostRequest),
    Device(DeviceRequest, SyncSender<Result<Rendered>>),
    Forget(SyncSender<Result<()>>),
}

struct HostRequest {
    shots: Vec<Shot>,
    side: usize,
    reply: SyncSender<Result<Vec<u8>>>,
}

fn stopped() -> Error {
    Error::Request("the thread that renders on the GPU has stopped".to_owned())
}

impl RenderThread {
    /// Starts a thread that renders by `renderer`.
    pub fn start(renderer: Renderer) -> Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let work = move || Worker { renderer, receiver, held: None }.run();
        let thread =
            std::thread::Builder::new().name("renderer".to_owned()).spawn(work).map_err(|error| {
                Error::Request(format!("cannot start the thread that renders on the GPU: {error}"))
            })?;
        Ok(Self { requests: Some(sender), thread: Some(thread) })
    }

    /// Renders `shots` at `side` x `side` pixels and waits for the images: one after the other.
    pub fn to_host(&self, shots: Vec<Shot>, side: usize) -> Result<Vec<u8>> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.send(Request::Host(HostRequest { shots, side, reply }))?;
        answer.recv().map_err(|_| stopped())?
    }

    /// Begins to render into device memory, which must stay alive until the answer's event, or until this thread ends.
    pub fn to_device(&self, request: DeviceRequest) -> Result<Pending> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.send(Request::Device(request, reply))?;
        Ok(Pending(answer))
    }

    /// Lets go of all objects on the device, once everything asked for before is issued.
    pub fn forget_objects(&self) -> Result<()> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.send(Request::Forget(reply))?;
        answer.recv().map_err(|_| stopped())?
    }

    fn send(&self, request: Request) -> Result<()> {
        self.requests.as_ref().and_then(|requests| requests.send(request).ok()).ok_or_else(stopped)
    }
}

impl Drop for RenderThread {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A batch for the host that the device works on.
struct InFlight {
    requests: Vec<HostRequest>,
    images: Readback,
}

/// The thread, seen from inside. Nobody may be waiting for an answer any more, so it is sent and forgotten.
struct Worker {
    renderer: Renderer,
    receiver: Receiver<Request>,
    /// A request that did not go with the last batch.
    held: Option<Request>,
}

impl Worker {
    fn run(mut self) {
        let mut in_flight: Option<InFlight> = None;
        while let Some(request) = self.next(in_flight.is_none()) {
            let before = in_flight.take();
            match request {
                None => {}
                Some(Request::Host(first)) => in_flight = self.issue_batch(first),
                Some(Request::Device(request, reply)) => {
                    let _ = reply.send(self.render(request).map_err(Error::from));
                }
                Some(Request::Forget(reply)) => {
                    let _ = reply.send(self.renderer.clear_cache().map_err(Error::from));
                }
            }
            if let Some(before) = before {
                self.finish(before);
            }
        }
        // The targets belong to others.
        let _ = self.renderer.context().synchronize();
    }

    /// The next request: none where none is waiting, unless `wait`. The outer `None` at the end.
    fn next(&mut self, wait: bool) -> Option<Option<Request>> {
        match self.held.take() {
            None if wait => self.receiver.recv().ok().map(Some),
            None => Some(self.receiver.try_recv().ok()),
            held => Some(held),
        }
    }

    /// Renders into device memory.
    fn render(&mut self, request: DeviceRequest) -> gpu::Result<Rendered> {
        let Shots { shots, numbers } = (request.shots)();
        let context = self.renderer.context().clone();
        context.wait_for(&request.free)?;
        self.renderer.render(&shots, request.side as u32, request.target)?;
        let done = Event::untimed(&context)?;
        done.record()?;
        Ok(Rendered { numbers, done, has_evicted: self.renderer.has_evicted() })
    }

    /// Issues a batch of `first` and what else of its side is waiting.
    fn issue_batch(&mut self, first: HostRequest) -> Option<InFlight> {
        let (side, mut count) = (first.side, first.shots.len());
        let mut requests = vec![first];
        while count < BATCH
            && let Ok(next) = self.receiver.try_recv()
        {
            match next {
                Request::Host(next) if next.side == side => {
                    count += next.shots.len();
                    requests.push(next);
                }
                other => {
                    self.held = Some(other);
                    break;
                }
            }
        }
        match self.issue(&requests) {
            Ok(images) => Some(InFlight { requests, images }),
            Err(error) => {
                self.retry(requests, &error);
                None
            }
        }
    }

    /// Begins to render requests of one side.
    fn issue(&mut self, requests: &[HostRequest]) -> gpu::Result<Readback> {
        let context = self.renderer.context().clone();
        let side = requests.first().map_or(1, |request| request.side) as u32;
        let shots: Vec<Shot> = requests.iter().flat_map(|request| request.shots.iter().cloned()).collect();
        let target = context.allocate(shots.len() * Renderer::image_bytes(side))?;
        self.renderer.render(&shots, side, target.view())?;
        // SAFETY: the buffer goes back to the pool of the stream on which it is read.
        unsafe { context.begin_read(&[target.view()]) }
    }

    /// Waits for a batch and hands its images out.
    fn finish(&mut self, batch: InFlight) {
        let pixels = match batch.images.bytes(0) {
            Ok(pixels) => pixels,
            Err(error) => return self.retry(batch.requests, &error),
        };
        let mut rest = pixels;
        for request in batch.requests {
            let bytes = request.shots.len() * Renderer::image_bytes(request.side as u32);
            let (images, others) = rest.split_at(bytes);
            let _ = request.reply.send(Ok(images.to_vec()));
            rest = others;
        }
    }

    /// Renders the requests of a failed batch one by one, so that only those fail that cannot be done.
    fn retry(&mut self, requests: Vec<HostRequest>, error: &gpu::Error) {
        let is_alone = requests.len() == 1;
        for request in requests {
            let result = if is_alone {
                Err(error.clone())
            } else {
                self.issue(std::slice::from_ref(&request))
                    .and_then(|images| images.bytes(0).map(<[u8]>::to_vec))
            };
            let _ = request.reply.send(result.map_err(Error::from));
        }
    }
}
