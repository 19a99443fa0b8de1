//! What no broadcast over groups is faster than.

use super::{Location, group_ranks};
use crate::policy::CompiledPolicy;
use crate::topology::Rank;

/// Sizes of long messages, which links carry at their full rate, and the largest that broadcasts over groups are chosen at.
pub const LONG: [usize; 2] = [1 << 20, 4 << 20];

/// The seconds that so many bytes from a root take at least to the farthest group: they come in over the links from all other groups, over each from
/// when the first of them can have come so far, as fast as it carries one long stream.
pub fn least_between(policy: &CompiledPolicy, members: &[Location], root: Rank, bytes: usize) -> f64 {
    let groups: Vec<usize> = group_ranks(members, root).into_iter().map(|(group, _)| group).collect();
    let way = |from: usize, to: usize| if from == to { 0.0 } else { policy.link_cost(from, to, 0).transit };
    let to_group = |&to: &usize| {
        let from_all =
            groups.iter().filter(|&&by| by != to).map(|&by| (way(groups[0], by) + way(by, to), seconds_per_byte(policy, by, to)));
        arrival(from_all.collect(), bytes as f64)
    };
    groups[1..].iter().map(to_group).fold(0.0, f64::max)
}

/// No link is faster: where differences of what was measured say so, they are noise.
const LEAST_PER_BYTE: f64 = 1e-15;

/// What a byte more takes in a stream of long messages, of two sizes the lesser.
fn seconds_per_byte(policy: &CompiledPolicy, from: usize, to: usize) -> f64 {
    let busy = |bytes: usize| {
        let cost = policy.link_cost(from, to, bytes);
        cost.gap.max(cost.link_gap)
    };
    let more = |bytes: usize| (busy(bytes) - busy(0)) / bytes as f64;
    let [long, longest] = LONG;
    more(long).min(more(longest)).max(LEAST_PER_BYTE)
}

/// When so many bytes have come in over ways that begin to carry at some times, each byte in so many seconds.
fn arrival(mut ways: Vec<(f64, f64)>, bytes: f64) -> f64 {
    ways.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut per_second, mut missed) = (0.0, 0.0);
    let mut done = f64::INFINITY;
    for (begins, seconds_per_byte) in ways {
        if done <= begins {
            break;
        }
        // as if it had carried from the beginning, without what it would have carried before
        (per_second, missed) = (per_second + 1.0 / seconds_per_byte, missed + begins / seconds_per_byte);
        done = (bytes + missed) / per_second;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::two_level::ROUTED;

    #[test]
    fn no_measured_way_is_faster_than_links_allow() {
        for name in ["ccgrid2007", "pmeo2006"] {
            let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("policies").join(name).with_extension("toml");
            let policy = CompiledPolicy::new(crate::policy::Policy::read(&file).unwrap()).unwrap();
            let of = |group: usize| (0..policy.policy.groups[group].hosts.len()).map(move |position| Location { group, position });
            let members: Vec<Location> = (0..policy.policy.groups.len()).flat_map(of).collect();
            let rows = &policy.policy.collectives[ROUTED].two_level;
            let measured: Vec<_> = rows.iter().filter_map(|r| Some((r.at_bytes, r.evidence.measured_s?))).collect();
            assert!(measured.len() > LONG.len(), "{name}: {measured:?}");
            for (bytes, seconds) in measured {
                let least = least_between(&policy, &members, 0, bytes);
                assert!((0.25 * seconds..=1.001 * seconds).contains(&least), "{name}: {bytes} bytes take {seconds} s, at least {least}");
            }
        }
    }

    #[test]
    fn bytes_come_in_over_all_ways_that_have_begun_to_carry() {
        assert_eq!(arrival(vec![(9.0, 1.0), (2.0, 1.0)], 5.0), 7.0);
        assert_eq!(arrival(vec![(9.0, 1.0), (2.0, 1.0)], 11.0), 11.0, "9 over one and 2 over the other");
        assert_eq!(arrival(vec![(2.0, 1.0), (4.0, 0.5)], 0.0), 2.0);
    }
}
