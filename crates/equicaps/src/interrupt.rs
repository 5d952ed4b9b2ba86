//! Orderly interruption: Ctrl-C (or SIGTERM) asks the running work to stop after what it has in hand; a second one
//! ends the program at once. So does SIGUSR1, which batch schedulers send before the time is up.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);
static INSTALL: Once = Once::new();

/// The flag that an interruption sets. The first call takes over the signals.
pub fn flag() -> &'static AtomicBool {
    INSTALL.call_once(|| {
        let install = || {
            // Without a handler the signal ends the program, which is safe at any time, only less polite.
            let _ = ctrlc::set_handler(|| {
                if STOP.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
                crate::terminal::say("stopping after the work in hand; once more to stop at once");
            });
        };
        #[cfg(unix)]
        {
            signals::keeping_nohup(install);
            signals::listen_to_user();
        }
        #[cfg(not(unix))]
        install();
    });
    &STOP
}

/// The exit status of work that stopped in order and can be taken up again; batch schedulers requeue on it.
pub const TRY_AGAIN: u8 = 75;

#[cfg(unix)]
mod signals {
    use super::{Ordering, STOP};

    const SIGHUP: i32 = 1;
    /// The number of SIGUSR1: 10 on Linux, 30 on the BSDs and macOS.
    const SIGUSR1: i32 = if cfg!(target_os = "linux") { 10 } else { 30 };
    const SIG_DFL: usize = 0;
    const SIG_IGN: usize = 1;

    unsafe extern "C" {
        /// `signal(2)` of the C library, which is linked anyway: sets a handler and returns the one before.
        fn signal(number: i32, handler: usize) -> usize;
    }

    extern "C" fn handle(_number: i32) {
        STOP.store(true, Ordering::Relaxed);
    }

    pub(super) fn listen_to_user() {
        let handler: extern "C" fn(i32) = handle;
        // SAFETY: the handler only stores to an atomic, which a signal handler may do.
        unsafe { signal(SIGUSR1, handler as usize) };
    }

    /// Runs `install`, which takes SIGHUP over, but leaves a SIGHUP ignored that was ignored: `nohup` says so.
    pub(super) fn keeping_nohup(install: impl FnOnce()) {
        // SAFETY: both values are dispositions that any signal may have.
        let ignored = unsafe { signal(SIGHUP, SIG_DFL) } == SIG_IGN;
        install();
        if ignored {
            // SAFETY: as above.
            unsafe { signal(SIGHUP, SIG_IGN) };
        }
    }
}
