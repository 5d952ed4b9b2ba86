//! Which vector instructions this processor has, found once at run time; and `multiversion!`, which compiles a plain
//! loop for each of them.

use std::sync::OnceLock;

/// The vector instructions in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What every processor of the architecture has.
    Portable,
    /// AVX2 and FMA: 8 floats.
    Avx2,
    /// AVX-512: 16 floats.
    Avx512,
}

/// The best level of this processor.
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| available().last().copied().unwrap_or(Level::Portable))
}

/// All levels of this processor, worst first.
pub(crate) fn available() -> Vec<Level> {
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
    let mut levels = vec![Level::Portable];
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
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

/// Compiles a function of plain loops once for every level and picks one at run time. The body must not depend on
/// the order in which a compiler may reorder sums (Rust never does).
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[allow(clippy::too_many_arguments)]
            #[inline(always)]
            fn generic($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[allow(clippy::too_many_arguments)]
                #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
                fn avx512($($arg: $ty),*) $(-> $ret)? {
                    generic($($arg),*)
                }
                #[allow(clippy::too_many_arguments)]
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) $(-> $ret)? {
                    generic($($arg),*)
                }
                match $crate::cpu::level() {
                    // SAFETY: the processor has these instructions.
                    $crate::cpu::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::cpu::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::cpu::Level::Portable => {}
                }
            }
            generic($($arg),*)
        }
    };
}
