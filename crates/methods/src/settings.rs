//! Settings on their way to a configuration: a table that starts with every default and is changed by presets, files
//! and single keys. A key that the defaults do not have, or a value of another type, is refused.

use toml::{Table, Value};

use crate::suggest;

/// A setting is unknown, of the wrong type or out of range: one sentence that names it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingError(pub String);

impl From<SettingError> for engine::Error {
    fn from(error: SettingError) -> Self {
        Self::shape("settings", error.0)
    }
}

type Result<T> = std::result::Result<T, SettingError>;

/// A complete table of settings.
#[derive(Clone, Debug)]
pub struct Settings {
    table: Table,
    keys: Vec<String>,
}

impl Settings {
    /// The table of `defaults`, which says what keys there are.
    pub fn new(defaults: &str) -> Result<Self> {
        let table: Table = defaults
            .parse()
            .map_err(|error: toml::de::Error| SettingError(format!("defaults: {}", error.message())))?;
        let mut keys = Vec::new();
        collect_keys("", &table, &mut keys);
        Ok(Self { table, keys })
    }

    /// All keys, dotted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// Takes over what `text`, a TOML document called `source` in messages, says.
    pub fn overlay(&mut self, source: &str, text: &str) -> Result<()> {
        self.overlay_table(source, "", parsed(source, text)?)
    }

    /// The same for the complete settings of a run, in which those of `retired`, another document, may stand with the values
    /// that they have there.
    pub fn overlay_run(&mut self, source: &str, text: &str, retired: &str) -> Result<()> {
        let mut table = parsed(source, text)?;
        leave_out(&mut table, &parsed("retired settings", retired)?);
        self.overlay_table(source, "", table)
    }

    fn overlay_table(&mut self, source: &str, prefix: &str, table: Table) -> Result<()> {
        for (name, value) in table {
            let key = join(prefix, &name);
            match value {
                Value::Table(inner) if matches!(self.get(&key), Some(Value::Table(_))) => {
                    self.overlay_table(source, &key, inner)?;
                }
                value => self.put(source, &key, value)?,
            }
        }
        Ok(())
    }

    /// Sets one key from the command line: `KEY=VALUE`.
    pub fn set(&mut self, assignment: &str) -> Result<()> {
        let Some((key, text)) = assignment.split_once('=') else {
            return Err(SettingError(format!(
                "--set {assignment} has no '='; write --set KEY=VALUE, for example --set epochs=100"
            )));
        };
        self.set_key("--set", key.trim(), text.trim())
    }

    /// Sets `key` to the value written as `text`; `source` is named in messages.
    pub fn set_key(&mut self, source: &str, key: &str, text: &str) -> Result<()> {
        let value = match self.get(key) {
            Some(Value::String(_)) => Value::String(unquoted(text)),
            _ => parse_value(text),
        };
        self.put(source, key, value)
    }

    /// The word that `key` is set to, where it is one.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }

    fn get(&self, key: &str) -> Option<&Value> {
        let mut parts = key.split('.');
        let mut value = self.table.get(parts.next()?)?;
        for part in parts {
            value = value.as_table()?.get(part)?;
        }
        Some(value)
    }

    fn put(&mut self, source: &str, key: &str, value: Value) -> Result<()> {
        let Some(old) = self.get(key) else {
            let hint = match suggest::hint(key, self.keys()) {
                none if none.is_empty() => "; equicaps train --print-config lists them".to_owned(),
                hint => hint,
            };
            return Err(SettingError(format!("{source}: there is no setting {key:?}{hint}")));
        };
        if let Value::Table(_) = old {
            let inner =
                self.keys().filter(|k| k.starts_with(&format!("{key}."))).collect::<Vec<_>>().join(", ");
            return Err(SettingError(format!("{source}: {key:?} is a group of settings: {inner}")));
        }
        let value = fit(old, value)
            .map_err(|value| SettingError(format!("{source}: {key} takes {}, not {value}", kind(old))))?;
        let mut table = &mut self.table;
        let mut parts: Vec<&str> = key.split('.').collect();
        let last = parts.pop().unwrap_or(key);
        for part in parts {
            match table.get_mut(part) {
                Some(Value::Table(inner)) => table = inner,
                _ => return Err(SettingError(format!("{source}: there is no setting {key:?}"))),
            }
        }
        table.insert(last.to_owned(), value);
        Ok(())
    }

    /// The table.
    pub fn into_table(self) -> Table {
        self.table
    }

    /// The settings as a structure; keys that it does not have are left out.
    pub fn parse<T: serde::de::DeserializeOwned>(self) -> Result<T> {
        let parsed = Value::Table(self.table).try_into();
        parsed.map_err(|error: toml::de::Error| SettingError(error.message().to_owned()))
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

fn parsed(source: &str, text: &str) -> Result<Table> {
    text.parse().map_err(|error: toml::de::Error| {
        let place = error.span().map_or_else(String::new, |span| {
            format!(" in line {}", 1 + text[..span.start.min(text.len())].matches('\n').count())
        });
        SettingError(format!("{source} is not valid TOML{place}: {}", error.message()))
    })
}

/// Removes what `table` has as `retired` has it.
fn leave_out(table: &mut Table, retired: &Table) {
    for (name, value) in retired {
        match (table.get_mut(name), value) {
            (Some(Value::Table(inner)), Value::Table(retired)) => leave_out(inner, retired),
            (Some(found), value) if found == value => {
                table.remove(name);
            }
            _ => {}
        }
    }
}

fn collect_keys(prefix: &str, table: &Table, keys: &mut Vec<String>) {
    for (name, value) in table {
        let key = join(prefix, name);
        match value {
            Value::Table(inner) => collect_keys(&key, inner, keys),
            _ => keys.push(key),
        }
    }
}

/// A value as written on the command line: TOML where it is, a plain word otherwise.
fn parse_value(text: &str) -> Value {
    let document: std::result::Result<Table, _> = format!("value = {text}").parse();
    document
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

fn unquoted(text: &str) -> String {
    match parse_value(text) {
        Value::String(inner) if text.starts_with(['"', '\'']) => inner,
        _ => text.to_owned(),
    }
}

/// `value` as the type of `old`: whole numbers may stand where any number may. Gives `value` back where it does
/// not fit.
fn fit(old: &Value, value: Value) -> std::result::Result<Value, Value> {
    match (old, value) {
        (Value::Float(_), Value::Integer(whole)) => Ok(Value::Float(whole as f64)),
        (Value::Float(_), Value::Float(number)) if !number.is_finite() => Err(Value::Float(number)),
        (Value::Integer(_), Value::Float(number)) if number.fract() == 0.0 && number.abs() < 9e15 => {
            Ok(Value::Integer(number as i64))
        }
        (Value::Array(old), Value::Array(items)) if is_range(old) => {
            let number = |item: &Value| match item {
                Value::Integer(whole) => Some(Value::Float(*whole as f64)),
                Value::Float(number) if number.is_finite() => Some(item.clone()),
                _ => None,
            };
            let numbers: Option<Vec<Value>> = items.iter().map(number).collect();
            numbers.filter(|numbers| numbers.len() == old.len()).map(Value::Array).ok_or(Value::Array(items))
        }
        (Value::Array(_), Value::Array(items)) => {
            if items.iter().all(|item| matches!(item, Value::Integer(whole) if *whole >= 0)) {
                Ok(Value::Array(items))
            } else {
                Err(Value::Array(items))
            }
        }
        (Value::Integer(_), Value::Integer(whole)) if whole < 0 => Err(Value::Integer(whole)),
        (old, value) if std::mem::discriminant(old) == std::mem::discriminant(&value) => Ok(value),
        (_, value) => Err(value),
    }
}

/// Whether a list is one of numbers, not of whole ones: its length stays.
fn is_range(items: &[Value]) -> bool {
    matches!(items.first(), Some(Value::Float(_)))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a word",
        Value::Integer(_) => "a whole number, 0 or more",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Array(items) if is_range(items) => "two numbers such as [0.5, 2]",
        Value::Array(_) => "a list of whole numbers such as [100, 500]",
        Value::Datetime(_) | Value::Table(_) => "something else",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: &str =
        "epochs = 10\nname = \"a\"\n[loss]\nvariance = 1.5\nsteps = [1, 2]\non = true\nrange = [0.5, 2.0]\n";

    fn message(assignment: &str) -> String {
        Settings::new(DEFAULTS).unwrap().set(assignment).unwrap_err().to_string()
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        assert_eq!(message("epoch=3"), "--set: there is no setting \"epoch\"; did you mean \"epochs\"?");
        assert_eq!(
            message("loss.varience=3"),
            "--set: there is no setting \"loss.varience\"; did you mean \"loss.variance\"?"
        );
        assert_eq!(
            message("loss=3"),
            "--set: \"loss\" is a group of settings: loss.on, loss.range, loss.steps, loss.variance"
        );
        assert!(message("epochs").contains("has no '='"));
    }

    #[test]
    fn wrong_types_are_refused() {
        assert_eq!(message("epochs=many"), "--set: epochs takes a whole number, 0 or more, not \"many\"");
        assert_eq!(message("epochs=1.5"), "--set: epochs takes a whole number, 0 or more, not 1.5");
        assert_eq!(message("epochs=-1"), "--set: epochs takes a whole number, 0 or more, not -1");
        assert!(message("loss.on=1").starts_with("--set: loss.on takes true or false"));
        assert!(message("loss.variance=nan").starts_with("--set: loss.variance takes a number"));
        assert!(message("loss.steps=[1.5]").starts_with("--set: loss.steps takes a list"));
        for wrong in ["1", "[1]", "[1, 2, 3]", "[0, nan]", "[0, \"a\"]", "pi"] {
            let text = message(&format!("loss.range={wrong}"));
            assert!(text.starts_with("--set: loss.range takes two numbers such as [0.5, 2]"), "{text}");
        }
    }

    #[test]
    fn values_of_every_type_can_be_set() {
        let mut settings = Settings::new(DEFAULTS).unwrap();
        for assignment in [
            "epochs=1e3",
            "name=rotation+base",
            "loss.variance=2",
            "loss.steps=[3]",
            "loss.on = false",
            "loss.range=[-1, 0.5]",
            "name=7",
        ] {
            settings.set(assignment).unwrap();
        }
        let table = settings.into_table();
        assert_eq!(table["epochs"], Value::Integer(1000));
        assert_eq!(table["name"], Value::String("7".to_owned()));
        assert_eq!(table["loss"]["variance"], Value::Float(2.0));
        assert_eq!(table["loss"]["on"], Value::Boolean(false));
        assert_eq!(table["loss"]["range"], Value::Array(vec![Value::Float(-1.0), Value::Float(0.5)]));
    }

    #[test]
    fn documents_are_checked_like_keys() {
        let mut settings = Settings::new(DEFAULTS).unwrap();
        settings.overlay("x.toml", "epochs = 3\n[loss]\nvariance = 4.0\n").unwrap();
        let unknown = settings.overlay("x.toml", "[loss]\nvarance = 4.0\n").unwrap_err().to_string();
        assert_eq!(unknown, "x.toml: there is no setting \"loss.varance\"; did you mean \"loss.variance\"?");
        for wrong in ["epochs = 3\nepochs = \n", "epochs = 3\nepochs = 4\n"] {
            let broken = settings.overlay("x.toml", wrong).unwrap_err().to_string();
            assert!(broken.starts_with("x.toml is not valid TOML in line 2"), "{broken}");
        }
    }
}
