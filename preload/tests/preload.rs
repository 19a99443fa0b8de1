//! Programs in C and Fortran under the preloaded library: the report says what they called.

use collwise::qnm::{Report, Run};
use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("start {command:?}: {e}; scripts/setup.sh installs it"));
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

/// What a variable names, or the first of these that there is.
fn tool(variable: &str, names: [&str; 2]) -> String {
    let is_there = |n: &&&str| Command::new(n).arg("--version").output().is_ok();
    std::env::var(variable).unwrap_or_else(|_| names.iter().find(is_there).expect("scripts/setup.sh installs MPI").to_string())
}

fn compile(compiler: &str, source: &str, folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    run(Command::new(compiler).arg("-o").arg(folder.join("calls")).arg(source).current_dir(folder));
}

/// Runs the compiled program on so many ranks with the library preloaded.
fn launch(folder: &Path, ranks: usize, report: Option<&str>) {
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libcollwise_profile.so");
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "60", &tool("MPIEXEC", ["mpirun.openmpi", "mpirun"]), "--oversubscribe", "-n", &ranks.to_string()]);
    command.args(["env", &format!("LD_PRELOAD={}", library.display()), "./calls"]).current_dir(folder);
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"), ("OMPI_MCA_mpi_yield_when_idle", "1")]);
    run(command.env_remove("COLLWISE_REPORT").envs(report.map(|r| ("COLLWISE_REPORT", r))));
}

/// The report of the program on so many ranks names these calls, each 20 times, with so many doubles.
fn check(folder: &Path, ranks: usize, calls: &[(&str, f64)]) {
    launch(folder, ranks, Some("report.mpiP"));
    let report = Report::read(&folder.join("report.mpiP")).unwrap();
    assert_eq!((report.ranks(), report.command.as_str()), (ranks, "./calls"));
    assert!(report.mean.app_s >= report.mean.mpi_s && report.mean.mpi_s > 0.0);
    let run = Run::of(&report).unwrap();
    let mut found: Vec<(&str, f64, f64)> = run.calls.iter().map(|c| (c.name.as_str(), c.count, c.bytes)).collect();
    let mut expected: Vec<(&str, f64, f64)> = calls.iter().map(|&(name, doubles)| (name, 20.0, 8.0 * doubles)).collect();
    found.sort_by_key(|c| c.0.to_string());
    expected.sort_by_key(|c| c.0.to_string());
    assert_eq!(found, expected, "on {ranks}");
}

#[test]
fn a_preloaded_program_writes_a_report() {
    let folder = tempfile::tempdir().unwrap();
    compile(&tool("MPICC", ["mpicc.openmpi", "mpicc"]), "calls.c", folder.path());
    for ranks in [1, 4] {
        let calls = [
            ("Bcast", 1000.0),
            ("Allreduce", 2.0),
            ("Allgather", 100.0),
            ("Gather", 50.0),
            ("Alltoallv", 10.0 * ranks as f64),
            ("Scatterv", 10.0),
            ("Sendrecv", 25.0),
            ("Send", 0.0),
            ("Barrier", 0.0),
        ];
        check(folder.path(), ranks, &calls);
    }
    // without a name for the report it is named after the program
    launch(folder.path(), 2, None);
    let named = |name: &str| name.starts_with("calls.2.") && name.ends_with(".mpiP");
    assert!(std::fs::read_dir(folder.path()).unwrap().any(|f| named(&f.unwrap().file_name().to_string_lossy())));
}

#[test]
fn a_preloaded_fortran_program_writes_a_report() {
    let folder = tempfile::tempdir().unwrap();
    // of the same MPI library as the compiler of C
    compile(&tool("MPICC", ["mpicc.openmpi", "mpicc"]).replace("mpicc", "mpifort"), "calls.f90", folder.path());
    for ranks in [1, 3] {
        check(folder.path(), ranks, &[("Bcast", 1000.0), ("Allreduce", 2.0), ("Sendrecv", 25.0), ("Reduce", 50.0), ("Barrier", 0.0)]);
    }
}
