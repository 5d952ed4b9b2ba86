//! The kernel sources, and the macros they are compiled with.

use gpu::KernelSource;

use crate::tensor::DType;

/// Text put before every kernel.
pub const PRELUDE: &str = include_str!("prelude.cuh");
/// Text put before those of attention.
const ATTENTION_PRELUDE: &str = concat!(include_str!("prelude.cuh"), include_str!("../ops/attention.cuh"));

/// A `.cu` file, or several that make one program.
#[derive(Clone, Copy, Debug)]
pub struct KernelFile {
    /// Its name.
    pub name: &'static str,
    /// What is put before it.
    prelude: &'static str,
    text: &'static str,
    /// Sets of macros to try it with when nothing is known of shapes: those of the published networks and odd ones.
    pub variants: &'static [&'static [&'static str]],
}

impl KernelFile {
    /// A file of another crate, whose kernels are for float32.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, prelude: PRELUDE, text, variants: &[&["STORAGE=float"]] }
    }
}

macro_rules! kernel_files {
    ($($constant:ident = $prelude:ident $path:literal $(+ $more:literal)*, $variants:expr;)*) => {
        $(
            #[doc = concat!("The kernels of `", $path, "`.")]
            pub const $constant: KernelFile =
                KernelFile {
                    name: $path,
                    prelude: $prelude,
                    text: concat!(
                        include_str!(concat!("../ops/", $path))
                        $(, "\n", include_str!(concat!("../ops/", $more)))*
                    ),
                    variants: $variants,
                };
        )*
        /// All kernel files.
        pub const ALL: &[KernelFile] = &[$($constant,)*];
    };
}

const ALL_TYPES: &[&[&str]] = &[&["STORAGE=bf16"], &["STORAGE=f16"], &["STORAGE=float"]];

const VECTORS: &[&[&str]] = &[
    &["STORAGE=bf16", "VECTOR=8"],
    &["STORAGE=bf16", "VECTOR=1"],
    &["STORAGE=float", "VECTOR=8"],
    &["STORAGE=float", "VECTOR=1"],
];

const VECTORS_OF_ALL_TYPES: &[&[&str]] = &[
    &["STORAGE=bf16", "VECTOR=8"],
    &["STORAGE=bf16", "VECTOR=1"],
    &["STORAGE=f16", "VECTOR=8"],
    &["STORAGE=f16", "VECTOR=1"],
    &["STORAGE=float", "VECTOR=8"],
    &["STORAGE=float", "VECTOR=1"],
];

kernel_files! {
    ATTENTION = ATTENTION_PRELUDE "attention.cu", &[
        &["STORAGE=bf16", "SIZE=20"],
        &["STORAGE=float", "SIZE=64"],
        &["STORAGE=float", "SIZE=7"],
    ];
    ATTENTION_TENSOR = ATTENTION_PRELUDE "attention_tensor.cu" + "attention_tensor_backward.cu", &[
        &["STORAGE=bf16", "SIZE=64", "KEYS=272"],
        &["STORAGE=bf16", "SIZE=32", "KEYS=64"],
    ];
    BATCH_NORM = PRELUDE "batch_norm.cu" + "batch_norm_backward.cu", VECTORS_OF_ALL_TYPES;
    COLUMNS = PRELUDE "columns.cu", VECTORS;
    CONV2D = PRELUDE "conv2d.cu", ALL_TYPES;
    ELEMENTWISE = PRELUDE "elementwise.cu", ALL_TYPES;
    GELU = PRELUDE "gelu.cu", VECTORS;
    HEADS = PRELUDE "heads.cu", &[&["STORAGE=float"]];
    LAYER_NORM = PRELUDE "layer_norm.cu", &[
        &["STORAGE=bf16", "VECTOR=4", "WIDTH=192", "LANES=16"],
        &["STORAGE=float", "VECTOR=4", "WIDTH=768", "LANES=16"],
        &["STORAGE=bf16", "VECTOR=1", "WIDTH=33", "LANES=32"],
        &["STORAGE=float", "VECTOR=1", "WIDTH=5", "LANES=32"],
    ];
    LOSS = PRELUDE "loss.cu", &[&["STORAGE=float"]];
    POOL = PRELUDE "pool.cu", VECTORS_OF_ALL_TYPES;
    POSE_TRANSFORM = PRELUDE "pose_transform.cu", &[&["STORAGE=float", "SIDE=3"], &["STORAGE=float", "SIDE=4"]];
    ROUTING_TENSOR = PRELUDE "routing_tensor.cu" + "routing_tensor_backward.cu", &[
        &["STORAGE=bf16", "CAPSULES=32", "POSE=9"],
        &["STORAGE=bf16", "CAPSULES=32", "POSE=16"],
        &["STORAGE=bf16", "CAPSULES=16", "POSE=9"],
    ];
    SELF_ROUTING = PRELUDE "self_routing.cu", &[
        &["STORAGE=bf16", "CAPSULES=32", "POSE=9", "VOTES=1"],
        &["STORAGE=bf16", "CAPSULES=32", "POSE=16", "VOTES=1"],
        &["STORAGE=float", "CAPSULES=64", "POSE=16", "VOTES=1"],
        &["STORAGE=float", "CAPSULES=5", "POSE=9", "VOTES=1"],
        &["STORAGE=float", "CAPSULES=55", "POSE=9", "VOTES=0"],
    ];
    STEM = PRELUDE "stem.cu", &[&["STORAGE=f16"]];
    TOKENS = PRELUDE "tokens.cu", VECTORS;
}

/// Channels that a thread handles together.
pub fn vector(channels: usize) -> usize {
    if channels.is_multiple_of(8) { 8 } else { 1 }
}

/// Most macros of a program besides its storage type.
const MOST_DEFINES: usize = 4;

/// A kernel file with its macros. Made anew for every launch, so it needs no memory of its own.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    file: KernelFile,
    storage: &'static str,
    defines: [(&'static str, usize); MOST_DEFINES],
    count: usize,
}

impl Program {
    /// `file` for tensors of `dtype`.
    pub fn new(file: KernelFile, dtype: DType) -> Self {
        let storage = match dtype {
            DType::Bf16 => "bf16",
            DType::F16 => "f16",
            _ => "float",
        };
        Self { file, storage, defines: [("", 0); MOST_DEFINES], count: 0 }
    }

    /// With one more macro, of at most four.
    pub fn define(mut self, name: &'static str, value: usize) -> Self {
        debug_assert!(self.count < MOST_DEFINES, "a program has at most {MOST_DEFINES} macros");
        if let Some(slot) = self.defines.get_mut(self.count) {
            *slot = (name, value);
            self.count += 1;
        }
        self
    }

    /// `file` for tensors of `dtype` of `channels` channels, eight of which are handled together where they can be.
    pub fn with_channels(file: KernelFile, dtype: DType, channels: usize) -> Self {
        Self::new(file, dtype).define("VECTOR", vector(channels))
    }

    /// What is compiled.
    pub fn source(&self) -> KernelSource {
        let defines = self.defines[..self.count].iter().map(|(name, value)| format!("{name}={value}"));
        KernelSource {
            name: self.file.name,
            prelude: self.file.prelude,
            text: self.file.text,
            defines: std::iter::once(format!("STORAGE={}", self.storage)).chain(defines).collect(),
        }
    }

    /// What tells this program's kernel `name` from all others, without looking at texts: where constant strings lie,
    /// how long they are, and the macros' values. Which macros there are follows from the file.
    pub(super) fn key(&self, name: &'static str) -> KernelKey {
        let place = |text: &'static str| (text.as_ptr() as usize, text.len());
        (place(self.file.name), place(name), self.storage.len(), self.defines.map(|(_, value)| value))
    }
}

/// See [`Program::key`].
pub(super) type KernelKey = ((usize, usize), (usize, usize), usize, [usize; MOST_DEFINES]);

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kernel compiles for the oldest and for the current data-centre architecture. Needs NVRTC, but no GPU; CI
    /// sets EQUICAPS_REQUIRE_NVRTC.
    #[test]
    fn all_kernels_compile() {
        let compiler = match gpu::Compiler::get() {
            Ok(compiler) => compiler,
            Err(error) if std::env::var_os("EQUICAPS_REQUIRE_NVRTC").is_none() => {
                eprintln!("skipped: no kernel was compiled, as {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let mut failures = Vec::new();
        for file in ALL {
            for variant in file.variants {
                let defines = variant.iter().map(|&define| define.to_owned()).collect();
                let source =
                    KernelSource { name: file.name, prelude: file.prelude, text: file.text, defines };
                for (major, minor) in [(8, 0), (9, 0)] {
                    if let Err(error) = compiler.compile(&source, gpu::Architecture { major, minor }) {
                        failures.push(error.to_string());
                    }
                }
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}
