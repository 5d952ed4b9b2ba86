//! The kernel sources, and the macros they are compiled with.

use gpu::KernelSource;

use crate::tensor::DType;

/// Text put before every kernel.
pub const PRELUDE: &str = include_str!("prelude.cuh");
/// Text put before those of attention.
const ATTENTION_PRELUDE: &str = concat!(include_str!("prelude.cuh"), include_str!("../ops/attention.cuh"));

/// What there is of a [`KernelFile`].
#[derive(Clone, Copy, Debug)]
struct Text {
    /// Its name.
    name: &'static str,
    /// What is put before it.
    prelude: &'static str,
    text: &'static str,
    /// Sets of macros to try it with when nothing is known of shapes: those of the published networks and odd ones.
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))]
    variants: &'static [&'static [&'static str]],
}

macro_rules! kernel_files {
    ($($file:ident = $prelude:ident $path:literal $(+ $more:literal)*, $variants:expr;)*) => {
        /// A `.cu` file, or several that make one program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum KernelFile {
            $(#[doc = concat!("The kernels of `", $path, "`.")] $file,)*
        }

        impl KernelFile {
            /// All of them.
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$file,)*];

            fn text(self) -> Text {
                match self {
                    $(Self::$file => Text {
                        name: $path,
                        prelude: $prelude,
                        text: concat!(
                            include_str!(concat!("../ops/", $path))
                            $(, "\n", include_str!(concat!("../ops/", $more)))*
                        ),
                        variants: $variants,
                    },)*
                }
            }
        }
    };
}

macro_rules! named {
    ($(#[$meta:meta])* $type:ident { $($name:ident = $text:expr,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type {
            $(#[doc = concat!("`", $text, "`")] $name,)*
        }

        impl $type {
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$name,)*];

            /// As the kernels' sources write it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
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
    Attention = ATTENTION_PRELUDE "attention.cu", &[
        &["STORAGE=bf16", "SIZE=20"],
        &["STORAGE=float", "SIZE=64"],
        &["STORAGE=float", "SIZE=7"],
    ];
    AttentionTensor = ATTENTION_PRELUDE "attention_tensor.cu" + "attention_tensor_backward.cu", &[
        &["STORAGE=bf16", "SIZE=64", "KEYS=272"],
        &["STORAGE=bf16", "SIZE=32", "KEYS=64"],
    ];
    BatchNorm = PRELUDE "batch_norm.cu" + "batch_norm_backward.cu", VECTORS_OF_ALL_TYPES;
    Columns = PRELUDE "columns.cu", VECTORS;
    Conv2d = PRELUDE "conv2d.cu", ALL_TYPES;
    Elementwise = PRELUDE "elementwise.cu", ALL_TYPES;
    Gelu = PRELUDE "gelu.cu", VECTORS;
    Heads = PRELUDE "heads.cu", &[&["STORAGE=float"]];
    LayerNorm = PRELUDE "layer_norm.cu", &[
        &["STORAGE=bf16", "VECTOR=4", "WIDTH=192", "LANES=16"],
        &["STORAGE=float", "VECTOR=4", "WIDTH=768", "LANES=16"],
        &["STORAGE=bf16", "VECTOR=1", "WIDTH=33", "LANES=32"],
        &["STORAGE=float", "VECTOR=1", "WIDTH=5", "LANES=32"],
    ];
    Loss = PRELUDE "loss.cu", &[&["STORAGE=float"]];
    Muon = PRELUDE "muon.cu", &[&["STORAGE=bf16"], &["STORAGE=float"]];
    Pool = PRELUDE "pool.cu", VECTORS_OF_ALL_TYPES;
    PoseTransform = PRELUDE "pose_transform.cu", &[&["STORAGE=float", "SIDE=3"], &["STORAGE=float", "SIDE=4"]];
    RoutingTensor = PRELUDE "routing_tensor.cu" + "routing_tensor_backward.cu", &[
        &["STORAGE=bf16", "CAPSULES=32", "POSE=9"],
        &["STORAGE=bf16", "CAPSULES=32", "POSE=16"],
        &["STORAGE=bf16", "CAPSULES=16", "POSE=9"],
    ];
    SelfRouting = PRELUDE "self_routing.cu", &[
        &["STORAGE=bf16", "CAPSULES=32", "POSE=9", "VOTES=1"],
        &["STORAGE=bf16", "CAPSULES=32", "POSE=16", "VOTES=1"],
        &["STORAGE=float", "CAPSULES=64", "POSE=16", "VOTES=1"],
        &["STORAGE=float", "CAPSULES=5", "POSE=9", "VOTES=1"],
        &["STORAGE=float", "CAPSULES=55", "POSE=9", "VOTES=0"],
    ];
    Stem = PRELUDE "stem.cu", &[&["STORAGE=f16"]];
    Tokens = PRELUDE "tokens.cu", VECTORS;
}

macro_rules! kernels {
    ($($name:ident,)*) => {
        named! {
            /// A kernel, named as in its file.
            #[allow(non_camel_case_types, reason = "the names of the kernels themselves")]
            Kernel { $($name = stringify!($name),)* }
        }
    };
}

kernels! {
    adam, add, add_bias, add_biases, add_into, add_norm, add_scaled, apply, attention_backward_keys, attention_backward_queries,
    attention_forward, backward_apply_0, backward_apply_1, backward_apply_both, backward_sums_0,
    backward_sums_1, backward_sums_2, backward_sums_both, centre, class_cross_entropy,
    class_cross_entropy_backward, column_moments, column_partials, contract, contrast_rows, copy_columns,
    cross_entropy, cross_entropy_backward, cut_patches, direct_data_gradient,
    direct_forward, direct_weight_gradient, drop_first, embed, entropy_sum, expand, finish_backward,
    finish_columns, finish_rank_sums, finish_ranks, finish_statistics, finish_sum, from_f32, from_running, gather_rows, gelu, gelu_backward, grouped_mse, grouped_mse_backward,
    hinge_backward, hinge_sum, max_pool, max_pool_backward, me_max_backward, mean_pool, mean_pool_backward,
    mse, mse_backward, muon_apply, muon_factor, muon_gram, muon_momentum, muon_start, muon_turn, norm_backward, normalise_pixels, normalise_rows, off_diagonal, pad, pad_backward,
    pose_transform, pose_transform_backward, put_behind, rank_moments, rank_sums, relu, relu_backward, relu_column_sums, round_values,
    routing_arrange, routing_backward_inputs, routing_backward_prepare, routing_backward_weights,
    routing_finish, routing_forward, scale_into, sharpen, sharpen_backward, sigmoid, sigmoid_backward,
    statistics, stem_backward_sums, stem_finish_weight_gradient, stem_forward, stem_pool,
    stem_weight_gradient, subsample, subsample_backward_add, subsample_backward_set, symmetric,
    through_norm, to_f32, weigh,
}

named! {
    /// A macro of a kernel file.
    Macro {
        Capsules = "CAPSULES",
        Keys = "KEYS",
        Lanes = "LANES",
        Pose = "POSE",
        Side = "SIDE",
        Size = "SIZE",
        Vector = "VECTOR",
        Votes = "VOTES",
        Width = "WIDTH",
    }
}

named! {
    /// The element type that a kernel file is compiled for, `STORAGE`.
    ElementType {
        Bf16 = "bf16",
        F16 = "f16",
        F32 = "float",
    }
}

/// Channels that a thread handles together.
pub fn vector(channels: usize) -> usize {
    if channels.is_multiple_of(8) { 8 } else { 1 }
}

/// Most macros of a program besides its element type.
const MOST_MACROS: usize = 4;

/// A kernel file with its macros. Made anew for every launch, so it needs no memory of its own; two that are equal are
/// compiled once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Program {
    file: KernelFile,
    element: ElementType,
    macros: [Option<(Macro, usize)>; MOST_MACROS],
}

impl Program {
    /// `file` for tensors of `dtype`.
    pub fn new(file: KernelFile, dtype: DType) -> Self {
        let element = match dtype {
            DType::Bf16 => ElementType::Bf16,
            DType::F16 => ElementType::F16,
            _ => ElementType::F32,
        };
        Self { file, element, macros: [None; MOST_MACROS] }
    }

    /// With one more macro, of at most four.
    pub fn define(mut self, name: Macro, value: usize) -> Self {
        let free = self.macros.iter_mut().find(|slot| slot.is_none());
        debug_assert!(free.is_some(), "a program has at most {MOST_MACROS} macros");
        if let Some(slot) = free {
            *slot = Some((name, value));
        }
        self
    }

    /// `file` for tensors of `dtype` of `channels` channels, eight of which are handled together where they can be.
    pub(crate) fn with_channels(file: KernelFile, dtype: DType, channels: usize) -> Self {
        Self::new(file, dtype).define(Macro::Vector, vector(channels))
    }

    /// What is compiled.
    pub fn source(&self) -> KernelSource {
        let Text { name, prelude, text, .. } = self.file.text();
        let macros = self.macros.iter().flatten().map(|(name, value)| format!("{}={value}", name.name()));
        let element = std::iter::once(format!("STORAGE={}", self.element.name()));
        KernelSource { name, prelude, text, defines: element.chain(macros).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kernel compiles for the oldest and for the current data-centre architecture. Needs NVRTC, but no GPU.
    #[test]
    fn all_kernels_compile() {
        let Some(compiler) = gpu::Compiler::for_tests() else { return };
        let mut failures = Vec::new();
        for Text { name, prelude, text, variants } in KernelFile::ALL.iter().map(|file| file.text()) {
            for variant in variants {
                let defines = variant.iter().map(|&define| define.to_owned()).collect();
                let source = KernelSource { name, prelude, text, defines };
                for (major, minor) in [(8, 0), (9, 0)] {
                    if let Err(error) = compiler.compile(&source, gpu::Architecture { major, minor }) {
                        failures.push(error.to_string());
                    }
                }
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    #[test]
    fn every_name_stands_in_a_kernel_file() {
        let sources: String =
            KernelFile::ALL.iter().flat_map(|file| [file.text().prelude, file.text().text]).collect();
        let words: std::collections::HashSet<_> =
            sources.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).collect();
        let kernels = Kernel::ALL.iter().map(|kernel| kernel.name());
        let macros = Macro::ALL.iter().map(|name| name.name());
        let names = kernels.chain(macros).chain(ElementType::ALL.iter().map(|element| element.name()));
        assert_eq!(names.filter(|name| !words.contains(name)).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn programs_are_the_same_where_everything_is() {
        let program = |width| Program::with_channels(KernelFile::Gelu, DType::F16, width);
        assert_eq!(program(16), program(24));
        assert_ne!(program(16), program(15));
        assert_ne!(program(16), Program::with_channels(KernelFile::Gelu, DType::Bf16, 16));
        assert_ne!(program(16), Program::with_channels(KernelFile::Pool, DType::F16, 16));
        let other = Program::new(KernelFile::Gelu, DType::F16).define(Macro::Width, 8);
        assert_ne!(program(16), other);
        assert_eq!(program(16).source().defines, ["STORAGE=f16", "VECTOR=8"]);
    }
}
