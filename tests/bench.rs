//! A comparison over MPI: what it prints, and the pages that it and tuning write at their end.
#![cfg(all(feature = "cli", feature = "mpi"))]

mod common;

use collwise::bench::{ADAPTIVE, Report};
use common::mpi::{ONE_AT_A_TIME, mpirun, text};
use std::path::Path;

/// What `collwise` prints under mpirun.
fn collwise(arguments: &[&str], folder: &Path) -> String {
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let output = mpirun(3).arg(env!("CARGO_BIN_EXE_collwise")).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn pages_are_written_by_tuning_and_by_comparing() {
    let folder = tempfile::tempdir().unwrap();
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    collwise(
        &["tune", "--name", "own", "--collectives", "allreduce", "--repetitions", "3", "-o", "policy.toml", "--report", "tuned.html"],
        folder.path(),
    );
    let tuned = page("tuned.html");
    // with the samples that it took, and nothing compared
    assert!(tuned.contains("of the samples") && tuned.contains("No comparison is given"));
    let sizes = [8, 1 << 10];
    let wanted = ["bench", "policy.toml", "--collective", "allreduce", "--bytes", "8,1KiB", "--repetitions", "3", "--json"];
    let json = collwise(&[&wanted[..], &["--report", "compared.html"]].concat(), folder.path());
    let report = Report::parse("bench", &json).unwrap();
    assert!((report.collective.as_str(), report.hosts.len()) == ("allreduce", 3) && report.date.ends_with("UTC"), "{report:?}");
    assert!(report.contestants().iter().any(|name| name == ADAPTIVE) && report.contestants().len() > 1);
    for row in &report.rows {
        assert!(row.root == 0 && sizes.contains(&row.bytes) && row.seconds.len() == 3 && row.wrong == 0, "{row:?}");
    }
    assert_eq!(report.rows.len(), sizes.len() * report.contestants().len());
    let compared = page("compared.html");
    assert!(compared.contains(&format!("comparison of allreduce over 3 ranks, measured {}", report.date)));
    assert!(!compared.contains("No comparison is given"));
}
