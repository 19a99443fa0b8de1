//! Decisions for MPI libraries: what is written says the same when it is read by the library's rules, and what a legal program would not survive is refused.
#![cfg(feature = "cli")]

mod common;

use collwise::collective::{Collective, collective};
use collwise::export::{Decisions, Rule, decide, mpich, openmpi, openmpi_json, total_bytes};
use collwise::plan::everybody;
use collwise::policy::{CompiledPolicy, Policy};
use common::exports::choice;
use std::process::Command;

fn policy(name: &str) -> CompiledPolicy {
    CompiledPolicy::new(Policy::read(&common::file(&format!("policies/{name}.toml"))).unwrap()).unwrap()
}

fn decisions(name: &str, target: &collwise::export::Target, commute: bool) -> Vec<Decisions> {
    let policy = policy(name);
    decide(&policy, &everybody(&policy.policy), target, commute).unwrap().into_iter().map(|(decisions, _)| decisions).collect()
}

/// Sizes around all at which something changes, and others.
fn sizes(of: &Decisions) -> Vec<usize> {
    let edges = of.rules.iter().flat_map(|rule| [rule.from_bytes.saturating_sub(1), rule.from_bytes, rule.from_bytes + 1]);
    edges.chain((0..25).map(|k| 1 << k)).chain((0..20).map(|k| 1000 * k + 7)).collect()
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
