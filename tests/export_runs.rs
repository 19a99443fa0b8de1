//! Decisions for MPI libraries: real libraries run what was decided.
#![cfg(feature = "cli")]

mod common;

use collwise::collective::{COLLECTIVES, Collective, collective};
use collwise::export::{Choice, Decisions, Rule, decide, mpich, openmpi};
use collwise::plan::everybody;
use collwise::policy::{CompiledPolicy, Policy};
use common::exports::choice;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

/// One mpirun at a time: there are few processors.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The tools of an MPI library, and what is preloaded with its programs.
struct Tools {
    launcher: &'static str,
    /// Sources.
    preloaded: &'static [&'static str],
    folder: tempfile::TempDir,
}

impl Tools {
    /// Where the library is installed: compiled programs.
    fn new(compiler: &'static str, launcher: &'static str, preloaded: &'static [&'static str]) -> Option<Tools> {
        let is_there = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
        if !is_there(compiler) || !is_there(launcher) {
            // what is printed by macros is shown of failed tests alone
            let why = format!("SKIPPED a test of exports: {compiler} or {launcher} is not installed (scripts/setup.sh installs them)\n");
            std::io::stderr().write_all(why.as_bytes()).unwrap();
            return None;
        }
        let tools = Tools { launcher, preloaded, folder: tempfile::tempdir().unwrap() };
        for program in ["some_collectives", "legal_calls"] {
            tools.build(Command::new(compiler).args(["-o", program]).arg(common::file(&format!("tests/programs/{program}.c"))));
        }
        for source in preloaded {
            let name = format!("{}.so", Path::new(source).file_stem().unwrap().display());
            tools.build(Command::new("cc").args(["-shared", "-fPIC", "-O2", "-w", "-o", &name]).arg(common::file(source)).arg("-ldl"));
        }
        Some(tools)
    }

    fn build(&self, command: &mut Command) {
        let output = command.current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", text(&output));
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a program says on so many ranks; it must succeed, and is ended if it hangs.
    fn run(&self, ranks: usize, environment: &[(String, String)], program: &str, arguments: &[String]) -> String {
        let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let shared = |source: &&str| self.at(&format!("{}.so", Path::new(source).file_stem().unwrap().display())).display().to_string();
        let preloaded: Vec<String> = self.preloaded.iter().map(shared).collect();
        let mut command = Command::new("timeout");
        command.args(["-k", "5", "120", self.launcher, "-n", &ranks.to_string()]);
        if self.launcher.contains("openmpi") {
            command.arg("--oversubscribe");
        }
        command.arg("env").arg(format!("LD_PRELOAD={}", preloaded.join(" "))).arg(self.at(program)).args(arguments);
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"), ("OMPI_MCA_mpi_yield_when_idle", "1")]);
        let output = command.envs(environment.iter().cloned()).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What rank 0 is seen to do in each call, one after the other.
    fn trace(&self, ranks: usize, environment: &[(String, String)], calls: &[String]) -> Vec<Vec<String>> {
        let said = self.run(ranks, environment, "some_collectives", calls);
        let mut found: Vec<Vec<String>> = Vec::new();
        for line in said.lines() {
            match line.strip_prefix("calls ") {
                Some(_) => found.push(Vec::new()),
                None => found.last_mut().unwrap().push(line.to_string()),
            }
        }
        assert_eq!(found.len(), calls.len() + 1, "{said}");
        found
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn open_mpi() -> Option<Tools> {
    Tools::new("mpicc.openmpi", "mpirun.openmpi", &["tests/programs/openmpi_trace.c"])
}

/// Open MPI's functions, by its names of algorithms.
const FUNCTIONS: [(&str, &str, &str); 33] = [
    ("bcast", "basic_linear", "basic_linear"),
    ("bcast", "chain", "chain"),
    ("bcast", "pipeline", "pipeline"),
    ("bcast", "split_binary_tree", "split_bintree"),
    ("bcast", "binary_tree", "bintree"),
    ("bcast", "binomial", "binomial"),
    ("bcast", "knomial", "knomial"),
    ("bcast", "scatter_allgather", "scatter_allgather"),
    ("bcast", "scatter_allgather_ring", "scatter_allgather_ring"),
    ("reduce", "linear", "basic_linear"),
    ("reduce", "chain", "chain"),
    ("reduce", "pipeline", "pipeline"),
    ("reduce", "binary", "binary"),
    ("reduce", "binomial", "binomial"),
    ("reduce", "rabenseifner", "redscat_gather"),
    ("allreduce", "recursive_doubling", "recursivedoubling"),
    ("allreduce", "ring", "ring"),
    ("allreduce", "segmented_ring", "ring_segmented"),
    ("allreduce", "rabenseifner", "redscat_allgather"),
    ("allgather", "bruck", "bruck"),
    ("allgather", "recursive_doubling", "recursivedoubling"),
    ("allgather", "ring", "ring"),
    ("allgather", "neighbor", "neighborexchange"),
    ("alltoall", "linear", "basic_linear"),
    ("alltoall", "pairwise", "pairwise"),
    ("alltoall", "modified_bruck", "bruck"),
    ("barrier", "linear", "basic_linear"),
    ("barrier", "double_ring", "doublering"),
    ("barrier", "bruck", "bruck"),
    ("barrier", "tree", "tree"),
    ("gather", "basic_linear", "basic_linear"),
    ("gather", "binomial", "binomial"),
    ("scatter", "basic_linear", "basic_linear"),
];

/// What the tracer says of a choice.
fn traced(collective: &Collective, choice: &Choice) -> String {
    let of = |(c, name, function): &(&str, &str, &'static str)| (*c == collective.name && *name == choice.name()).then_some(*function);
    let function = FUNCTIONS.iter().find_map(of).unwrap_or(choice.name());
    let (segment, fan_out) = if choice.algorithm.segmented { (choice.segment, choice.fan_out) } else { (0, 0) };
    format!("runs {}_intra_{function} {segment} {fan_out}", collective.name)
}

/// Runs calls on both sides of where each rule begins, and compares what the library does.
fn runs_what_was_decided(tools: &Tools, decisions: &[Decisions], environment: &[(String, String)]) -> usize {
    let mut calls = Vec::new();
    for d in decisions {
        let largest = if d.collective.combines || d.collective.name == "bcast" { 1 << 20 } else { 1 << 16 };
        let edges =
            d.rules.iter().flat_map(|rule| [rule.from_bytes.saturating_sub(8), rule.from_bytes, rule.from_bytes + 8]).chain([64, largest]);
        // of whole numbers, and not none, of which the library does nothing
        let sizes: std::collections::BTreeSet<usize> =
            edges.map(|b| if d.collective.sized() { b.next_multiple_of(8).clamp(8, largest) } else { 0 }).collect();
        calls.extend(sizes.into_iter().map(|bytes| (d, bytes)));
    }
    let names: Vec<String> = calls.iter().map(|(d, bytes)| format!("{}:{bytes}", d.collective.name)).collect();
    let found = tools.trace(decisions[0].ranks, environment, &names);
    let mut proved = 0;
    for ((d, bytes), ran) in calls.into_iter().zip(found) {
        if let Some(choice) = d.at(bytes).unwrap().choice {
            assert_eq!(ran.first(), Some(&traced(d.collective, &choice)), "{} of {bytes}: {ran:?}", d.collective.name);
            proved += 1;
        }
    }
    proved
}

#[test]
fn open_mpi_runs_every_algorithm_that_it_is_told_to() {
    let Some(tools) = open_mpi() else { return };
    // each collective with all of its algorithms in turns, from 0, 1 KiB, 2 KiB and so on
    let in_turn = |collective: &'static Collective, ranks: usize, skip: usize| {
        let all: Vec<_> = (openmpi::TARGET.algorithms)(collective).iter().filter(|a| (a.fits)(ranks)).collect();
        let one = (openmpi::TARGET.one_for_all_sizes)(collective) || !collective.sized();
        let taken: Vec<_> = if one { vec![all[skip % all.len()]] } else { all };
        let rule = |(k, algorithm): (usize, &&'static collwise::export::LibraryAlgorithm)| {
            let segment = if algorithm.segmented { 256 << (k % 2) } else { 0 };
            Rule {
                from_bytes: 1024 * k,
                choice: Some(Choice { algorithm, segment, fan_out: algorithm.fan_outs.first().copied().unwrap_or(0) }),
            }
        };
        let mut rules: Vec<Rule> = taken.iter().enumerate().map(rule).collect();
        // of blocks there are as many as ranks: not for the first sizes
        rules.sort_by_key(|rule| rule.choice.is_some_and(|c| c.algorithm.blocks));
        rules.iter_mut().enumerate().for_each(|(k, rule)| rule.from_bytes = 1024 * k);
        Decisions { collective, ranks, rules }
    };
    let mut proved = 0;
    for (ranks, skip) in [(4, 0), (4, 1), (5, 2), (6, 3)] {
        let collectives = COLLECTIVES.iter().copied().filter(|c| !(openmpi::TARGET.algorithms)(c).is_empty());
        let decisions: Vec<Decisions> = collectives.map(|collective| in_turn(collective, ranks, skip)).collect();
        let file = tools.at("rules");
        std::fs::write(&file, openmpi::write(&decisions, "a test").unwrap()).unwrap();
        proved += runs_what_was_decided(&tools, &decisions, &openmpi_environment(&file));
    }
    assert!(proved > 150, "{proved}");
}

#[test]
fn open_mpi_runs_what_the_command_exports() {
    let Some(tools) = open_mpi() else { return };
    let platform = tools.at("three.toml");
    std::fs::write(&platform, common::THREE_GROUPS).unwrap();
    let collwise = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_collwise")).args(arguments).current_dir(tools.folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        output
    };
    collwise(&["tune", "--platform", "three.toml", "-o", "policy.toml"]);
    let compiled = CompiledPolicy::new(Policy::read(&tools.at("policy.toml")).unwrap()).unwrap();
    for (option, rules) in [(&["--all-commute"][..], "rules.all"), (&[], "rules")] {
        collwise(&[&["export", "policy.toml", "--to", "openmpi", "-o", rules], option].concat());
        let decided = decide(&compiled, &everybody(&compiled.policy), &openmpi::TARGET, !option.is_empty()).unwrap();
        let decisions: Vec<Decisions> = decided.into_iter().map(|(decisions, _)| decisions).collect();
        assert_eq!(decisions[0].ranks, 8);
        let proved = runs_what_was_decided(&tools, &decisions, &openmpi_environment(&tools.at(rules)));
        assert!(proved > 10, "{proved}");
    }
    // legal programs survive the latter
    let said = tools.run(8, &openmpi_environment(&tools.at("rules")), "legal_calls", &[]);
    for call in ["reduce: 0 wrong\n", "allreduce: 0 wrong\n", "allgather in place: 0 wrong\n"] {
        assert!(said.contains(call), "{said}");
    }
}

/// What is set for a file of rules.
fn openmpi_environment(file: &Path) -> Vec<(String, String)> {
    openmpi::environment(file).into_iter().map(|(name, value)| (name.into(), value)).collect()
}

#[test]
fn mpich_runs_what_it_is_told_to() {
    let preloaded = &["tests/programs/mpich_trace.c", "tests/mpich_yield.c"];
    let Some(tools) = Tools::new("mpicc.mpich", "mpirun.mpich", preloaded) else { return };
    let linked = text(&Command::new("ldd").arg(tools.at("some_collectives")).output().unwrap());
    let library = linked
        .lines()
        .find(|line| line.contains("libmpich"))
        .and_then(|line| line.split_whitespace().nth(2))
        .unwrap_or_else(|| panic!("{linked}"));
    let built_in = mpich::Tree::of_library(&std::fs::read(library).unwrap()).unwrap();
    let [bcast, allreduce, reduce] = ["bcast", "allreduce", "reduce"].map(|name| collective(name).unwrap());
    let of = |collective: &'static Collective, rules: &[(usize, Option<&str>)]| {
        let told = |name: &str| choice(&mpich::TARGET, collective, &format!("MPIR_{name}"), 0, 0);
        let rules = rules.iter().map(|&(from_bytes, name)| Rule { from_bytes, choice: name.map(told) });
        Decisions { collective, ranks: 4, rules: rules.collect() }
    };
    let told = [
        of(
            bcast,
            &[
                (0, Some("Bcast_intra_scatter_ring_allgather")),
                (8192, Some("Bcast_intra_scatter_recursive_doubling_allgather")),
                (65_536, Some("Bcast_intra_binomial")),
                (1 << 20, None),
            ],
        ),
        of(allreduce, &[(0, Some("Allreduce_intra_recursive_doubling")), (4096, Some("Allreduce_intra_reduce_scatter_allgather"))]),
        of(reduce, &[(0, Some("Reduce_intra_binomial")), (4096, Some("Reduce_intra_reduce_scatter_gather"))]),
    ];
    let file = tools.at("selection.json");
    std::fs::write(&file, mpich::write(&told, &built_in).unwrap()).unwrap();
    // on one host messages must go where they can be seen
    let mut environment = mpich::environment(&file, &told);
    environment.push(("MPIR_CVAR_NOLOCAL".into(), "1".into()));
    let calls = [
        "bcast:4000",
        "bcast:8192",
        "bcast:40000",
        "bcast:65536",
        "bcast:400000",
        "allreduce:2048",
        "allreduce:4096",
        "reduce:8000",
        "reduce:2048",
    ];
    let found = tools.trace(4, &environment, &calls.map(String::from));
    let sends = |bytes: &[usize]| bytes.iter().map(|b| format!("sends {b}")).collect::<Vec<_>>();
    // of a scatter rank 0 sends two quarters and one; around the ring three quarters, by doubling one and two; a binomial tree sends all, twice
    let expected: [&[usize]; 5] = [
        &[2000, 1000, 1000, 1000, 1000],
        &[4096, 2048, 2048, 4096],
        &[20_000, 10_000, 10_000, 20_000],
        &[65_536, 65_536],
        &[400_000, 400_000],
    ];
    for (k, expected) in expected.into_iter().enumerate() {
        assert_eq!(found[k], sends(expected), "{}", calls[k]);
    }
    assert_eq!(found[5], sends(&[2048, 2048]));
    assert_eq!(found[6], sends(&[2048, 1024, 1024, 2048]));
    // rank 0 is the root: by halving it sends half, by a binomial tree nothing
    assert_eq!((&found[7], &found[8]), (&sends(&[4000, 2000]), &Vec::new()));
    // among five ranks nothing was told, and the library does what it does without a file
    let large = ["bcast:4000".to_string(), "bcast:400000".to_string(), "allreduce:4096".to_string()];
    let nolocal = [("MPIR_CVAR_NOLOCAL".to_string(), "1".to_string())];
    assert_eq!(tools.trace(5, &environment, &large), tools.trace(5, &nolocal, &large));
    assert_ne!(found[0], tools.trace(4, &nolocal, &large)[0]);
}
