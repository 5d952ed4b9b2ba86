//! What a convolution is, and how it was decided to compute it.

use std::fmt;

use crate::Precision;

/// A convolution: `x` is (batch, height, width, channels_in), `w` (channels_out, kernel, kernel, channels_in).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct ConvolutionShape {
    /// Images.
    pub batch: usize,
    /// Rows of the input.
    pub height: usize,
    /// Columns of the input.
    pub width: usize,
    /// Channels of the input.
    pub channels_in: usize,
    /// Channels of the output.
    pub channels_out: usize,
    /// Rows and columns of the kernel.
    pub kernel: [usize; 2],
    /// Zero rows above and below, zero columns left and right.
    pub padding: [usize; 2],
    /// Steps in rows and columns.
    pub stride: [usize; 2],
    /// Storage of all three operands.
    pub precision: Precision,
}

impl ConvolutionShape {
    /// Rows and columns of the output.
    pub fn output_size(&self) -> [usize; 2] {
        let size = |length: usize, axis: usize| {
            (length + 2 * self.padding[axis]).saturating_sub(self.kernel[axis]) / self.stride[axis].max(1) + 1
        };
        [size(self.height, 0), size(self.width, 1)]
    }

    /// Multiplications and additions of one pass.
    pub fn operations(&self) -> f64 {
        let [height, width] = self.output_size();
        let taps = self.kernel[0] * self.kernel[1] * self.channels_in;
        2.0 * (self.batch * height * width * self.channels_out) as f64 * taps as f64
    }
}

impl fmt::Display for ConvolutionShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}x{} {}->{} /{} at {}x{}, batch {}",
            self.kernel[0],
            self.kernel[1],
            self.channels_in,
            self.channels_out,
            self.stride[0],
            self.height,
            self.width,
            self.batch
        )
    }
}

/// The three computations of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// `y` from `x` and `w`.
    Forward,
    /// The gradient of `x` from that of `y`, and `w`.
    DataGradient,
    /// The gradient of `w` from that of `y`, and `x`.
    WeightGradient,
}

impl Pass {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Forward => "convolution",
            Self::DataGradient => "data gradient of the convolution",
            Self::WeightGradient => "weight gradient of the convolution",
        }
    }
}

/// How one pass of one shape is computed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Choice {
    /// The convolution.
    pub shape: ConvolutionShape,
    /// Which of its computations.
    pub pass: Pass,
    /// cuDNN's number of the algorithm.
    pub algorithm: i32,
    /// cuDNN's number of the kind of arithmetic.
    pub math: i32,
    /// Scratch memory it needs.
    pub workspace_bytes: usize,
    /// Milliseconds it took when it was chosen.
    pub milliseconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> ConvolutionShape {
        ConvolutionShape {
            batch: 2,
            height: 65,
            width: 65,
            channels_in: 128,
            channels_out: 128,
            kernel: [3, 3],
            padding: [0, 0],
            stride: [2, 2],
            precision: Precision::Bf16,
        }
    }

    #[test]
    fn output_size_is_that_of_an_unpadded_strided_convolution() {
        assert_eq!(shape().output_size(), [32, 32]);
        assert_eq!(ConvolutionShape { padding: [1, 1], stride: [1, 1], ..shape() }.output_size(), [65, 65]);
    }

    #[test]
    fn choices_survive_a_round_trip_through_json() {
        let choice = Choice {
            shape: shape(),
            pass: Pass::WeightGradient,
            algorithm: 1,
            math: 1,
            workspace_bytes: 1 << 20,
            milliseconds: 0.46,
        };
        let text = serde_json::to_string(&choice).unwrap();
        assert_eq!(serde_json::from_str::<Choice>(&text).unwrap(), choice);
    }
}
