//! Policies of more hosts than were measured.

use collwise::policy::Policy;

/// The same policy with so many hosts in each group, without what is known of single processors.
pub fn with_hosts(mut policy: Policy, each: usize) -> Policy {
    policy.collectives.values_mut().for_each(|c| c.placement = None);
    for g in policy.groups.iter_mut().filter(|g| !g.models.is_empty()) {
        g.hosts = (1..=each).map(|k| format!("{}-{k}", g.name)).collect();
        g.models.retain(|m| m.model != "lmo");
        g.scores.retain(|s| s.model != "lmo");
        g.calibration.retain(|c| c.model != "lmo");
        g.choices.values_mut().flatten().filter(|c| c.model == "lmo").for_each(|c| c.model = "tables".into());
        g.compute.truncate(1);
    }
    policy.provenance.ranks = policy.groups.iter().map(|g| g.hosts.len()).sum();
    policy
}
