//! Executes an ONNX graph with plain loops: exactly the operators that we write, as the standard defines them, and nothing
//! of the engine. It checks the files that an export wrote; a general runtime (`tract-onnx`) would bring 116 crates for
//! that.

mod arrays;
mod layers;
mod products;
mod shapes;

use std::collections::{BTreeMap, HashMap};

use crate::onnx::{AttributeProto, FLOAT, GraphProto, INT64, NodeProto, TensorProto};

pub(crate) use arrays::Array;

/// Problems are sentences.
type Outcome<T> = Result<T, String>;

/// A value: floats, or whole numbers that say shapes and axes.
enum Held {
    Floats(Array),
    Integers(Vec<i64>),
}

/// The inputs and attributes of the node at hand.
struct Call<'a> {
    node: &'a NodeProto,
    held: &'a HashMap<String, Held>,
}

impl<'a> Call<'a> {
    fn has(&self, index: usize) -> bool {
        self.node.input.get(index).is_some_and(|name| !name.is_empty())
    }

    fn held(&self, index: usize) -> Outcome<&'a Held> {
        let name = self.node.input.get(index).ok_or_else(|| format!("it has no input {index}"))?;
        self.held.get(name).ok_or_else(|| format!("its input {name} is not known yet"))
    }

    fn floats(&self, index: usize) -> Outcome<&'a Array> {
        match self.held(index)? {
            Held::Floats(array) => Ok(array),
            Held::Integers(_) => Err(format!("its input {index} holds whole numbers")),
        }
    }

    fn integers(&self, index: usize) -> Outcome<&'a [i64]> {
        match self.held(index)? {
            Held::Integers(values) => Ok(values),
            Held::Floats(_) => Err(format!("its input {index} holds floats")),
        }
    }

    fn attribute(&self, name: &str) -> Option<&'a AttributeProto> {
        self.node.attribute.iter().find(|attribute| attribute.name == name)
    }

    fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).and_then(|attribute| attribute.i).unwrap_or(default)
    }

    fn float(&self, name: &str, default: f32) -> f32 {
        self.attribute(name).and_then(|attribute| attribute.f).unwrap_or(default)
    }

    fn ints(&self, name: &str) -> Outcome<&'a [i64]> {
        let found = self.attribute(name).map(|attribute| attribute.ints.as_slice());
        found.ok_or_else(|| format!("it has no attribute {name}"))
    }

    fn run(&self) -> Outcome<Vec<Array>> {
        let one = |array: Outcome<Array>| array.map(|array| vec![array]);
        match self.node.op_type.as_str() {
            "Add" => one(self.elementwise(|a, b| a + b)),
            "Sub" => one(self.elementwise(|a, b| a - b)),
            "Mul" => one(self.elementwise(|a, b| a * b)),
            "Div" => one(self.elementwise(|a, b| a / b)),
            "Relu" => one(self.map(|x| x.max(0.0))),
            "Sigmoid" => one(self.map(|x| (1.0 / (1.0 + (-f64::from(x)).exp())) as f32)),
            "Erf" => one(self.map(|x| layers::erf(f64::from(x)) as f32)),
            "Conv" => one(self.convolution()),
            "MaxPool" => one(self.max_pool()),
            "GlobalAveragePool" => one(self.average_pool()),
            "BatchNormalization" => one(self.batch_norm()),
            "LayerNormalization" => one(self.layer_norm()),
            "Softmax" => one(self.softmax()),
            "MatMul" => one(self.product()),
            "Gemm" => one(self.gemm()),
            "ReduceSum" => one(self.sum()),
            "Reshape" => one(self.reshape()),
            "Flatten" => one(self.flatten()),
            "Transpose" => one(self.transpose()),
            "Slice" => one(self.slice()),
            "Pad" => one(self.pad()),
            "Split" => self.split(),
            other => Err(format!("the operator {other} is not known")),
        }
    }
}

/// The outputs of `graph` by name, for an input called `input`.
pub(crate) fn run(graph: &GraphProto, input: &str, value: Array) -> Outcome<BTreeMap<String, Array>> {
    let mut held: HashMap<String, Held> = HashMap::new();
    for constant in &graph.initializer {
        held.insert(constant.name.clone(), of_constant(constant)?);
    }
    let declared = graph.input.iter().any(|declared| declared.name == input);
    if !declared {
        return Err(format!("the graph has no input {input}"));
    }
    held.insert(input.to_owned(), Held::Floats(value));
    // What nobody needs any more makes room.
    let mut last_use: HashMap<&str, usize> = HashMap::new();
    for (index, node) in graph.node.iter().enumerate() {
        last_use.extend(node.input.iter().map(|name| (name.as_str(), index)));
    }
    last_use.extend(graph.output.iter().map(|output| (output.name.as_str(), usize::MAX)));
    for (index, node) in graph.node.iter().enumerate() {
        let results = Call { node, held: &held }
            .run()
            .map_err(|problem| format!("node {} ({}): {problem}", node.name, node.op_type))?;
        if results.len() != node.output.len() {
            return Err(format!("node {} has {} outputs", node.name, results.len()));
        }
        for (name, result) in node.output.iter().zip(results) {
            held.insert(name.clone(), Held::Floats(result));
        }
        for name in &node.input {
            if last_use.get(name.as_str()) == Some(&index) {
                held.remove(name);
            }
        }
    }
    let mut outputs = BTreeMap::new();
    for output in &graph.output {
        match held.remove(&output.name) {
            Some(Held::Floats(array)) => outputs.insert(output.name.clone(), array),
            _ => return Err(format!("no node makes the output {}", output.name)),
        };
    }
    Ok(outputs)
}

fn of_constant(tensor: &TensorProto) -> Outcome<Held> {
    let wrong = || format!("the constant {} is not what its shape says", tensor.name);
    let shape: Option<Vec<usize>> = tensor.dims.iter().map(|&side| usize::try_from(side).ok()).collect();
    match tensor.data_type {
        FLOAT => {
            let (words, rest) = tensor.raw_data.as_chunks::<4>();
            let values: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
            let array = Array::new(shape.ok_or_else(wrong)?, values).filter(|_| rest.is_empty());
            Ok(Held::Floats(array.ok_or_else(wrong)?))
        }
        INT64 => {
            let (words, _) = tensor.raw_data.as_chunks::<8>();
            Ok(Held::Integers(words.iter().map(|word| i64::from_le_bytes(*word)).collect()))
        }
        other => Err(format!("the constant {} has elements of type {other}", tensor.name)),
    }
}
