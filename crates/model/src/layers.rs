//! The layers everything is built from: parameters with their names and initialisers around one operation each.

use engine::ops::{self, Padding, RunningStatistics, Shortcut};
use engine::{Initialise, Layout, ParameterId, Result, StoreBuilder, Tape, Var};

/// A convolution without bias.
#[derive(Clone, Debug)]
pub struct Conv {
    weight: ParameterId,
    stride: usize,
    padding: Padding,
}

impl Conv {
    /// Declares `{name}.weight` of shape (out, in, kernel, kernel).
    pub fn init(
        builder: &mut StoreBuilder,
        name: &str,
        [input, output, kernel]: [usize; 3],
        stride: usize,
        padding: Padding,
        initialise: Initialise,
    ) -> Self {
        let shape = [output, input, kernel, kernel];
        let weight = builder.parameter(format!("{name}.weight"), shape, Layout::Convolution, initialise);
        Self { weight, stride, padding }
    }

    /// (n, h, w, in) -> (n, oh, ow, out).
    pub fn forward(&self, tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
        let weight = tape.parameter(self.weight);
        ops::conv2d(tape, x, &weight, self.stride, self.padding)
    }

    /// The first layer of a residual network: this convolution of images, `norm`, ReLU and the max-pool.
    pub fn forward_stem(&self, tape: &mut Tape<'_>, images: &ops::Images, norm: &BatchNorm) -> Result<Var> {
        let weight = tape.parameter(self.weight);
        let (gamma, beta) = (tape.parameter(norm.weight), tape.parameter(norm.bias));
        ops::stem(tape, images, &weight, &gamma, &beta, norm.running)
    }
}

/// A batch norm over the last dimension.
#[derive(Clone, Debug)]
pub struct BatchNorm {
    weight: ParameterId,
    bias: ParameterId,
    running: RunningStatistics,
}

impl BatchNorm {
    /// Declares `{name}.weight` (all `weight`), `{name}.bias` and the running statistics.
    pub fn init(builder: &mut StoreBuilder, name: &str, channels: usize, weight: f32) -> Self {
        let mut parameter = |suffix: &str, start| {
            let initialise = Initialise::Constant(start);
            builder.parameter(format!("{name}.{suffix}"), [channels], Layout::Published, initialise)
        };
        let (weight, bias) = (parameter("weight", weight), parameter("bias", 0.0));
        let running = RunningStatistics {
            mean: builder.buffer(format!("{name}.running_mean"), [channels], 0.0),
            variance: builder.buffer(format!("{name}.running_var"), [channels], 1.0),
            batches: builder.count(format!("{name}.num_batches_tracked")),
        };
        Self { weight, bias, running }
    }

    /// Normalises `x`, applies ReLU, and convolves with `conv`.
    pub fn forward_relu_conv(&self, tape: &mut Tape<'_>, x: &Var, conv: &Conv) -> Result<Var> {
        let (gamma, beta) = (tape.parameter(self.weight), tape.parameter(self.bias));
        let weight = tape.parameter(conv.weight);
        ops::norm_relu_conv(tape, x, ([&gamma, &beta], self.running), &weight, conv.stride, conv.padding)
    }

    /// Normalises `x`, applies ReLU where `relu` is set.
    pub fn forward(&self, tape: &mut Tape<'_>, x: &Var, relu: bool) -> Result<Var> {
        let (gamma, beta) = (tape.parameter(self.weight), tape.parameter(self.bias));
        ops::batch_norm(tape, x, [&gamma, &beta], self.running, relu)
    }

    /// The end of a residual block: normalises `x`, adds what went around, applies ReLU. The latter is normalised by
    /// `norm` where there is one.
    pub fn forward_add_relu(
        &self,
        tape: &mut Tape<'_>,
        x: &Var,
        (around, norm): (&Var, Option<&BatchNorm>),
    ) -> Result<Var> {
        let (gamma, beta) = (tape.parameter(self.weight), tape.parameter(self.bias));
        let own = ([&gamma, &beta], self.running);
        let Some(norm) = norm else {
            return ops::norm_add_relu(tape, x, own, Shortcut::Identity(around));
        };
        let (gamma, beta) = (tape.parameter(norm.weight), tape.parameter(norm.bias));
        let shortcut = Shortcut::Normalised(around, ([&gamma, &beta], norm.running));
        ops::norm_add_relu(tape, x, own, shortcut)
    }
}

/// A linear layer.
#[derive(Clone, Debug)]
pub struct Linear {
    weight: ParameterId,
    bias: Option<ParameterId>,
}

impl Linear {
    /// Declares `{name}.weight` (out, in) and, where asked for, `{name}.bias`, with the default initialisers.
    pub fn init(builder: &mut StoreBuilder, name: &str, input: usize, output: usize, bias: bool) -> Self {
        let start = Initialise::default_for(input);
        Self::init_with(builder, name, input, output, start, bias.then_some(start))
    }

    /// As [`Self::init`] with initialisers of one's own; without one for the bias there is none.
    pub fn init_with(
        builder: &mut StoreBuilder,
        name: &str,
        input: usize,
        output: usize,
        weight: Initialise,
        bias: Option<Initialise>,
    ) -> Self {
        let weight = builder.parameter(format!("{name}.weight"), [output, input], Layout::Published, weight);
        let mut declare = |bias| builder.parameter(format!("{name}.bias"), [output], Layout::Published, bias);
        Self { weight, bias: bias.map(&mut declare) }
    }

    /// (rows, in) -> (rows, out).
    pub fn forward(&self, tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
        let weight = tape.parameter(self.weight);
        let bias = self.bias.map(|bias| tape.parameter(bias));
        ops::linear(tape, x, &weight, bias.as_ref())
    }
}
