//! Tests over MPI start themselves again under `mpirun --oversubscribe`: as a child each runs its part on every rank.

use super::byte;
use collwise::collective::{COLLECTIVES, Collective, bcast};
use collwise::measure::{Session, SimulatedProbe};
use collwise::platform::{Placement, Platform};
use collwise::policy::Policy;
use collwise::run::AdaptiveCollectives;
use collwise::transport::mpi::abort_on_panic;
use collwise::tune::{TuneOptions, tune};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use std::path::{Path, PathBuf};
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

pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

pub fn is_child() -> bool {
    std::env::var_os("COLLWISE_TEST_CHILD").is_some()
}

/// In the parent: runs the test of this name on so many ranks, and gives the output. In a child: runs `part`.
pub fn on_ranks(name: &str, ranks: usize, environment: &[(&str, &Path)], part: impl FnOnce(&SimpleCommunicator)) -> Option<Output> {
    if is_child() {
        abort_on_panic();
        let threads = std::env::var_os("COLLWISE_TEST_THREADS").map_or(mpi::Threading::Single, |_| mpi::Threading::Multiple);
        let (universe, _) = mpi::initialize_with_threading(threads).unwrap();
        part(&universe.world());
        return None;
    }
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut command = mpirun(ranks);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env("COLLWISE_TEST_CHILD", "1").envs(environment.iter().copied());
    Some(command.output().expect("start mpirun: scripts/setup.sh installs it"))
}

pub fn must_succeed(output: Option<Output>) -> String {
    let Some(output) = output else { return String::new() };
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("1 passed"), "the children ran nothing: {}", text(&output));
    text(&output)
}

/// A policy of three groups with 4, 3 and 1 hosts, and the host file for ranks dealt out round robin.
pub fn three_groups(folder: &Path, ranks: usize) -> (PathBuf, PathBuf) {
    let (policy_file, hosts_file) = (folder.join("three.toml"), folder.join("hosts"));
    // a child was told in its environment
    if is_child() {
        return (policy_file, hosts_file);
    }
    let platform = Platform::parse("three", super::THREE_GROUPS).unwrap();
    let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
    let tuned: Vec<&Collective> = COLLECTIVES.into_iter().filter(|c| c.tuned).collect();
    let options = TuneOptions { collectives: &tuned, ..TuneOptions::default() };
    let (_, policy) = tune(&mut Session::new(&mut probe), options).unwrap();
    std::fs::write(&policy_file, policy.to_toml().unwrap()).unwrap();
    let (names, places) = (platform.host_names(), platform.place(Placement::Node));
    // more ranks than hosts share the hosts
    let lines: String = (0..ranks).map(|r| names[places[r % places.len()]].clone() + "\n").collect();
    std::fs::write(&hosts_file, lines).unwrap();
    (policy_file, hosts_file)
}

/// The policy with the library's own broadcast inside all groups, after whole messages between them.
pub fn own_inside(policy: &Path) {
    if is_child() {
        return;
    }
    let mut edited = Policy::read(policy).unwrap();
    edited.collectives.get_mut(&bcast::COLLECTIVE).unwrap().two_level.clear();
    for row in edited.groups.iter_mut().flat_map(|g| g.choices.values_mut().flatten()) {
        (row.algorithm, row.segment_bytes, row.radix) = ("native".into(), 0, 0);
    }
    std::fs::write(policy, edited.to_toml().unwrap()).unwrap();
}

/// Broadcasts from every root and checks every byte.
pub fn check_bcast<C: Communicator + AsRaw<Raw = mpi::ffi::MPI_Comm>>(comm: &C, sizes: &[usize]) {
    for &bytes in sizes {
        for root in 0..comm.size() as usize {
            let mut data: Vec<u8> =
                if comm.rank() as usize == root { (0..bytes).map(|k| byte(k, root)).collect() } else { vec![0xAA; bytes] };
            comm.adaptive_bcast(root, &mut data[..]).unwrap();
            let wrong = (0..bytes).find(|&k| data[k] != byte(k, root));
            assert_eq!(wrong, None, "{bytes} bytes from {root} at {}", comm.rank());
        }
    }
}

pub fn adaptive(name: &str, ranks: usize, part: impl Fn(&SimpleCommunicator)) {
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), ranks);
    let said = must_succeed(on_ranks(name, ranks, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], part));
    assert!(!said.contains("library's own collectives"), "it fell back: {said}");
}
