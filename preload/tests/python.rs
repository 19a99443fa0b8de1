//! mpi4py, from the package index, under the preloaded library: what pickles and what has buffers, on the world and on a part of it.
#![allow(dead_code)] // this test uses a part of what all share

#[path = "../../tests/common/launch.rs"]
mod launch;
#[path = "../../tests/common/three_groups.rs"]
mod three_groups;

use launch::{mpirun, text};
use std::path::Path;
use std::process::Command;
use three_groups::three_groups;

const PROGRAM: &str = "
from mpi4py import MPI
from array import array
world = MPI.COMM_WORLD
for comm in (world, world.Split(world.rank % 2, -world.rank), MPI.COMM_SELF):
    for k in range(5):
        n, me, root = comm.size, comm.rank, k % comm.size
        assert comm.bcast({'k': k, 'from': me} if me == root else None, root) == {'k': k, 'from': root}
        assert comm.allreduce(me + k) == n * (n - 1) // 2 + n * k
        assert comm.allgather([me] * me) == [[r] * r for r in range(n)]
        assert comm.gather(me, root) == (list(range(n)) if me == root else None)
        assert comm.scatter([r * r for r in range(n)] if me == root else None, root) == me * me
        assert comm.alltoall([me * 100 + r for r in range(n)]) == [r * 100 + me for r in range(n)]
        given, got = array('d', [me + 0.5] * 1000), array('d', [0.0] * 1000)
        comm.Allreduce(given, got)
        assert got[999] == n * (n - 1) / 2 + n / 2
        comm.Allreduce(MPI.IN_PLACE, given, MPI.MAX)
        assert given[0] == n - 0.5
        comm.Bcast([got, 1000, MPI.DOUBLE], root)
        comm.Barrier()
world.Set_errhandler(MPI.ERRORS_RETURN)
try:
    world.Bcast([array('d', [0.0]), 1, MPI.DOUBLE], world.size)
    raise SystemExit('no error')
except MPI.Exception as error:
    assert error.Get_error_class() == MPI.ERR_ROOT
print('done')
";

#[test]
fn mpi4py_is_adaptive() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let quiet = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.map_err(|e| e.to_string()).and_then(|o| if o.status.success() { Ok(()) } else { Err(text(&o)) })
    };
    let made = quiet(Path::new("python3"), &["-m", "venv", &at("venv").display().to_string()])
        .and_then(|()| quiet(&at("venv/bin/pip"), &["install", "--quiet", "--retries", "1", "--timeout", "20", "mpi4py"]));
    if let Err(why) = made {
        println!("SKIPPED 1 test: mpi4py under the preloaded library: there is no python3 with venv, or no package index: {why}");
        return;
    }
    let (policy, hosts) = three_groups(folder.path(), 5);
    std::fs::write(at("program.py"), PROGRAM).unwrap();
    let built = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let mut command = mpirun(5);
    command
        .args(["env", &format!("LD_PRELOAD={}", built.join("libcollwise_preload.so").display())])
        .arg(at("venv/bin/python"))
        .arg(at("program.py"));
    command.env("COLLWISE_POLICY", policy).env("COLLWISE_HOSTS", hosts).env("COLLWISE_PROFILE", at("report.mpiP"));
    let output = command.output().unwrap();
    let said = text(&output);
    assert!(output.status.success() && said.matches("done").count() == 5, "{said}");
    let report = collwise::qnm::Report::read(&at("report.mpiP")).unwrap();
    assert!(report.uses.iter().filter(|used| used.predicted_s.is_some()).count() > 5, "{:?}", report.uses);
}
