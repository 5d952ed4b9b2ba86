//! The layers that both backbones and the projectors share.

use super::{Attribute, Graph, Value, transposed};
use crate::error::{Error, Result};

/// Added to the variance in batch norms.
const EPSILON: f32 = 1e-5;

impl Graph<'_> {
    /// The convolution `name.weight` of `x`, padded by (before, after) in both directions.
    pub(super) fn convolution(
        &mut self,
        name: &str,
        x: &str,
        stride: usize,
        (before, after): (i64, i64),
    ) -> Result<Value> {
        let weight_name = format!("{name}.weight");
        let (shape, _) = self.tensors.floats(&weight_name)?;
        let &[_, _, height, width] = shape else {
            return Err(Error::Network(format!("{weight_name} is no convolution: {shape:?}")));
        };
        let weight = self.parameter(&weight_name)?;
        let bias_name = format!("{name}.bias");
        let bias = if self.tensors.has(&bias_name) { Some(self.parameter(&bias_name)?) } else { None };
        let inputs: Vec<&str> = [x, &weight].into_iter().chain(bias.as_deref()).collect();
        let attributes = vec![
            Attribute::Ints("kernel_shape", vec![height as i64, width as i64]),
            Attribute::Ints("strides", vec![stride as i64; 2]),
            Attribute::Ints("pads", vec![before, before, after, after]),
        ];
        Ok(self.node("Conv", name, &inputs, attributes))
    }

    /// The batch norm `name` of `x`, by its running statistics.
    pub(super) fn batch_norm(&mut self, name: &str, x: &str) -> Result<Value> {
        let mut parameter = |suffix: &str| self.parameter(&format!("{name}.{suffix}"));
        let inputs =
            [parameter("weight")?, parameter("bias")?, parameter("running_mean")?, parameter("running_var")?];
        let [weight, bias, mean, variance] = &inputs;
        let attributes = vec![Attribute::Float("epsilon", EPSILON)];
        Ok(self.node("BatchNormalization", name, &[x, weight, bias, mean, variance], attributes))
    }

    /// max(x, 0).
    pub(super) fn relu(&mut self, name: &str, x: &str) -> Value {
        self.node("Relu", name, &[x], Vec::new())
    }

    /// The linear layer `name` of rows (n, in); its bias where it has one.
    pub(super) fn linear(&mut self, name: &str, x: &str) -> Result<Value> {
        let weight = self.parameter(&format!("{name}.weight"))?;
        let bias_name = format!("{name}.bias");
        let bias = if self.tensors.has(&bias_name) { Some(self.parameter(&bias_name)?) } else { None };
        let inputs: Vec<&str> = [x, &weight].into_iter().chain(bias.as_deref()).collect();
        Ok(self.node("Gemm", name, &inputs, vec![Attribute::Int("transB", 1)]))
    }

    /// The linear layer `name` of tokens (n, tokens, in).
    pub(super) fn token_linear(&mut self, name: &str, x: &str) -> Result<Value> {
        let (shape, values) = self.tensors.floats(&format!("{name}.weight"))?;
        let &[output, input] = shape else {
            return Err(Error::Network(format!("{name}.weight is no matrix: {shape:?}")));
        };
        let turned = transposed(values, output, input)?;
        let weight = self.floats(&format!("{name}.weight.transposed"), &[input, output], &turned);
        let bias = self.parameter(&format!("{name}.bias"))?;
        let product = self.node("MatMul", &format!("{name}.product"), &[x, &weight], Vec::new());
        Ok(self.node("Add", name, &[&product, &bias], Vec::new()))
    }
}
