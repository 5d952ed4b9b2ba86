//! How fast a run goes, between two readings: images a second, the share of time spent waiting for data, and how long a
//! step keeps the host and the device busy. Where the device's time is near that of a step, the run is as fast as the
//! device; where the host's is, it is not.

use std::time::{Duration, Instant};

/// Measures from reading to reading.
#[derive(Debug)]
pub struct Clock {
    since: Instant,
    images: usize,
    waited: Duration,
    steps: u32,
    host: Duration,
    device: Duration,
    saved: Instant,
    /// Images a second, smoothed over readings; 0 before the first.
    pub rate: f64,
    /// Share of the time spent waiting for data, of the last reading.
    pub waited_share: f64,
    /// Milliseconds of a step on the host and on the device, of the last reading.
    pub step_ms: [f64; 2],
}

impl Clock {
    /// Starts now.
    pub fn new() -> Self {
        let now = Instant::now();
        Self {
            since: now,
            images: 0,
            waited: Duration::ZERO,
            steps: 0,
            host: Duration::ZERO,
            device: Duration::ZERO,
            saved: now,
            rate: 0.0,
            waited_share: 0.0,
            step_ms: [0.0; 2],
        }
    }

    /// The device is done with a step that kept host and device busy for so long.
    pub fn done(&mut self, host: Duration, device: Duration) {
        self.steps += 1;
        self.host += host;
        self.device += device;
    }

    /// The figures of the last reading, by their names in metrics.
    pub fn timing(&self) -> [(&'static str, f64); 4] {
        [
            ("images_per_second", self.rate),
            ("waited_share", self.waited_share),
            ("host_ms", self.step_ms[0]),
            ("device_ms", self.step_ms[1]),
        ]
    }

    /// A step on `images` images, for which `waited` was spent waiting.
    pub fn step(&mut self, images: usize, waited: Duration) {
        self.images += images;
        self.waited += waited;
    }

    /// Takes the time since the last reading.
    pub fn look(&mut self) {
        let elapsed = self.since.elapsed().as_secs_f64().max(1e-9);
        let rate = self.images as f64 / elapsed;
        // Smoothed, as single intervals are short.
        self.rate = if self.rate == 0.0 { rate } else { 0.8 * self.rate + 0.2 * rate };
        self.waited_share = (self.waited.as_secs_f64() / elapsed).min(1.0);
        if self.steps > 0 {
            self.step_ms =
                [self.host, self.device].map(|time| 1e3 * time.as_secs_f64() / f64::from(self.steps));
        }
        (self.steps, self.host, self.device) = (0, Duration::ZERO, Duration::ZERO);
        self.restart();
    }

    /// Forgets the time since the last reading, which was spent on something else.
    pub fn restart(&mut self) {
        self.since = Instant::now();
        self.images = 0;
        self.waited = Duration::ZERO;
    }

    /// How long `images` images will take.
    pub fn time_for(&self, images: f64) -> Duration {
        Duration::try_from_secs_f64(images / self.rate.max(1e-9)).unwrap_or_default()
    }

    /// A checkpoint was started.
    pub fn save(&mut self) {
        self.saved = Instant::now();
    }

    /// Minutes since the last checkpoint.
    pub fn minutes_unsaved(&self) -> f64 {
        self.saved.elapsed().as_secs_f64() / 60.0
    }
}
