//! The commands of the README and of the recipes run, and print what is shown. With `UPDATE_DOCS=1` what they print is written there.
#![cfg(feature = "cli")]

mod common;

use std::path::Path;
use std::process::Command;

/// A piece of a page.
#[derive(Debug)]
enum Piece {
    /// Lines that are no command's.
    Text(String),
    /// A command of a console block with the output that is shown (none: only success is asked).
    Command(String, String),
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside {
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push(Piece::Command(command.into(), String::new())),
                (None, Some(Piece::Command(_, output))) => *output += &format!("{line}\n"),
                (None, _) => panic!("output before any command: {line}"),
            }
            continue;
        }
        found.push(Piece::Text(format!("{line}\n")));
    }
    found
}

/// Runs a page's commands one after the other in a folder of their own, compares what they print with what is shown, and counts them.
fn follow(page: &str) -> usize {
    let text = std::fs::read_to_string(common::file(page)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for part in ["platforms", "examples", "policies"] {
        std::os::unix::fs::symlink(common::file(part), folder.path().join(part)).unwrap();
    }
    // the files that recipes show
    let recipes = std::fs::read_to_string(common::file("docs/recipes.md")).unwrap();
    for (name, language) in [("latencies.csv", "csv"), ("between.toml", "toml")] {
        std::fs::write(folder.path().join(name), block(&recipes, language).join("\n")).unwrap();
    }
    let binaries = Path::new(env!("CARGO_BIN_EXE_collwise")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap_or_default());
    let (mut count, mut updated, mut wrong) = (0, String::new(), String::new());
    for piece in pieces(&text) {
        let (command, shown) = match piece {
            Piece::Text(text) => {
                updated += &text;
                continue;
            }
            Piece::Command(command, shown) => (command, shown),
        };
        count += 1;
        updated += &format!("$ {command}\n");
        let needs_mpi = command.starts_with("mpirun") || command.contains("here.toml");
        if needs_mpi && cfg!(not(feature = "mpi")) {
            updated += &shown;
            continue;
        }
        // what hangs ends; tuning four ranks takes minutes where others use the processors too
        let mut shell = Command::new("timeout");
        shell.args(["600", "bash", "-o", "pipefail", "-c", &command]).current_dir(folder.path()).env("PATH", &path);
        shell.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{command}: {said}{}", String::from_utf8_lossy(&output.stderr));
        if !shown.is_empty() {
            updated += &format!("{}\n", said.trim_end());
            if said.trim_end() != shown.trim_end() {
                wrong += &format!("{command} printed\n{said}\n{page} says\n{shown}\n");
            }
        }
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(common::file(page), updated).unwrap();
    } else {
        assert!(wrong.is_empty(), "{wrong}");
    }
    count
}

#[test]
fn commands_of_the_readme_run_and_print_what_it_says() {
    let count = follow("README.md");
    assert!(count >= 12, "{count} commands");
    let lines = std::fs::read_to_string(common::file("README.md")).unwrap().lines().count();
    assert!(lines <= 150, "{lines} lines: what only some readers need belongs to docs/");
}

#[test]
fn commands_of_the_recipes_run_and_print_what_they_say() {
    let count = follow("docs/recipes.md");
    assert!(count >= 12, "{count} commands");
}

#[test]
fn commands_of_the_page_on_exports_run_and_print_what_it_says() {
    assert_eq!(follow("docs/export.md"), 3);
}

/// The lines of a page's first block of a language.
fn block<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}");
    text.lines().skip_while(|l| *l != begin).skip(1).take_while(|l| *l != "```").collect()
}

#[test]
fn the_readmes_application_is_the_one_that_is_built() {
    let read = |path: &str| std::fs::read_to_string(common::file(path)).unwrap();
    let (readme, manifest, program) =
        (read("README.md"), read("examples/application/Cargo.toml"), read("examples/application/src/main.rs"));
    let wanted = block(&readme, "toml").join("\n").replace("../collwise", "../..");
    assert!(wanted.contains("collwise = ") && wanted.contains("mpi = "), "{wanted}");
    assert!(manifest.contains(&wanted), "{manifest}");
    assert!(program.contains(&block(&readme, "rust").join("\n")), "{program}");
    // communicators are types of one version of the mpi crate
    let own = read("Cargo.toml");
    let version = |text: &str| text.lines().find(|l| l.starts_with("mpi = { version")).map(|l| l.split('"').nth(1).unwrap().to_string());
    assert!(version(&own).is_some() && version(&own) == version(&manifest), "{own}");
    assert!(own.contains("\"examples/application\""), "make build and CI build it");
}
