//! Programs under the preloaded library: the report says what they called, and they run as without it.

#![allow(dead_code)] // these tests use a part of what all share

#[path = "../../tests/common/launch.rs"]
mod launch;
#[path = "../../tests/common/three_groups.rs"]
mod three_groups;

use collwise::qnm::{Part, Report, Run, Site as CallSite, Use};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use three_groups::three_groups;

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What the command says; it must succeed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("start {command:?}: {e}; scripts/setup.sh installs it"));
    assert!(output.status.success(), "{command:?}: {} {}", output.status, text(&output));
    text(&output)
}

/// The tools of an MPI library.
struct Tools {
    compiler: String,
    launcher: String,
    /// What is preloaded.
    libraries: String,
}

impl Tools {
    /// Those that the environment names, or the first that there are.
    fn chosen() -> Tools {
        let is_there = |n: &&&str| Command::new(n).arg("--version").output().is_ok();
        let tool = |variable: &str, names: [&str; 2]| {
            std::env::var(variable).unwrap_or_else(|_| names.iter().find(is_there).expect("scripts/setup.sh installs MPI").to_string())
        };
        let (compiler, launcher) = (tool("MPICC", ["mpicc.openmpi", "mpicc"]), tool("MPIEXEC", ["mpirun.openmpi", "mpirun"]));
        Tools { compiler, launcher, libraries: built().join("libcollwise_preload.so").display().to_string() }
    }

    fn mpich() -> Tools {
        Tools { compiler: "mpicc.mpich".into(), launcher: "mpirun.mpich".into(), ..Tools::chosen() }
    }

    /// Compiles a source of this folder, with more arguments: its compiler is the library's for C, C++ or Fortran.
    fn compile(&self, folder: &Path, source: &str, program: &str, arguments: &[&str]) {
        let language = [(".f90", "mpifort"), (".cc", "mpicxx"), (".c", "mpicc")].into_iter().find(|l| source.ends_with(l.0)).unwrap().1;
        compile(&self.compiler.replace("mpicc", language), folder, source, program, arguments);
    }

    /// A program in `folder`, with its arguments, on so many ranks with the library preloaded. It is ended if it hangs.
    fn launch(&self, folder: &Path, ranks: usize, program: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-k", "5", "60", &self.launcher]);
        let version = text(&Command::new(&self.launcher).arg("--version").output().expect("scripts/setup.sh installs MPI"));
        if version.contains("Open MPI") || version.contains("OpenRTE") {
            command.arg("--oversubscribe");
        }
        command.args(["-n", &ranks.to_string(), "env", &format!("LD_PRELOAD={}", self.libraries)]).args(program).current_dir(folder);
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"), ("OMPI_MCA_mpi_yield_when_idle", "1")]);
        command.env("COLLWISE_PROFILE", "report.mpiP");
        for name in ["COLLWISE_POLICY", "COLLWISE_HOSTS", "COLLWISE_TRACE"] {
            command.env_remove(name);
        }
        command
    }
}

/// Where this is built.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_path_buf()
}

fn preloaded() -> String {
    format!("LD_PRELOAD={}", Tools::chosen().libraries)
}

fn compile(compiler: &str, folder: &Path, source: &str, program: &str, arguments: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    run(Command::new(compiler).arg("-o").arg(program).arg(source).args(arguments).current_dir(folder));
}

/// A folder with a compiled program.
fn compiled(tools: &Tools, source: &str, program: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    tools.compile(folder.path(), source, program, &["-pthread"]);
    folder
}

fn report_in(folder: &Path) -> Report {
    Report::read(&folder.join("report.mpiP")).unwrap()
}

/// Name, calls and bytes of a call of a process, by name.
fn calls(report: &Report) -> Vec<(String, f64, f64)> {
    let mut calls: Vec<_> = Run::of(report).unwrap().calls.into_iter().map(|c| (c.name, c.count, c.bytes)).collect();
    calls.sort_by_key(|c| c.0.clone());
    calls
}

/// The report of the program `calls` on so many ranks names these calls, each 20 times, with so many doubles.
fn check(tools: &Tools, folder: &Path, ranks: usize, expected: &[(&str, f64)]) {
    let said = run(&mut tools.launch(folder, ranks, &["./calls"]));
    assert!(!said.contains("collwise"), "{said}");
    let report = report_in(folder);
    assert_eq!((report.ranks(), report.command.as_str()), (ranks, "./calls"));
    assert!(report.mean.app_s >= report.mean.mpi_s && report.mean.mpi_s > 0.0);
    let mut expected: Vec<_> = expected.iter().map(|&(name, doubles)| (name.to_string(), 20.0, 8.0 * doubles)).collect();
    expected.sort_by_key(|c| c.0.clone());
    assert_eq!(calls(&report), expected, "on {ranks}");
}

fn check_c(tools: &Tools, folder: &Path, ranks: usize) {
    let expected = [
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
    check(tools, folder, ranks, &expected);
}

const FORTRAN: [(&str, f64); 5] = [("Bcast", 1000.0), ("Allreduce", 2.0), ("Sendrecv", 25.0), ("Reduce", 50.0), ("Barrier", 0.0)];

#[test]
fn a_preloaded_program_writes_a_report() {
    let tools = Tools::chosen();
    let folder = compiled(&tools, "calls.c", "calls");
    for ranks in [1, 4] {
        check_c(&tools, folder.path(), ranks);
    }
    // with an empty name the report is named after the program
    run(tools.launch(folder.path(), 2, &["./calls"]).env("COLLWISE_PROFILE", ""));
    assert!(usual_report(folder.path(), "calls.2.").is_some());
}

/// Persistent messages, those to neighbours and to others' memory, parts of the processes, files, and times without notes.
fn check_kinds(tools: &Tools) {
    let ranks = 4;
    let folder = compiled(tools, "kinds.c", "kinds");
    let said = run(&mut tools.launch(folder.path(), ranks, &["./kinds"]));
    assert!(!said.contains("collwise"), "{said}");
    let report = report_in(folder.path());
    let sum = |name: &str, of: fn(&CallSite) -> f64| report.sites.iter().filter(|s| s.call == name).map(of).sum::<f64>() / ranks as f64;
    let (count, bytes) = (|name| sum(name, |site| site.count.unwrap_or(0.0)), |name| sum(name, |site| site.bytes));
    let counts = ["Start", "Neighbor_alltoall", "Allreduce", "Sendrecv", "Put", "Win_fence", "Comm_split", "Cart_create", "Send_init"];
    assert_eq!(counts.map(count), [12.0, 5.0, 8.0, 1.0, 3.0, 2.0, 1.0, 1.0, 1.0]);
    assert_eq!(count("Startall"), 1.0, "one that receives alone");
    assert_eq!(
        ["Start", "Neighbor_alltoall", "Sendrecv", "Put"].map(bytes),
        [12.0 * 800.0, 5.0 * 120.0, 400.0, 1200.0],
        "six neighbours of four"
    );
    let seconds: f64 = said.split(" seconds").next().and_then(|s| s.split_whitespace().last()?.parse().ok()).unwrap();
    assert!(report.mean.app_s < seconds - 0.25, "no time counts while nothing is noted: {} of {seconds}", report.mean.app_s);
    assert!(count("Testsome") >= 10.0);
    // what was not to be noted is not: its sendrecv has 777 doubles
    assert!(!report.sites.iter().any(|site| site.mean_bytes > Some(1000.0)), "{:?}", report.sites);
    // files are there without messages, and what MPI calls for them is not the program's
    if folder.path().join("written").exists() {
        assert_eq!((count("File_open"), count("File_write_at_all"), bytes("File_write_at_all"), count("File_close")), (1.0, 1.0, 0.0, 1.0));
        assert!(Run::of(&report).unwrap().files_s > 0.0);
    }
    let others = report
        .sites
        .iter()
        .filter(|site| ["Bcast", "Barrier", "Gather", "Allgather", "Alltoall", "Comm_dup"].contains(&site.call.as_str()));
    assert_eq!(others.count(), 0, "{:?}", report.sites);
    // the next rank, around the end; and of those of equal parity the other one
    let far: Vec<(&str, isize, usize, f64)> =
        report.distances.iter().map(|d| (d.call.as_str(), d.distance, d.processes, d.messages)).collect();
    let expected = [
        ("Ineighbor_allgatherv", -3, 1, 1.0),
        ("Ineighbor_allgatherv", 1, 3, 3.0),
        // of a row, whose first and last have one neighbour: to the one before and the one behind it they send unlike sizes
        ("Ineighbor_alltoallw", 1, 3, 3.0),
        ("Ineighbor_alltoallw", -1, 3, 3.0),
        ("Neighbor_allgather", -3, 1, 1.0),
        ("Neighbor_allgather", -1, 3, 3.0),
        ("Neighbor_allgather", 1, 3, 3.0),
        ("Neighbor_allgather", 3, 1, 1.0),
        ("Neighbor_alltoall", -1, 3, 15.0),
        ("Neighbor_alltoall", 1, 3, 15.0),
        ("Neighbor_alltoallw", 1, 3, 6.0),
        ("Neighbor_alltoallw", -1, 3, 6.0),
        ("Put", -3, 1, 3.0),
        ("Put", 1, 3, 9.0),
        ("Rget_accumulate", -3, 1, 1.0),
        ("Rget_accumulate", 1, 3, 3.0),
        ("Sendrecv", -2, 2, 2.0),
        ("Sendrecv", 2, 2, 2.0),
        // of another group
        ("Ssend", 1, 2, 2.0),
        ("Start", -3, 1, 12.0),
        ("Start", 1, 3, 36.0),
    ];
    assert_eq!(far, expected);
    let to_each = |call: &str| report.distances.iter().filter(|d| d.call == call).map(|d| d.bytes / d.messages).collect::<Vec<_>>();
    assert_eq!(
        (to_each("Neighbor_alltoallw"), to_each("Neighbor_alltoall"), to_each("Ssend")),
        (vec![20.0, 8.0], vec![80.0; 2], vec![240.0])
    );
    assert_eq!(["Neighbor_alltoallw", "Ineighbor_allgatherv", "Rget_accumulate"].map(bytes), [2.0 * 21.0, 80.0, 400.0]);
    let at_least_once = [
        "Rget_accumulate",
        "Win_flush_local",
        "Win_flush_local_all",
        "Win_sync",
        "Win_test",
        "Win_create_dynamic",
        "Win_allocate_shared",
        "Comm_dup_with_info",
        "Comm_disconnect",
        "Comm_free",
        "Request_get_status",
    ];
    assert!(at_least_once.iter().all(|name| count(name) >= 1.0), "{:?}", at_least_once.map(count));
    // in two communicators of two, and none of those that one process is in alone: that sends nothing
    let calls = Run::of(&report).unwrap().calls;
    // bytes of a call are those of a block, or of all blocks
    for (name, noted_as, count, bytes) in [
        ("Allreduce", "allreduce", 7.0, 32.0),
        ("Iallreduce", "iallreduce", 6.0, 32.0),
        ("Alltoallv", "alltoallv", 5.0, 160.0),
        ("Gatherv", "gatherv", 4.0, 80.0),
        ("Scan", "scan", 3.0, 8.0),
        ("Reduce_scatter", "reduce_scatter", 2.0, 160.0),
        ("Reduce_scatter_block", "reduce_scatter_block", 1.0, 80.0),
        ("Igather", "igather", 1.0, 80.0),
        ("Igatherv", "igatherv", 1.0, 80.0),
        ("Iscatter", "iscatter", 1.0, 80.0),
        ("Iscatterv", "iscatterv", 1.0, 80.0),
        ("Iallgatherv", "iallgatherv", 1.0, 80.0),
        ("Ialltoallv", "ialltoallv", 1.0, 160.0),
        ("Iscan", "iscan", 1.0, 80.0),
        ("Iexscan", "iexscan", 1.0, 80.0),
        ("Ireduce_scatter", "ireduce_scatter", 1.0, 160.0),
        ("Ireduce_scatter_block", "ireduce_scatter_block", 1.0, 80.0),
    ] {
        let part = report.uses.iter().find(|used| used.collective == noted_as && used.ranks == 2).unwrap_or_else(|| panic!("{name}"));
        assert_eq!((part.stride, part.processes, part.calls, part.bytes), (Some(2), Some(4), count, bytes), "{name}");
        let of_name: Vec<_> = calls.iter().filter(|call| call.name == name).map(|call| (call.part, call.count)).collect();
        assert_eq!(of_name, [(Some(Part::new(2, Some(2))), count)], "{name}");
    }
    // of the first of two all receive 160 bytes, and of the other 40; in place all 160
    let sizes = |noted_as: &str| report.uses.iter().filter(|u| u.collective == noted_as).map(|u| (u.calls, u.bytes)).collect::<Vec<_>>();
    assert_eq!((sizes("alltoallw"), sizes("ialltoallw")), (vec![(3.0, 40.0), (2.5, 160.0)], vec![(1.0, 40.0), (1.0, 160.0)]));
}

#[test]
fn calls_of_all_kinds_are_noted() {
    check_kinds(&Tools::chosen());
}

/// A report of the usual name.
fn usual_report(folder: &Path, start: &str) -> Option<PathBuf> {
    let mut files = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
    files.find(|f| f.file_name().unwrap().to_string_lossy().starts_with(start) && f.extension().is_some_and(|e| e == "mpiP"))
}

#[test]
fn a_preloaded_fortran_program_writes_a_report() {
    let tools = Tools::chosen();
    let folder = compiled(&tools, "calls.f90", "calls");
    for ranks in [1, 3] {
        check(&tools, folder.path(), ranks, &FORTRAN);
    }
}

/// The same build of the preloaded library: nothing in it is of one MPI library.
#[test]
#[ignore = "needs MPICH; make test runs it where it is"]
fn programs_of_mpich_write_reports() {
    let tools = Tools::mpich();
    let folder = compiled(&tools, "calls.c", "calls");
    check_c(&tools, folder.path(), 2);
    tools.compile(folder.path(), "calls.f90", "calls", &[]);
    check(&tools, folder.path(), 2, &FORTRAN);
    check_kinds(&tools);
    threads_share_their_time(&tools);
    all_that_is_legal(&tools);
}

/// The engine of this build beside the preloaded library, where `make install` has it, and a policy with hosts for so many ranks.
struct Site {
    folder: TempDir,
    ranks: usize,
}

impl Site {
    fn new(ranks: usize) -> Site {
        let folder = tempfile::tempdir().unwrap();
        three_groups(folder.path(), ranks);
        Site { folder, ranks }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A program with adaptive collectives.
    fn launch(&self, tools: &Tools, program: &[&str]) -> Command {
        let mut command = tools.launch(self.path(), self.ranks, program);
        command
            .env_remove("COLLWISE_PROFILE")
            .env("COLLWISE_POLICY", "three.toml")
            .env("COLLWISE_HOSTS", "hosts")
            .env("COLLWISE_TRACE", ".");
        command
    }

    /// Plans that were carried out since it was asked last.
    fn plans(&self) -> usize {
        let traces = (0..self.ranks).map(|rank| self.path().join(format!("rank-{rank}.jsonl")));
        traces
            .filter_map(|file| std::fs::read_to_string(&file).ok().inspect(|_| std::fs::remove_file(&file).unwrap()))
            .map(|t| t.lines().count())
            .sum()
    }
}

/// What a program printed, without what we say.
fn own_words(said: &str) -> Vec<&str> {
    said.lines().filter(|line| !line.starts_with("collwise:")).collect()
}

/// A program that calls every collective in every way prints the same with adaptive ones.
fn results_are_the_same(tools: &Tools, ranks: usize) {
    let site = Site::new(ranks);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let flags = [format!("-I{}", tests.display()), "-DPLAIN=\"plain.h\"".into()];
    tools.compile(site.path(), "../../capi/tests/every.c", "every", &[&flags[0], &flags[1]]);
    let without = run(tools.launch(site.path(), ranks, &["./every"]).env_remove("COLLWISE_PROFILE"));
    assert_eq!(without.matches("collwise:").count(), 1, "{without}");
    assert!(without.contains("COLLWISE_POLICY names no policy"), "{without}");
    let with = run(&mut site.launch(tools, &["./every"]));
    assert_eq!(own_words(&without), own_words(&with));
    assert!(with.contains(", 0 wrong, ") && site.plans() > 1000, "{with}");
    // both at once: what the engine calls inside is no call of the program's
    run(site.launch(tools, &["./every"]).env("COLLWISE_PROFILE", "both.mpiP"));
    let report = Report::read(&site.path().join("both.mpiP")).unwrap();
    let both = calls(&report);
    let is_world = |u: &&Use| u.ranks == ranks && u.communicator == "MPI_COMM_WORLD";
    let world = report.uses.iter().filter(is_world).filter(|u| u.collective == "bcast" && u.bytes > 0.0);
    assert!(world.clone().count() > 2 && world.clone().all(|u| u.predicted_s > Some(0.0) && u.algorithm.len() > 3), "{:?}", report.uses);
    run(site.launch(tools, &["./every"]).env("COLLWISE_PROFILE", "alone.mpiP").env_remove("COLLWISE_POLICY"));
    let alone = calls(&Report::read(&site.path().join("alone.mpiP")).unwrap());
    assert_eq!(both, alone);
}

/// Datatypes of MPI 4's calls with large counts are packed as a whole, and those that are made of them.
fn types_with_large_counts_travel(tools: &Tools) {
    let site = Site::new(3);
    tools.compile(site.path(), "large_types.c", "large_types", &[]);
    let said = run(&mut site.launch(tools, &["./large_types"]));
    assert_eq!(said.matches(" arrives").count(), 9, "{said}");
    assert!(site.plans() >= 9);
}

/// One file to preload, and beside it the libraries for two MPI libraries, as `make install` has them.
#[test]
#[ignore = "needs MPICH, and the library for it in target/mpich; make test runs it where it is"]
fn one_preloaded_file_serves_both_mpi_libraries() {
    let lib = tempfile::tempdir().unwrap();
    let for_mpich = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/mpich/release/libcollwise_c.so");
    std::fs::copy(built().join("libcollwise_preload.so"), lib.path().join("libcollwise_preload.so")).unwrap();
    std::fs::copy(built().join("libcollwise_c.so"), lib.path().join("libcollwise-openmpi.so")).unwrap();
    std::fs::copy(for_mpich, lib.path().join("libcollwise-mpich.so")).unwrap();
    // its ranks that wait must yield: there are few cores
    compile("cc", lib.path(), "../../tests/mpich_yield.c", "yield.so", &["-shared", "-fPIC", "-O2", "-ldl"]);
    let file = |name: &str| lib.path().join(name).display().to_string();
    let both = file("libcollwise_preload.so");
    results_are_the_same(&Tools { libraries: both.clone(), ..Tools::chosen() }, 3);
    let mpich = Tools { libraries: format!("{both}:{}", file("yield.so")), ..Tools::mpich() };
    results_are_the_same(&mpich, 3);
    types_with_large_counts_travel(&mpich);
    // one that was built for another library is refused
    std::fs::copy(lib.path().join("libcollwise-mpich.so"), lib.path().join("libcollwise-openmpi.so")).unwrap();
    let tools = Tools { libraries: both, ..Tools::chosen() };
    let site = Site::new(2);
    tools.compile(site.path(), "calls.c", "calls", &[]);
    let said = run(&mut site.launch(&tools, &["./calls"]));
    assert_eq!(said.matches("collwise:").count(), 1, "{said}");
    assert!(said.contains("MPI library"), "{said}");
}

#[test]
fn adaptive_collectives_have_the_same_results() {
    let tools = Tools::chosen();
    [2, 5].into_iter().for_each(|ranks| results_are_the_same(&tools, ranks));
}

/// Programs of `legal.c` end as without us where collectives are adaptive, too.
#[test]
fn legal_programs_end_as_without_adaptive_collectives() {
    let tools = Tools::chosen();
    for (word, ranks) in [("attribute", 2), ("groups", 2), ("nobody", 3), ("large", 2), ("failing", 2), ("elsewhere", 2)] {
        let site = Site::new(ranks);
        tools.compile(site.path(), "legal.c", "legal", &[]);
        let policy = site.path().join("three.toml");
        let said =
            run(site.launch(&tools, &["./legal", word]).env("COLLWISE_POLICY", policy).env("COLLWISE_HOSTS", site.path().join("hosts")));
        assert!(said.contains(&format!("done {word}")), "{said}");
    }
}

#[test]
fn a_policy_that_cannot_be_used_is_said_once() {
    let tools = Tools::chosen();
    let site = Site::new(3);
    tools.compile(site.path(), "calls.c", "calls", &[]);
    for (policy, hosts) in [("no-such.toml", "hosts"), ("three.toml", "no-such-hosts"), ("hosts", "hosts")] {
        let said = run(site.launch(&tools, &["./calls"]).env("COLLWISE_POLICY", policy).env("COLLWISE_HOSTS", hosts));
        assert_eq!(said.matches("collwise:").count(), 1, "{said}");
        assert_eq!(site.plans(), 0);
    }
}

#[test]
fn fortran_programs_are_adaptive() {
    let tools = Tools::chosen();
    let site = Site::new(3);
    tools.compile(site.path(), "calls.f90", "calls", &[]);
    run(&mut site.launch(&tools, &["./calls"]));
    assert!(site.plans() > 100);
}

/// Three threads that wait in MPI at once wait once: the time in MPI is that of the process, and the report is one that is read.
fn threads_share_their_time(tools: &Tools) {
    let folder = compiled(tools, "threads.c", "threads");
    run(&mut tools.launch(folder.path(), 2, &["./threads"]));
    let report = report_in(folder.path());
    let waiting = report.tasks[0];
    assert!(waiting.mpi_s <= waiting.app_s && waiting.mpi_s > 0.5 * waiting.app_s && waiting.app_s > 0.25, "{waiting:?}");
    let receives: f64 = report.sites.iter().filter(|s| s.call == "Recv").filter_map(|s| s.count).sum();
    assert_eq!(receives, 15.0);
    Run::of(&report).unwrap();
}

#[test]
fn time_in_mpi_of_several_threads_is_no_more_than_all() {
    threads_share_their_time(&Tools::chosen());
}

/// Programs of `legal.c` end as without us, say nothing of us, and deliver a report.
fn all_that_is_legal(tools: &Tools) {
    let folder = compiled(tools, "legal.c", "legal");
    let run = |word: &str, ranks: usize| {
        let _ = std::fs::remove_file(folder.path().join("report.mpiP"));
        let said = run(&mut tools.launch(folder.path(), ranks, &["./legal", word]));
        assert!(said.contains(&format!("done {word}")) && !said.contains("collwise"), "{said}");
        calls(&report_in(folder.path()))
    };
    let call = |name: &str, count: f64, bytes: f64| (name.to_string(), count, bytes);
    assert_eq!(run("none", 2), []);
    let shares = std::fs::read_to_string(folder.path().join("report.mpiP")).unwrap();
    assert!(shares.contains(" 0.00\n") && !shares.contains("-0.00"), "a share of nothing: {shares}");
    assert_eq!(run("attribute", 2), [call("Barrier", 1.0, 0.0)]);
    // among one process: nothing is sent, and the report has the size, in three digits
    assert_eq!(run("large", 2), []);
    let large = report_in(folder.path()).sites.into_iter().find(|site| site.call == "Bcast").unwrap();
    assert_eq!((large.count, large.mean_bytes), (Some(2.0), Some(3.22e9)));
    assert_eq!(run("failing", 2), []);
    // relative names are within the folder where the program began
    assert_eq!(run("elsewhere", 2), []);
    // in a call with a root the two groups differ: of the root's, only the root says what is sent
    let groups = [call("Bcast", 1.0, 4.0), call("Comm_dup", 1.0, 0.0), call("Gather", 1.0, 4.0), call("Scatterv", 1.0, 4.0)];
    assert_eq!(run("groups", 2), groups);
    let shared = run("nobody", 3);
    let bytes = |name: &str| shared.iter().find(|c| c.0 == name).map(|c| (c.1, c.2));
    assert_eq!((bytes("Bcast"), bytes("Reduce")), (Some((1.0, 8.0 / 3.0)), Some((1.0, 8.0 / 3.0))));
    assert_eq!(bytes("Reduce_scatter"), Some((1.0, 8.0)));
}

#[test]
fn legal_programs_end_as_without_it() {
    all_that_is_legal(&Tools::chosen());
}

/// What a program spawns does not overwrite its report.
fn spawned_programs_have_reports(tools: &Tools) {
    let folder = compiled(tools, "spawn.c", "spawn");
    run(&mut tools.launch(folder.path(), 1, &["./spawn"]));
    assert_eq!(calls(&report_in(folder.path())), [("Barrier".to_string(), 1.0, 0.0), ("Bcast".to_string(), 1.0, 4.0)]);
    let noted = report_in(folder.path()).sites;
    assert!(["Comm_spawn", "Comm_disconnect"].iter().all(|name| noted.iter().any(|site| site.call == *name)), "{noted:?}");
    let spawned = Report::read(&usual_report(folder.path(), "spawn.1.").unwrap()).unwrap();
    assert_eq!(calls(&spawned), [("Bcast".to_string(), 1.0, 4.0)]);
}

#[test]
fn a_spawned_program_has_a_report_of_its_own() {
    spawned_programs_have_reports(&Tools::chosen());
}

#[test]
fn an_exception_through_mpi_arrives() {
    let tools = Tools::chosen();
    let folder = compiled(&tools, "throws.cc", "throws");
    run(&mut tools.launch(folder.path(), 2, &["./throws"]));
    let report = report_in(folder.path());
    assert_eq!(calls(&report), [("Barrier".to_string(), 2.0, 0.0)]);
    // the call that threw has ended: it shares no time with those after it
    assert!(report.tasks[0].mpi_s > 0.3, "{:?}", report.tasks);
}

#[test]
fn an_mpi_library_that_a_plugin_keeps_to_itself_is_found() {
    let tools = Tools::chosen();
    let folder = tempfile::tempdir().unwrap();
    tools.compile(folder.path(), "plugin.c", "plugin.so", &["-shared", "-fPIC", "-DPLUGIN"]);
    compile("cc", folder.path(), "plugin.c", "plugin", &["-ldl"]);
    run(&mut tools.launch(folder.path(), 2, &["./plugin"]));
    assert_eq!(calls(&report_in(folder.path())), [("Allreduce".to_string(), 1.0, 4.0), ("Barrier".to_string(), 1.0, 0.0)]);
}

#[test]
fn a_report_that_cannot_be_written_is_said_and_not_lost() {
    let tools = Tools::chosen();
    let folder = compiled(&tools, "legal.c", "legal");
    let said = run(tools.launch(folder.path(), 2, &["./legal"]).env("COLLWISE_PROFILE", "/no/such/folder/report"));
    assert_eq!(said.matches("collwise: failed to write /no/such/folder/report").count(), 1, "{said}");
    let usual = usual_report(folder.path(), "legal.2.").unwrap();
    assert!(said.contains(&usual.file_name().unwrap().to_string_lossy().into_owned()), "{said}");
    assert_eq!(Report::read(&usual).unwrap().ranks(), 2);
    // nor does it matter that nobody can hear it
    run(tools.launch(folder.path(), 2, &["./legal", "full"]).env("COLLWISE_PROFILE", "/no/such/folder/report"));
}

/// Under an MPI library whose handles are not known, the program is told so by one rank, and runs as without us.
#[test]
fn under_an_unknown_mpi_library_it_steps_aside() {
    let folder = tempfile::tempdir().unwrap();
    compile("cc", folder.path(), "other.c", "libother.so", &["-shared", "-fPIC", "-DLIBRARY"]);
    compile("cc", folder.path(), "other.c", "other", &["-L.", "-lother", "-Wl,-rpath,$ORIGIN"]);
    let with = |variables: &[(&str, &str)]| {
        let mut command = Command::new("env");
        command.args([preloaded().as_str(), "./other"]).current_dir(folder.path()).env("COLLWISE_PROFILE", "report.mpiP");
        for name in ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"] {
            command.env_remove(name);
        }
        let said = run(command.envs(variables.iter().copied()));
        assert!(said.contains("delivered"), "{said}");
        assert!(!folder.path().join("report.mpiP").exists());
        said
    };
    let said = with(&[]);
    assert_eq!(said.matches("collwise:").count(), 1, "{said}");
    assert!(["\"Other MPI 7.1\"", "Open MPI", "MPICH"].iter().all(|name| said.contains(name)), "{said}");
    assert!(with(&[("PMI_RANK", "0")]).contains("collwise:"));
    assert!(!with(&[("PMI_RANK", "3")]).contains("collwise:"));
    // the name alone is not enough: the handles must be there, and be its own
    assert!(with(&[("OTHER_VERSION", "Open MPI v9")]).contains("ompi_mpi_comm_world"));
    assert!(with(&[("OTHER_VERSION", "MPICH Version: 5.0"), ("OTHER_ABI", "1")]).contains("standard ABI"));
}

/// Of two programs of a job one has nothing preloaded: the other one steps aside, unless it is told that all have.
#[test]
fn jobs_of_several_programs_run_as_without_it() {
    let tools = Tools::chosen();
    let folder = compiled(&tools, "calls.c", "calls");
    let together = |with: &[&str], said: &str| {
        let mut command = tools.launch(folder.path(), 2, &["./calls"]);
        command.args([":", "-n", "1"]).args(with).arg("./calls");
        assert!(run(&mut command).contains(said));
    };
    together(&[], "several programs");
    assert!(!folder.path().join("report.mpiP").exists());
    let preload = preloaded();
    let mut both = tools.launch(folder.path(), 2, &["./calls"]);
    both.args([":", "-n", "1", "env", &preload, "./calls"]).env("COLLWISE_PRELOADED", "1");
    assert!(!run(&mut both).contains("several programs"));
    assert_eq!(report_in(folder.path()).ranks(), 3);
}

#[test]
fn programs_without_mpi_do_not_notice() {
    let shell = |script: &str| run(Command::new("env").args([preloaded().as_str(), "sh", "-c", script]));
    assert_eq!(shell("/bin/true"), "");
    assert_eq!(shell("echo one two | tr ' ' '\\n' | sort -r"), "two\none\n");
    let maps = shell("cat /proc/self/maps");
    assert!(maps.contains("libcollwise_preload.so"));
    assert!(!["libmpi", "libopen-", "libpmpi"].iter().any(|l| maps.contains(l)), "{maps}");
}
