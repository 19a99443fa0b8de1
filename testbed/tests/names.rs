//! What a platform's file or a stale note must not make gridemu do, as root. Tried where nothing can be harmed: in a user namespace with a
//! /run, a network and processes of its own.

use std::process::{Command, Output};

/// Runs a script there; nothing where no such namespaces are allowed.
fn apart(script: &str) -> Option<Output> {
    let unshare = |script: &str| {
        let mut command = Command::new("timeout");
        command.args(["60", "unshare", "--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c"]);
        command
            .arg(format!("mount -t tmpfs run /run && mkdir /run/gridemu || exit 9\n{script}"))
            .env("GRIDEMU", env!("CARGO_BIN_EXE_gridemu"));
        command.output().unwrap()
    };
    if !unshare("true").status.success() {
        eprintln!("SKIPPED: no namespaces are allowed here");
        return None;
    }
    Some(unshare(script))
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_stale_pid_file_kills_nobody() {
    // the number alone, as earlier versions noted it, and with another process's start
    for note in ["$!", "$! 1"] {
        let script = format!("sleep 30 & echo {note} >/run/gridemu/pid; $GRIDEMU down; kill -0 $! && echo lives; kill $!; ls /run/gridemu");
        let Some(output) = apart(&script) else { return };
        assert!(said(&output).contains("lives"), "{note}: {}", said(&output));
        assert!(!said(&output).contains("pid"), "the note is gone: {}", said(&output));
    }
}

#[test]
fn a_host_name_is_no_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.toml");
    let text = "format = 1\nname = \"p\"\n[[group]]\nname = \"a\"\ncount = 1\nhost_names = [\"x\\nnetns add evil\"]\n";
    std::fs::write(&file, text).unwrap();
    let script = format!("timeout 5 $GRIDEMU route --hosts --most-seconds 2 {}; ls -R /run", file.display());
    let Some(output) = apart(&script) else { return };
    let said = said(&output);
    assert!(said.contains("p.toml, line 6") && said.contains(r#""x\nnetns add evil" is no name"#), "{said}");
    assert!(!said.contains("netns:\n"), "nothing was made: {said}");
}
