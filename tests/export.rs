//! Decisions for MPI libraries: what is written says the same when it is read by the library's rules, what a legal program would not survive is refused, and real
//! libraries run what was decided.
#![cfg(feature = "cli")]

mod common;

use collwise::collective::{COLLECTIVES, Collective, collective};
use collwise::export::{Choice, Decisions, Rule, decide, mpich, openmpi, openmpi_json, total_bytes};
use collwise::plan::Location;
use collwise::policy::{CompiledPolicy, Policy};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

/// One mpirun at a time: there are few processors.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn policy(name: &str) -> CompiledPolicy {
    CompiledPolicy::new(Policy::read(&common::file(&format!("policies/{name}.toml"))).unwrap()).unwrap()
}

/// All ranks of a policy, group by group.
fn everybody(policy: &CompiledPolicy) -> Vec<Location> {
    let of = |(group, g): (usize, &collwise::policy::GroupPolicy)| (0..g.hosts.len()).map(move |position| Location { group, position });
    policy.policy.groups.iter().enumerate().flat_map(of).collect()
}

fn decisions(name: &str, target: &collwise::export::Target, commute: bool) -> Vec<Decisions> {
    let policy = policy(name);
    decide(&policy, &everybody(&policy), target, commute).unwrap().into_iter().map(|(decisions, _)| decisions).collect()
}

/// Sizes around all at which something changes, and others.
fn sizes(of: &Decisions) -> Vec<usize> {
    let edges = of.rules.iter().flat_map(|rule| [rule.from_bytes.saturating_sub(1), rule.from_bytes, rule.from_bytes + 1]);
    edges.chain((0..25).map(|k| 1 << k)).chain((0..20).map(|k| 1000 * k + 7)).collect()
}

/// An algorithm of a library by its name, with a fan-out and a segment.
fn choice(target: &collwise::export::Target, collective: &Collective, name: &str, fan_out: usize, segment: usize) -> Choice {
    let all = (target.algorithms)(collective);
    Choice { algorithm: all.iter().find(|a| a.name == name).unwrap_or_else(|| panic!("no {name}")), segment, fan_out }
}

const POLICIES: [&str; 4] = ["ccgrid2007", "hcl16", "icluster2", "two-core-vm"];

#[test]
fn what_is_written_for_open_mpi_is_what_was_decided_at_every_size() {
    let mut told = 0;
    for (name, commute) in POLICIES.into_iter().flat_map(|name| [(name, false), (name, true)]) {
        let decisions = decisions(name, &openmpi::TARGET, commute);
        let (text, json) = (openmpi::write(&decisions, name).unwrap(), openmpi_json::write(&decisions).unwrap());
        let (rules, json) = (openmpi::Rules::parse(&text).unwrap(), openmpi_json::Rules::parse(&json).unwrap());
        for d in &decisions {
            let number = openmpi::number(d.collective).unwrap();
            for (ranks, bytes) in
                [1, 2, d.ranks - 1, d.ranks, d.ranks + 1, 5000].into_iter().flat_map(|n| sizes(d).into_iter().map(move |b| (n, b)))
            {
                let wanted = d.at(bytes).unwrap().choice.filter(|_| ranks == d.ranks);
                let library_bytes = total_bytes(d.collective, ranks, bytes);
                let line = rules.at(number, ranks as u64, library_bytes as u64).filter(|line| line.algorithm > 0);
                let found = line.map(|line| (line.algorithm, line.fan_out as usize, line.segment as usize));
                assert_eq!(
                    found,
                    wanted.map(|c| (c.algorithm.id, c.fan_out, c.segment)),
                    "{name}: {} of {bytes} among {ranks}",
                    d.collective.name
                );
                let line = json.at(d.collective, ranks, library_bytes).map(|line| (line.alg, line.faninout, line.seg_size));
                assert_eq!(line, found, "{name}: JSON, {} of {bytes} among {ranks}", d.collective.name);
                told += usize::from(found.is_some());
            }
        }
    }
    assert!(told > 1000, "{told}");
}

#[test]
fn blocks_are_counted_as_the_library_counts_them() {
    // 8 ranks change at blocks of 1,000 bytes: all of them have 8,000
    let alltoall = collective("alltoall").unwrap();
    let rule = |from_bytes, name| Rule { from_bytes, choice: Some(choice(&openmpi::TARGET, alltoall, name, 0, 0)) };
    let decisions = [Decisions { collective: alltoall, ranks: 8, rules: vec![rule(0, "modified_bruck"), rule(1000, "pairwise")] }];
    let rules = openmpi::Rules::parse(&openmpi::write(&decisions, "a test").unwrap()).unwrap();
    assert_eq!([7999, 8000].map(|bytes| rules.at(3, 8, bytes).unwrap().algorithm), [3, 2]);
    let json = openmpi_json::Rules::parse(&openmpi_json::write(&decisions).unwrap()).unwrap();
    assert_eq!([7999, 8000].map(|bytes| json.at(alltoall, 8, bytes).unwrap().alg), [3, 2]);
}

#[test]
fn what_open_mpi_ignores_silently_or_does_not_survive_is_refused() {
    let refused = |text: &str, words: &str| {
        let said = openmpi::Rules::parse(text).unwrap_err().to_string();
        assert!(said.contains(words), "{text:?}: {said}");
    };
    refused("rule-file-version-2\n1 7 1 2 1 0 1 0 0", "4.1.8");
    refused("1 7 1 2 1 0 10 0 0", "no algorithm 10");
    refused("1 11 1 2 1 0 8 0 0", "no algorithm 8");
    refused("1 99 1 2 1 0 1 0 0", "no collective 99");
    refused("1 7 1 2 1 1 1 0 0", "must begin at 0");
    refused("1 7 1 2 2 0 1 0 0 0 2 0 0", "ascend");
    refused("1 7 2 4 1 0 1 0 0 4 1 0 1 0 0", "as many or more");
    refused("1 7 1 2 2 0 1 0 0", "ends before a size");
    refused("1 7 1 2 1 0 09 0 0", "\"09\"");
    for number in [0, 9, 15] {
        refused(&format!("1 {number} 1 2 2 0 1 0 0 4000 2 0 0"), "wait for ever");
    }
    // as C reads numbers
    let rules = openmpi::Rules::parse("# 5\n0x1 # one\n7, 1\n2 1\n0 06 0 020 # 9 9 9\n").unwrap();
    assert_eq!(rules.at(7, 4, 100), Some(openmpi::Line { from_bytes: 0, algorithm: 6, fan_out: 0, segment: 16 }));
    // below all blocks the first one holds
    assert_eq!(openmpi::Rules::parse("1 7 1 8 1 0 6 0 0").unwrap().at(7, 2, 0).unwrap().algorithm, 6);
    let scatter = collective("scatter").unwrap();
    let rule = |from_bytes, name| Rule { from_bytes, choice: Some(choice(&openmpi::TARGET, scatter, name, 0, 0)) };
    let decisions = [Decisions { collective: scatter, ranks: 4, rules: vec![rule(0, "binomial"), rule(1000, "basic_linear")] }];
    let said = openmpi::write(&decisions, "a test").unwrap_err().to_string();
    assert!(said.contains("wait for ever"), "{said}");
}

#[test]
fn only_what_is_right_for_any_operation_is_told_unless_all_commute() {
    let mut commuting = 0;
    for name in POLICIES {
        for (commute, d) in
            [false, true].into_iter().flat_map(|commute| decisions(name, &openmpi::TARGET, commute).into_iter().map(move |d| (commute, d)))
        {
            for choice in d.rules.iter().filter_map(|rule| rule.choice) {
                assert!(commute || !choice.algorithm.commuting, "{name}: {} {}", d.collective.name, choice.words());
                commuting += usize::from(choice.algorithm.commuting);
            }
        }
    }
    assert!(commuting > 0);
}

#[test]
fn algorithms_are_told_only_where_they_are_themselves() {
    for (name, target) in POLICIES.into_iter().flat_map(|name| [(name, &openmpi::TARGET), (name, &mpich::TARGET)]) {
        for d in decisions(name, target, target.name == "Open MPI") {
            if (target.one_for_all_sizes)(d.collective) {
                assert_eq!(d.rules.len(), 1, "{name}: {}", d.collective.name);
            }
            for (rule, choice) in d.rules.iter().filter_map(|rule| Some((rule, rule.choice?))) {
                let said = || format!("{name}: {} from {}: {}", d.collective.name, rule.from_bytes, choice.words());
                assert!((choice.algorithm.fits)(d.ranks), "{}", said());
                assert!(!choice.algorithm.blocks || rule.from_bytes >= 8 * d.ranks, "{}", said());
                // halves that are shorter than a segment go along a chain
                assert!(choice.name() != "split_binary_tree" || 2 * choice.segment <= rule.from_bytes, "{}", said());
                assert!(choice.segment == 0 || choice.algorithm.segmented, "{}", said());
            }
        }
    }
}

/// MPICH's selection in the tests' data.
fn selection() -> mpich::Tree {
    mpich::Tree::of_library(&std::fs::read(common::file("tests/data/mpich-selection.json")).unwrap()).unwrap()
}

fn call(collective: &Collective, ranks: usize, bytes: usize) -> mpich::Call {
    let name = collective.function.trim_start_matches("MPI_").to_lowercase();
    let all = (true, true, false, false);
    let (commutes, built_in_op, in_place, fewer_than_pow2) = all;
    let (avg_msg_size, total_msg_size) = (bytes, total_bytes(collective, ranks, bytes));
    mpich::Call { collective: name, ranks, avg_msg_size, total_msg_size, commutes, built_in_op, in_place, fewer_than_pow2 }
}

#[test]
fn what_is_written_for_mpich_selects_what_was_decided_and_else_what_the_library_does() {
    let built_in = selection();
    for name in POLICIES {
        let decisions = decisions(name, &mpich::TARGET, false);
        let tree = mpich::Tree::of_library(mpich::write(&decisions, &built_in).unwrap().as_bytes()).unwrap();
        for d in decisions.iter().filter(|d| d.is_told()) {
            for (ranks, bytes) in
                [1, 2, d.ranks - 1, d.ranks, d.ranks + 1, 5000].into_iter().flat_map(|n| sizes(d).into_iter().map(move |b| (n, b)))
            {
                let call = call(d.collective, ranks, bytes);
                let wanted = d.at(bytes).unwrap().choice.filter(|_| ranks == d.ranks).map(|c| c.algorithm.name.to_string());
                let selected = tree.selected(&call).unwrap();
                assert_eq!(selected, wanted.unwrap_or_else(|| built_in.selected(&call).unwrap()), "{name}: {call:?}");
                // what may be wrong is the library's own affair
                for unlike in [
                    mpich::Call { commutes: false, ..call.clone() },
                    mpich::Call { built_in_op: false, ..call.clone() },
                    mpich::Call { in_place: true, ..call.clone() },
                    mpich::Call { fewer_than_pow2: true, ..call.clone() },
                ] {
                    let guards = match d.collective.name {
                        "allreduce" | "reduce" => !unlike.commutes || !unlike.built_in_op || unlike.fewer_than_pow2,
                        "reduce_scatter" => !unlike.commutes,
                        "alltoall" => unlike.in_place,
                        _ => false,
                    };
                    let wanted = if guards { built_in.selected(&unlike).unwrap() } else { selected.clone() };
                    assert_eq!(tree.selected(&unlike).unwrap(), wanted, "{name}: {unlike:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_no_selection_of_mpich_is_refused() {
    let said = mpich::Tree::of_library(b"\x7fELF nothing \0 {\"collective=bcast\": 1} \0").unwrap_err().to_string();
    assert!(said.contains("libmpich.so"), "{said}");
    let whole = std::fs::read_to_string(common::file("tests/data/mpich-selection.json")).unwrap();
    let library = [
        b"\x7fELF\0".to_vec(),
        b"{\"collective=bcast\":{\"composition=x\":{}}}\0".to_vec(),
        whole.replace(['\n', ' '], "").into_bytes(),
        b"\0".to_vec(),
    ];
    assert_eq!(mpich::Tree::of_library(&library.concat()).unwrap(), selection());
    let bcast = collective("bcast").unwrap();
    let rule = Rule { from_bytes: 0, choice: Some(choice(&mpich::TARGET, bcast, "MPIR_Bcast_intra_binomial", 0, 0)) };
    let decisions = [Decisions { collective: bcast, ranks: 8, rules: vec![rule] }];
    let refused = |text: &str, words: &str| {
        let said = mpich::write(&decisions, &mpich::Tree::of_library(text.as_bytes()).unwrap()).unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    };
    refused(&whole.replace("collective=bcast", "collective=ibcast"), "has no \"collective=bcast");
    refused(&whole.replace("avg_msg_size<100", "moon_phase<100"), "moon_phase");
    refused(&whole.replace("avg_msg_size = any", "avg_msg_size<2000"), "do not hold for everything");
}

#[test]
fn the_command_writes_the_file_says_what_was_lost_and_what_must_go_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let collwise =
        |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_collwise")).args(arguments).current_dir(folder.path()).output().unwrap();
    let ccgrid = common::file("policies/ccgrid2007.toml").display().to_string();
    let output = collwise(&["export", &ccgrid, "--to", "openmpi"]);
    let (file, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{said}");
    openmpi::Rules::parse(&file).unwrap();
    for words in ["OMPI_MCA_coll_han_priority=0", "different counts and datatypes", "--all-commute", "lost", "communicators of 78 ranks"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let output = collwise(&["export", &ccgrid, "--to", "openmpi-json", "--json", "-o", "rules.json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ranks"], 78);
    let lost = |class: &serde_json::Value| {
        class["exported_s"].as_f64().zip(class["policy_s"].as_f64()).is_some_and(|(exported, own)| exported > own)
    };
    assert!(report["collectives"].as_array().unwrap().iter().any(|c| c["classes"].as_array().unwrap().iter().any(lost)));
    openmpi_json::Rules::parse(&std::fs::read_to_string(folder.path().join("rules.json")).unwrap()).unwrap();
    for (arguments, words) in [
        (vec!["--to", "mpich"], "--base"),
        (vec!["--to", "mpich", "--base", "rules.json"], "own selection"),
        (vec!["--to", "mpich", "--all-commute"], "--all-commute"),
        (vec!["--to", "openmpi", "--base", "rules.json"], "--base"),
        (vec!["--to", "openmpi", "--bytes", "1KiB"], "--bytes"),
        (vec!["--to", "openmpi", "--json"], "--output"),
    ] {
        let output = collwise(&[&["export", &ccgrid], &arguments[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(words), "{arguments:?}: {said}");
    }
}

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
        let collectives = COLLECTIVES.into_iter().filter(|c| !(openmpi::TARGET.algorithms)(c).is_empty());
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
        let decided = decide(&compiled, &everybody(&compiled), &openmpi::TARGET, !option.is_empty()).unwrap();
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
