//! A network as an ONNX graph: nodes and constants by name. This file owns the graph; the layers are beside it.

mod layers;
mod projector;
mod resnet;
mod vit;

use methods::{MEAN, STD};
use model::BackboneConfig;

use crate::error::{Error, Result};
use crate::network::{Exported, Tensors};
use crate::onnx::{
    AttributeProto, DimensionProto, FLOAT, GraphProto, INT64, IR_VERSION, ModelProto, NodeProto, OPSET,
    OperatorSetIdProto, ShapeProto, StringStringEntryProto, TensorProto, TensorTypeProto, TypeProto,
    ValueInfoProto,
};

/// Name of the input.
pub(crate) const INPUT: &str = "images";
/// Name of the free dimension.
const BATCH: &str = "batch";

/// An attribute of a node.
pub(crate) enum Attribute {
    Float(&'static str, f32),
    Int(&'static str, i64),
    Ints(&'static str, Vec<i64>),
}

/// A value in the graph, by name.
pub(crate) type Value = String;

/// A graph under construction, and the weights it is made of.
pub(crate) struct Graph<'a> {
    tensors: &'a Tensors,
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
}

impl<'a> Graph<'a> {
    fn new(tensors: &'a Tensors) -> Self {
        Self { tensors, nodes: Vec::new(), constants: Vec::new() }
    }

    /// Adds a node called `name`, whose output has the same name.
    fn node(&mut self, operator: &str, name: &str, inputs: &[&str], attributes: Vec<Attribute>) -> Value {
        self.add(operator, name, inputs, vec![name.to_owned()], attributes);
        name.to_owned()
    }

    fn add(
        &mut self,
        operator: &str,
        name: &str,
        inputs: &[&str],
        output: Vec<String>,
        attributes: Vec<Attribute>,
    ) {
        let attribute = attributes.into_iter().map(|attribute| match attribute {
            Attribute::Float(name, value) => {
                AttributeProto { name: name.to_owned(), f: Some(value), r#type: 1, ..Default::default() }
            }
            Attribute::Int(name, value) => {
                AttributeProto { name: name.to_owned(), i: Some(value), r#type: 2, ..Default::default() }
            }
            Attribute::Ints(name, ints) => {
                AttributeProto { name: name.to_owned(), ints, r#type: 7, ..Default::default() }
            }
        });
        self.nodes.push(NodeProto {
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            output,
            name: name.to_owned(),
            op_type: operator.to_owned(),
            attribute: attribute.collect(),
        });
    }

    /// A constant of floats.
    fn floats(&mut self, name: &str, dims: &[usize], values: &[f32]) -> Value {
        self.constant(name, dims, FLOAT, bytemuck::cast_slice(values).to_vec())
    }

    /// A constant of whole numbers.
    fn integers(&mut self, name: &str, values: &[i64]) -> Value {
        self.constant(name, &[values.len()], INT64, bytemuck::cast_slice(values).to_vec())
    }

    fn constant(&mut self, name: &str, dims: &[usize], data_type: i32, raw_data: Vec<u8>) -> Value {
        // Numbers that several nodes share (axes, factors) are there once.
        if !self.constants.iter().any(|known| known.name == name) {
            let dims = dims.iter().map(|&side| side as i64).collect();
            self.constants.push(TensorProto { dims, data_type, name: name.to_owned(), raw_data });
        }
        name.to_owned()
    }

    /// The parameter `name` as it is stored, as a constant of the same name.
    fn parameter(&mut self, name: &str) -> Result<Value> {
        let (shape, values) = self.tensors.floats(name)?;
        Ok(self.floats(name, shape, values))
    }

    /// `x` in another shape; 0 keeps a dimension, -1 is what is left.
    fn reshape(&mut self, name: &str, x: &str, shape: &[i64]) -> Value {
        let shape = self.integers(&format!("{name}.shape"), shape);
        self.node("Reshape", name, &[x, &shape], Vec::new())
    }

    /// `x` with its dimensions in another order.
    fn transpose(&mut self, name: &str, x: &str, order: &[i64]) -> Value {
        self.node("Transpose", name, &[x], vec![Attribute::Ints("perm", order.to_vec())])
    }

    /// The places from `first` to before `last` of dimension `axis`.
    fn slice(&mut self, name: &str, x: &str, axis: i64, [first, last]: [i64; 2]) -> Value {
        let first = self.integers(&format!("{name}.first"), &[first]);
        let last = self.integers(&format!("{name}.last"), &[last]);
        let axis = self.integers(&format!("{name}.axis"), &[axis]);
        self.node("Slice", name, &[x, &first, &last, &axis], Vec::new())
    }
}

/// The network as an ONNX file: images (batch, 3, side, side) in 0 ..= 1 to its outputs.
pub(crate) fn model(exported: &Exported, tensors: &Tensors) -> Result<ModelProto> {
    let mut graph = Graph::new(tensors);
    let mean = graph.floats("mean", &[1, 3, 1, 1], &MEAN);
    let std = graph.floats("std", &[1, 3, 1, 1], &STD);
    let x = graph.node("Sub", "centred", &[INPUT, &mean], Vec::new());
    let x = graph.node("Div", "normalised", &[&x, &std], Vec::new());
    let map = match &exported.backbone {
        BackboneConfig::ResNet18(_) => resnet::map(&mut graph, &x)?,
        BackboneConfig::VitTiny(config) => vit::map(&mut graph, &x, config, exported.image_size)?,
    };
    let pooled = graph.node("GlobalAveragePool", "pooled", &[&map], Vec::new());
    let name = &exported.outputs()[0].name;
    let h = graph.node("Flatten", name, &[&pooled], vec![Attribute::Int("axis", 1)]);
    for layers in &exported.projectors {
        projector::add(
            &mut graph,
            layers,
            &map,
            (&h, exported.backbone.output_width()),
            exported.map_size(),
        )?;
    }
    let side = exported.image_size;
    let graph = GraphProto {
        node: graph.nodes,
        name: exported.method.name().to_owned(),
        initializer: graph.constants,
        input: vec![value(INPUT, &[3, side, side], "RGB, 0 to 1; normalisation is part of the network")],
        output: exported
            .outputs()
            .iter()
            .map(|output| value(&output.name, &output.shape, output.meaning))
            .collect(),
    };
    let facts = exported.facts();
    let model = ModelProto {
        ir_version: IR_VERSION,
        producer_name: "equicaps".to_owned(),
        producer_version: env!("CARGO_PKG_VERSION").to_owned(),
        doc_string: exported.title(),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
        metadata_props: facts
            .into_iter()
            .map(|(key, value)| StringStringEntryProto { key: key.to_owned(), value })
            .collect(),
    };
    Ok(model)
}

/// An input or output whose first dimension is free.
fn value(name: &str, shape: &[usize], meaning: &str) -> ValueInfoProto {
    let free = DimensionProto { dim_param: Some(BATCH.to_owned()), dim_value: None };
    let fixed = |&side: &usize| DimensionProto { dim_value: Some(side as i64), dim_param: None };
    let dim = std::iter::once(free).chain(shape.iter().map(fixed)).collect();
    let tensor = TensorTypeProto { elem_type: FLOAT, shape: Some(ShapeProto { dim }) };
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto { tensor_type: Some(tensor) }),
        doc_string: meaning.to_owned(),
    }
}

/// `values` of shape (rows, columns), `count` times one after the other, each transposed.
fn transposed(values: &[f32], rows: usize, columns: usize) -> Result<Vec<f32>> {
    if rows * columns == 0 || !values.len().is_multiple_of(rows * columns) {
        return Err(Error::Network(format!("{} numbers are no {rows}x{columns} matrices", values.len())));
    }
    let mut result = Vec::with_capacity(values.len());
    for matrix in values.chunks_exact(rows * columns) {
        result
            .extend((0..columns).flat_map(|column| (0..rows).map(move |row| matrix[row * columns + column])));
    }
    Ok(result)
}
