//! The command as users meet it: results, JSON, bad input, exit codes.
#![cfg(feature = "cli")]

#[path = "common/command.rs"]
mod command;
mod common;

use command::{collwise, fails, json, ok, platform};
use common::file;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

#[test]
fn discover_groups_a_matrix_and_a_simulated_platform() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.csv"), "0,1e-5,1e-3\n1e-5,0,1e-3\n1e-3,1e-3,0\n").unwrap();
    let found = json(&["discover", "--matrix", "m.csv"], folder.path());
    assert_eq!(found["groups"][0]["ranks"], serde_json::json!([0, 1]));
    assert_eq!(found["groups"][0]["latency_s"], 1e-5);
    assert_eq!(found["groups"][1]["ranks"], serde_json::json!([2]));
    assert_eq!(found["quality"]["groups"][0]["worst_ratio"], 1.0);
    let names: Vec<Value> = json(&["discover", "--platform", &platform("ccgrid2007"), "-o", "p.toml"], folder.path())["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|g| g["name"].clone())
        .collect();
    assert_eq!(names, ["orsay", "grenoble-a", "grenoble-b", "grenoble-c", "toulouse", "sophia"]);
    let written = collwise::platform::Platform::read(&folder.path().join("p.toml")).unwrap();
    assert_eq!(written.groups.iter().map(|g| g.count).collect::<Vec<_>>(), [20, 11, 7, 1, 20, 19]);
    let latency = written.link(0, 5).unwrap().latency_s;
    assert!((latency / 8602.73e-6 - 1.0).abs() < 1e-3, "{latency}");
    ok(&["discover", "--platform", &platform("ccgrid2007"), "--method", "density"], folder.path());
}

#[test]
fn discover_says_what_is_wrong_with_a_matrix() {
    let folder = tempfile::tempdir().unwrap();
    for (text, words) in [
        ("0,1\n1,0,2\n", ["m.csv, line 2", "not square"]),
        ("0,x\n1,0\n", ["m.csv, line 1", "\"x\" in column 2"]),
        ("0,-1\n1,0\n", ["m.csv, line 1", "-1"]),
        ("0,NaN\n1,0\n", ["m.csv, line 1", "NaN"]),
        ("0\n", ["m.csv", "at least two rows"]),
    ] {
        std::fs::write(folder.path().join("m.csv"), text).unwrap();
        fails(&["discover", "--matrix", "m.csv"], folder.path(), 1, &words);
    }
    fails(&["discover", "--matrix", "none.csv"], folder.path(), 1, &["failed to read none.csv"]);
    fails(&["discover", "--method", "magic", "--matrix", "m.csv"], folder.path(), 1, &["eco, density, linkage"]);
}

#[test]
fn schedule_prints_what_it_should() {
    let folder = tempfile::tempdir().unwrap();
    let text = "format = 1\nroot = 0\ngap_s = [[0,1,2],[1,0,1],[2,1,0]]\nlatency_s = [[0,0.5,0.5],[0.5,0,0.5],[0.5,0.5,0]]\nlocal_s = [0.1, 3, 1]\n";
    std::fs::write(folder.path().join("s.toml"), text).unwrap();
    let found = json(&["schedule", "s.toml"], folder.path());
    // 0 -> 1 arrives at 1.5 and is done at 4.5; 1 -> 2 arrives at 3 and is done at 4: no schedule is done before 4.5
    assert_eq!(found["best"]["completion_s"], 4.5);
    assert_eq!(found["lower_bound_s"], 4.5);
    assert_eq!(found["best"]["sends"][0], serde_json::json!({ "from": 0, "to": 1, "start_s": 0.0, "arrive_s": 1.5 }));
    for name in ["Flat", "FEF", "ECEF", "ECEF-LA", "ECEF-LAt", "ECEF-LAT", "BottomUp"] {
        assert!(found["heuristics"][name].as_f64().unwrap() >= 4.5, "{name}");
    }
    let said = ok(&["schedule", "s.toml"], folder.path());
    assert!(said.contains("the optimum") && said.contains("|-- ") | said.contains("`-- ") && said.contains('L'), "{said}");
    std::fs::write(folder.path().join("s.toml"), text.replace("3, 1]", "3]")).unwrap();
    fails(&["schedule", "s.toml"], folder.path(), 1, &["s.toml, line 5", "2 entries for 3 groups"]);
    std::fs::write(folder.path().join("s.toml"), text.replace("[1,0,1]", "[1,0]")).unwrap();
    fails(&["schedule", "s.toml"], folder.path(), 1, &["s.toml, line 3", "not square"]);
}

#[test]
fn predict_replays_one_algorithm_under_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["predict", "--model", "loggp", "--param", "L=5e-6", "--param", "o=1e-6", "--param", "g=2e-6", "--param", "G=1e-9"];
    let arguments = [&arguments[..], &["--ranks", "64", "--algorithm", "binomial", "--bytes", "8KiB"]].concat();
    let t = json(&arguments, folder.path())[0]["predicted_s"].as_f64().unwrap();
    // six levels of o + (m-1) G + L + o; a node's next send waits g + (m-1) G, which is shorter than a level
    let level = 2.0 * 1e-6 + 8191.0 * 1e-9 + 5e-6;
    assert!((t / (6.0 * level) - 1.0).abs() < 1e-9, "{t} against {}", 6.0 * level);
    let wrong = |more: &[&str], words: &[&str]| {
        let all = [&["predict", "--model", "loggp", "--ranks", "4", "--algorithm", "flat", "--bytes", "1"], more].concat();
        fails(&all, folder.path(), 1, words);
    };
    wrong(&["--param", "L=5e-6"], &["parameter o is missing", "gap per byte"]);
    let three = ["--param", "L=1", "--param", "o=1", "--param", "g=1"];
    wrong(&[&three[..], &["--param", "G=-1"]].concat(), &["G = -1"]);
    wrong(&[&three[..], &["--param", "G=nan"]].concat(), &["G = NaN"]);
    wrong(&[&three[..], &["--param", "G=1us"]].concat(), &["\"1us\" is no number"]);
    wrong(&[&three[..], &["--param", "G=1", "--param", "x=1"]].concat(), &["there is no parameter x"]);
    wrong(&[&three[..], &["--param", "G=1", "--segment", "512"]].concat(), &["build flat", "neither --segment nor --radix"]);
    wrong(&[&three[..], &["--param", "G=1", "--radix", "3"]].concat(), &["build flat", "neither --segment nor --radix"]);
    let four = [&three[..], &["--param", "G=1", "--segment", "1B"]].concat();
    let tree = ["export", "--to", "goal", "--algorithm", "knomial", "--ranks", "4", "--bytes", "1KiB", "--segment", "512"];
    fails(&tree, folder.path(), 1, &["build knomial", "--radix, but no --segment"]);
    let wide = ["export", "--to", "goal", "--algorithm", "knomial", "--ranks", "40", "--bytes", "1KiB", "--radix", "41"];
    fails(&wide, folder.path(), 1, &["build knomial of radix 41", "40 is the largest"]);
    let huge =
        [&["predict", "--model", "loggp", "--ranks", "1000", "--algorithm", "segmented_chain", "--bytes", "1GiB"], &four[..]].concat();
    fails(&huge, folder.path(), 1, &["messages, at most"]);
    fails(&["predict", "--model", "loggp", "--bytes", "1"], folder.path(), 2, &["--ranks"]);
    fails(&["predict", "--bytes", "1"], folder.path(), 1, &["--model"]);
    fails(&["predict", "--model", "nonsense", "--ranks", "4", "--algorithm", "flat", "--bytes", "1"], folder.path(), 1, &["hockney"]);
    fails(&["predict", "p.toml", "--bytes", "5 parsecs"], folder.path(), 2, &["KiB"]);
}

#[test]
fn tune_explain_predict_check_and_compare_over_a_simulated_platform() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let told = ok(&["tune", "--platform", &platform("ccgrid2007"), "-o", "p.toml"], at);
    assert!(told.lines().count() <= 40, "it fits a screen: {told}");
    // the groups, what is done over all of them as `explain` says it, what it took, where it is
    for part in [&ok(&["explain", "p.toml"], at), "\nsophia ", "\nbarrier: ", "\nmeasured for ", "\npolicy written to p.toml\n"] {
        assert!(told.contains(part), "{part}\nis not in\n{told}");
    }
    let text = std::fs::read_to_string(at.join("p.toml")).unwrap();
    let all = ok(&["tune", "--platform", &platform("ccgrid2007"), "--verbose", "-o", "q.toml"], at);
    for part in ["runner-up", "sophia      0B ", "finalists inside groups ", "allreduce over all groups:\n"] {
        assert!(all.contains(part) && !told.contains(part), "{part}: {all}");
    }
    // what is there in one line for each collective is a table there
    for line in
        told.replace(" (--verbose says what for)", "").lines().filter(|line| !line.ends_with(" ways") && !line.contains(", all by "))
    {
        assert!(all.replace("q.toml", "p.toml").contains(line), "{line}\nis not in\n{all}");
    }
    let again = std::fs::read_to_string(at.join("q.toml")).unwrap().replace("--verbose -o q.toml", "-o p.toml");
    assert_eq!(text, again, "the same input and seed give the same policy");
    assert!(ok(&["check", "p.toml"], at).starts_with("valid: ccgrid2007, 6 groups"));
    ok(&["check", "p.toml", "--platform", &platform("ccgrid2007")], at);
    fails(&["check", "p.toml", "--platform", &platform("pmeo2006")], at, 3, &["host \"orsay-a-1\" is in no group"]);
    let explained = json(&["explain", "p.toml", "--bytes", "512KiB"], at);
    assert_eq!(explained["groups"].as_array().unwrap().len(), 6);
    assert_eq!(explained["sends"].as_array().unwrap().len(), 5);
    let said = ok(&["explain", "p.toml", "--bytes", "512KiB", "--root", "77"], at);
    assert!(said.starts_with("broadcast of 512KiB from rank 77 to 78 ranks") && said.contains("chosen by prediction"), "{said}");
    fails(&["explain", "p.toml", "--bytes", "1", "--root", "78"], at, 1, &["rank 78 of 78"]);
    ok(&["explain", "p.toml", "--bytes", "1000000GiB"], at);
    let predicted = json(&["predict", "p.toml", "--bytes", "1,1MiB"], at);
    let (plan, replay) = (predicted[1]["predicted_s"].as_f64().unwrap(), predicted[1]["replayed_s"].as_f64().unwrap());
    assert!((plan / replay - 1.0).abs() < 0.05, "the schedule says {plan} s, the replay {replay} s");
    let compared = json(&["compare", "p.toml", "--bytes", "1,64KiB"], at);
    assert_eq!(compared["groups"][0]["choices"].as_array().unwrap().len(), 2);
    assert_eq!(compared["groups"][0]["scores"].as_array().unwrap().len(), collwise::model::MODELS.len());
    // what is valid, and cannot say all
    let blocks: Vec<&str> = text.split("\n\n").filter(|block| !block.starts_with("[[compute.sophia")).collect();
    std::fs::write(at.join("p.toml"), blocks.join("\n\n")).unwrap();
    let checked = collwise(&["check", "p.toml"], at);
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success() && said.contains("warning: \"sophia\" has no [[compute.sophia]]"), "{said}");
    assert_eq!(json(&["check", "p.toml"], at)["warnings"].as_array().unwrap().len(), 1);
    std::fs::write(at.join("p.toml"), &text).unwrap();
    assert_eq!(json(&["check", "p.toml"], at)["warnings"].as_array().unwrap().len(), 0);
    // edits that must be refused, with file and line
    for (from, to, words) in [
        (
            "{ from = 0, at = 8, algorithm = \"flat\"",
            "{ from = 0, at = 8, algorithm = \"gnomial\"",
            ["find the bcast algorithm \"gnomial\"", "p.toml, line"],
        ),
        ("predicted_s", "predicted", ["unknown field", "p.toml, line"]),
        ("format = 2", "format = 9", ["format 9", "p.toml, line"]),
        ("from = 23,", "from = 0,", ["ascend", "p.toml, line"]),
        (", model = \"tables\" }", ", model = \"crystal\" }", ["no model \"crystal\"", "p.toml, line"]),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(at.join("p.toml"), text.replacen(from, to, 1)).unwrap();
        fails(&["check", "p.toml"], at, 3, &words);
        fails(&["explain", "p.toml", "--bytes", "1"], at, 1, &words);
    }
    fails(&["check", "none.toml"], at, 1, &["failed to read none.toml"]);
}

#[test]
fn hosts_that_stand_in_are_named_when_tuning_and_shown_by_check() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let tune = ["tune", "--platform", &platform("icluster2"), "--collectives", "barrier", "-o", "p.toml"];
    ok(&[&tune[..], &["--also", "icluster2-[90-110],spare-[1-2].site"]].concat(), at);
    let text = std::fs::read_to_string(at.join("p.toml")).unwrap();
    assert!(text.contains("hosts = [\"icluster2-[1-100]\"]\nalso = [\"icluster2-[101-110]\", \"spare-[1-2].site\"]\n"), "{text}");
    std::fs::write(at.join("hosts"), "spare-2.site\nicluster2-1\nicluster2-110.site # by its short name\nspare-2.site\n").unwrap();
    let said = ok(&["check", "p.toml", "--hosts", "hosts"], at);
    let words: Vec<Vec<&str>> = said.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    let placed = [("spare-2.site", 2), ("icluster2-1", 1), ("icluster2-110.site", 3), ("spare-2.site", 2)];
    for (rank, (host, like)) in placed.into_iter().enumerate() {
        assert_eq!(words[rank + 1], [&rank.to_string(), host, "icluster", &format!("icluster2-{like}")], "{said}");
    }
    let placed = &json(&["check", "p.toml", "--hosts", "hosts"], at)["placed"];
    assert_eq!(placed[2], serde_json::json!({ "rank": 2, "host": "icluster2-110.site", "group": "icluster", "placed_as": "icluster2-3" }));
    assert!(ok(&["explain", "p.toml", "--hosts", "hosts", "--collective", "barrier"], at).starts_with("barrier of 4 ranks"));
    std::fs::write(at.join("hosts"), "spare-3.site\n").unwrap();
    fails(&["check", "p.toml", "--hosts", "hosts"], at, 3, &["host \"spare-3.site\" is in no group", "also"]);
    std::fs::write(at.join("hosts"), "").unwrap();
    fails(&["explain", "p.toml", "--hosts", "hosts", "--bytes", "1"], at, 1, &["lists none"]);
    // what was measured is not lost
    let output = collwise(&[&tune[..], &["--also", "nowhere=spare"]].concat(), at);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("name one of the groups, which are icluster:"), "{said}");
    ok(&["check", "p.toml"], at);
    fails(&[&tune[..], &["--also", "x[2-1]"]].concat(), at, 2, &["ends where it begins"]);
}

#[test]
fn platforms_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let good = std::fs::read_to_string(platform("icluster2")).unwrap();
    for (from, to, words) in [
        ("latency_s = 50e-6", "latency_s = 1e-6", ["below the hosts' own overheads", "icluster2"]),
        ("gap_s = 15e-6", "", ["gap_s", "icluster2"]),
        ("gap_s = 15e-6", "gap_s = -1", ["line", "no valid time"]),
        ("count = 100", "count = 1", ["1 rank", "at least two"]),
        ("latency_s = 50e-6", "latencys = 50e-6", ["line", "unknown field"]),
    ] {
        std::fs::write(at.join("p.toml"), good.replacen(from, to, 1)).unwrap();
        fails(&["tune", "--platform", "p.toml"], at, 1, &words);
    }
    fails(&["tune", "--platform", &platform("icluster2"), "-o", "/proc/no/p.toml"], at, 1, &["failed to write /proc/no/p.toml"]);
    fails(&["tune", "--recorded", "none.jsonl"], at, 1, &["failed to read none.jsonl"]);
    fails(&["export", &platform("icluster2"), "--to", "simgrid", "-o", "no/such"], at, 1, &["failed to write no/such"]);
    fails(&["frobnicate"], at, 2, &["unrecognized subcommand"]);
    #[cfg(not(feature = "mpi"))]
    fails(&["tune"], at, 1, &["this build has none", "--platform"]);
}

/// The experiments of a sample file, as often as there are lines of each.
fn experiments(samples: &str) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    let lines = samples.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()?.get("experiment").map(Value::to_string));
    lines.for_each(|experiment| *all.entry(experiment).or_default() += 1);
    all
}

#[test]
fn an_interrupted_simulated_tuning_goes_on_from_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let arguments = ["tune", "--platform", &platform("hcl16"), "--collectives", "bcast,barrier", "--samples", "s.jsonl", "-o", "p.toml"];
    ok(&arguments, at);
    let (samples, policy) = (std::fs::read_to_string(at.join("s.jsonl")).unwrap(), std::fs::read_to_string(at.join("p.toml")).unwrap());
    // cut it in the middle of a line
    std::fs::write(at.join("s.jsonl"), &samples[..samples.len() / 2]).unwrap();
    let output = collwise(&arguments, at);
    assert!(String::from_utf8_lossy(&output.stderr).contains("going on from"));
    let measuring = |text: &str| text.lines().filter(|l| !l.starts_with("measuring_s")).collect::<Vec<_>>().join("\n");
    assert!(output.status.success());
    let resumed = std::fs::read_to_string(at.join("s.jsonl")).unwrap();
    // runs are added to some: as often as without the interrupt
    let (whole, resumed) = (experiments(&samples), experiments(&resumed));
    for (kept, _) in experiments(&samples[..samples.len() / 2]) {
        assert!(resumed[&kept] <= whole[&kept], "what was kept is measured again: {kept}");
    }
    let resumed = std::fs::read_to_string(at.join("p.toml")).unwrap();
    assert_eq!(measuring(&resumed).lines().count(), measuring(&policy).lines().count());
}

#[test]
fn a_policy_is_explained_in_short_and_its_barrier_too() {
    let policy = file("policies/ccgrid2007.toml").display().to_string();
    let at = Path::new(".");
    let all = json(&["explain", &policy], at);
    let sizes: Vec<u64> = all.as_array().unwrap().iter().map(|r| r["from_bytes"].as_u64().unwrap()).collect();
    assert!(sizes[0] == 0 && sizes.windows(2).all(|w| w[0] < w[1]) && sizes.len() > 10, "{sizes:?}");
    for row in all.as_array().unwrap() {
        let one = json(&["explain", &policy, "--bytes", &row["at_bytes"].to_string()], at);
        assert_eq!(one["predicted_s"], row["predicted_s"]);
    }
    assert!(ok(&["explain", &policy], at).lines().count() < 40);
    let barrier = json(&["explain", &policy, "--collective", "barrier"], at);
    assert!(barrier["ranks"] == 78 && barrier["from_row"] == true && barrier["native"] == false, "{barrier}");
    // no message is faster than the way to the farthest group
    assert!((8.5e-3..9.5e-3).contains(&barrier["predicted_s"].as_f64().unwrap()), "{barrier}");
    let predicted = json(&["predict", &policy, "--collective", "barrier"], at);
    assert_eq!(predicted[0]["predicted_s"], barrier["predicted_s"]);
    fails(&["explain", &policy, "--collective", "gossip"], at, 2, &["gossip", "bcast, barrier"]);
    // dissemination of radix 2 over 8 ranks: three rounds of a message
    let one = ["predict", "--collective", "barrier", "--model", "hockney", "--param", "alpha_s=1e-5", "--param", "beta_s_per_byte=1e-9"];
    let found = json(&[&one[..], &["--algorithm", "dissemination", "--ranks", "8"]].concat(), at);
    assert!((found[0]["predicted_s"].as_f64().unwrap() - 3e-5).abs() < 1e-12, "{found}");
}

#[test]
fn every_collective_is_predicted_and_exported() {
    let at = Path::new(".");
    let model = ["--model", "hockney", "--param", "alpha_s=1e-5", "--param", "beta_s_per_byte=1e-9"];
    for collective in collwise::collective::COLLECTIVES.iter().copied() {
        let bytes: &[&str] = if collective.sized() { &["--bytes", "1000"] } else { &[] };
        for algorithm in collective.built() {
            let one = [&["--collective", collective.name, "--algorithm", algorithm.name, "--ranks", "6"], bytes].concat();
            let found = json(&[&["predict"], &model[..], &one].concat(), at);
            assert!(found[0]["predicted_s"].as_f64().unwrap() >= 1e-5, "{found}");
        }
        let one = [&["--collective", collective.name, "--algorithm", collective.fallback.name, "--ranks", "6"], bytes].concat();
        assert!(ok(&[&["export", "--to", "goal"], &one[..]].concat(), at).starts_with("num_ranks 6\n"));
    }
    let of = |collective, algorithm, ranks, bytes| {
        [&["predict"], &model[..], &["--collective", collective, "--algorithm", algorithm, "--ranks", ranks, "--bytes", bytes]].concat()
    };
    // a quarter of the vector comes before a half has left its place: if it is taken in then, the half that comes with it waits for it once, not twice
    let tables = ["--model", "tables", "--param", "bytes=0,1048576", "--param", "os=0,0", "--param", "or=0,1", "--param", "g=0,1"];
    let late =
        ["--param", "transit=0.001,1.001", "--collective", "reduce", "--algorithm", "rabenseifner", "--ranks", "6", "--bytes", "1MiB"];
    let seconds = |more: &[&str]| json(&[&["predict"], &tables[..], &late, more].concat(), at)[0]["predicted_s"].as_f64().unwrap();
    assert!((seconds(&[]) - seconds(&["--eager"]) - 0.25).abs() < 2e-3);
    // the root of a chain comes first or last of six
    let chain = of("bcast", "chain", "6", "8");
    ok(&[&chain[..], &["--most-messages", "5"]].concat(), at);
    fails(&[&chain[..], &["--most-messages", "4"]].concat(), at, 1, &["at least 5 messages, at most 4 are held", "--most-messages allows"]);
    let skewed = |skew: &str| json(&[&chain[..], &["--skew", skew]].concat(), at)[0]["predicted_s"].as_f64().unwrap();
    assert_eq!(skewed("0.5"), 2.5, "the message is there before the last one begins");
    assert!((skewed("-0.5") - skewed("0") - 2.5).abs() < 1e-9);
    fails(&[&chain[..], &["--skew", "1e9"]].concat(), at, 2, &["give seconds, 1e6 at most"]);
    fails(&of("allgather", "neighbour_exchange", "7", "8"), at, 1, &["neighbour_exchange over 7 ranks: it wants an even number of ranks"]);
    fails(&of("alltoall", "direct", "1000", "9000000000GiB"), at, 1, &["no memory holds that"]);
}

#[test]
fn list_names_every_entry_of_the_registries() {
    let entries = json(&["list"], Path::new("."));
    let count = collwise::model::MODELS.len()
        + collwise::collective::COLLECTIVES.iter().map(|c| c.algorithms.len()).sum::<usize>()
        + collwise::cluster::METHODS.len()
        + collwise::intercluster::HEURISTICS.len();
    assert_eq!(entries.as_array().unwrap().len(), count);
    assert!(entries.as_array().unwrap().iter().all(|e| !e["citation"].as_str().unwrap().is_empty()));
}

/// Reports of an application that computes 64 s in all, and sums up 1,000 numbers.
fn reports(folder: &Path) -> Vec<String> {
    let write = |ranks: usize| {
        let profile = |rank: usize| {
            let mut p = collwise::qnm::Profile { node: format!("n{rank}"), app_s: 64.0 / ranks as f64 + 0.2, ..Default::default() };
            (0..1000).for_each(|_| p.note("Allreduce", "a.c", 3, 0.2e-3, 8));
            p
        };
        let profiles: Vec<_> = (0..ranks).map(profile).collect();
        let name = format!("{ranks}.mpiP");
        std::fs::write(folder.join(&name), collwise::qnm::report("./app 1", &profiles).unwrap()).unwrap();
        name
    };
    [2, 4, 8, 16].map(write).to_vec()
}

#[test]
fn app_splits_predicts_and_draws_wall_times() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let names = reports(at);
    let reports: Vec<&str> = names.iter().map(String::as_str).collect();
    let network = ["--latency", "10us", "--bandwidth", "125MB"];
    let fit = [&["app", "fit"], &reports[..], &network].concat();
    let said = ok(&[&fit[..], &["--svg", "a.svg"]].concat(), at);
    assert!(said.contains("within 10 %: 4 of 4"), "{said}");
    let svg = std::fs::read_to_string(at.join("a.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    ["MPI active", "contention", "computing", "network", "processes"].iter().for_each(|w| assert!(svg.contains(w), "{w}"));
    let found = json(&fit, at);
    for (run, split) in found["application"]["runs"].as_array().unwrap().iter().zip(found["application"]["splits"].as_array().unwrap()) {
        let parts: f64 = split["components"].as_object().unwrap().values().map(|v| v.as_f64().unwrap()).sum();
        assert!((parts - run["wall_s"].as_f64().unwrap()).abs() < 1e-9);
        // recursive doubling: a latency and 8 bytes for each of the rounds
        let rounds = run["ranks"].as_f64().unwrap().log2();
        let network = split["components"]["switch_s"].as_f64().unwrap();
        assert!((network - 1000.0 * rounds * (10e-6 + 8.0 / 125e6)).abs() < 1e-9);
    }
    let predict = [&["app", "predict"], &reports[..], &network, &["--ranks", "6,32"]].concat();
    let predicted = json(&predict, at);
    assert_eq!((&predicted[0]["extrapolated"], &predicted[1]["extrapolated"]), (&Value::Bool(false), &Value::Bool(true)));
    assert!((predicted[1]["components"]["compute_s"].as_f64().unwrap() - 2.0).abs() < 0.02, "{predicted}");
    assert!(ok(&[&predict[..], &["--svg", "b.svg"]].concat(), at).contains("extrapolated"));
    assert!(std::fs::read_to_string(at.join("b.svg")).unwrap().contains("predicted"));
    // another platform, some of whose processors are slow
    let grid = platform("ccgrid2007");
    let there = [&predict[..], &["--on", &grid, "--to", "one-per-node", "--clock", "orsay=0.5"]].concat();
    let slow = json(&there, at);
    assert!((slow[1]["components"]["compute_s"].as_f64().unwrap() - 4.0).abs() < 0.04, "{slow}");
    assert_eq!(slow[1]["groups_s"].as_array().unwrap().len(), 3, "32 hosts of {}: {slow}", grid);
    // a policy's models as the network
    let policy = file("policies/ccgrid2007.toml").display().to_string();
    ok(&[&["app", "fit"], &reports[..], &["--policy", &policy, "--placement", "cyclic"]].concat(), at);

    let one = [&["app", "predict", reports[1]], &network[..], &["--ranks"]].concat();
    ok(&[&one[..], &["4", "--on", &grid, "--to", "cyclic"]].concat(), at);
    fails(&[&one[..], &["8"]].concat(), at, 1, &["8 processes", "are of 4"]);
    assert!(
        !ok(&[&["app", "fit"], &reports[..2], &network].concat(), at).contains("within 10 %"),
        "two runs predict nothing of each other"
    );
    fails(&[&["app", "fit"], &reports[..]].concat(), at, 1, &["--platform", "--latency"]);
    fails(&[&fit[..], &["--platform", &grid]].concat(), at, 2, &["cannot be used with"]);
    fails(&["app", "collectives", reports[0]], at, 1, &[&format!("failed to list the collectives of {}", reports[0]), "COLLWISE_PROFILE"]);
    fails(&["app", "fit", "none.mpiP", "--latency", "1us", "--bandwidth", "1GB"], at, 1, &["none.mpiP"]);
    fails(&[&there[..], &["--clock", "paris=2"]].concat(), at, 1, &["paris", "orsay"]);
    fails(&[&predict[..], &["--ranks", "0"]].concat(), at, 2, &["0"]);
    fails(&["app", "predict", reports[0], "--latency", "1", "--bandwidth", "1GB", "--ranks", "2"], at, 2, &["50us"]);
    let many = [&["app", "predict"], &reports[..], &network, &["--ranks", "100", "--on", &grid, "--to", "one-per-node"]].concat();
    fails(&many, at, 1, &["78 nodes"]);
    std::fs::write(at.join("cut.mpiP"), &std::fs::read_to_string(at.join("4.mpiP")).unwrap()[..700]).unwrap();
    fails(&[&["app", "fit", "cut.mpiP"], &network[..]].concat(), at, 1, &["cut.mpiP, line 19", "cut"]);
}

#[test]
fn app_whatif_says_what_a_policy_would_save() {
    let at = Path::new(".");
    let report = file("tests/data/mpip/hpccg.4.full.mpiP").display().to_string();
    let policy = |name: &str| file(&format!("policies/{name}.toml")).display().to_string();
    let answer = &json(&["app", "whatif", &report, "--policy", &policy("icluster2")], at)[0];
    let savings = answer["savings"].as_array().unwrap();
    // three sites of ddot.cpp, of 592, 596 and 4 calls, are one line of the source
    let ddot = savings.iter().find(|s| s["place"] == "ddot.cpp:75").unwrap();
    assert_eq!((ddot["call"].as_str(), ddot["bytes"].as_u64(), ddot["calls"].as_f64()), (Some("Allreduce"), Some(8), Some(298.0)));
    let (measured, adaptive) = (ddot["measured_s"].as_f64().unwrap(), ddot["adaptive_s"].as_f64().unwrap());
    assert!((0.9e-3..0.93e-3).contains(&measured) && adaptive > 0.0 && adaptive < measured);
    // no less than in the mean over the processes: one of them is in these calls longest
    let mean = 298.0 * (measured - adaptive);
    assert!((mean..1.5 * mean).contains(&ddot["at_most_s"].as_f64().unwrap()), "{ddot}");
    assert!(savings.iter().all(|s| s["saved_s"].is_null()), "four of a hundred ranks: nobody measured the library's own there");
    assert_eq!((answer["untuned_s"].as_f64(), answer["not_known"].as_array().map(Vec::len)), (Some(0.0), Some(0)));
    let said = ok(&["app", "whatif", &report, "--policy", &policy("icluster2")], at);
    assert!(said.contains("MPI_Allreduce      4    298     8B") && !said.contains("other collectives"), "{said}");
    fails(&["app", "whatif", &report, "--policy", &platform("hcl16")], at, 1, &["hcl16"]);
    // broadcasts and barriers are all that this one has rows of
    let few = policy("ccgrid2007-smpi");
    let answer = &json(&["app", "whatif", &report, "--policy", &few], at)[0];
    assert!(answer["savings"].as_array().unwrap().is_empty() && (answer["untuned_s"].as_f64().unwrap() - 0.279).abs() < 0.001);
    let said = ok(&["app", "whatif", &report, "--policy", &few], at);
    assert!(said.contains("MPI_Allreduce (279 ms): the policy has no row for it: tune it with --collectives allreduce"), "{said}");
    // programs that lie elsewhere on each process have sites of their own for each: one row
    let report = file("tests/data/mpip/calls.4.full.mpiP").display().to_string();
    let answer = &json(&["app", "whatif", &report, "--policy", &policy("icluster2")], at)[0];
    let of = |call: &str| {
        answer["savings"].as_array().unwrap().iter().filter(|s| s["call"] == call).map(|s| s["calls"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("Alltoall"), [Value::from(10.0)]);
}

#[test]
fn app_says_what_reports_leave_out() {
    let at = Path::new(".");
    let report = |name: &str| file(&format!("tests/data/mpip/{name}.mpiP")).display().to_string();
    let network = ["--latency", "2us", "--bandwidth", "2GB"];
    let said = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_collwise")).args(arguments).current_dir(at).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).to_string()
    };
    let cut = said(&[&["app", "fit", &report("lulesh.8.d")], &network[..]].concat());
    assert!(cut.contains("56 % of the bytes and 35 % of the time in MPI are at others"), "{cut}");
    let is = [report("npb-is.A.2"), report("npb-is.A.4")];
    let fit = [&["app", "fit", &is[0], &is[1]], &network[..]].concat();
    let unknown = said(&fit);
    assert!(
        unknown.contains("MPI_Alltoallv") && unknown.contains("--bytes Alltoallv=N") && !unknown.contains("is a report of"),
        "{unknown}"
    );
    assert_eq!(said(&[&fit[..], &["--bytes", "MPI_Alltoallv=32MiB/P"]].concat()), "");
    fails(&[&fit[..], &["--bytes", "Bcast=1"]].concat(), at, 1, &["--bytes Bcast"]);
    fails(&[&fit[..], &["--bytes", "Bcast"]].concat(), at, 2, &["CALL=BYTES"]);
}

/// What a platform does not say of copying and combining would be free.
#[test]
fn platforms_say_what_collectives_take_beside_messages() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let with = |said| {
        let platform = common::THREE_GROUPS.replace("copy_s_per_byte = 0\ncombine_s_per_byte = 0\n", said);
        std::fs::write(at.join("three.toml"), platform).unwrap();
    };
    with("");
    let tune = |collectives| ["tune", "--platform", "three.toml", "-o", "p.toml", "--collectives", collectives];
    fails(&tune("bcast,gather"), at, 1, &["gather", "has no copy_s_per_byte", "[hosts]"]);
    with("copy_s_per_byte = 1e-9\n");
    ok(&tune("bcast,gather"), at);
    fails(&tune("reduce"), at, 1, &["reduce", "has no combine_s_per_byte"]);
}

/// Ranks that share a host of a group that was measured with one on each are none that anybody measured.
#[test]
fn ranks_that_share_a_host_are_said_not_to_have_been_measured() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hosts"), "orsay-a-1\norsay-a-1\ntoulouse-1\n").unwrap();
    std::fs::write(folder.path().join("apart"), "orsay-a-1\norsay-a-2\ntoulouse-1\n").unwrap();
    let policy = common::file("policies/pmeo2006.toml").display().to_string();
    for command in [&["explain", &policy, "--bytes", "1MiB"][..], &["check", &policy]] {
        let said = |hosts| String::from_utf8(collwise(&[command, &["--hosts", hosts]].concat(), folder.path()).stderr).unwrap();
        assert!(said("hosts").contains("hosts of \"orsay-a\" have several ranks"), "{}", said("hosts"));
        assert_eq!(said("apart"), "");
    }
}

#[test]
fn a_model_that_cannot_be_fitted_is_left_out_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("three.toml"), common::THREE_GROUPS).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_collwise"));
    command.args(["tune", "--platform", "three.toml", "-o", "p.toml"]).current_dir(folder.path());
    let output = command.env("COLLWISE_LOG", "collwise::fit=debug").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("model lmo is left out for ranks [7]: it wants 3 ranks"), "{said}");
}

#[test]
fn a_level_of_events_that_there_is_not_is_said() {
    for said in ["debgu", "collwise=debgu", "collwise::fit=debug,worn", "debug,", "collwise::fit=", "=off"] {
        let output = Command::new(env!("CARGO_BIN_EXE_collwise")).arg("list").env("COLLWISE_LOG", said).output().unwrap();
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && why.contains(&format!("COLLWISE_LOG={said} is no level")), "{said}: {why}");
    }
    for said in ["debug", "WARN", "off", "collwise::tune=trace, error", ""] {
        let output = Command::new(env!("CARGO_BIN_EXE_collwise")).arg("list").env("COLLWISE_LOG", said).output().unwrap();
        assert!(output.status.success(), "{said}");
    }
}
