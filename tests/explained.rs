//! What `explain`, `predict`, `export` and `app whatif` say of a policy: what is done, what it takes and why.
#![cfg(feature = "cli")]

mod common;

use collwise::collective::collective;
use collwise::policy::Policy;
use common::file;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn collwise(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_collwise")).args(arguments).output().unwrap()
}

fn ok(arguments: &[&str]) -> String {
    let output = collwise(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&ok(&[arguments, &["--json"]].concat())).unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = collwise(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stderr).unwrap()
}

fn policy(name: &str) -> String {
    file(&format!("policies/{name}.toml")).display().to_string()
}

/// A policy as another one with a change.
fn changed(folder: &Path, name: &str, change: impl Fn(&str) -> String) -> String {
    let path = folder.join(format!("{name}.toml"));
    std::fs::write(&path, change(&std::fs::read_to_string(policy(name)).unwrap())).unwrap();
    path.display().to_string()
}

/// Above all that was measured the library's own is called where it is nearly as fast.
#[test]
fn sizes_above_all_that_were_measured_have_a_line_and_a_reason() {
    let said = ok(&["explain", &policy("two-core-vm"), "--bytes", "100MiB"]);
    assert!(
        said.contains("larger than the 16MiB that were measured: there the policy's way takes 20.4 ms, the MPI library's own 21.6 ms\n"),
        "{said}"
    );
    let folder = tempfile::tempdir().unwrap();
    let mut known = Policy::read(Path::new(&policy("ccgrid2007"))).unwrap();
    let alltoall = collective("alltoall").unwrap();
    let row = known.collectives.get_mut(alltoall).unwrap().two_level.last_mut().unwrap();
    row.evidence.native_s = Some(1.1 * row.evidence.measured_s.unwrap());
    let (largest, path) = (row.at_bytes, folder.path().join("known.toml").display().to_string());
    std::fs::write(&path, known.to_toml().unwrap()).unwrap();
    let of = |arguments: &[&str]| ok(&[&["explain", &path, "--collective", "alltoall"], arguments].concat());
    assert!(of(&[]).lines().last().unwrap().contains("the MPI library's own"), "{}", of(&[]));
    let [at, above] = [largest, 2 * largest].map(|bytes| of(&["--bytes", &format!("{bytes}B")]));
    assert!(!at.contains("larger than") && above.contains("\nthe MPI library's own\n  larger than the "), "{at}{above}");
}

#[test]
fn a_root_that_is_not_there_is_refused_whatever_is_planned() {
    for (name, ranks) in [("hcl16", 16), ("ccgrid2007", 78), ("two-core-vm", 8)] {
        let (policy, root) = (policy(name), ranks.to_string());
        for collective in collwise::collective::COLLECTIVES.iter().copied().filter(|c| c.rooted) {
            let of = ["--collective", collective.name, "--root", &root];
            let sized = [&of[..], &["--bytes", "1KiB"]].concat();
            let commands = [("explain", &of[..]), ("explain", &sized), ("predict", &sized), ("export", &sized)];
            for (command, options) in commands {
                let goal: &[&str] = if command == "export" { &["--to", "goal"] } else { &[] };
                let said = refused(&[&[command, &policy], options, goal].concat());
                assert!(said.contains(&format!("plan {} from rank {root} of {ranks} ranks", collective.one())), "{said}");
            }
        }
    }
}

/// Eight hosts of one switch whose processors are alike, on which messages to one port are lost.
const LOSES: &str = "format = 1\nname = \"loses\"\n[hosts]\ngap_s = 1e-6\ngap_s_per_byte = 8.5e-9\neager_limit_bytes = 131072\nsend_overhead_s = 4e-5\n\
     copy_s_per_byte = 0.5e-9\ncombine_s_per_byte = 1e-9\n\
     send_overhead_s_per_byte = 1e-8\nrecv_overhead_s = 4e-5\nrecv_overhead_s_per_byte = 1e-8\n[tcp]\nscatter_leap_bytes = 65536\nscatter_leap_s = 1e-3\n\
     gather_low_bytes = 4096\ngather_high_bytes = 65536\ngather_escalation_s = 0.2\ngather_escalation_share = 0.05\n\
     [[group]]\nname = \"a\"\ncount = 8\nlatency_s = 1.5e-4\n";

#[test]
fn where_messages_are_lost_the_same_is_done_from_every_root() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("p.toml"), LOSES).unwrap();
    let policy = at("policy.toml");
    ok(&["tune", "--platform", &at("p.toml"), "--collectives", "gather,scatter,reduce", "-o", &policy]);
    for collective in ["gather", "scatter", "reduce"] {
        let from = |root: &str| ok(&["explain", &policy, "--collective", collective, "--root", root]);
        let first = from("0");
        assert!(!first.contains("library's own"), "{first}");
        for root in ["3", "7"] {
            assert_eq!(from(root), first, "{collective}");
        }
        let replayed = &json(&["predict", &policy, "--collective", collective, "--root", "3", "--bytes", "1KiB"])[0];
        assert!(replayed["replayed_s"].as_f64().is_some_and(|seconds| seconds > 0.0), "{replayed}");
    }
}

/// The time of a size, and of the replay of it.
fn times(policy: &str, collective: &str, bytes: &str) -> Vec<(f64, f64)> {
    let all = json(&["predict", policy, "--collective", collective, "--bytes", bytes]);
    let of = |row: &Value| (row["predicted_s"].as_f64().unwrap(), row["replayed_s"].as_f64().unwrap());
    all.as_array().unwrap().iter().map(of).collect()
}

#[test]
fn sizes_above_those_that_were_tuned_take_their_own_time() {
    for (name, collective, bytes) in [
        ("hcl16", "allreduce", "4MiB,64MiB,1GiB"),
        ("icluster2", "allgather", "64KiB,256KiB,1MiB"),
        ("ccgrid2007", "alltoall", "1MiB,4MiB,16MiB"),
    ] {
        for (predicted, replayed) in times(&policy(name), collective, bytes) {
            let ratio = predicted / replayed;
            // beyond what was tuned times go on as they grew between the last two sizes
            assert!((0.75..1.25).contains(&ratio), "{name}: {collective} of {bytes} takes {predicted} s, replayed {replayed}");
        }
    }
    // where the root is in another group, which no row is for
    let from = |bytes: &str| {
        let of = ["explain", &policy("ccgrid2007"), "--collective", "gather", "--root", "70", "--bytes", bytes];
        json(&of)["predicted_s"].as_f64().unwrap()
    };
    let ratio = from("16MiB") / from("1MiB");
    assert!((8.0..20.0).contains(&ratio), "{ratio}");
}

#[test]
fn what_is_too_large_for_memory_is_not_replayed_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let many = changed(folder.path(), "icluster2", |text| text.replace("icluster2-[1-100]", "icluster2-[1-20000]"));
    let of = ["--collective", "allgather", "--bytes", "64KiB"];
    let output = collwise(&[&["predict", &many], &of[..]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("not replayed: failed to replay 64KiB over 20000 ranks"), "{said}");
    assert!(json(&[&["predict", &many], &of[..]].concat())[0]["replayed_s"].is_null());
    let said = refused(&[&["export", &many, "--to", "goal"], &of[..]].concat());
    assert!(said.contains("failed to replay 64KiB over 20000 ranks"), "{said}");
}

#[test]
fn a_collective_without_rows_is_the_librarys_own_in_words() {
    let policy = policy("two-core-vm");
    let words = "the policy has no row for it: tune it with --collectives allreduce";
    let explained = ok(&["explain", &policy, "--collective", "allreduce"]);
    assert_eq!(explained, format!("the MPI library's own\n  {words}\n"));
    let done = json(&["explain", &policy, "--collective", "allreduce"])[0]["done"].as_str().unwrap().to_string();
    assert!(done.starts_with("the MPI library's own") && done.ends_with(words), "{done}");
    let predict = ["predict", &policy, "--collective", "allreduce", "--bytes", "4"];
    let said = String::from_utf8(collwise(&predict).stderr).unwrap();
    assert_eq!(said, format!("collwise: not replayed: {words}\n"));
    assert_eq!(json(&predict)[0]["not_replayed"], words);
    // and a broadcast
    let folder = tempfile::tempdir().unwrap();
    let untuned = changed(folder.path(), "two-core-vm", |text| {
        let blocks = text.split("\n\n").filter(|block| !block.contains("[evidence.group.vm.bcast]")).map(|block| {
            let Some((before, rest)) = block.split_once("bcast = [\n") else { return block.to_string() };
            before.to_string() + rest.split_once("]\n").map_or("", |(_, after)| after)
        });
        blocks.collect::<Vec<_>>().join("\n\n")
    });
    let said = ok(&["explain", &untuned]);
    assert!(said.starts_with("the MPI library's own") && said.contains("tune it with --collectives bcast"), "{said}");
    let predict = ["predict", &untuned, "--bytes", "1KiB"];
    let words = "the policy has no row for it: tune it with --collectives bcast";
    assert_eq!(String::from_utf8(collwise(&predict).stderr).unwrap(), format!("collwise: not replayed: {words}\n"));
    let said = json(&predict);
    assert!(said[0]["predicted_s"].is_null() && said[0]["groups_s"]["vm"].is_null() && said[0]["not_replayed"] == words, "{said}");
    assert!(json(&["explain", &untuned, "--bytes", "1KiB"])["predicted_s"].is_null());
    // beyond what was measured the library's own is taken, and what it takes is said
    let said = json(&["predict", &policy, "--bytes", "64MiB"]);
    assert!(said[0]["native_s"].is_number() && said[0]["predicted_s"] == said[0]["native_s"] && said[0]["replayed_s"].is_null(), "{said}");
}

#[test]
fn what_was_measured_from_rank_0_is_no_reason_for_another_root() {
    let policy = policy("ccgrid2007");
    let explain = |root: &str| ok(&["explain", &policy, "--bytes", "512KiB", "--root", root]);
    let (first, beside, last) = (explain("0"), explain("3"), explain("77"));
    for followed in [&first, &beside] {
        assert!(followed.contains("measured 22.8 ms") && followed.contains("next best: line in 4KiB"), "{followed}");
    }
    assert!(!last.contains("measured") && !last.contains("next best"), "{last}");
    assert!(last.contains("chosen by prediction: the policy's row for it was made from rank 0, among all its ranks"), "{last}");
    // the time is that of what is done
    for root in ["0", "25", "77"] {
        for row in json(&["predict", &policy, "--bytes", "128KiB,512KiB,2MiB", "--root", root]).as_array().unwrap() {
            let (predicted, replayed) = (row["predicted_s"].as_f64().unwrap(), row["replayed_s"].as_f64().unwrap());
            assert!((predicted / replayed - 1.0).abs() < 0.02, "{row} from {root}");
        }
    }
    let reduce = |root: &str| json(&["explain", &policy, "--collective", "reduce", "--bytes", "64KiB", "--root", root]);
    assert!(reduce("0")["runner_up"].is_string() && reduce("77")["runner_up"].is_null() && reduce("77")["native_s"].is_null());
    // processors differ: no other root is as rank 0
    let unlike = ok(&["explain", &self::policy("hcl16"), "--collective", "reduce", "--bytes", "8KiB", "--root", "5"]);
    assert!(unlike.contains("chosen by prediction") && !unlike.contains("runs"), "{unlike}");
}

#[test]
fn the_table_of_all_sizes_is_short_whatever_the_segments() {
    for name in ["hcl16", "icluster2", "ccgrid2007", "pmeo2006"] {
        for collective in ["bcast", "allreduce", "gather", "reduce"] {
            let said = ok(&["explain", &policy(name), "--collective", collective]);
            assert!(said.lines().count() <= 24, "{name}: {said}");
        }
    }
    let said = ok(&["explain", &policy("hcl16")]);
    assert!(said.lines().any(|line| line.contains("segmented_binary by speed in ") && line.contains("B to ")), "{said}");
}

/// A row's segments are cut for the size of a call, and none may be of a size that the row was to avoid.
#[test]
fn between_the_rows_of_a_network_that_loses_messages_what_is_told_is_what_is_replayed() {
    for (collective, last) in [("reduce", 1 << 20), ("gather", 262_143)] {
        let sizes: Vec<String> = std::iter::successors(Some(60_000), |&bytes| Some(bytes * 51 / 50))
            .take_while(|&bytes| bytes < last)
            .map(|b: usize| b.to_string())
            .collect();
        let said = ok(&["predict", &policy("hcl16"), "--collective", collective, "--bytes", &sizes.join(","), "--json"]);
        let rows: Vec<serde_json::Value> = serde_json::from_str(&said).unwrap();
        let replayed: Vec<_> =
            rows.iter().filter_map(|row| Some((row, row["predicted_s"].as_f64()?, row["replayed_s"].as_f64()?))).collect();
        assert!(replayed.len() > 60, "{said}");
        for (row, told, replayed) in replayed {
            assert!(replayed < 2.0 * told && told < 2.0 * replayed, "{collective}: {row}");
        }
    }
}

/// What models missed is not hidden.
#[test]
fn what_a_row_of_a_group_was_measured_to_take_is_told_beside_what_was_predicted() {
    let said = ok(&["explain", &policy("two-core-vm"), "--bytes", "16MiB"]);
    let text = std::fs::read_to_string(policy("two-core-vm")).unwrap();
    let table = &text[text.find("[evidence.group.").unwrap()..];
    let row =
        table.lines().find(|line| line.starts_with("16MiB = ") && line.contains("predicted_s = 0.006011, measured_s = 0.02039")).unwrap();
    assert!(said.contains("  at 16MiB: predicted 6.01 ms, measured 20.4 ms\n"), "{row}: {said}");
}

#[test]
fn reasons_say_why_something_is_taken_and_nothing_else() {
    let hcl16 = policy("hcl16");
    let explain = |collective: &str, bytes: &str| ok(&["explain", &hcl16, "--collective", collective, "--bytes", bytes]);
    // some of the runs of the next best lost a message
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(&hcl16).unwrap();
    let tables = &text[text.find("[evidence.group.hcl.allreduce]").unwrap()..];
    let row = tables.lines().find(|line| line.starts_with("16KiB = ")).unwrap();
    let (rest, margin) = row.split_once("margin = ").unwrap();
    assert!(!margin.starts_with('-') && text.matches(row).count() == 1, "{row}");
    let changed = folder.path().join("p.toml");
    std::fs::write(&changed, text.replace(row, &format!("{rest}margin = -0.27 }}"))).unwrap();
    let lossy = ok(&["explain", changed.to_str().unwrap(), "--collective", "allreduce", "--bytes", "16KiB"]);
    let words = ", faster by 27 % in the median of its runs, not in their mean, which decides where messages are lost";
    assert!(lossy.contains(words), "{lossy}");
    // nothing was measured between two sizes that were
    assert!(!explain("allreduce", "20275").contains("next best"));
    let native = ok(&["explain", &policy("ccgrid2007-smpi"), "--bytes", "1"]);
    assert!(!native.contains("slower by -"), "{native}");
    for (name, collective) in
        ["hcl16", "icluster2", "ccgrid2007"].into_iter().flat_map(|n| ["bcast", "allreduce", "gather"].map(|c| (n, c)))
    {
        for bytes in ["1", "3547", "32KiB", "200000", "512KiB", "1944038"] {
            let said = ok(&["explain", &policy(name), "--collective", collective, "--bytes", bytes]);
            let wrong = ["by -", "best: none", ",;", ",\n"].iter().find(|wrong| said.contains(**wrong));
            assert!(wrong.is_none(), "{wrong:?} of {name}: {said}");
        }
    }
}

#[test]
fn what_is_longer_than_mpi_counts_is_the_librarys_own_and_that_is_said() {
    let policy = policy("ccgrid2007");
    let of = ["--collective", "gather", "--bytes", "40MiB"];
    let said = ok(&[&["explain", &policy], &of[..]].concat());
    assert!(said.contains("\nthe MPI library's own\n") && said.contains("which MPI does not count"), "{said}");
    assert_eq!(json(&[&["explain", &policy], &of[..]].concat())["native"], true);
    assert!(refused(&[&["export", &policy, "--to", "goal"], &of[..]].concat()).contains("which MPI does not count"));
    let predicted = json(&[&["predict", &policy], &of[..]].concat());
    assert!(predicted[0]["predicted_s"].is_null() && predicted[0]["not_replayed"].as_str().unwrap().contains("does not count"));
    assert_eq!(json(&["explain", &policy, "--collective", "gather", "--bytes", "16MiB"])["native"], false);
    // a broadcast goes in segments
    assert_eq!(json(&["explain", &policy, "--bytes", "3GiB"])["native"], false);
}

/// What `whatif` says of a report of all ranks of the CCGrid platform, each of which called this ten times, with so many bytes.
fn whatif_of(folder: &Path, policy: &str, call: &str, bytes: usize) -> Value {
    whatif_of_calls(folder, policy, |_| vec![(call, 0.05, bytes)])
}

/// The same of calls that take so many seconds on each rank.
fn whatif_of_calls<'a>(folder: &Path, policy: &str, calls: impl Fn(usize) -> Vec<(&'a str, f64, usize)>) -> Value {
    let profile = |rank: usize| {
        let mut p = collwise::qnm::Profile { node: format!("n{rank}"), app_s: 10.0, ..Default::default() };
        for (call, seconds, bytes) in calls(rank) {
            (0..10).for_each(|_| p.note(call, "a.c", 3, seconds, bytes));
        }
        p
    };
    let profiles: Vec<_> = (0..78).map(profile).collect();
    let path = folder.join("all.mpiP");
    std::fs::write(&path, collwise::qnm::report("./app", &profiles).unwrap()).unwrap();
    json(&["app", "whatif", &path.display().to_string(), "--policy", policy])[0].clone()
}

#[test]
fn whatif_knows_all_collectives_and_says_what_explain_says() {
    let folder = tempfile::tempdir().unwrap();
    let (at, policy) = (folder.path(), policy("ccgrid2007"));
    let tuned = Policy::read(Path::new(&policy)).unwrap().collectives;
    assert!(tuned.len() >= 9, "{:?}", tuned.keys());
    for &c in tuned.keys() {
        let bytes = if c.sized() { 1024 } else { 0 };
        let answer = whatif_of(at, &policy, c.function.strip_prefix("MPI_").unwrap(), bytes);
        let saving = &answer["savings"][0];
        assert_eq!((saving["bytes"].as_u64(), saving["calls"].as_f64()), (Some(bytes as u64), Some(10.0)), "{}", c.name);
        let explained = json(&["explain", &policy, "--collective", c.name, "--bytes", &bytes.to_string()]);
        assert_eq!(saving["adaptive_s"], explained["predicted_s"], "{}", c.name);
        assert!(answer["not_known"].as_array().unwrap().is_empty(), "{answer}");
    }
    // calls with counts for each process, and those that the report has no bytes of
    for (call, bytes, why) in [("Alltoallv", 1024, "policies do not say what it takes"), ("Allgather", 0, "how many bytes a call sends")] {
        let answer = whatif_of(at, &policy, call, bytes);
        assert!(answer["savings"].as_array().unwrap().is_empty());
        let unknown = &answer["not_known"][0];
        assert_eq!(
            (&unknown["call"], unknown["seconds"].as_f64(), &answer["untuned_s"]),
            (&Value::from(call), Some(0.5), &unknown["seconds"])
        );
        assert!(unknown["why"].as_str().unwrap().contains(why), "{unknown}");
    }
}

/// Collectives on communicators of some ranks are asked of the policy as such, where the report says which these are.
#[test]
fn whatif_knows_communicators_of_some_ranks() {
    use collwise::qnm::{Alike, Profile, report};
    let folder = tempfile::tempdir().unwrap();
    let uses = [("all", 78, Some(1), 10), ("pairs", 39, Some(2), 20), ("some", 3, None, 5), ("alone", 1, None, 5)];
    let profile = |rank: usize| {
        let mut profile = Profile { node: format!("n{rank}"), app_s: 10.0, ..Profile::default() };
        for (name, ranks, stride, calls) in uses {
            let alike = Alike { collective: "allreduce".into(), digits: 4, size: "8B".into(), ranks, stride, communicator: name.into() };
            for _ in 0..calls {
                profile.note("Allreduce", "8B", 4, 0.02, 8);
                profile.note_use(alike.clone(), 0.02, 8, || None);
            }
        }
        profile
    };
    let path = folder.path().join("parts.mpiP");
    std::fs::write(&path, report("./app", &(0..78).map(profile).collect::<Vec<_>>()).unwrap()).unwrap();
    let answer = &json(&["app", "whatif", &path.display().to_string(), "--policy", &policy("ccgrid2007")])[0];
    let savings = answer["savings"].as_array().unwrap();
    let of = |name: &str| savings.iter().map(|s| s[name].as_f64().unwrap()).collect::<Vec<_>>();
    assert_eq!((of("among"), of("calls")), (vec![39.0, 78.0], vec![20.0, 10.0]));
    let all = json(&["explain", &policy("ccgrid2007"), "--collective", "allreduce", "--bytes", "8"])["predicted_s"].as_f64().unwrap();
    assert_eq!(of("adaptive_s")[1], all);
    assert!(of("adaptive_s")[0] != all);
    let unknown = answer["not_known"].as_array().unwrap();
    assert!(unknown.len() == 1 && (unknown[0]["seconds"].as_f64().unwrap() - 0.1).abs() < 1e-9, "{answer}");
    assert!(unknown[0]["why"].as_str().unwrap().contains("among which"), "{answer}");
}

#[test]
fn whatif_takes_what_the_librarys_own_took_when_any_collective_was_tuned() {
    let folder = tempfile::tempdir().unwrap();
    let row = "predicted_s = 0.00887, measured_s = 0.008873,";
    let measured = changed(folder.path(), "ccgrid2007", |text| {
        assert_eq!(text.matches(row).count(), 1);
        text.replace(row, &format!("{row} native_s = 0.02,"))
    });
    let saving = &whatif_of(folder.path(), &measured, "Allreduce", 8)["savings"][0];
    let of = |name: &str| saving[name].as_f64().unwrap();
    assert_eq!(of("native_s"), 0.02);
    assert!((of("saved_s") - 10.0 * (0.02 - of("adaptive_s"))).abs() < 1e-9, "{saving}");
    assert!((of("at_most_s") - 10.0 * (0.05 - of("adaptive_s"))).abs() < 1e-9, "{saving}");
}

/// Of what goes one way only, a call follows another one before all are done; what goes another way is waited for.
#[test]
fn whatif_knows_that_calls_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let ccgrid = policy("ccgrid2007");
    let of = |policy: &str, call: &str, bytes: usize| {
        let answer = whatif_of(folder.path(), policy, call, bytes);
        let seconds = |name: &str| answer["savings"][0][name].as_f64().unwrap();
        let [alone, in_turn, at_most] = ["adaptive_s", "in_turn_s", "at_most_s"].map(seconds);
        assert!((answer["at_most_s"].as_f64().unwrap() - at_most).abs() < 1e-9, "{answer}");
        // the first of ten begins alone
        let least = (in_turn - 0.1 * alone) / 0.9;
        assert!((at_most - 10.0 * (0.05 - least)).abs() < 1e-9, "{answer}");
        (alone, in_turn)
    };
    for call in ["Bcast", "Reduce", "Gather", "Scatter"] {
        let (alone, in_turn) = of(&ccgrid, call, 4096);
        assert!(in_turn < 0.9 * alone && in_turn > 0.1 * alone, "{call}: {in_turn} of {alone} s");
    }
    for call in ["Allreduce", "Allgather", "Alltoall", "Barrier"] {
        let (alone, in_turn) = of(&ccgrid, call, if call == "Barrier" { 0 } else { 4096 });
        assert_eq!(alone, in_turn, "{call}");
    }
    // a reduction between broadcasts is waited for
    let both = whatif_of_calls(folder.path(), &ccgrid, |_| vec![("Bcast", 0.05, 4096), ("Reduce", 0.05, 4096)]);
    assert!(both["savings"].as_array().unwrap().iter().all(|s| s["adaptive_s"] == s["in_turn_s"]), "{both}");
    // what takes longer by the policy saves nothing
    let answer = whatif_of(folder.path(), &ccgrid, "Alltoall", 1 << 20);
    assert!(answer["at_most_s"].as_f64().unwrap() < 0.0, "{answer}");
    let report = folder.path().join("all.mpiP").display().to_string();
    let said = ok(&["app", "whatif", &report, "--policy", &ccgrid]);
    assert!(said.contains("at most: nothing, even if no process waited"), "{said}");
}

/// The library's own took no more than the program shows, whatever it took when the policy was tuned.
#[test]
fn whatif_saves_no_more_than_calls_took() {
    let folder = tempfile::tempdir().unwrap();
    let row = "predicted_s = 0.00887, measured_s = 0.008873,";
    let slow = changed(folder.path(), "ccgrid2007", |text| text.replace(row, &format!("{row} native_s = 0.08,")));
    let of = |calls: &dyn Fn(usize) -> Vec<(&'static str, f64, usize)>| {
        let answer = whatif_of_calls(folder.path(), &slow, calls);
        let saving = answer["savings"].as_array().unwrap().iter().find(|s| s["call"] == "Allreduce").unwrap().clone();
        let alone = saving["adaptive_s"].as_f64().unwrap();
        assert_eq!(answer["saved_s"], saving["saved_s"]);
        // seconds of a call, as far as the wall time shows it
        saving["saved_s"].as_f64().unwrap() / 10.0 + alone
    };
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(near(of(&|_| vec![("Allreduce", 0.05, 8)]), 0.05));
    // what others wait for elsewhere is no time of these calls, and does not make theirs less
    assert!(near(of(&|_| vec![("Allreduce", 0.02, 8), ("Barrier", 0.2, 0)]), 0.02));
    assert!(near(of(&|rank| vec![("Allreduce", 0.02, 8), ("Recv", if rank == 0 { 0.0 } else { 0.3 }, 8)]), 0.02));
    // nor does it hang on where the process that computes longest waits, if it is a little longer
    let root = |longer: f64| {
        whatif_of_calls(folder.path(), &slow, |rank| {
            let waits = if rank == 0 { 0.025 - longer } else { 0.0 };
            vec![("Allreduce", if rank == 0 { 0.01 } else { 0.035 }, 8), ("Recv", waits, 8)]
        })["saved_s"]
            .as_f64()
            .unwrap()
    };
    let (alike, longer) = (root(0.0), root(0.0001));
    assert!(alike > 0.0 && (alike - longer).abs() < 0.02 * alike, "{alike} s, and {longer} s with a root that computes longer");
    // the process that computes longest waits for nobody
    assert!(near(of(&|rank| vec![("Allreduce", if rank == 7 { 0.03 } else { 0.3 }, 8)]), 0.03));
}

/// What the library's own takes grows with the message, as what the policy does.
#[test]
fn whatif_takes_the_librarys_own_at_the_size_of_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let measured = changed(folder.path(), "ccgrid2007", |text| {
        let mut times = 0;
        let lines = text.lines().map(|line| match line.split_once(", measured_s = ") {
            Some((before, after)) if !line.contains("native_s") => {
                times += 1;
                format!("{before}, native_s = 0.{times:03}, measured_s = {after}")
            }
            _ => line.to_string(),
        });
        lines.collect::<Vec<_>>().join("\n")
    });
    let own = |bytes: usize| whatif_of(folder.path(), &measured, "Allreduce", bytes)["savings"][0]["native_s"].as_f64().unwrap();
    let policy = Policy::read(Path::new(&measured)).unwrap();
    let allreduce = policy.collectives.keys().find(|c| c.name == "allreduce").unwrap();
    let rows: Vec<(usize, f64)> = policy.two_level(allreduce).iter().filter_map(|r| Some((r.at_bytes, r.evidence.native_s?))).collect();
    assert!(rows.len() > 2);
    for two in rows.windows(2) {
        let between = own((two[0].0 + two[1].0) / 2);
        assert!(between > two[0].1.min(two[1].1) && between < two[0].1.max(two[1].1), "{between} of {two:?}");
        // reports round bytes
        assert!((own(two[1].0) / two[1].1 - 1.0).abs() < 1e-3, "{two:?}");
    }
}

#[test]
fn whatif_says_what_setting_communicators_up_takes_once() {
    let folder = tempfile::tempdir().unwrap();
    let without = whatif_of(folder.path(), &policy("ccgrid2007"), "Allreduce", 8);
    assert_eq!((&without["setup_s"], &without["saved_s"]), (&Value::Null, &Value::Null));
    let measured = changed(folder.path(), "ccgrid2007", |text| text.replace("\nmade_by =", "\nsetup_s = 0.125\nmade_by ="));
    let answer = whatif_of(folder.path(), &measured, "Allreduce", 8);
    assert_eq!((answer["setup_s"].as_f64(), answer["tuned_ranks"].as_u64()), (Some(0.125), Some(78)));
    assert_eq!(answer["at_most_s"], without["at_most_s"], "it is said beside");
    // a program without such calls sets none up
    let none = whatif_of(folder.path(), &measured, "Alltoallv", 8);
    assert_eq!((&none["setup_s"], none["at_most_s"].as_f64()), (&Value::Null, Some(0.0)));
    // nor does a process alone
    let alone = file("tests/data/mpip/npb-is.A.1.mpiP").display().to_string();
    assert_eq!(json(&["app", "whatif", &alone, "--policy", &measured])[0]["setup_s"], Value::Null);
}
