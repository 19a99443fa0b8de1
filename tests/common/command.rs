//! The command, as a user runs it.
#![allow(dead_code)] // each test uses its part

use crate::common::file;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the command in a folder.
pub fn collwise(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_collwise")).args(arguments).current_dir(folder).output().unwrap()
}

/// What the command says, which succeeds.
pub fn ok(arguments: &[&str], folder: &Path) -> String {
    let output = collwise(arguments, folder);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What the command says as JSON.
pub fn json(arguments: &[&str], folder: &Path) -> Value {
    serde_json::from_str(&ok(&[arguments, &["--json"]].concat(), folder)).unwrap()
}

/// The command fails with this code, says all these words, and does not panic.
pub fn fails(arguments: &[&str], folder: &Path, code: i32, words: &[&str]) {
    let output = collwise(arguments, folder);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    words.iter().for_each(|w| assert!(said.contains(w), "{arguments:?}: \"{w}\" is not in: {said}"));
}

/// The path of a platform that is shipped.
pub fn platform(name: &str) -> String {
    file(&format!("platforms/{name}.toml")).display().to_string()
}
