//! Every reader of names refuses what would be a path, a command or a line elsewhere, and says where it stands.

mod common;

use collwise::measure::Samples;
use collwise::platform::Platform;
use collwise::policy::Policy;
use collwise::topology::Declared;

/// None of these is a name.
const WRONG: [&str; 13] =
    ["", ".", "..", "../evil", "/x", "-o", "a b", "a\nnetns add evil", "a\u{1b}[2J", "\"><host", "$(reboot)", "a:1", "é"];

/// The line (from 1) on which a text's first `part` ends.
fn line(text: &str, part: &str) -> usize {
    text[..text.find(part).unwrap() + part.len()].matches('\n').count() + 1
}

/// A reader refuses a text in which each wrong name stands in place of a right one, with the line and the name escaped.
fn refuses<T: std::fmt::Debug>(text: &str, place: &str, put: impl Fn(&str) -> String, parse: impl Fn(&str) -> collwise::error::Result<T>) {
    parse(text).unwrap();
    for wrong in WRONG {
        let e = parse(&text.replacen(place, &put(wrong), 1)).unwrap_err().to_string();
        let at = format!("the file, line {}:", line(text, place));
        assert!(e.contains(&at) && e.contains(&format!("{wrong:?} is no name")), "{place}, {wrong:?}: {e}");
    }
}

/// A text in quotes, as TOML and JSON write it.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

#[test]
fn platforms() {
    let text = "format = 1\nname = \"p\"\n\n[[group]]\nname = \"a\"\ncount = 2\nlatency_s = 5e-5\nhost_names = [\"a1\", \"a2\"]\n\n\
                [[group]]\nname = \"b\"\ncount = 1\n\n[[group.variant]]\nname = \"old\"\ncount = 1\nhosts = {}\n\n\
                [[link]]\nbetween = [\"a\", \"b\"]\nlatency_s = 5e-3\ntrunk = \"sea\"\n";
    for name in ["p", "a", "a2", "old", "sea"] {
        refuses(text, &quoted(name), quoted, |t| Platform::parse("the file", t));
    }
}

#[test]
fn policies() {
    let text = std::fs::read_to_string(common::file("policies/ccgrid2007.toml")).unwrap();
    // the comment at the top is no name
    let body = &text[text.find("format =").unwrap()..];
    for name in ["ccgrid2007", "orsay"] {
        refuses(body, &quoted(name), quoted, |t| Policy::parse("the file", t));
    }
    let hosts = "\"toulouse-[1-20]\"";
    refuses(body, hosts, |name| format!("\"toulouse-[1-2]\", {}", quoted(name)), |t| Policy::parse("the file", t));
    let between = "between = [\"orsay\", ";
    refuses(&text, between, |name| format!("between = [{}, ", quoted(name)), |t| Policy::parse("the file", t));
}

#[test]
fn host_files() {
    for place in ["far", "south"] {
        // a blank ends a name there, and '#' a line
        let put = |name: &str| name.to_string();
        let text = "near north\n\nfar south\n";
        for wrong in WRONG.iter().filter(|w| !w.is_empty() && !w.contains(char::is_whitespace)) {
            let e = Declared::parse("the file", &text.replacen(place, &put(wrong), 1)).unwrap_err().to_string();
            assert!(e.contains("the file, line 3:") && e.contains(&format!("{wrong:?} is no name")), "{e}");
        }
    }
}

#[test]
fn settings_of_samples() {
    let text = r#"{"format":2,"platform":"t","hosts":["a","b"],"library":"simulator","timer":"v","date":"d"}"#;
    for name in ["t", "b"] {
        refuses(text, &quoted(name), quoted, |t| Samples::parse("the file", t));
    }
}

#[cfg(feature = "cli")]
mod commands {
    use std::path::Path;
    use std::process::{Command, Output};

    fn collwise(arguments: &[&str], folder: &Path) -> Output {
        Command::new(env!("CARGO_BIN_EXE_collwise")).args(arguments).current_dir(folder).output().unwrap()
    }

    #[test]
    fn export_writes_into_its_folder_only() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/out")).unwrap();
        let absolute = folder.path().join("absolute").display().to_string();
        for name in ["../evil", "../../evil", &absolute] {
            std::fs::write(folder.path().join("p.toml"), format!("format = 1\nname = \"{name}\"\n[[group]]\nname = \"g\"\ncount = 1\n"))
                .unwrap();
            let output = collwise(&["export", "p.toml", "--to", "simgrid", "-o", "a/out"], folder.path());
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("p.toml, line 2") && said.contains(&format!("{name:?} is no name")), "{said}");
        }
        for there in [".", "a", "a/out"] {
            let names = std::fs::read_dir(folder.path().join(there)).unwrap().map(|e| e.unwrap().file_name());
            assert!(names.into_iter().all(|n| ["a", "out", "p.toml"].contains(&n.to_str().unwrap())), "{there}");
        }
    }

    #[test]
    fn a_platform_is_named_on_the_command_line() {
        let output = collwise(&["tune", "--name", "../evil"], Path::new("."));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(r#""../evil" is no name"#), "{said}");
    }

    #[test]
    fn a_platform_found_in_a_matrix_is_named_by_the_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("my latencies.csv"), "0,1e-5\n1e-5,0\n").unwrap();
        let matrix = folder.path().join("my latencies.csv").display().to_string();
        assert!(collwise(&["discover", "--matrix", &matrix, "-o", "p.toml"], folder.path()).status.success());
        let platform = collwise::platform::Platform::read(&folder.path().join("p.toml")).unwrap();
        assert_eq!(platform.name, "my_latencies");
    }
}
