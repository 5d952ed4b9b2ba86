//! What a command returns: one value that prints itself as text and as one JSON object, and an exit status. `main`
//! prints it, once.

use std::fmt::Display;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;

use crate::interrupt::TRY_AGAIN;
use crate::terminal::{self, Terminal};

/// The outcome of a command.
#[derive(Debug)]
pub struct Outcome {
    text: String,
    json: Value,
    status: ExitCode,
    /// Why the status is not 0, for standard error.
    failure: Option<String>,
}

impl Outcome {
    /// A result, as text ([`Display`]) and as JSON ([`Serialize`]); status 0.
    pub fn new<R: Display + Serialize>(result: &R) -> anyhow::Result<Self> {
        let (text, json) = (result.to_string(), serde_json::to_value(result)?);
        Ok(Self { text, json, status: ExitCode::SUCCESS, failure: None })
    }

    /// Nothing to be said: another process says it.
    pub fn nothing() -> Self {
        Self { text: String::new(), json: Value::Null, status: ExitCode::SUCCESS, failure: None }
    }

    /// Status 1 where `failed`, with a sentence on standard error.
    pub fn failed_if(self, failed: bool, why: impl Into<String>) -> Self {
        if failed { self.failed(why.into()) } else { self }
    }

    /// Status 1, with a sentence on standard error.
    pub fn failed(mut self, why: String) -> Self {
        if let Value::Object(fields) = &mut self.json {
            fields.insert("error".to_owned(), why.clone().into());
        }
        Self { status: ExitCode::FAILURE, failure: Some(why), ..self }
    }

    /// Status 75 where `interrupted`: rerun to resume.
    pub fn interrupted_if(self, interrupted: bool) -> Self {
        if interrupted { Self { status: ExitCode::from(TRY_AGAIN), ..self } } else { self }
    }

    /// Prints the result; returns the exit status.
    pub fn print(self, terminal: &Terminal) -> ExitCode {
        let written = if self.json.is_null() { Ok(()) } else { terminal.result(&self.text, &self.json) };
        if let Some(failure) = &self.failure {
            terminal::say(format!("error: {failure}"));
        }
        if let Err(error) = written {
            terminal::say(format!("error: the result cannot be written to standard output: {error}"));
            return ExitCode::FAILURE;
        }
        self.status
    }
}

pub use dataset::counted as count;
