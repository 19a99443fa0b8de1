//! Hosts on which ranks share processors.

use super::Settings;
use crate::library::Library;
use crate::topology::Rank;
use std::collections::BTreeSet;

/// No system has as many processors.
const MOST: usize = 1 << 20;

/// The processors of a list such as `0-3,8`; `None` of what is none.
fn processors(list: &str) -> Option<BTreeSet<usize>> {
    let mut all = BTreeSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        all.extend((last < MOST).then_some(first..=last)?);
    }
    Some(all)
}

/// True if these ranks are on one host, which has more ranks than processors on which they may run. Where that is not known it is not so, nor where hosts are
/// simulated: what the system tells is of the one that simulates them.
pub fn is_crowded(settings: &Settings, ranks: &[Rank]) -> bool {
    if Library::of(&settings.library) == Library::Smpi {
        return false;
    }
    let Some(host) = ranks.first().and_then(|&first| settings.hosts.get(first)) else { return false };
    if ranks.iter().any(|&rank| settings.hosts.get(rank) != Some(host)) {
        return false;
    }
    let there: Vec<Rank> = (0..settings.hosts.len()).filter(|&rank| settings.hosts[rank] == *host).collect();
    let allowed = there.iter().map(|&rank| processors(settings.placement.get(rank)?));
    let together = allowed.collect::<Option<Vec<_>>>().map(|all| all.into_iter().flatten().collect::<BTreeSet<usize>>());
    together.is_some_and(|processors| processors.len() < there.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::samples::fixtures::settings;

    #[test]
    fn crowded_is_a_host_of_more_ranks_than_processors() {
        let texts = |all: &[&str]| all.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let crowded = |hosts: &[&str], allowed: &[&str]| {
            let settings = Settings { hosts: texts(hosts), placement: texts(allowed), ..settings() };
            is_crowded(&settings, &[0, 1])
        };
        assert!(crowded(&["a"; 3], &["0-1"; 3]));
        assert!(!crowded(&["a"; 3], &["0-1", "0-1", "0-1,8"]));
        assert!(!crowded(&["a"; 3], &["4", "5", "6"]));
        assert!(crowded(&["a"; 2], &["4", "4"]));
        assert!(!crowded(&["a", "a", "b"], &["0-1"; 3]), "the third is elsewhere");
        assert!(!crowded(&["a", "b"], &["0", "0"]), "on two hosts");
        assert!(!crowded(&["a"; 3], &["0", "", "0"]) && !crowded(&["a"; 3], &[]), "not told");
        assert!(!crowded(&["a"; 3], &["0-99999999999"; 3]) && !crowded(&["a"; 3], &["x-1"; 3]), "no lists");
        let on_one = Settings { hosts: texts(&["a"; 3]), placement: texts(&["0-1"; 3]), ..settings() };
        assert!(!is_crowded(&Settings { library: "SMPI 3.32".into(), ..on_one }, &[0, 1]));
    }
}
