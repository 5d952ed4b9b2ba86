//! Orderly interruption: Ctrl-C (or SIGTERM) is answered at once by a line that says what happens now, and asks the
//! running work to stop after what it has in hand; a second one ends the program at once. Where there is nothing to save
//! yet, the first one ends it, too. SIGUSR1, which batch schedulers send before the time is up, is like the first.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

static STOP: AtomicBool = AtomicBool::new(false);
static INSTALL: Once = Once::new();
/// The processes that do the work in hand, where that is not this one.
static CHILDREN: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static MEANING: Mutex<Meaning> = Mutex::new(Meaning {
    text: Cow::Borrowed("stopping after the work in hand; once more to end at once"),
    nothing_is_lost: false,
});

/// How long work without anything to save may take to stop in order.
const GRACE: Duration = Duration::from_millis(600);

/// What the first interruption means for the work in hand.
#[derive(Clone, Debug)]
struct Meaning {
    text: Cow<'static, str>,
    /// Whether the program may end at any moment.
    nothing_is_lost: bool,
}

/// From now on the first interruption is answered by `text`, and the work stops by [`flag`].
pub fn means(text: impl Into<Cow<'static, str>>) {
    set(Meaning { text: text.into(), nothing_is_lost: false });
}

/// From now on there is nothing to save: the first interruption is answered by `text`, and ends the program where it does
/// not stop by [`flag`] right away.
pub fn means_nothing_is_lost(text: impl Into<Cow<'static, str>>) {
    set(Meaning { text: text.into(), nothing_is_lost: true });
}

fn set(meaning: Meaning) {
    *MEANING.lock().unwrap_or_else(PoisonError::into_inner) = meaning;
}

fn meaning() -> Meaning {
    MEANING.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The flag that an interruption sets. The first call takes over the signals.
pub fn flag() -> &'static AtomicBool {
    INSTALL.call_once(|| {
        let install = || {
            // Without a handler the signal ends the program, which is safe at any time, only less polite.
            let _ = ctrlc::set_handler(interrupted);
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

/// Answers a signal, on a thread of its own.
fn interrupted() {
    if STOP.swap(true, Ordering::Relaxed) {
        #[cfg(unix)]
        children().iter().for_each(|&child| signals::end_child(child));
        crate::terminal::say_over_bar("ended at once; what was saved before stays");
        end(130);
    }
    let Meaning { text, nothing_is_lost } = meaning();
    crate::terminal::say_over_bar(&text);
    if nothing_is_lost {
        std::thread::sleep(GRACE);
        // Meanwhile there may be something to save.
        if meaning().nothing_is_lost {
            end(i32::from(TRY_AGAIN));
        }
    }
}

/// Lets `command` be interrupted by this process alone: Ctrl-C reaches this one, which passes it on, and where this one is
/// killed the other stops in order.
pub fn govern(command: &mut std::process::Command) {
    #[cfg(unix)]
    signals::govern(command);
    #[cfg(not(unix))]
    let _ = command;
}

fn children() -> MutexGuard<'static, Vec<u32>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process that does work in hand; dropped when it has ended.
pub struct Working(u32);

impl Working {
    /// From now on the process `id` does work in hand.
    pub fn new(id: u32) -> Self {
        children().push(id);
        Self(id)
    }

    /// Asks the process to stop in order; may be repeated.
    pub fn stop(&self) {
        #[cfg(unix)]
        signals::stop_child(self.0);
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        children().retain(|id| *id != self.0);
    }
}

/// Ends the program whatever its other threads do. Files are written beside their place and moved there, so none is left
/// half written.
pub fn end(status: i32) -> ! {
    #[cfg(unix)]
    signals::exit(status);
    #[cfg(not(unix))]
    std::process::exit(status)
}

/// The exit status of work that stopped in order and can be taken up again; batch schedulers requeue on it.
pub const TRY_AGAIN: u8 = 75;

#[cfg(unix)]
mod signals {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::{Ordering, STOP};

    const SIGHUP: i32 = 1;
    const SIGTERM: i32 = 15;
    /// The number of SIGUSR1: 10 on Linux, 30 on the BSDs and macOS.
    const SIGUSR1: i32 = if cfg!(target_os = "linux") { 10 } else { 30 };
    const SIG_DFL: usize = 0;
    const SIG_IGN: usize = 1;

    unsafe extern "C" {
        /// `signal(2)` of the C library, which is linked anyway: sets a handler and returns the one before.
        fn signal(number: i32, handler: usize) -> usize;
        /// `_exit(2)`: ends the process without the cleaning up of libraries, which may wait for a GPU.
        fn _exit(status: i32) -> !;
        /// `kill(2)`: sends a signal to a process.
        fn kill(process: i32, number: i32) -> i32;
        /// `prctl(2)`.
        #[cfg(target_os = "linux")]
        fn prctl(option: i32, ...) -> i32;
    }

    pub(super) fn govern(command: &mut Command) {
        // A group of its own: Ctrl-C is for the group of the terminal.
        command.process_group(0);
        #[cfg(target_os = "linux")]
        {
            const PR_SET_PDEATHSIG: i32 = 1;
            // SAFETY: between fork and exec only a system call is made, which a forked process may make.
            unsafe {
                command.pre_exec(|| {
                    prctl(PR_SET_PDEATHSIG, SIGUSR1);
                    Ok(())
                });
            }
        }
    }

    fn tell_child(child: u32, number: i32) {
        if let Some(child) = i32::try_from(child).ok().filter(|child| *child > 0) {
            // SAFETY: sends a signal to a process that this one started.
            unsafe { kill(child, number) };
        }
    }

    /// SIGUSR1 may come twice, or beside a signal to all processes of a job, and still is the first interruption.
    pub(super) fn stop_child(child: u32) {
        tell_child(child, SIGUSR1);
    }

    pub(super) fn end_child(child: u32) {
        tell_child(child, SIGTERM);
    }

    pub(super) fn exit(status: i32) -> ! {
        // SAFETY: ends the process; nothing that other threads hold outlives it.
        unsafe { _exit(status) }
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
