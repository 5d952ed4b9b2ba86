//! As much of Python's pickle format as maps of tensors need. Names of functions and classes are read, never
//! called: tensors and ordered maps are rebuilt here, everything else becomes [`Value::Other`].

use std::collections::HashMap;
use std::rc::Rc;

/// Types of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtype {
    F32,
    F64,
    F16,
    Bf16,
    I64,
}

impl Dtype {
    fn of_storage(class: &str) -> Option<Self> {
        Some(match class {
            "torch FloatStorage" => Self::F32,
            "torch DoubleStorage" => Self::F64,
            "torch HalfStorage" => Self::F16,
            "torch BFloat16Storage" => Self::Bf16,
            "torch LongStorage" => Self::I64,
            _ => return None,
        })
    }

    /// Bytes of a number.
    pub fn size(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// Where the numbers of tensors are.
#[derive(Clone, Debug)]
pub struct Storage {
    pub dtype: Dtype,
    /// Name of the file within `data/`.
    pub key: Rc<str>,
}

/// A tensor: a part of a storage. Offset and strides count numbers.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub storage: Storage,
    pub offset: usize,
    pub shape: Vec<usize>,
    pub stride: Vec<usize>,
}

/// The entries of a map.
pub type Entries = Vec<(Value, Value)>;

/// An unpickled object.
#[derive(Clone, Debug)]
pub enum Value {
    Int(i64),
    Text(Rc<str>),
    Tuple(Rc<[Value]>),
    /// A map: its number among [`Pickled::maps`]. Maps hold no others by themselves, so that no file, however deeply
    /// nested, is taken apart by recursion.
    Dict(usize),
    /// The name of a function or class: module, a space, its name.
    Global(Rc<str>),
    Storage(Storage),
    Tensor(Rc<Tensor>),
    /// What networks' tensors do not need.
    Other,
}

/// An unpickled object and all maps.
#[derive(Debug)]
pub struct Pickled {
    pub root: Value,
    pub maps: Vec<Entries>,
}

impl Pickled {
    /// The entries of `value`, where it is a map.
    pub fn entries(&self, value: &Value) -> Option<&Entries> {
        if let Value::Dict(index) = value { self.maps.get(*index) } else { None }
    }
}

/// The object in `bytes`.
pub fn load(bytes: &[u8]) -> Result<Pickled, String> {
    let (stack, marks, memo, maps) = (Vec::new(), Vec::new(), HashMap::new(), Vec::new());
    let mut machine = Machine { bytes, at: 0, stack, marks, memo, maps };
    let root = machine.run()?.ok_or_else(|| "its list of tensors is damaged or cut off".to_owned())?;
    Ok(Pickled { root, maps: machine.maps })
}

/// A tuple. Tensors need tuples within tuples, but nothing deeper.
fn tuple_of(mut items: Vec<Value>) -> Value {
    for item in &mut items {
        if let Value::Tuple(inner) = item
            && inner.iter().any(|value| matches!(value, Value::Tuple(_)))
        {
            *item = Value::Other;
        }
    }
    Value::Tuple(items.into())
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: HashMap<usize, Value>,
    maps: Vec<Entries>,
}

impl<'a> Machine<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let part = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(part)
    }

    /// A little-endian number of `width` bytes without a sign.
    fn number(&mut self, width: usize) -> Option<usize> {
        let value = self.take(width)?.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        usize::try_from(value).ok()
    }

    fn text(&mut self, width: usize) -> Option<Value> {
        let length = self.number(width)?;
        Some(Value::Text(std::str::from_utf8(self.take(length)?).ok()?.into()))
    }

    fn line(&mut self) -> Option<&'a str> {
        let length = self.bytes.get(self.at..)?.iter().position(|&byte| byte == b'\n')?;
        let line = std::str::from_utf8(self.take(length)?).ok()?;
        self.at += 1;
        Some(line)
    }

    fn since_mark(&mut self) -> Option<Vec<Value>> {
        let mark = self.marks.pop()?;
        (mark <= self.stack.len()).then(|| self.stack.split_off(mark))
    }

    fn tuple(&mut self, count: usize) -> Option<Value> {
        let start = self.stack.len().checked_sub(count)?;
        Some(tuple_of(self.stack.split_off(start)))
    }

    fn map(&mut self) -> Value {
        self.maps.push(Entries::new());
        Value::Dict(self.maps.len() - 1)
    }

    fn set(&mut self, items: Vec<Value>) -> Option<()> {
        if let Value::Dict(index) = self.stack.last()? {
            let entries = self.maps.get_mut(*index)?;
            let mut items = items.into_iter();
            while let (Some(key), Some(value)) = (items.next(), items.next()) {
                entries.push((key, value));
            }
        }
        Some(())
    }

    /// Runs to the end. `Ok(None)`: cut off or damaged.
    fn run(&mut self) -> Result<Option<Value>, String> {
        loop {
            let Some(&[code]) = self.take(1) else { return Ok(None) };
            if code == b'.' {
                return Ok(self.stack.pop());
            }
            if !is_known(code) {
                return Err(format!(
                    "byte {} of its list of tensors is of an unknown kind ({code:#04x})",
                    self.at - 1
                ));
            }
            if self.step(code).is_none() {
                return Ok(None);
            }
        }
    }

    fn step(&mut self, code: u8) -> Option<()> {
        let value = match code {
            0x80 => return self.take(1).map(|_| ()),
            0x95 => return self.take(8).map(|_| ()),
            b'(' => {
                self.marks.push(self.stack.len());
                return Some(());
            }
            b'0' => return self.stack.pop().map(|_| ()),
            b'q' | b'r' => {
                let key = self.number(if code == b'q' { 1 } else { 4 })?;
                self.memo.insert(key, self.stack.last()?.clone());
                return Some(());
            }
            0x94 => {
                self.memo.insert(self.memo.len(), self.stack.last()?.clone());
                return Some(());
            }
            b's' => {
                let value = self.stack.pop()?;
                let key = self.stack.pop()?;
                return self.set(vec![key, value]);
            }
            b'u' => {
                let items = self.since_mark()?;
                return self.set(items);
            }
            // Members of lists and sets, and the state of objects: of no interest.
            b'a' | b'b' => return self.stack.pop().map(|_| ()),
            b'e' | 0x90 => return self.since_mark().map(|_| ()),
            b'h' => self.number(1).and_then(|key| self.memo.get(&key))?.clone(),
            b'j' => self.number(4).and_then(|key| self.memo.get(&key))?.clone(),
            b'}' => self.map(),
            b')' => Value::Tuple(Rc::new([])),
            b't' => tuple_of(self.since_mark()?),
            0x85 => self.tuple(1)?,
            0x86 => self.tuple(2)?,
            0x87 => self.tuple(3)?,
            b'X' | b'T' => self.text(4)?,
            0x8c | b'U' => self.text(1)?,
            b'K' => Value::Int(i64::try_from(self.number(1)?).ok()?),
            b'M' => Value::Int(i64::try_from(self.number(2)?).ok()?),
            b'J' => Value::Int(i32::from_le_bytes(self.take(4)?.try_into().ok()?).into()),
            0x8a => {
                let length = self.number(1)?;
                match self.take(length)? {
                    [] => Value::Int(0),
                    bytes if bytes.len() <= 8 => {
                        let negative = bytes[bytes.len() - 1] & 0x80 != 0;
                        let mut full = [if negative { 0xff } else { 0 }; 8];
                        full[..bytes.len()].copy_from_slice(bytes);
                        Value::Int(i64::from_le_bytes(full))
                    }
                    _ => Value::Other,
                }
            }
            b'G' => self.take(8).map(|_| Value::Other)?,
            b'N' | 0x88 | 0x89 | b']' | 0x8f => Value::Other,
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                Value::Global(format!("{module} {name}").into())
            }
            0x93 => {
                let (Value::Text(name), Value::Text(module)) = (self.stack.pop()?, self.stack.pop()?) else {
                    return None;
                };
                Value::Global(format!("{module} {name}").into())
            }
            b'Q' => storage(&self.stack.pop()?),
            b'R' | 0x81 => {
                let (arguments, callee) = (self.stack.pop()?, self.stack.pop()?);
                match &callee {
                    Value::Global(name) if &**name == "collections OrderedDict" => self.map(),
                    _ => rebuild(&callee, &arguments),
                }
            }
            _ => return None,
        };
        self.stack.push(value);
        Some(())
    }
}

fn is_known(code: u8) -> bool {
    b"\x80\x95(0qr\x94suabe\x90hj})t\x85\x86\x87XT\x8cUKMJ\x8aGN\x88\x89]\x8fc\x93QR\x81".contains(&code)
}

/// A reference to numbers outside the pickle: ("storage", class, key, device, count).
fn storage(reference: &Value) -> Value {
    if let Value::Tuple(parts) = reference
        && let [_, Value::Global(class), Value::Text(key), ..] = &**parts
        && let Some(dtype) = Dtype::of_storage(class)
    {
        return Value::Storage(Storage { dtype, key: key.clone() });
    }
    Value::Other
}

/// What calling `callee` would give, for the few that matter.
fn rebuild(callee: &Value, arguments: &Value) -> Value {
    let (Value::Global(name), Value::Tuple(arguments)) = (callee, arguments) else { return Value::Other };
    match (&**name, &**arguments) {
        (
            "torch._utils _rebuild_tensor_v2",
            [Value::Storage(storage), Value::Int(offset), shape, stride, ..],
        ) => tensor(storage, *offset, shape, stride)
            .map_or(Value::Other, |tensor| Value::Tensor(Rc::new(tensor))),
        ("torch._utils _rebuild_parameter", [tensor @ Value::Tensor(_), ..]) => tensor.clone(),
        _ => Value::Other,
    }
}

fn tensor(storage: &Storage, offset: i64, shape: &Value, stride: &Value) -> Option<Tensor> {
    let sizes = |value: &Value| match value {
        Value::Tuple(parts) => parts
            .iter()
            .map(|part| if let Value::Int(size) = part { usize::try_from(*size).ok() } else { None })
            .collect::<Option<Vec<usize>>>(),
        _ => None,
    };
    Some(Tensor {
        storage: storage.clone(),
        offset: usize::try_from(offset).ok()?,
        shape: sizes(shape)?,
        stride: sizes(stride)?,
    })
}
