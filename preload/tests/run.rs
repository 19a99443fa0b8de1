//! `collwise run`: programs as they are, with one word before them. The command is the one that `make build` makes.
#![allow(dead_code)] // these tests use a part of what all share

#[path = "../../tests/common/launch.rs"]
mod launch;
#[path = "../../tests/common/three_groups.rs"]
mod three_groups;

use launch::{ONE_AT_A_TIME, mpicc, text};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use three_groups::three_groups;

/// A folder with what `make install` writes, a compiled program, a policy and hosts for so many ranks.
fn site(ranks: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let built = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    ["bin", "lib"].iter().for_each(|name| std::fs::create_dir(at(name)).unwrap());
    let copy =
        |from: PathBuf, to: &str| std::fs::copy(&from, at(to)).unwrap_or_else(|e| panic!("copy {}: {e}; make build", from.display()));
    copy(built.join("../collwise"), "bin/collwise");
    copy(built.join("libcollwise_preload.so"), "lib/libcollwise_preload.so");
    copy(built.join("libcollwise_c.so"), "lib/libcollwise-openmpi.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calls.c");
    assert!(Command::new(mpicc()).arg("-o").arg(at("calls")).arg(source).status().unwrap().success());
    three_groups(folder.path(), ranks);
    folder
}

fn launcher() -> String {
    std::env::var("MPIEXEC").unwrap_or_else(|_| {
        if Command::new("mpirun.openmpi").arg("--version").output().is_ok() { "mpirun.openmpi".into() } else { "mpirun".into() }
    })
}

/// What a line of words does in the folder.
fn shell(folder: &Path, line: &str) -> Output {
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut command = Command::new("timeout");
    command
        .args(["-k", "5", "120"])
        .args(line.replace("MPIRUN", &format!("{} --oversubscribe", launcher())).split_whitespace())
        .current_dir(folder);
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"), ("OMPI_MCA_mpi_yield_when_idle", "1")]);
    ["COLLWISE_POLICY", "COLLWISE_HOSTS", "COLLWISE_PROFILE"].iter().fold(&mut command, |c, name| c.env_remove(name)).output().unwrap()
}

fn ok(folder: &Path, line: &str) -> String {
    let output = shell(folder, line);
    assert!(output.status.success(), "{line}: {}", text(&output));
    text(&output)
}

/// True if the report in the folder has collectives that the policy planned.
fn is_adaptive(folder: &Path) -> bool {
    let file = folder.join("report.mpiP");
    let report = collwise::qnm::Report::read(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    report.uses.iter().any(|used| used.predicted_s.is_some())
}

#[test]
fn one_word_before_the_launcher_or_behind_it_makes_a_program_adaptive() {
    let site = site(4);
    let with = "bin/collwise run --policy three.toml --hosts hosts --profile report.mpiP";
    ok(site.path(), &format!("{with} -- MPIRUN -n 4 ./calls"));
    assert!(is_adaptive(site.path()));
    ok(site.path(), &format!("MPIRUN -n 4 {with} ./calls"));
    assert!(is_adaptive(site.path()));
    // of a folder of policies the one is taken that has the hosts
    std::fs::create_dir(site.path().join("policies")).unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies/hcl16.toml");
    std::fs::copy(shipped, site.path().join("policies/a.toml")).unwrap();
    std::fs::copy(site.path().join("three.toml"), site.path().join("policies/b.toml")).unwrap();
    ok(site.path(), "bin/collwise run --policy policies --hosts hosts --profile report.mpiP -- MPIRUN -n 4 ./calls");
    assert!(is_adaptive(site.path()));
    // two programs of one job
    ok(site.path(), &format!("{with} -- MPIRUN -n 2 ./calls : -n 2 ./calls"));
    assert!(is_adaptive(site.path()));
    // without a policy it profiles
    ok(site.path(), "bin/collwise run --profile report.mpiP -- MPIRUN -n 4 ./calls");
    assert!(!is_adaptive(site.path()));
    // the program's own code comes back
    assert_eq!(shell(site.path(), "bin/collwise run --policy three.toml -- false").status.code(), Some(1));
    // names of files are of any bytes, in arguments and in what is set
    std::fs::copy(site.path().join("three.toml"), site.path().join(OsStr::from_bytes(b"\xe9.toml"))).unwrap();
    let printed = |command: [&str; 2], last: &[u8]| {
        let mut run = Command::new(site.path().join("bin/collwise"));
        run.args(["run", "--policy"]).arg(OsStr::from_bytes(b"\xe9.toml")).arg("--").args(command).arg(OsStr::from_bytes(last));
        run.current_dir(site.path()).output().unwrap().stdout
    };
    assert_eq!(printed(["printf", "%s"], b"\xe9"), b"\xe9");
    assert!(printed(["sh", "-c"], b"printf %s $COLLWISE_POLICY").ends_with(b"/\xe9.toml"));
}

#[test]
fn it_tunes_where_there_is_no_policy() {
    let site = site(2);
    let line = "bin/collwise run --tune --policy here.toml --profile report.mpiP -- MPIRUN -n 2 ./calls";
    let said = ok(site.path(), line);
    assert!(said.contains("tuning first") && site.path().join("here.toml").exists(), "{said}");
    assert!(is_adaptive(site.path()));
    assert!(!ok(site.path(), line).contains("tuning first"));
}

#[test]
fn with_export_only_no_code_of_ours_is_in_the_program() {
    let site = site(4);
    std::fs::remove_file(site.path().join("lib/libcollwise_preload.so")).unwrap();
    ok(site.path(), "bin/collwise run --export-only --policy three.toml -- MPIRUN -n 4 ./calls");
    assert!(std::fs::read_to_string(site.path().join("three.openmpi.rules")).unwrap().contains("three"));
    let variables = ok(site.path(), "bin/collwise run --export-only --policy three.toml -- MPIRUN -n 1 env");
    assert!(variables.contains("coll_tuned_dynamic_rules_filename=") && !variables.contains("LD_PRELOAD=/"), "{variables}");
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() {
    let site = site(2);
    let fails = |line: &str, words: &[&str]| {
        let output = shell(site.path(), line);
        let said = text(&output);
        assert!(!output.status.success() && words.iter().all(|word| said.contains(word)), "{line}: {said}");
    };
    fails("bin/collwise run -- MPIRUN -n 2 ./calls", &["--policy", "--profile"]);
    fails("bin/collwise run --policy none.toml -- MPIRUN -n 2 ./calls", &["none.toml"]);
    fails("bin/collwise run --policy three.toml -- ./no-such-program", &["./no-such-program"]);
    fails("bin/collwise run --policy three.toml -- MPIRUN -x LD_PRELOAD=libm.so.6 -n 2 ./calls", &["LD_PRELOAD", "environment"]);
    fails("bin/collwise run --tune --policy none.toml -- ./calls", &["before the launcher"]);
    fails("bin/collwise run --tune --policy none.toml -- MPIRUN --what 3 ./calls", &["--what"]);
    std::fs::remove_file(site.path().join("lib/libcollwise_preload.so")).unwrap();
    fails("bin/collwise run --policy three.toml -- MPIRUN -n 2 ./calls", &["libcollwise_preload.so", "make install"]);
}
