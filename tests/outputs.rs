//! Where the command writes, and how much: files are replaced whole, all else is written through, nothing stays behind, and of many groups what fits a screen.
#![cfg(feature = "cli")]

mod common;

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const COLLWISE: &str = env!("CARGO_BIN_EXE_collwise");

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn collwise(arguments: &[&str], folder: &Path) -> Output {
    Command::new(COLLWISE).args(arguments).current_dir(folder).output().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut all: Vec<String> = folder.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

fn hcl16() -> String {
    common::file("platforms/hcl16.toml").display().to_string()
}

#[test]
fn links_stay_modes_are_kept_and_planted_links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("real.toml"), "old").unwrap();
    std::fs::set_permissions(at("real.toml"), std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink("real.toml", at("link.toml")).unwrap();
    let output = collwise(&["generate", "-o", "link.toml"], folder.path());
    assert!(output.status.success(), "{}", said(&output));
    assert!(at("link.toml").symlink_metadata().unwrap().is_symlink());
    assert!(std::fs::read_to_string(at("real.toml")).unwrap().starts_with("format = 1"));
    assert_eq!(at("real.toml").metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(names(folder.path()), ["link.toml", "real.toml"]);
    // a name that could be foreseen: the shell's process becomes the command's
    std::fs::write(at("victim"), "mine").unwrap();
    let script = format!("ln -s victim new.toml.$$.tmp; exec {COLLWISE} tune --platform {} -o new.toml", hcl16());
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(std::fs::read_to_string(at("victim")).unwrap(), "mine");
    assert!(at("new.toml").symlink_metadata().unwrap().is_file());
}

#[test]
fn pipes_devices_and_standard_output_are_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let mut job = Command::new("timeout");
    job.args(["60", COLLWISE, "tune", "--platform", &hcl16(), "-o", "pipe"]).current_dir(folder.path()).stdout(Stdio::null());
    let mut job = job.spawn().unwrap();
    assert!(std::fs::read_to_string(at("pipe")).unwrap().contains("[[group]]"));
    assert!(job.wait().unwrap().success());
    assert!(at("pipe").symlink_metadata().unwrap().file_type().is_fifo());
    // a device by another name: were it replaced, this would be gone and not the system's
    symlink("/dev/null", at("null")).unwrap();
    let null = collwise(&["tune", "--platform", &hcl16(), "-o", "null"], folder.path());
    assert!(null.status.success(), "{}", said(&null));
    assert!(at("null").symlink_metadata().unwrap().is_symlink());
    assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());
    let full = collwise(&["generate", "-o", "/dev/full"], folder.path());
    assert!(full.status.code() == Some(1) && said(&full).contains("failed to write /dev/full: No space left"), "{}", said(&full));
    // standard output, as a pipe and as a file that holds something and gets more
    let piped = collwise(&["discover", "--platform", &hcl16(), "-o", "/dev/stdout"], folder.path());
    let text = String::from_utf8(piped.stdout).unwrap();
    assert!(text.starts_with("format = 1") && text.contains("worst ratio"), "{text}");
    let script = format!("(echo before; {COLLWISE} discover --platform {} -o /dev/stdout; echo after) > said", hcl16());
    assert!(Command::new("sh").args(["-c", &script]).current_dir(folder.path()).status().unwrap().success());
    assert_eq!(std::fs::read_to_string(at("said")).unwrap(), format!("before\n{text}after\n"));
    assert_eq!(names(folder.path()), ["null", "pipe", "said"]);
}

#[test]
fn nothing_stays_behind_where_there_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.toml"), "old").unwrap();
    // files of this process may have one block
    let script = format!("trap '' XFSZ; ulimit -f 1; exec {COLLWISE} generate --sites 50 --hosts 500 -o p.toml");
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.code() == Some(1) && said(&output).contains("failed to write p.toml: File too large"), "{}", said(&output));
    assert_eq!(
        (names(folder.path()), std::fs::read_to_string(folder.path().join("p.toml")).unwrap()),
        (vec!["p.toml".into()], "old".into())
    );
}

#[test]
fn the_result_never_takes_the_place_of_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = |output: &'static str| ["tune", "--platform", "hcl16.toml", "--samples", "s", "-o", output];
    std::fs::copy(hcl16(), folder.path().join("hcl16.toml")).unwrap();
    let output = collwise(&arguments("./s"), folder.path());
    assert!(output.status.code() == Some(1) && said(&output).contains("name two"), "{}", said(&output));
    assert_eq!(names(folder.path()), ["hcl16.toml"]);
    // nor does measuring all again replace what holds no samples
    let fresh = collwise(&["tune", "--platform", "hcl16.toml", "--samples", "hcl16.toml", "--fresh", "-o", "p.toml"], folder.path());
    assert!(fresh.status.code() == Some(1) && said(&fresh).contains("hcl16.toml, line 1"), "{}", said(&fresh));
    assert_eq!(std::fs::read(hcl16()).unwrap(), std::fs::read(folder.path().join("hcl16.toml")).unwrap());
}

/// Samples of a simulated platform are of that alone, by whatever name and however it is described.
#[test]
fn samples_are_not_pooled_with_those_of_a_platform_that_changed() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(hcl16()).unwrap();
    let discover = |text: &str, fresh: &[&str]| {
        std::fs::write(folder.path().join("p.toml"), text).unwrap();
        collwise(&[&["discover", "--platform", "p.toml", "--samples", "s.jsonl"], fresh].concat(), folder.path())
    };
    assert!(discover(&text, &[]).status.success());
    assert!(discover(&text.replacen("source = \"", "source = \"after ", 1), &[]).status.success());
    let slower = text.replacen("gap_s_per_byte = 8.5e-9", "gap_s_per_byte = 9.5e-9", 1);
    assert_ne!(slower, text);
    let refused = discover(&slower, &[]);
    assert!(refused.status.code() == Some(1) && said(&refused).contains(" of platform "), "{}", said(&refused));
    assert!(said(&refused).contains("--fresh"), "{}", said(&refused));
    assert!(discover(&slower, &["--fresh"]).status.success());
}

#[test]
fn tunings_of_one_sample_file_come_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let policies: Vec<String> = (0..3).map(|k| format!("{k}.toml")).collect();
    let start = |policy: &String| {
        let mut job = Command::new(COLLWISE);
        job.args(["tune", "--platform", &hcl16(), "--samples", "s.jsonl", "-o", policy]).current_dir(folder.path());
        job.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let jobs: Vec<_> = policies.iter().map(start).collect();
    let ends: Vec<Output> = jobs.into_iter().map(|job| job.wait_with_output().unwrap()).collect();
    assert!(ends.iter().any(|end| end.status.success()));
    for end in ends.iter().filter(|end| !end.status.success()) {
        assert!(said(end).contains("process ") && said(end).contains("writes to it"), "{}", said(end));
    }
    collwise::measure::Samples::read(&at("s.jsonl"), false).unwrap();
    assert!(!at("s.jsonl.lock").exists());
}

#[test]
fn a_damaged_sample_file_is_repaired_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("three.toml"), common::THREE_GROUPS).unwrap();
    let tune = ["tune", "--platform", "three.toml", "--samples", "s.jsonl", "-o", "p.toml"];
    assert!(collwise(&tune, folder.path()).status.success());
    let whole = std::fs::read_to_string(at("s.jsonl")).unwrap();
    // two writers, as there once could be
    let damaged: String = whole.lines().enumerate().map(|(k, l)| format!("{l}{}", if k == 4 { "" } else { "\n" })).collect();
    std::fs::write(at("s.jsonl"), &damaged).unwrap();
    for arguments in [&tune[..], &["tune", "--recorded", "s.jsonl", "-o", "q.toml"], &["accuracy", "p.toml", "s.jsonl"]] {
        let output = collwise(arguments, folder.path());
        let words = ["s.jsonl, line 5", "--repair"];
        assert!(output.status.code() == Some(1) && words.iter().all(|w| said(&output).contains(w)), "{}", said(&output));
        assert_eq!(std::fs::read_to_string(at("s.jsonl")).unwrap(), damaged, "nothing is lost");
    }
    let accuracy = collwise(&["accuracy", "p.toml", "s.jsonl", "--repair"], folder.path());
    assert!(accuracy.status.success() && said(&accuracy).contains("line 5 is dropped"), "{}", said(&accuracy));
    let discover = collwise(&["discover", "--recorded", "s.jsonl", "--repair"], folder.path());
    assert!(said(&discover).contains("line 5 is dropped"), "{}", said(&discover));
    assert_eq!(std::fs::read_to_string(at("s.jsonl")).unwrap(), damaged, "who only reads does not write");
    let tuned = collwise(&[&tune[..], &["--repair"]].concat(), folder.path());
    assert!(tuned.status.success() && said(&tuned).contains("line 5 is dropped"), "{}", said(&tuned));
    let repaired = std::fs::read_to_string(at("s.jsonl")).unwrap();
    assert_eq!(repaired.lines().count(), whole.lines().count(), "what was dropped is measured again, and nothing else");
}

#[test]
fn what_is_printed_of_many_groups_fits_a_screen() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let ok = |arguments: &[&str]| {
        let output = collwise(arguments, at);
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    ok(&["generate", "--sites", "40", "--hosts", "80", "--seed", "3", "-o", "many.toml"]);
    let told = ok(&["tune", "--platform", "many.toml", "--collectives", "bcast,barrier", "-o", "p.toml"]);
    assert!(told.lines().count() <= 40 && told.contains(" more groups, which --verbose lists\n"), "{told}");
    let predicted = ok(&["predict", "p.toml", "--bytes", "1,1MiB"]);
    assert!(predicted.lines().all(|line| line.len() < 80), "{predicted}");
    let all: serde_json::Value = serde_json::from_str(&ok(&["predict", "p.toml", "--bytes", "1", "--json"])).unwrap();
    assert!(all[0]["groups_s"].as_object().unwrap().len() > 12, "{all}");
    // what ranks have of all others is longer than any memory
    for name in ["alltoall", "allgather", "reduce_scatter"] {
        let output = collwise(&["predict", "p.toml", "--collective", name, "--bytes", "18446744073709551608"], at);
        assert!(!output.status.success() && said(&output).contains("no memory holds that"), "{}", said(&output));
    }
}
