//! The tree inside a group whose hosts have several ranks: one of the hosts' first ranks, and one inside each host.

use crate::collective::Node;
use rustc_hash::FxHashMap;

/// The hosts of a group: the first rank of each, and who shares it.
pub(super) struct Hosts {
    /// Positions by host, in the order of the hosts' first ranks.
    ranks: Vec<Vec<usize>>,
    /// By position: its host, and its place there.
    places: Vec<(usize, usize)>,
}

impl Hosts {
    /// From the host of each position.
    pub fn new(hosts: &[usize]) -> Hosts {
        let (mut known, mut ranks) = (FxHashMap::default(), Vec::<Vec<usize>>::new());
        let mut place = |(position, host): (usize, &usize)| {
            let at = *known.entry(*host).or_insert(ranks.len());
            if at == ranks.len() {
                ranks.push(Vec::new());
            }
            ranks[at].push(position);
            (at, ranks[at].len() - 1)
        };
        let places = hosts.iter().enumerate().map(&mut place).collect();
        Hosts { ranks, places }
    }

    /// The place of a position in the tree of hosts and of ranks inside hosts.
    pub fn node(&self, position: usize, tree: &dyn Fn(usize, usize) -> Option<Node>) -> Option<Node> {
        let (host, place) = self.places[position];
        let same = &self.ranks[host];
        let inside = tree(place, same.len())?;
        let mut node = Node { parent: inside.parent.map(|v| same[v]), children: Vec::new() };
        if place == 0 {
            let among = tree(host, self.ranks.len())?;
            node.parent = among.parent.map(|v| self.ranks[v][0]);
            node.children = among.children.into_iter().map(|v| self.ranks[v][0]).collect();
        }
        node.children.extend(inside.children.into_iter().map(|v| same[v]));
        Some(node)
    }
}
