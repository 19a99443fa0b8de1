//! A platform of three groups, and a policy for it.

use super::launch::is_child;
use collwise::collective::{COLLECTIVES, Collective};
use collwise::measure::{Session, SimulatedProbe};
use collwise::platform::{Placement, Platform};
use collwise::tune::{TuneOptions, tune};
use std::path::{Path, PathBuf};

/// A platform of three groups with 4, 3 and 1 hosts, for which what is no message takes no time.
pub const THREE_GROUPS: &str = "format = 1\nname = \"three\"\n[hosts]\nsend_overhead_s = 5e-6\nrecv_overhead_s = 6e-6\ngap_s = 8e-6\ngap_s_per_byte = 8.5e-9\n\
    copy_s_per_byte = 0\ncombine_s_per_byte = 0\n\
    [[group]]\nname = \"a\"\ncount = 4\nlatency_s = 50e-6\n[[group]]\nname = \"b\"\ncount = 3\nlatency_s = 30e-6\n[[group]]\nname = \"c\"\ncount = 1\n\
    [[link]]\nbetween = [\"a\", \"b\"]\nlatency_s = 5e-3\n[[link]]\nbetween = [\"a\", \"c\"]\nlatency_s = 8e-3\n[[link]]\nbetween = [\"b\", \"c\"]\nlatency_s = 2e-3\n";

/// A policy of three groups with 4, 3 and 1 hosts, and the host file for ranks dealt out round robin.
pub fn three_groups(folder: &Path, ranks: usize) -> (PathBuf, PathBuf) {
    let (policy_file, hosts_file) = (folder.join("three.toml"), folder.join("hosts"));
    // a child was told in its environment
    if is_child() {
        return (policy_file, hosts_file);
    }
    let platform = Platform::parse("three", THREE_GROUPS).unwrap();
    let mut probe = SimulatedProbe::new(&platform, Placement::Slot, 1).unwrap();
    let tuned: Vec<&Collective> = COLLECTIVES.iter().copied().filter(|c| c.tuned).collect();
    let options = TuneOptions { collectives: &tuned, ..TuneOptions::default() };
    let (_, policy) = tune(&mut Session::new(&mut probe), options).unwrap();
    std::fs::write(&policy_file, policy.to_toml().unwrap()).unwrap();
    let (names, places) = (platform.host_names(), platform.place(Placement::Node));
    // more ranks than hosts share the hosts
    let lines: String = (0..ranks).map(|r| names[places[r % places.len()]].clone() + "\n").collect();
    std::fs::write(&hosts_file, lines).unwrap();
    (policy_file, hosts_file)
}
