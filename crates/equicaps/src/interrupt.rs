//! Orderly interruption: Ctrl-C (or SIGTERM) asks the running work to stop after what it has in hand; a second one
//! ends the program at once.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);
static INSTALL: Once = Once::new();

/// The flag that an interruption sets. The first call takes over the signals.
pub fn flag() -> &'static AtomicBool {
    INSTALL.call_once(|| {
        // Without a handler the signal ends the program, which is safe at any time, only less polite.
        let _ = ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
            eprintln!("stopping after the pictures in hand; once more to stop at once");
        });
    });
    &STOP
}
