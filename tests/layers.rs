//! Dependencies run down the list of rooms only, and only a few files see MPI.

mod common;

use std::path::Path;

/// The rooms in order: each may use those before it. Rooms of one line may use each other.
const ROOMS: &[&[&str]] = &[
    &["error", "files", "names", "units", "stats", "event", "library", "loaded"],
    &["topology"],
    &["platform"],
    &["schedule"],
    &["collective", "transport", "cluster", "intercluster", "sim"],
    &["two_level"],
    &["measure"],
    &["model"],
    &["flow"],
    &["predict", "discover"],
    &["fit"],
    &["score"],
    &["decide"],
    &["policy"],
    &["plan"],
    &["export"],
    &["qnm"],
    &["accuracy", "contention", "regret", "tune"],
    &["run"],
    &["bench"],
    &["report"],
    &["cli"],
];

/// Who may name the MPI crate.
const MPI: &[&str] =
    &["transport/mpi.rs", "measure/mpi.rs", "transport/library.rs", "transport/native.rs", "run/", "bench/", "cli/source.rs"];

fn sources(folder: &Path, out: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = path.strip_prefix(common::file("src")).unwrap().display().to_string();
            out.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

fn all() -> Vec<(String, String)> {
    let mut out = Vec::new();
    sources(&common::file("src"), &mut out);
    out
}

fn room(name: &str) -> Option<usize> {
    ROOMS.iter().position(|line| line.contains(&name))
}

#[test]
fn dependencies_run_down_only() {
    let mut seen = 0;
    for (file, text) in all() {
        let own = file.split(['/', '.']).next().unwrap().to_string();
        if ["lib", "main"].contains(&own.as_str()) {
            continue;
        }
        let own_line = room(&own).unwrap_or_else(|| panic!("src/{file} is in a room that tests/layers.rs does not know"));
        for (_, rest) in text.match_indices("crate::").map(|(at, m)| text.split_at(at + m.len())) {
            let used: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if let Some(line) = room(&used) {
                seen += 1;
                assert!(line <= own_line, "src/{file} uses crate::{used}, which is above it");
            }
        }
    }
    assert!(seen > 100, "the test found only {seen} uses");
}

#[test]
fn the_lists_of_rooms_that_people_read_are_this_list() {
    let contributing = std::fs::read_to_string(common::file("CONTRIBUTING.md")).unwrap();
    let library = std::fs::read_to_string(common::file("src/lib.rs")).unwrap();
    let rooms: std::collections::BTreeSet<&str> = ROOMS.iter().flat_map(|line| line.iter().copied()).collect();
    let table = contributing.split("| room |").nth(1).unwrap().split("\n\n").next().unwrap();
    let of_table: Vec<&str> = table.lines().skip(2).flat_map(|line| line.split('|').nth(1).unwrap().split(['`', ',', ' '])).collect();
    let list = library.split("each of which uses only those below it").nth(1).unwrap().split("```").nth(1).unwrap();
    let first = |line| str::split(str::trim_start_matches(line, "//!").trim(), "  ").next().unwrap_or_default().split(", ");
    let of_list: Vec<&str> = list.lines().skip(1).flat_map(first).collect();
    for (place, named) in [("CONTRIBUTING.md", of_table), ("src/lib.rs", of_list)] {
        let named: std::collections::BTreeSet<&str> = named.into_iter().filter(|name| !name.is_empty()).collect();
        assert_eq!(named, rooms, "{place}");
    }
    // the table's order is that of the list
    let line_of =
        |name: &str| table.lines().position(|line| line.split('|').nth(1).is_some_and(|names| names.contains(&format!("`{name}`"))));
    for two in ROOMS.windows(2) {
        assert!(two[0].iter().all(|a| two[1].iter().all(|b| line_of(a) <= line_of(b))), "{:?} and {:?}", two[0], two[1]);
    }
}

#[test]
fn what_contributors_read_has_lines_that_are_not_long() {
    for path in ["CONTRIBUTING.md", "src/lib.rs"] {
        let text = std::fs::read_to_string(common::file(path)).unwrap();
        let long = text.lines().find(|line| line.chars().count() > 160);
        assert_eq!(long, None, "{path}");
    }
}

#[test]
fn the_simulator_uses_no_model() {
    for (file, text) in all().iter().filter(|(f, _)| f.starts_with("sim/")) {
        assert!(!text.contains("crate::model"), "src/{file}: scores against it would be circular");
    }
    for (file, text) in all().iter().filter(|(f, _)| f.starts_with("model/")) {
        assert!(!text.contains("collective"), "src/{file}: a model knows no algorithm");
    }
}

#[test]
fn only_a_few_files_see_mpi() {
    for (file, text) in all() {
        let sees = ["mpi::ffi", "use mpi::", "mpi::initialize", "mpi::traits"]
            .iter()
            .any(|w| text.lines().any(|l| !l.trim_start().starts_with("//") && l.contains(w) && !l.contains("::mpi::")));
        assert!(!sees || MPI.iter().any(|m| file.starts_with(m)), "src/{file} sees MPI");
    }
}

#[test]
fn files_have_one_subject() {
    for (file, text) in all() {
        assert!(text.lines().count() <= 500, "src/{file} has {} lines: one subject?", text.lines().count());
    }
}

/// What a program builds that only runs policies, beside what the `mpi` crate builds itself.
#[test]
fn a_program_that_only_runs_policies_builds_few_crates() {
    let crates = |arguments: &[&str]| -> std::collections::BTreeSet<String> {
        let tree = ["tree", "--offline", "--edges", "normal", "--prefix", "none"];
        let output = std::process::Command::new(env!("CARGO")).args(tree).args(arguments).current_dir(common::file(".")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty()).map(String::from).collect()
    };
    let (mpi, all) = (crates(&["-p", "mpi"]), crates(&["-p", "collwise", "--no-default-features", "--features", "mpi"]));
    assert!(mpi.len() > 5 && mpi.is_subset(&all));
    let own: Vec<&String> = all.difference(&mpi).filter(|name| *name != "collwise").collect();
    assert!(own.len() <= 25, "{} crates: {own:?}", own.len());
}
