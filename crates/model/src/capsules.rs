//! The capsule projector: primary capsules from the backbone's map by two convolutions, then one self-routing layer
//! over the whole map.

use engine::ops::{self, Padding};
use engine::{Initialise, Layout, ParameterId, Result, StoreBuilder, Tape, Var};

use crate::layers::{BatchNorm, Conv};

/// Sizes of the projector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapsuleProjectorConfig {
    /// Channels of the backbone's map.
    pub input: usize,
    /// Side of the backbone's map.
    pub map_size: usize,
    /// Capsules per position, and upper capsules (32).
    pub capsules: usize,
    /// Numbers in a pose: 9 (3x3) or 16 (4x4).
    pub pose: usize,
    /// Standard deviation of the routing weights at the start; 0 as published, where all capsules are equally active.
    pub routing_std: f64,
}

/// The projector.
#[derive(Clone, Debug)]
pub struct CapsuleProjector {
    conv_a: Conv,
    bn_a: BatchNorm,
    conv_pose: Conv,
    bn_pose: BatchNorm,
    votes: ParameterId,
    routing: ParameterId,
    routing_bias: ParameterId,
}

impl CapsuleProjectorConfig {
    /// Declares the parameters under `prefix` (for example `"projector."`).
    pub fn init(&self, builder: &mut StoreBuilder, prefix: &str) -> CapsuleProjector {
        let Self { input, map_size, capsules, pose, routing_std } = *self;
        let lower = map_size * map_size * capsules;
        let upper_pose = capsules * pose;
        let mut primary = |suffix: &str, output: usize| {
            let start = Initialise::default_for(input * 9);
            let name = format!("{prefix}conv_{suffix}");
            let conv = Conv::init(builder, &name, [input, output, 3], 1, Padding::all(1), start);
            (conv, BatchNorm::init(builder, &format!("{prefix}bn_{suffix}"), output, 1.0))
        };
        let (conv_a, bn_a) = primary("a", capsules);
        let (conv_pose, bn_pose) = primary("pose", upper_pose);
        let mut routing = |name: &str, shape: &[usize], start| {
            builder.parameter(format!("{prefix}fc.{name}"), shape, Layout::Published, start)
        };
        let routing_start = match routing_std {
            0.0 => Initialise::Constant(0.0),
            std => Initialise::Normal { std },
        };
        CapsuleProjector {
            conv_a,
            bn_a,
            conv_pose,
            bn_pose,
            votes: routing("W1", &[lower, upper_pose, pose], Initialise::kaiming_normal(upper_pose * pose)),
            routing: routing("W2", &[lower, capsules, pose], routing_start),
            routing_bias: routing("b2", &[1, 1, lower, capsules], Initialise::Constant(0.0)),
        }
    }
}

impl CapsuleProjector {
    /// Map (n, side, side, input) -> activations (n, capsules), which sum to 1, and poses (n, capsules pose).
    pub fn forward(&self, tape: &mut Tape<'_>, map: &Var) -> Result<(Var, Var)> {
        let activations = self.conv_a.forward(tape, map)?;
        let activations = self.bn_a.forward(tape, &activations, false)?;
        let activations = ops::sigmoid(tape, &activations)?;
        let poses = self.conv_pose.forward(tape, map)?;
        let poses = self.bn_pose.forward(tape, &poses, false)?;
        let votes = tape.parameter(self.votes);
        let (routing, bias) = (tape.parameter(self.routing), tape.parameter(self.routing_bias));
        ops::self_routing(tape, &activations, &poses, &votes, &routing, &bias)
    }
}
