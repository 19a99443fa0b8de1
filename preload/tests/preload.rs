//! A C program under the preloaded library: the report says what it called.

use collwise::qnm::{Report, Run};
use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("start {command:?}: {e}; scripts/setup.sh installs it"));
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

fn first_of<'a>(names: &[&'a str]) -> &'a str {
    names.iter().find(|n| Command::new(n).arg("--version").output().is_ok()).expect("scripts/setup.sh installs MPI")
}

#[test]
fn a_preloaded_program_writes_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libcollwise_profile.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calls.c");
    let compiler = std::env::var("MPICC").unwrap_or_else(|_| first_of(&["mpicc.openmpi", "mpicc"]).into());
    run(Command::new(compiler).arg("-o").arg(folder.path().join("calls")).arg(source));
    let launcher = std::env::var("MPIEXEC").unwrap_or_else(|_| first_of(&["mpirun.openmpi", "mpirun"]).into());
    for ranks in [1, 4] {
        let mut command = Command::new("timeout");
        command.args(["-k", "5", "60", &launcher, "--oversubscribe", "-n", &ranks.to_string()]);
        command.args(["env", &format!("LD_PRELOAD={}", library.display()), "./calls"]).current_dir(folder.path());
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"), ("OMPI_MCA_mpi_yield_when_idle", "1")]);
        run(command.env("COLLWISE_REPORT", "report.mpiP"));
        let report = Report::read(&folder.path().join("report.mpiP")).unwrap();
        assert_eq!((report.ranks(), report.command.as_str()), (ranks, "./calls"));
        assert!(report.mean.app_s >= report.mean.mpi_s && report.mean.mpi_s > 0.0);
        let blocks = 10.0 * ranks as f64;
        for (name, doubles) in [
            ("Bcast", 1000.0),
            ("Allreduce", 2.0),
            ("Allgather", 100.0),
            ("Gather", 50.0),
            ("Alltoallv", blocks),
            ("Scatterv", 10.0),
            ("Sendrecv", 25.0),
            ("Send", 0.0),
            ("Barrier", 0.0),
        ] {
            let run = Run::of(&report).unwrap();
            let call = run.calls.iter().find(|c| c.name == name).unwrap_or_else(|| panic!("{name} is not in {run:?}"));
            assert_eq!((call.count, call.bytes), (20.0, 8.0 * doubles), "{name} on {ranks}");
        }
    }
    // without a name for the report it is named after the program
    let unnamed = format!("LD_PRELOAD={}", library.display());
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "60", &launcher, "--oversubscribe", "-n", "2", "env", &unnamed, "./calls"]).current_dir(folder.path());
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]).env_remove("COLLWISE_REPORT");
    run(&mut command);
    let named = |name: &str| name.starts_with("calls.2.") && name.ends_with(".mpiP");
    assert!(std::fs::read_dir(folder.path()).unwrap().any(|f| named(&f.unwrap().file_name().to_string_lossy())));
}
