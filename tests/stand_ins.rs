//! A policy that was tuned on some hosts of a cluster, used on others that are like them.
#![cfg(feature = "mpi")]

mod common;

use collwise::collective::{COLLECTIVES, Collective};
use collwise::measure::{Session, SimulatedProbe};
use collwise::platform::{Placement, Platform};
use collwise::run::AdaptiveCollectives;
use collwise::tune::{TuneOptions, tune};
use common::mpi::{check_bcast, is_child, must_succeed, on_ranks, traced};
use mpi::collective::SystemOperation;
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::*;
use std::path::{Path, PathBuf};

/// Two sites of four hosts.
const SITES: &str = "format = 1\nname = \"sites\"\n[hosts]\nsend_overhead_s = 5e-6\nrecv_overhead_s = 6e-6\ngap_s = 8e-6\ngap_s_per_byte = 8.5e-9\n\
    [[group]]\nname = \"a\"\ncount = 4\nlatency_s = 50e-6\n[[group]]\nname = \"b\"\ncount = 4\nlatency_s = 30e-6\n\
    [[link]]\nbetween = [\"a\", \"b\"]\nlatency_s = 5e-3\n";

/// A policy tuned on a1 to a4 and b1 to b4, by which other hosts of a and b may stand in.
fn policy(folder: &Path) -> PathBuf {
    let file = folder.join("policy.toml");
    if is_child() {
        return file;
    }
    let mut probe = SimulatedProbe::new(&Platform::parse("sites", SITES).unwrap(), Placement::Slot, 1).unwrap();
    let tuned: Vec<&Collective> = COLLECTIVES.iter().copied().filter(|c| ["bcast", "allreduce", "barrier"].contains(&c.name)).collect();
    let (_, mut policy) = tune(&mut Session::new(&mut probe), TuneOptions { collectives: &tuned, ..TuneOptions::default() }).unwrap();
    for g in &mut policy.groups {
        let numbered = |k| format!("{}{k}", g.name);
        (g.hosts, g.also) = ((1..=4).map(numbered).collect(), (1..=20).map(numbered).collect());
    }
    std::fs::write(&file, policy.to_toml().unwrap()).unwrap();
    file
}

/// Collectives of eight ranks on these hosts, and of parts of them, by the policy.
fn on_hosts(name: &str, hosts: [&str; 8]) {
    let folder = tempfile::tempdir().unwrap();
    let (policy, file) = (policy(folder.path()), folder.path().join("hosts"));
    std::fs::write(&file, hosts.map(|host| format!("{host}\n")).concat()).unwrap();
    let environment = [("COLLWISE_POLICY", policy.as_path()), ("COLLWISE_HOSTS", &file), ("COLLWISE_TRACE", folder.path())];
    let said = must_succeed(on_ranks(name, 8, &environment, |world| {
        all(world);
        // in another order, others are the first
        let rank = world.rank();
        for colors in [1, 2, 3] {
            all(&world.split_by_color_with_key(Color::with_value(rank % colors), -rank).unwrap());
        }
        assert!(traced() > 0, "nothing was planned");
    }));
    assert!(!said.contains("library's own collectives"), "it fell back: {said}");
}

fn all(comm: &SimpleCommunicator) {
    check_bcast(comm, &[1, 5000, 300_000]);
    for numbers in [1, 5000] {
        let (mine, mut sum) = (vec![comm.rank() + 1; numbers], vec![0; numbers]);
        for _ in 0..3 {
            comm.adaptive_allreduce(&mine[..], &mut sum[..], SystemOperation::sum()).unwrap();
            assert!(sum.iter().all(|&found| found == comm.size() * (comm.size() + 1) / 2));
            comm.adaptive_barrier().unwrap();
        }
    }
}

#[test]
fn other_hosts_stand_in_for_the_tuned_ones() {
    on_hosts("other_hosts_stand_in_for_the_tuned_ones", ["a5", "b5", "a6", "b6", "a7", "b7", "a8", "b8"]);
}

#[test]
fn more_hosts_than_were_tuned_share_them() {
    on_hosts("more_hosts_than_were_tuned_share_them", ["a2", "a9", "a9.site", "a10", "a11", "b5", "a12", "a13"]);
}
