//! Where a rank runs, by what its system tells.

use crate::topology::Rank;

/// The processors that this rank may run on, where the system tells.
pub(super) fn allowed_processors() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map_or(String::new(), |list| list.trim().into())
}

/// Which system runs here, where it tells: ranks with the same one read the same clock, and hosts that only have one name do not.
pub(super) fn system() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or(String::new(), |id| id.trim().into())
}

/// The ranks on the same system as this one.
pub(super) fn same_system(systems: &[String], me: Rank) -> impl Iterator<Item = Rank> {
    (0..systems.len()).filter(move |&r| !systems[me].is_empty() && systems[r] == systems[me])
}
