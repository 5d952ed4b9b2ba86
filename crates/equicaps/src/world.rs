//! This process among those that mpirun, srun or another launcher started with it. The first one speaks for all: the others
//! print nothing but what is wrong with themselves.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ranks::{Launch, World};

use crate::{interrupt, terminal};

static WORLD: OnceLock<World> = OnceLock::new();
/// Whether all ranks know of what went wrong.
static AGREED: AtomicBool = AtomicBool::new(false);

/// How long a rank that failed gives the first one to say something better.
const COURTESY: Duration = Duration::from_secs(3);

/// Meets the others, if there are any; a command calls it that works with them.
pub fn start() -> anyhow::Result<&'static World> {
    if let Some(world) = WORLD.get() {
        return Ok(world);
    }
    let launch = Launch::of_environment()?;
    if launch.rank > 0 {
        terminal::be_silent();
    }
    let world = World::start(launch, lost)?;
    Ok(WORLD.get_or_init(|| world))
}

/// The processes of the command in hand: this one alone, unless it called [`start`].
pub fn current() -> &'static World {
    static ALONE: OnceLock<World> = OnceLock::new();
    WORLD.get().unwrap_or_else(|| ALONE.get_or_init(World::alone))
}

/// A rank is gone and this one waits for it in vain.
fn lost(sentence: &str) {
    terminal::say_anyway(format!("error: {sentence}"));
    interrupt::end(1);
}

/// What the first rank makes, for all; an error of it is everybody's.
pub fn from_first(world: &World, make: impl FnOnce() -> anyhow::Result<String>) -> anyhow::Result<String> {
    if !world.is_shared() {
        return make();
    }
    let mut own = None;
    let made = world.from_first(|| {
        make().map_err(|error| {
            let sentence = crate::sentence(&error);
            own = Some(error);
            sentence
        })
    });
    made.map_err(|error| {
        note(&error);
        own.unwrap_or_else(|| error.into())
    })
}

/// What every rank made, where all could.
pub fn all<T>(world: &World, made: anyhow::Result<T>) -> anyhow::Result<T> {
    if !world.is_shared() {
        return made;
    }
    let made = made.map_err(|error| crate::sentence(&error));
    world.all(made).map_err(|error| {
        note(&error);
        error.into()
    })
}

fn note(error: &ranks::Error) {
    if matches!(error, ranks::Error::Everywhere(_)) {
        AGREED.store(true, Ordering::Relaxed);
    }
}

/// Notes whether all ranks know of `error`.
pub fn note_error(error: &anyhow::Error) {
    if matches!(error.downcast_ref(), Some(train::Error::Everywhere(_))) {
        AGREED.store(true, Ordering::Relaxed);
    }
}

/// The last thing that ranks do together: no launcher takes one that ends early for one that failed.
pub fn part() {
    if let Some(world) = WORLD.get() {
        // Whoever is not there any more has said why.
        let _ = world.finish();
    }
}

/// The end of a rank that failed, after the first has said why, or else this one does.
pub fn fail(error: &anyhow::Error) {
    if AGREED.load(Ordering::Relaxed) {
        return part();
    }
    if let Some(world) = WORLD.get().filter(|world| world.is_shared()) {
        if !world.is_first() {
            let sentence = crate::sentence(error);
            // That another rank is gone the first one says, unless it is that one.
            if !sentence.contains(ranks::ENDS_TOO) || sentence.starts_with("rank 0 ") {
                terminal::say_anyway(format!("error: rank {}: {sentence}", world.rank()));
            }
            std::thread::sleep(COURTESY);
        }
        // The others are not asked: they may be waiting for something else.
        interrupt::end(1);
    }
}

/// Threads for this process where several share its machine and nobody has bound them to cores of their own.
pub fn threads() -> Option<usize> {
    let launch = Launch::of_environment().ok().filter(|launch| launch.local_ranks > 1)?;
    let here = std::thread::available_parallelism().map_or(1, usize::from);
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cores = information.lines().filter(|line| line.starts_with("processor")).count();
    (here >= cores).then(|| (here / launch.local_ranks).max(1))
}
