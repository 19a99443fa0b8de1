//! What a policy must be beyond what its file's form says.

use super::errors::table_of;
use super::toml_file::{Fault, ascend};
use super::{Choice, GroupPolicy, LARGEST_BOUND, PER_GROUP, Policy, TwoLevelRow};
use crate::collective::{Algorithm, Collective};
use crate::error::key_path;
use crate::model::{Compute, LARGEST};
use crate::schedule::WINDOW;
use crate::score::Ratios;
use crate::two_level::{InterGroupAlgorithm, has_routes, inter_group_algorithm, through_coordinators};
use crate::units::{MAX_BYTES, is_time};
use std::collections::{BTreeMap, BTreeSet};

impl Policy {
    /// The first thing that is wrong.
    pub(super) fn fault(&self) -> Option<Fault> {
        if self.groups.is_empty() {
            return Some((key_path(&[&"format"]), "the policy has no [[group]]".into()));
        }
        if self.provenance.ranks > MAX_BYTES {
            return Some((key_path(&[&"provenance", &"ranks"]), format!("there are no {} ranks", self.provenance.ranks)));
        }
        if self.provenance.bound.is_some_and(|ratio| !(1.0..=LARGEST_BOUND).contains(&ratio)) {
            return Some((key_path(&[&"provenance", &"bound"]), format!("bound must be a factor from 1 to {LARGEST_BOUND}")));
        }
        if self.provenance.setup_s.is_some_and(|s| !is_time(s)) {
            return Some((key_path(&[&"provenance", &"setup_s"]), "setup_s must be seconds".into()));
        }
        let ranks = self.groups.iter().map(|g| g.hosts.len()).sum();
        let two_level = || self.collectives.iter().find_map(|(c, all)| rows_fault(c, &all.two_level, ranks, self.groups.len()));
        let placement = || self.collectives.iter().find_map(|(c, all)| placement_fault(c, all.placement.as_ref()?));
        let ratios = || self.collectives.iter().find_map(|(c, all)| ratios_fault(c, &all.calibration));
        placement()
            .or_else(two_level)
            .or_else(ratios)
            .or_else(|| self.group_fault())
            .or_else(|| self.also_fault())
            .or_else(|| self.link_fault())
    }

    /// What is valid, and keeps it from saying what is asked.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = self.uncombined();
        let one_host = |g: &&GroupPolicy| !g.also.is_empty() && g.hosts.iter().all(|host| *host == g.hosts[0]);
        all.extend(self.groups.iter().filter(one_host).map(|g| {
            format!(
                "\"{}\" has one host and others that may stand in for it: what messages between two of them take was not measured; tune on two or more",
                g.name
            )
        }));
        all
    }

    /// Of which groups it is not said what copying and combining takes, where something is combined.
    fn uncombined(&self) -> Vec<String> {
        let combining = |c: &Collective| c.combines;
        let inside = self.groups.iter().flat_map(|g| g.choices.keys());
        let combined: BTreeSet<&str> = inside.chain(self.collectives.keys()).filter(|c| combining(c)).map(|c| c.name).collect();
        if combined.is_empty() {
            return Vec::new();
        }
        let unknown = self.groups.iter().filter(|g| g.compute.is_empty());
        let names = combined.into_iter().collect::<Vec<_>>().join(", ");
        let warning = |g: &GroupPolicy| {
            format!(
                "\"{}\" has no [[compute.{}]]: what copying and combining takes there is not known, so that {names}, and others where they copy, have no prediction with its ranks, and \
                 are the MPI library's own where no row says what is done: tune anew",
                g.name, g.name
            )
        };
        unknown.map(warning).collect()
    }

    fn group_fault(&self) -> Option<Fault> {
        let mut homes = BTreeMap::new();
        for (n, g) in self.groups.iter().enumerate() {
            let blame = |key: &str, reason: String| Some((key_path(&[&"group", &n, &key]), reason));
            if g.hosts.is_empty() {
                return blame("hosts", format!("group \"{}\" has no hosts", g.name));
            }
            if let Some(host) = g.hosts.iter().find(|h| *homes.entry(*h).or_insert(n) != n) {
                return blame("hosts", format!("host \"{host}\" is in two groups"));
            }
            for (key, share) in [("port_sharing", g.port_sharing), ("inside_port_sharing", g.inside_port_sharing)] {
                if !(share > 0.0 && share <= 1.0) {
                    return blame(key, format!("{key} of \"{}\" must be above 0 and at most 1", g.name));
                }
            }
            if g.losses.as_ref().is_some_and(|l| !(l.share > 0.0 && l.share < 1.0) || l.from_bytes > l.to_bytes || l.from_bytes == 0) {
                return blame(
                    "losses",
                    format!("losses of \"{}\" must be a share between 0 and 1, from a size above 0 to a larger one", g.name),
                );
            }
            if g.models.is_empty() && g.hosts.len() > 1 {
                return blame("hosts", format!("group \"{}\" has several hosts and no model: tune it anew", g.name));
            }
            if let Some(fault) = compute_fault(g) {
                return Some(fault);
            }
            if let Some(fault) = g.choices.iter().find_map(|(collective, rows)| choices_fault(n, g, collective, rows)) {
                return Some(fault);
            }
            for (k, s) in g.scores.iter().enumerate() {
                let blame = |reason: &str| Some((table_of(&g.name, &g.scores, k), reason.to_string()));
                if !g.models.iter().any(|m| m.model == s.model) {
                    return blame(&format!("\"{}\" has no model \"{}\"", g.name, s.model));
                }
                let errors = s.error.iter().chain([&s.error_se]).chain(&s.error_by_bytes).chain(s.error_by_algorithm.values());
                if !is_time(s.measuring_s) || errors.into_iter().any(|e| !(0.0..f64::MAX / 100.0).contains(e)) {
                    return blame("its scores are not valid: finite, zero or more");
                }
                if s.bytes.len() != s.error_by_bytes.len() || !ascend(&s.bytes) {
                    return blame("scores need sizes that ascend and an error for each");
                }
            }
        }
        None
    }

    /// What is wrong with hosts that may stand in: each is like those of one group.
    fn also_fault(&self) -> Option<Fault> {
        let groups = || self.groups.iter().enumerate();
        let mut homes: BTreeMap<&str, usize> = groups().flat_map(|(n, g)| g.hosts.iter().map(move |h| (h.as_str(), n))).collect();
        for (n, host) in groups().flat_map(|(n, g)| g.also.iter().map(move |h| (n, h))) {
            let home = *homes.entry(host).or_insert(n);
            if home != n {
                let [first, second] = [home, n].map(|n| &self.groups[n].name);
                let reason =
                    format!("host \"{host}\" cannot be like those of two groups, \"{first}\" and \"{second}\": leave it out of one");
                return Some((key_path(&[&"group", &n, &"also"]), reason));
            }
        }
        None
    }

    fn link_fault(&self) -> Option<Fault> {
        for (n, link) in self.links.iter().enumerate() {
            if let Some(name) = link.between.iter().find(|name| !self.groups.iter().any(|g| g.name == **name)) {
                return Some((key_path(&[&"link", &n, &"between"]), format!("there is no group \"{name}\"")));
            }
        }
        let links = self.links_by_names();
        let names = || self.groups.iter().map(|g| g.name.as_str());
        for (k, a) in names().enumerate() {
            for b in names().skip(k + 1) {
                if !links.contains_key(&(a, b)) {
                    return Some((key_path(&[&"group"]), format!("there is no [[link]] between \"{a}\" and \"{b}\"")));
                }
            }
        }
        None
    }
}

/// What is wrong with what copying and combining takes in a group.
fn compute_fault(g: &GroupPolicy) -> Option<Fault> {
    if !(g.compute.len() <= 1 || g.compute.len() == g.hosts.len()) {
        let reason = format!("compute is of all hosts of \"{}\", or of each of its {}", g.name, g.hosts.len());
        return Some((key_path(&[&"compute", &g.name]), reason));
    }
    let fits = |seconds: &[f64], sizes: &[usize]| seconds.len() == sizes.len() && seconds.iter().all(|&s| is_time(s) && s <= LARGEST);
    let is_wrong = |c: &Compute| {
        let from_something = c.bytes.first().is_some_and(|&first| first > 0) && ascend(&c.bytes);
        !from_something || !fits(&c.copy_s, &c.bytes) || !fits(&c.combine_s, &c.bytes)
    };
    let k = g.compute.iter().position(is_wrong)?;
    Some((key_path(&[&"compute", &g.name, &k]), "compute needs sizes above 0 that ascend, and two times for each".into()))
}

/// What is wrong with the [placement](crate::policy::OverGroups::placement) of ranks that a collective was measured over.
fn placement_fault(collective: &Collective, placement: &str) -> Option<Fault> {
    let is_hash = placement.len() == 16 && placement.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let reason = || format!("\"{placement}\" is no placement of ranks: 16 digits of 0-9 and a-f, as tune writes them");
    (!is_hash).then(|| (key_path(&[&"collective", &collective.name, &"placement"]), reason()))
}

/// What is wrong with what predictions of a collective over several groups missed.
fn ratios_fault(collective: &Collective, calibration: &BTreeMap<String, Ratios>) -> Option<Fault> {
    calibration.iter().find_map(|(name, Ratios { bytes, ratio })| {
        let reason = if name != PER_GROUP && inter_group_algorithm(name).is_err() {
            format!("there is no inter-group algorithm \"{name}\"")
        } else if bytes.is_empty() || bytes.len() != ratio.len() || !ascend(bytes) || !ratio.iter().all(|&r| r > 0.0 && r <= LARGEST) {
            "a calibration needs sizes that ascend and a ratio above zero for each".into()
        } else {
            return None;
        };
        Some((key_path(&[&"calibration_over_groups", &collective.name, &name.as_str()]), reason))
    })
}

/// What is wrong with the rows of a collective over several groups.
fn rows_fault(collective: &'static Collective, rows: &[TwoLevelRow], ranks: usize, groups: usize) -> Option<Fault> {
    let wrong = |k: usize| {
        let row = &rows[k];
        if !begins(k, |k| rows[k].from_bytes) {
            return Some("from must begin with 0 and ascend".into());
        }
        if !collective.sized() && row.at_bytes + row.from_bytes > 0 {
            return Some(format!("its sizes are not valid: {} has no message", collective.one()));
        }
        if row.in_flight.max(row.intra_in_flight) > WINDOW {
            return Some(format!("in_flight is at most {WINDOW}"));
        }
        if row.peers.max(row.intra_peers.unwrap_or(0)) > WINDOW {
            return Some(format!("peers is at most {WINDOW}"));
        }
        if row.radix.max(row.intra_radix) > MAX_BYTES {
            return Some("its radix is not valid".into());
        }
        let algorithms = if has_routes(collective) { segments_fault(collective, row) } else { forms_fault(collective, row, ranks, groups) };
        if row.by_speed && (!has_routes(collective) || row.is_per_group()) {
            return Some("by_speed is about a broadcast's algorithm inside groups, or over all ranks, that the row names".into());
        }
        let untimed = row.native && row.evidence.native_s.is_none();
        algorithms.or(untimed.then(|| "native = true needs native_s in its evidence".into()))
    };
    (0..rows.len()).find_map(|k| Some((key_path(&[&"collective", &collective.name, &"two_level", &k]), wrong(k)?)))
}

/// What is wrong with the algorithms of a row whose message crosses groups.
fn segments_fault(collective: &Collective, row: &TwoLevelRow) -> Option<String> {
    let inter_group = match inter_group_algorithm(&row.inter_group) {
        Err(e) => return Some(format!("failed to {e}")),
        Ok(found) => found,
    };
    if row.segment_bytes > 0 && inter_group == InterGroupAlgorithm::Direct {
        return Some(format!("inter_group \"{}\" goes in one piece, without segment", row.inter_group));
    }
    if row.radix + row.intra_radix + row.intra_segment_bytes > 0 {
        return Some(
            "a message that crosses groups has segment, in_flight and peers, and inside groups intra_in_flight and intra_peers".into(),
        );
    }
    let whole = inter_group == InterGroupAlgorithm::OverAll || row.is_per_group();
    let said_inside = row.intra_in_flight > 0 || row.intra_peers.is_some();
    let in_one_piece = inter_group == InterGroupAlgorithm::OverAll && row.segment_bytes == 0 && row.intra_in_flight > 0;
    if whole && row.peers > 0 || row.is_per_group() && said_inside || in_one_piece {
        return Some(
            "peers is about coordinators of trees, and intra_in_flight and intra_peers about trees inside groups or an algorithm over all ranks, in segments".into(),
        );
    }
    let Some(name) = &row.intra_group else { return Some(format!("it needs intra_group: a tree, or \"{PER_GROUP}\"")) };
    match collective.algorithm(name) {
        _ if row.is_per_group() && inter_group != InterGroupAlgorithm::OverAll => None,
        Err(e) => Some(format!("failed to {e}")),
        Ok(a) if inter_group == InterGroupAlgorithm::OverAll => {
            let needs = match a {
                _ if !a.radices.is_empty() => "has a radix, which such a row does not say",
                _ if row.segment_bytes > 0 => "cuts nothing into segments",
                _ => "needs a segment, or is not built here",
            };
            (!inter_group.goes_with(a, row.segment_bytes > 0)).then(|| format!("\"{name}\" over all ranks {needs}"))
        }
        Ok(a) if a.tree.is_none() => Some(format!("\"{name}\" is no tree: segments cannot pass through it")),
        Ok(_) => None,
    }
}

/// What is wrong with the algorithms of a row that says a form.
fn forms_fault(collective: &'static Collective, row: &TwoLevelRow, ranks: usize, groups: usize) -> Option<String> {
    if row.inter_group == collective.native().name {
        return Some("the library's own runs where native = true, and is no algorithm here".into());
    }
    if !collective.sized() && [row.segment_bytes, row.in_flight, row.intra_segment_bytes, row.intra_in_flight].iter().any(|&n| n > 0) {
        return Some(format!("{} has no message to be cut into segments", collective.one()));
    }
    let unread = |keys: &[(&str, bool)]| keys.iter().find(|(_, said)| *said).map(|(key, _)| format!("{key} says nothing in such a row"));
    let inside_said = [("intra_in_flight", row.intra_in_flight > 0), ("intra_peers", row.intra_peers.is_some())];
    let Some(inside) = &row.intra_group else {
        if let Some(fault) = unread(&inside_said) {
            return Some(fault);
        }
        return match collective.algorithm(&row.inter_group) {
            Err(e) => Some(format!("failed to {e}")),
            Ok(a) if row.segment_bytes > 0 && !a.segmented => Some(format!("\"{}\" cuts nothing into segments", a.name)),
            Ok(_) if row.intra_radix > 0 => Some("it has an intra_radix, and no intra_group".into()),
            Ok(a) => radix_fault(a, row.radix, ranks).or_else(|| fits_fault(collective, a, ranks, row.at_bytes)),
        };
    };
    let through = match through_coordinators(collective) {
        Err(e) => return Some(format!("failed to {e}")),
        Ok(through) => through,
    };
    if row.segment_bytes > 0 && !through.segmented {
        return Some(format!("{} does not go through coordinators in segments", collective.one()));
    }
    let whole = row.segment_bytes == 0;
    let of_segments = [("in_flight", whole && row.in_flight > 0), ("intra_in_flight", whole && row.intra_in_flight > 0)];
    let of_trees = [("peers", row.peers > 0), ("intra_peers", row.intra_peers.is_some())];
    if let Some(fault) = unread(&of_segments).or_else(|| unread(&of_trees)) {
        return Some(fault);
    }
    if row.intra_segment_bytes > 0 {
        return Some("its segments pass through all levels: intra_segment says nothing".into());
    }
    match through.between(&row.inter_group).and_then(|between| Ok((between, through.inside(inside)?))) {
        Err(e) => Some(format!("failed to {e}")),
        Ok((between, inside)) => radix_fault(between, row.radix, ranks)
            .or_else(|| radix_fault(inside, row.intra_radix, ranks))
            .or_else(|| fits_fault(collective, between, groups, row.at_bytes)),
    }
}

/// What is wrong with an algorithm over so many ranks that it cannot be built for.
fn fits_fault(collective: &Collective, algorithm: &Algorithm, ranks: usize, bytes: usize) -> Option<String> {
    let fits = ranks < 2 || (algorithm.fits)(&collective.shape(ranks, 0, bytes));
    (!fits).then(|| format!("\"{}\" wants {}, and there are {ranks} ranks", algorithm.name, algorithm.wants))
}

/// What is wrong with a radix that an algorithm over at most so many ranks is said to have.
fn radix_fault(algorithm: &Algorithm, radix: usize, ranks: usize) -> Option<String> {
    match radix {
        0 => None,
        _ if algorithm.radices.is_empty() => Some(format!("\"{}\" has no radix", algorithm.name)),
        1 => Some("a radix is 2 at least".into()),
        _ if radix > algorithm.most_radix(ranks) => {
            Some(format!("a radix of {radix} is more than there are ranks: {} is the largest here", algorithm.most_radix(ranks)))
        }
        _ => None,
    }
}

/// What is wrong with the rows of a collective in the `n`-th group.
fn choices_fault(n: usize, g: &GroupPolicy, collective: &'static Collective, rows: &[Choice]) -> Option<Fault> {
    let wrong = |k: usize| {
        let row = &rows[k];
        if !begins(k, |k| rows[k].from_bytes) {
            return Some("from must begin with 0 and ascend".into());
        }
        let algorithm = match collective.algorithm(&row.algorithm) {
            Err(e) => return Some(format!("failed to {e}")),
            Ok(found) => found,
        };
        if row.segment_bytes > 0 && !algorithm.segmented {
            return Some(format!("\"{}\" has no segment", algorithm.name));
        }
        if let Err(e) = row.held(collective) {
            return Some(format!("failed to {e}"));
        }
        if row.in_flight > WINDOW {
            return Some(format!("in_flight is at most {WINDOW}"));
        }
        if row.by_speed && collective.places_of(algorithm).is_none() {
            return Some(format!("{} by \"{}\" has no places by speed", collective.one(), algorithm.name));
        }
        if row.peers > WINDOW {
            return Some(format!("peers is at most {WINDOW}"));
        }
        if !collective.sized() && row.at_bytes + row.from_bytes > 0 {
            return Some(format!("its sizes are not valid: {} has no message", collective.one()));
        }
        if !g.models.iter().any(|m| m.model == row.model) {
            return Some(format!("the group has no model \"{}\"", row.model));
        }
        radix_fault(algorithm, row.radix, g.hosts.len()).or_else(|| fits_fault(collective, algorithm, g.hosts.len(), row.at_bytes))
    };
    (0..rows.len()).find_map(|k| Some((key_path(&[&"group", &n, &"choices", &collective.name, &k]), wrong(k)?)))
}

/// True if the `k`-th row of some follows the one before.
fn begins(k: usize, from: impl Fn(usize) -> usize) -> bool {
    if k == 0 { from(0) == 0 } else { from(k) > from(k - 1) }
}
