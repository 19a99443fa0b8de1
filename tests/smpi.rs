//! The unchanged code on all 78 hosts of the CCGrid 2007 platform, simulated by SimGrid SMPI: discovery, tuning and broadcast over
//! real MPI calls in virtual time. `make smpi` builds what runs here.
#![cfg(feature = "mpi")]

mod common;

use collwise::collective::Shape;
use collwise::collective::bcast::COLLECTIVE;
use collwise::plan::{members, plan};
use collwise::platform::{Placement, Platform};
use collwise::policy::{CompiledPolicy, Policy};
use collwise::schedule::Action;
use common::file;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

const PLATFORM: &str = "platforms/ccgrid2007.toml";
const SIZES: &str = "1,16,1KiB,16KiB,64KiB,256KiB,1MiB,4MiB";

/// SMPI copies the program for each rank, 78 times 13 MB: one run at a time has them on disk.
static ONE_RUN: Mutex<()> = Mutex::new(());

/// Runs a program of the SMPI build on the platform; gives its standard output.
fn smpi(placement: &str, options: &[&str], program: &str, arguments: &[&str], environment: &[(&str, &Path)]) -> String {
    let program = file("target/smpi/release").join(program);
    assert!(program.exists(), "{} is not there: run `make smpi` first (make test does)", program.display());
    let mut command = Command::new("timeout");
    command
        .args(["-k", "5", "600"])
        .arg(file("smpi/smpirun.sh"))
        .arg(file(PLATFORM))
        .arg(placement)
        .args(options)
        .arg(program)
        .args(arguments);
    command.env("COLLWISE", env!("CARGO_BIN_EXE_collwise")).envs(environment.iter().copied());
    let output = {
        let _one = ONE_RUN.lock().unwrap_or_else(PoisonError::into_inner);
        command.output().unwrap()
    };
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Adaptive and native seconds by size.
type Table = BTreeMap<String, (f64, f64)>;

/// The adaptive and the native seconds of each size, from the example's table.
fn table(text: &str) -> Table {
    let seconds = |number: &str, unit: &str| {
        number.parse::<f64>().unwrap() * BTreeMap::from([("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)])[unit]
    };
    let rows = text.lines().filter(|l| l.ends_with('x'));
    rows.map(|l| l.split_whitespace().collect::<Vec<_>>()).map(|w| (w[0].to_string(), (seconds(w[1], w[2]), seconds(w[3], w[4])))).collect()
}

/// Where every message waits for its receive to be posted.
#[test]
fn random_schedules_deliver_over_smpi() {
    let said = smpi("slot", &[], "examples/random_schedules", &[], &[]);
    assert!(said.contains("90 schedules on 6 ranks: every byte is right"), "{said}");
}

/// More ranks by hand: tests/programs/every_algorithm.rs says how.
#[test]
fn every_algorithm_delivers_every_byte_over_smpi() {
    let said = smpi("slot", &[], "examples/every_algorithm", &["17"], &[]);
    assert!(said.contains("every algorithm on 1 to 17 ranks: every byte is right"), "{said}");
}

/// What one byte takes each of so many calls in a row, by the library's own broadcast and by the policy's, over ranks by slot.
fn seconds(policy: &Path, calls: &str) -> [f64; 2] {
    let bench = ["bench", policy.to_str().unwrap(), "--bytes", "1", "--repetitions", "1", "--warm-ups", "1", "--json"];
    let said = smpi("slot", &[], "collwise", &[&bench[..], &["--in-a-row", calls]].concat(), &[]);
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["wrong"] == 0));
    let row = |name| rows.iter().find(|row| row["contestant"] == name).unwrap()["seconds"][0].as_f64().unwrap();
    ["native", "adaptive"].map(row)
}

/// The library's binomial tree crosses two long links one after the other; in a row, its ranks begin the next call while the farthest still wait.
#[test]
fn calls_in_a_row_overlap() {
    let policy = file("policies/ccgrid2007-smpi.toml");
    let (alone, in_a_row) = (seconds(&policy, "1"), seconds(&policy, "10"));
    assert!(in_a_row[0] < 0.7 * alone[0], "{alone:?} {in_a_row:?}");
    assert!(in_a_row[1] < 1.01 * in_a_row[0], "{in_a_row:?}");
}

#[test]
fn the_hierarchy_runs_for_real_on_78_simulated_hosts() {
    let platform = Platform::read(&file(PLATFORM)).unwrap();
    let folder = tempfile::tempdir().unwrap();

    // the groups found are the platform's, with ranks placed by slot and by node
    let found: serde_json::Value = serde_json::from_str(&smpi("slot", &[], "collwise", &["discover", "--json"], &[])).unwrap();
    let ranks: Vec<Vec<usize>> =
        found["groups"].as_array().unwrap().iter().map(|g| serde_json::from_value(g["ranks"].clone()).unwrap()).collect();
    assert_eq!(ranks, platform.group_ranks());

    let policy_file = folder.path().join("policy.toml");
    smpi(
        "slot",
        &[],
        "collwise",
        &["tune", "--name", "ccgrid2007", "--collectives", "bcast,barrier", "-o", policy_file.to_str().unwrap()],
        &[],
    );
    let policy = Policy::read(&policy_file).unwrap();
    assert_eq!(policy.groups.iter().map(|g| g.hosts.len()).collect::<Vec<_>>(), [20, 11, 7, 1, 20, 19]);

    // what was measured in a single run, in its turn, is what it takes: nobody was late for it
    let (row, takes) = (&policy.two_level(&COLLECTIVE)[0], seconds(&policy_file, "1")[1]);
    assert!((row.evidence.measured_s.unwrap() / takes - 1.0).abs() < 0.1, "{:?}, and it takes {takes} s", row.evidence);

    // every byte (the program checks them) and the times, beside SMPI's own broadcasts; ranks placed by node
    let traces = folder.path().join("traces");
    std::fs::create_dir(&traces).unwrap();
    let mut columns: Vec<(&str, Table)> = Vec::new();
    for selector in ["binomial_tree", "ompi", "mpich", "mvapich2", "impi", "SMP_binomial"] {
        let mut environment = vec![("COLLWISE_POLICY", policy_file.as_path())];
        if columns.is_empty() {
            environment.push(("COLLWISE_TRACE", traces.as_path()));
        }
        let option = format!("--cfg=smpi/bcast:{selector}");
        columns.push((selector, table(&smpi("node", &[&option], "examples/adaptive_bcast", &[SIZES, "1"], &environment))));
    }
    println!("78 ranks by node, ms; {:>14} {}", "adaptive", columns.iter().map(|c| format!("{:>14}", c.0)).collect::<String>());
    for size in SIZES.split(',') {
        let key = if size.chars().all(|c| c.is_ascii_digit()) { format!("{size}B") } else { size.to_string() };
        let own = columns[0].1[&key].0;
        println!("{key:>22} {:>14.2} {}", own * 1e3, columns.iter().map(|c| format!("{:>14.2}", c.1[&key].1 * 1e3)).collect::<String>());
        assert!(own <= 0.5 * columns[0].1[&key].1, "{key}: {own} s, the binomial tree takes {} s", columns[0].1[&key].1);
    }
    sends_follow_the_schedule(&platform, policy, &traces);
}

/// Each rank sent what its program says, and each coordinator's messages to other groups left in the order of each lane.
fn sends_follow_the_schedule(platform: &Platform, policy: Policy, traces: &Path) {
    let names = platform.host_names();
    let hosts: Vec<String> = platform.place(Placement::Node).into_iter().map(|h| names[h].clone()).collect();
    let places = members(&policy, &hosts).unwrap();
    let compiled = CompiledPolicy::new(policy).unwrap();
    for bytes in [1usize, 65_536, 4 << 20] {
        let shape = Shape::new(places.len(), 0, bytes);
        let plan = plan(&compiled, &places, &COLLECTIVE, &shape).unwrap();
        let two_level = &plan.routed().unwrap().two_level;
        let mut reached = vec![0; hosts.len()];
        for rank in 0..hosts.len() {
            let text = std::fs::read_to_string(traces.join(format!("rank-{rank}.jsonl"))).unwrap();
            let line = text.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()).find(|l| l["bytes"] == bytes).unwrap();
            let actions: Vec<Action> = serde_json::from_value(line["actions"].clone()).unwrap();
            let start: Vec<f64> = serde_json::from_value(line["start_s"].clone()).unwrap();
            let program = plan.form.program(rank, &shape).unwrap();
            assert_eq!(actions, program.actions().collect::<Vec<_>>(), "{bytes} bytes, rank {rank}");
            let mut last: BTreeMap<u16, f64> = BTreeMap::new();
            for (k, action) in actions.iter().enumerate() {
                let Action::Send { to, span } = action else { continue };
                let before = last.insert(program.lane(k), start[k]);
                assert!(before.is_none_or(|t| t <= start[k]), "{bytes} bytes, rank {rank}, operation {k}");
                reached[*to] += span.len;
            }
        }
        // every rank but the root was sent the message once; inside some groups that is left to the library's own
        let wanted = |rank: usize| {
            let k = two_level.group_of(rank).unwrap();
            let by_library = two_level.local_native(k) && two_level.groups[k][0] != rank;
            if rank == 0 || by_library { 0 } else { bytes }
        };
        assert_eq!(reached, (0..hosts.len()).map(wanted).collect::<Vec<_>>(), "{bytes} bytes");
    }
}
