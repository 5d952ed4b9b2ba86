//! The kernel sources, and the macros they are compiled with.

use gpu::KernelSource;

use crate::tensor::DType;

/// Text put before every kernel.
const PRELUDE: &str = include_str!("prelude.cuh");

/// A `.cu` file.
#[derive(Clone, Copy, Debug)]
pub struct KernelFile {
    /// Its name.
    pub name: &'static str,
    text: &'static str,
    /// Sets of macros to try it with when nothing is known of shapes: those of the published networks and odd ones.
    pub variants: &'static [&'static [&'static str]],
}

macro_rules! kernel_files {
    ($($constant:ident = $path:literal, $variants:expr;)*) => {
        $(
            #[doc = concat!("The kernels of `", $path, "`.")]
            pub const $constant: KernelFile =
                KernelFile { name: $path, text: include_str!(concat!("../ops/", $path)), variants: $variants };
        )*
        /// All kernel files.
        pub const ALL: &[KernelFile] = &[$($constant,)*];
    };
}

const BOTH: &[&[&str]] = &[&["STORAGE=bf16"], &["STORAGE=float"]];

const VECTORS: &[&[&str]] = &[
    &["STORAGE=bf16", "VECTOR=8"],
    &["STORAGE=bf16", "VECTOR=1"],
    &["STORAGE=float", "VECTOR=8"],
    &["STORAGE=float", "VECTOR=1"],
];

kernel_files! {
    ATTENTION = "attention.cu", &[
        &["STORAGE=bf16", "SIZE=64", "KEYS=272", "TENSOR_CORES=1"],
        &["STORAGE=bf16", "SIZE=32", "KEYS=64", "TENSOR_CORES=1"],
        &["STORAGE=bf16", "SIZE=20"],
        &["STORAGE=float", "SIZE=64"],
        &["STORAGE=float", "SIZE=7"],
    ];
    BATCH_NORM = "batch_norm.cu", VECTORS;
    COLUMNS = "columns.cu", VECTORS;
    CONV2D = "conv2d.cu", BOTH;
    ELEMENTWISE = "elementwise.cu", BOTH;
    GELU = "gelu.cu", VECTORS;
    LAYER_NORM = "layer_norm.cu", &[
        &["STORAGE=bf16", "VECTOR=4", "WIDTH=192", "LANES=16"],
        &["STORAGE=float", "VECTOR=4", "WIDTH=768", "LANES=16"],
        &["STORAGE=bf16", "VECTOR=1", "WIDTH=33", "LANES=32"],
        &["STORAGE=float", "VECTOR=1", "WIDTH=5", "LANES=32"],
    ];
    LOSS = "loss.cu", &[&["STORAGE=float"]];
    POOL = "pool.cu", VECTORS;
    POSE_TRANSFORM = "pose_transform.cu", &[&["STORAGE=float", "SIDE=3"], &["STORAGE=float", "SIDE=4"]];
    SELF_ROUTING = "self_routing.cu", &[
        &["STORAGE=bf16", "CAPSULES=32", "POSE=9", "VOTES=1"],
        &["STORAGE=bf16", "CAPSULES=32", "POSE=16", "VOTES=1"],
        &["STORAGE=float", "CAPSULES=64", "POSE=16", "VOTES=1"],
        &["STORAGE=float", "CAPSULES=5", "POSE=9", "VOTES=1"],
        &["STORAGE=float", "CAPSULES=55", "POSE=9", "VOTES=0"],
    ];
    STEM = "stem.cu", &[&["STORAGE=bf16"]];
    TOKENS = "tokens.cu", VECTORS;
}

/// Channels that a thread handles together.
pub fn vector(channels: usize) -> usize {
    if channels.is_multiple_of(8) { 8 } else { 1 }
}

/// A kernel file with its macros.
#[derive(Clone, Debug)]
pub struct Program {
    file: KernelFile,
    defines: Vec<String>,
}

impl Program {
    /// `file` for tensors of `dtype`.
    pub fn new(file: KernelFile, dtype: DType) -> Self {
        let storage = if dtype == DType::Bf16 { "bf16" } else { "float" };
        Self { file, defines: vec![format!("STORAGE={storage}")] }
    }

    /// With one more macro.
    pub fn define(mut self, name: &str, value: usize) -> Self {
        self.defines.push(format!("{name}={value}"));
        self
    }

    /// `file` for tensors of `dtype` of `channels` channels, eight of which are handled together where they can be.
    pub fn with_channels(file: KernelFile, dtype: DType, channels: usize) -> Self {
        Self::new(file, dtype).define("VECTOR", vector(channels))
    }

    /// What is compiled.
    pub fn source(&self) -> KernelSource {
        KernelSource {
            name: self.file.name,
            prelude: PRELUDE,
            text: self.file.text,
            defines: self.defines.clone(),
        }
    }
}

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
                let source = KernelSource { name: file.name, prelude: PRELUDE, text: file.text, defines };
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
