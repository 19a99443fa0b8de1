//! Commands under `mpirun`.

use std::process::{Command, Output};
use std::sync::Mutex;

/// One mpirun at a time: there are few cores.
pub static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A command under mpirun that cannot hang: it is ended after two minutes.
pub fn mpirun(ranks: usize) -> Command {
    let launcher = std::env::var("MPIEXEC").unwrap_or_else(|_| {
        let openmpi = Command::new("mpirun.openmpi").arg("--version").output().is_ok();
        if openmpi { "mpirun.openmpi".into() } else { "mpirun".into() }
    });
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120", &launcher, "-n", &ranks.to_string()]);
    // MPICH's launcher does not count processors
    if !launcher.contains("mpich") {
        command.arg("--oversubscribe");
    }
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"), ("OMPI_MCA_mpi_yield_when_idle", "1")]);
    command.env_remove("COLLWISE_POLICY").env_remove("COLLWISE_HOSTS").env_remove("COLLWISE_TRACE");
    command
}

/// The compiler of the MPI library that this was built with.
pub fn mpicc() -> String {
    std::env::var("MPICC").unwrap_or_else(|_| {
        let openmpi = Command::new("mpicc.openmpi").arg("--version").output().is_ok();
        if openmpi { "mpicc.openmpi".into() } else { "mpicc".into() }
    })
}

pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

pub fn is_child() -> bool {
    std::env::var_os("COLLWISE_TEST_CHILD").is_some()
}
