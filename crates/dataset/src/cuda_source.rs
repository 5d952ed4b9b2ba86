//! Rendering the objects of a set on a GPU, for any number of threads that load objects and encode images meanwhile.
//!
//! One thread talks to the device. It puts all requests that are waiting into one batch, and hands out the images of
//! one batch while the device works on the next.

use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use gpu::{Context, Readback};
use render::cuda::{Object as DeviceObject, Renderer, Shot};
use scene::Latents;

use crate::object::Object;
use crate::source::CpuRenderer;
use crate::work::{Failure, ViewSource};

/// Views of an object that a job asks for at once.
const REQUEST: usize = 64;
/// Views in a batch of the device at most.
const BATCH: usize = 512;

struct Request {
    object: Arc<DeviceObject>,
    latents: Vec<Latents>,
    side: u32,
    reply: SyncSender<Result<Vec<u8>, Failure>>,
}

/// Renders the objects of a set on a GPU.
pub struct CudaRenderer {
    /// Loads the objects.
    pub loader: CpuRenderer,
    requests: Mutex<Option<Sender<Request>>>,
    worker: Option<JoinHandle<()>>,
}

impl CudaRenderer {
    /// Renders what `loader` loads, as well as it would, on the device of `renderer`.
    pub fn new(loader: CpuRenderer, renderer: Renderer) -> Self {
        let (sender, receiver) = mpsc::channel();
        let worker = std::thread::spawn(move || Worker { renderer, receiver, held: None }.run());
        Self { loader, requests: Mutex::new(Some(sender)), worker: Some(worker) }
    }

    /// What a dataset's card calls the device: images of the same kind of device have the same bits.
    pub fn kind(context: &Context) -> String {
        let properties = context.properties();
        format!("cuda {} {}", properties.architecture, properties.name)
    }
}

impl Drop for CudaRenderer {
    fn drop(&mut self) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

fn gone() -> Failure {
    Failure::Device("the thread that renders on the GPU has stopped".to_owned())
}

impl ViewSource for CudaRenderer {
    type Prepared = Arc<DeviceObject>;

    fn prepare(&self, object: &Object) -> std::result::Result<Arc<DeviceObject>, String> {
        Ok(Arc::new(DeviceObject::of(&self.loader.load(object)?)))
    }

    fn render(
        &self,
        prepared: &Arc<DeviceObject>,
        latents: &[Latents],
        side: usize,
    ) -> std::result::Result<Vec<u8>, Failure> {
        let (reply, answer) = mpsc::sync_channel(1);
        let side = u32::try_from(side).map_err(|_| gone())?;
        let request = Request { object: Arc::clone(prepared), latents: latents.to_vec(), side, reply };
        let sender = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(gone)?;
        sender.send(request).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }

    fn batch(&self) -> usize {
        REQUEST
    }
}

/// A batch that the device works on.
struct InFlight {
    requests: Vec<Request>,
    images: Readback,
}

struct Worker {
    renderer: Renderer,
    receiver: Receiver<Request>,
    /// A request that did not go with the last batch.
    held: Option<Request>,
}

impl Worker {
    fn run(mut self) {
        let mut in_flight: Option<InFlight> = None;
        while let Some(requests) = self.gather(in_flight.is_none()) {
            let before = in_flight.take();
            if !requests.is_empty() {
                match self.issue(&requests) {
                    Ok(images) => in_flight = Some(InFlight { requests, images }),
                    Err(error) => self.retry(requests, &error),
                }
            }
            if let Some(before) = before {
                self.finish(before);
            }
        }
    }

    /// Requests of one side for the next batch: none where none is waiting, unless `wait`. `None` at the end.
    fn gather(&mut self, wait: bool) -> Option<Vec<Request>> {
        let mut requests: Vec<Request> = self.held.take().into_iter().collect();
        if requests.is_empty() && wait {
            requests.push(self.receiver.recv().ok()?);
        }
        while requests.iter().map(|request| request.latents.len()).sum::<usize>() < BATCH {
            match self.receiver.try_recv() {
                Ok(next) if requests.first().is_some_and(|first| first.side != next.side) => {
                    self.held = Some(next);
                    break;
                }
                Ok(next) => requests.push(next),
                Err(TryRecvError::Disconnected) if requests.is_empty() && wait => return None,
                Err(_) => break,
            }
        }
        Some(requests)
    }

    fn issue(&mut self, requests: &[Request]) -> gpu::Result<Readback> {
        let context = self.renderer.context().clone();
        let side = requests.first().map_or(1, |request| request.side);
        let shots: Vec<Shot> = requests
            .iter()
            .flat_map(|request| {
                let shot =
                    |latents: &Latents| Shot { object: Some(request.object.clone()), latents: *latents };
                request.latents.iter().map(shot)
            })
            .collect();
        let bytes = shots.len() * Renderer::picture_bytes(side);
        let target = context.allocate(bytes)?;
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
        let mut start = 0;
        for request in batch.requests {
            let bytes = request.latents.len() * Renderer::picture_bytes(request.side);
            let images = pixels[start..start + bytes].to_vec();
            start += bytes;
            // Nobody waits any more where the run was stopped.
            let _ = request.reply.send(Ok(images));
        }
    }

    /// Renders the requests of a failed batch one by one, so that only those fail that cannot be done.
    fn retry(&mut self, requests: Vec<Request>, error: &gpu::Error) {
        let is_alone = requests.len() == 1;
        for request in requests {
            let result = if is_alone {
                Err(error.clone())
            } else {
                self.issue(std::slice::from_ref(&request))
                    .and_then(|images| images.bytes(0).map(<[u8]>::to_vec))
            };
            let _ = request.reply.send(result.map_err(|error| match error {
                gpu::Error::OutOfMemory { .. } => Failure::Object(error.to_string()),
                error => Failure::Device(error.to_string()),
            }));
        }
    }
}
