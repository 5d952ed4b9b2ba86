//! Which vector instructions this processor has, found once at run time; and [`multiversion!`](crate::multiversion),
//! which compiles a function for each of them.

use std::sync::OnceLock;

/// The vector instructions in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What every processor of the architecture has (SSE2, NEON).
    Portable,
    /// AVX2 and FMA: 8 floats.
    Avx2,
    /// AVX-512: 16 floats.
    Avx512,
}

/// The best level of this processor.
#[inline]
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| available().last().copied().unwrap_or(Level::Portable))
}

/// All levels of this processor, worst first.
pub fn available() -> Vec<Level> {
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
    let mut levels = vec![Level::Portable];
    #[cfg(target_arch = "x86_64")]
    {
        let narrow = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("bmi1");
        if narrow {
            levels.push(Level::Avx2);
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq");
            if wide {
                levels.push(Level::Avx512);
            }
        }
    }
    levels
}

/// Compiles a function once for every [`Level`] and calls the one for this processor. Three forms:
///
/// - `fn name(...)`: plain loops, left to the compiler to vectorise (Rust never reorders sums or fuses products);
/// - `fn name<S>(...)`: `S` is the level's [`Instructions`](crate::Instructions);
/// - `unsafe fn name<S>(level: Level; ...)`: called with the level, which must be one of [`available`].
///
/// What the body calls must be `#[inline(always)]`, without closures and `array::map`: anything else would not be
/// compiled with the level's instructions.
#[macro_export]
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $crate::multiversion! {
            $(#[$meta])* $vis fn $name<AnyInstructions>($($arg: $ty),*) $(-> $ret)? $body
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident<$s:ident>($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            $crate::multiversion! { @versions [] $s ($($arg: $ty),*) [$($ret)?] $body }
            $crate::multiversion! { @call $crate::level(), ($($arg),*) }
        }
    };
    ($(#[$meta:meta])* $vis:vis unsafe fn $name:ident<$s:ident>($level:ident: Level; $($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis unsafe fn $name($level: $crate::Level, $($arg: $ty),*) $(-> $ret)? {
            $crate::multiversion! { @versions [unsafe] $s ($($arg: $ty),*) [$($ret)?] $body }
            $crate::multiversion! { @call $level, ($($arg),*) }
        }
    };
    (@versions [$($unsafe:tt)?] $s:ident ($($arg:ident: $ty:ty),*) [$($ret:ty)?] $body:block) => {
        #[allow(clippy::too_many_arguments)]
        #[inline(always)]
        $($unsafe)? fn body<$s: $crate::Instructions>($($arg: $ty),*) $(-> $ret)? $body
        #[cfg(target_arch = "x86_64")]
        #[allow(clippy::too_many_arguments, unused_unsafe)]
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,popcnt,bmi1")]
        $($unsafe)? fn avx512($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the caller's promise.
            unsafe { body::<$crate::Avx512>($($arg),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[allow(clippy::too_many_arguments, unused_unsafe)]
        #[target_feature(enable = "avx2,fma,popcnt,bmi1")]
        $($unsafe)? fn avx2($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the caller's promise.
            unsafe { body::<$crate::Avx2>($($arg),*) }
        }
    };
    (@call $level:expr, ($($arg:ident),*)) => {
        match $level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has these instructions; the rest is the caller's promise.
            $crate::Level::Avx512 => unsafe { avx512($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            $crate::Level::Avx2 => unsafe { avx2($($arg),*) },
            #[allow(unused_unsafe)]
            // SAFETY: as above.
            _ => unsafe { body::<$crate::Portable>($($arg),*) },
        }
    };
}
