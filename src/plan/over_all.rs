//! One algorithm over the ranks of several groups.

use super::across::{TwoLevelParameters, ordered};
use super::common::Common;
use super::sites::Sites;
use crate::collective::Parameters;
use crate::error::Result;
use crate::flow::{are_fewer, held_back, wanted_inside, with_flow};
use crate::topology::Rank;
use crate::two_level::{InterGroup, IntraGroup, Near, TwoLevel};

/// The broadcast by one algorithm over all ranks, group after group from the root's on.
pub(super) fn over_all(common: &Common, groups: Vec<Vec<Rank>>, bytes: usize, choice: TwoLevelParameters) -> Result<TwoLevel> {
    let mut ranks = groups.concat();
    let segment = if choice.segment < bytes { choice.segment } else { 0 };
    let said = Parameters { in_flight: choice.flow.in_flight, ..Parameters::of(segment, 0) };
    let costs = common.costs(bytes)?;
    if choice.by_speed {
        ranks = ordered(&costs, choice.intra_group, said, &ranks, bytes)?;
    }
    let filled = with_flow(choice.intra_group, said, &*costs, &ranks, bytes);
    let parameters = Parameters { segment: choice.segment, peers: choice.flow.intra_peers.unwrap_or(filled.peers), ..filled };
    let group_of_each = ranks.iter().map(|&rank| common.members[rank].group);
    // what links between sites want under way is too much inside these, and inside groups
    let inside = || wanted_inside(&*costs, &groups, segment).unwrap_or(0).max(choice.flow.intra_in_flight);
    let near = if segment > 0 { near(&common.sites(segment), parameters.in_flight, inside(), group_of_each) } else { Vec::new() };
    Ok(TwoLevel {
        bytes,
        hosts: Vec::new(),
        inter_group: InterGroup::Tree(Vec::new()),
        segment: 0,
        in_flight: 0,
        near,
        groups: vec![ranks],
        peers: 0,
        intra_group: vec![IntraGroup { algorithm: choice.intra_group, parameters }],
    })
}

/// What is near each other among ranks, by the group of each: those of a site, and those of a group, where so many messages are to be under way.
fn near(sites: &Sites, between: usize, inside: usize, group_of_each: impl Iterator<Item = usize> + Clone) -> Vec<Near> {
    let mut near = sites.near(between, inside, group_of_each.clone());
    let of_sites = near.first().map_or(between, |site| site.in_flight);
    let of_groups = held_back(Some(inside));
    if are_fewer(of_groups, of_sites) {
        near.insert(0, Near { in_flight: of_groups, sites: group_of_each.collect() });
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::bcast;
    use crate::plan::{Flow, everybody, predict};
    use crate::policy::{CompiledPolicy, Policy};
    use crate::schedule::check;
    use crate::two_level::InterGroupAlgorithm;
    use std::path::Path;

    #[test]
    fn as_much_is_under_way_as_each_link_wants() {
        let policy = CompiledPolicy::new(Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap()).unwrap();
        let members = everybody(&policy.policy);
        let algorithm = bcast::algorithm("segmented_chain").unwrap();
        let with = |segment: usize, in_flight: usize, intra_in_flight: usize| {
            let (inter_group, flow) = (InterGroupAlgorithm::OverAll, Flow { in_flight, intra_in_flight, ..Flow::default() });
            let choice = TwoLevelParameters { inter_group, segment, flow, intra_group: algorithm, by_speed: false };
            Common::new(&policy, &members).two_level(7, 1 << 20, choice).unwrap()
        };
        let (wanted, said, whole) = (with(32 << 10, 0, 0), with(32 << 10, 9, 0), with(0, 0, 0));
        let windows = |h: &TwoLevel| (h.intra_group[0].parameters.in_flight, h.near.first().map(|near| near.in_flight));
        let (between, Some(near)) = windows(&wanted) else { panic!("{wanted:?}") };
        assert!(near > 1 && near < between, "{near} inside sites, {between} between them");
        assert_eq!((windows(&said), windows(&whole)), ((9, Some(near)), (0, None)));
        assert_eq!(
            (windows(&with(32 << 10, 9, 7)), windows(&with(32 << 10, 9, 9))),
            ((9, Some(7)), (9, None)),
            "as many as are said inside"
        );
        // groups of one city are one site
        let city = |rank: Rank| policy.policy.groups[members[rank].group].name.split('-').next().unwrap();
        let sites = &wanted.near.last().unwrap().sites;
        for (a, b) in (0..sites.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let [one, other] = [a, b].map(|place| city(wanted.groups[0][place]));
            assert_eq!(sites[a] == sites[b], one == other, "{one} and {other}");
        }
        check(&wanted.schedule(members.len()).unwrap(), &wanted.specification(members.len())).unwrap();
        // and nothing is lost by that
        let seconds = |two_level: &TwoLevel| predict(&policy, &members, two_level).unwrap();
        let everywhere = TwoLevel { near: Vec::new(), ..wanted.clone() };
        assert!(seconds(&wanted) <= 1.01 * seconds(&everywhere), "{} s, {} s", seconds(&wanted), seconds(&everywhere));
    }
}
