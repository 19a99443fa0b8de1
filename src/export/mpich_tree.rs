//! A tree by which MPICH selects algorithms: conditions, tried in their order, down to one algorithm.

use crate::error::{Error, Result};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Conditions with what holds under each, in the order in which they are tried; an algorithm is the one key of its tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree(pub Vec<(String, Tree)>);

/// A call of a collective on an intra-communicator whose ranks each have a host of their own.
#[derive(Debug, Clone)]
pub struct Call {
    /// The collective, as the library calls it.
    pub collective: String,
    /// Ranks of the communicator.
    pub ranks: usize,
    /// Bytes of the message, or of one block.
    pub avg_msg_size: usize,
    /// Bytes of all blocks.
    pub total_msg_size: usize,
    /// True if the operation commutes.
    pub commutes: bool,
    /// True if the operation is one of MPI's own.
    pub built_in_op: bool,
    /// True if what a rank gives lies where it gets the result.
    pub in_place: bool,
    /// True if there are fewer elements than the largest power of two that is not above the ranks.
    pub fewer_than_pow2: bool,
}

impl Tree {
    /// An algorithm.
    pub fn leaf(algorithm: &str) -> Tree {
        Tree(vec![(format!("algorithm={algorithm}"), Tree::default())])
    }

    /// The selection that a library holds, or that a file is.
    ///
    /// # Errors
    /// [`Error::Invalid`]: there is none.
    pub fn of_library(bytes: &[u8]) -> Result<Tree> {
        if let Ok(tree) = serde_json::from_slice(bytes) {
            return Ok(tree);
        }
        // texts in a library end with a zero; of three selections one is of algorithms of all communicators
        let begin = b"{\"collective=";
        let texts = bytes.split(|&b| b == 0).filter_map(|text| text.windows(begin.len()).position(|w| w == begin).map(|at| &text[at..]));
        let trees = texts.filter_map(|text| serde_json::from_slice::<Tree>(text).ok());
        trees.into_iter().find(|tree| tree.names("algorithm=MPIR_")).ok_or_else(|| {
            Error::invalid(
                "find MPICH's own selection of algorithms: give its shared library (libmpich.so of 4.0 holds it), or the file itself",
            )
        })
    }

    /// True if some key begins so.
    fn names(&self, begin: &str) -> bool {
        self.0.iter().any(|(key, tree)| key.starts_with(begin) || tree.names(begin))
    }

    /// What holds under these conditions, one in the other.
    pub(super) fn part(&mut self, keys: &[String]) -> Option<&mut Tree> {
        let Some((first, rest)) = keys.split_first() else { return Some(self) };
        self.0.iter_mut().find(|(key, _)| key == first)?.1.part(rest)
    }

    /// What is left of it among so many ranks: below a size of messages the library confuses "fewer than" with "at most".
    pub(super) fn among(&self, ranks: usize) -> Tree {
        let holds = |key: &str| of_ranks(key, ranks, false);
        match self.0.iter().find(|(key, _)| holds(key) == Some(true)) {
            Some((_, tree)) if self.0.iter().all(|(key, _)| holds(key).is_some()) => tree.among(ranks),
            _ => Tree(self.0.iter().map(|(key, tree)| (key.clone(), tree.among(ranks))).collect()),
        }
    }

    /// What the library would not accept when it starts, if there is anything: sizes and numbers of ranks for which no condition holds.
    pub(super) fn fault(&self) -> Option<String> {
        let ends = |key: &str| key == "any" || key.ends_with("=any");
        let (last, _) = self.0.last()?;
        let open = self.0.iter().any(|(key, _)| key.contains('<')) && !ends(last);
        let here = || {
            format!(
                "the conditions that end with \"{last}\" do not hold for everything, and the library would end the program when it starts"
            )
        };
        if open { Some(here()) } else { self.0.iter().find_map(|(_, tree)| tree.fault()) }
    }

    /// The algorithm that is selected for a call.
    ///
    /// # Errors
    /// [`Error::Invalid`]: a condition that is not known here, or none that holds, where the library ends the program.
    pub fn selected(&self, call: &Call) -> Result<String> {
        let (mut tree, mut below) = (self, false);
        loop {
            if let [(key, _)] = &tree.0[..]
                && let Some(algorithm) = key.strip_prefix("algorithm=")
            {
                return Ok(algorithm.into());
            }
            let mut next = None;
            for (key, part) in &tree.0 {
                if holds(key, call, below)? {
                    next = Some((key, part));
                    break;
                }
            }
            let Some((key, part)) = next else {
                let why = format!("no condition holds for {} of {} bytes among {} ranks", call.collective, call.avg_msg_size, call.ranks);
                return Err(Error::invalid(format!("select as MPICH does: {why}, and the library would end the program")));
            };
            below |= !["collective=", "comm_"].iter().any(|begin| key.starts_with(begin));
            tree = part;
        }
    }
}

/// True if a condition on the number of ranks holds; `None` of others. `below`: it stands below others, where "fewer than" is "at most".
fn of_ranks(key: &str, ranks: usize, below: bool) -> Option<bool> {
    let condition = key.strip_prefix("comm_size")?;
    if let Some(most) = condition.strip_prefix("<=") {
        return Some(ranks <= most.parse().ok()?);
    }
    if let Some(end) = condition.strip_prefix('<') {
        let end: usize = end.parse().ok()?;
        return Some(ranks < end || (below && ranks == end));
    }
    match condition {
        "=any" => Some(true),
        "=pow2" => Some(ranks.is_power_of_two()),
        "=node_comm_size" => Some(false),
        _ => None,
    }
}

/// True if a condition holds for a call.
fn holds(key: &str, call: &Call, below: bool) -> Result<bool> {
    if let Some(holds) = of_ranks(key, call.ranks, below) {
        return Ok(holds);
    }
    for (word, bytes) in [("avg_msg_size", call.avg_msg_size), ("total_msg_size", call.total_msg_size)] {
        let Some(condition) = key.strip_prefix(word) else { continue };
        let (less, number) = (!condition.starts_with("<="), condition.trim_start_matches(['<', '=']));
        if number == "any" {
            return Ok(true);
        }
        if let Ok(number) = number.parse::<usize>() {
            return Ok(bytes < number || (!less && bytes == number));
        }
    }
    let says = |word: &str, value: bool| key.strip_prefix(word).map(|answer| (answer == "=yes") == value);
    let of_call = says("is_commutative", call.commutes)
        .or(says("is_op_built_in", call.built_in_op))
        .or(says("is_sendbuf_inplace", call.in_place))
        .or(key.strip_prefix("collective=").map(|name| name == call.collective));
    match key {
        "comm_type=intra" | "comm_hierarchy=any" | "comm_hierarchy=flat" | "count=any" => Ok(true),
        "comm_type=inter" | "comm_hierarchy=parent" => Ok(false),
        "count<pow2" => Ok(call.fewer_than_pow2),
        _ => of_call.ok_or_else(|| Error::invalid(format!("select as MPICH does: the condition \"{key}\" is not one of MPICH 4.0"))),
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, tree)| (key, tree)))
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Conditions;
        impl<'de> Visitor<'de> for Conditions {
            type Value = Tree;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("conditions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Tree, A::Error> {
                let mut all = Vec::new();
                while let Some((key, tree)) = map.next_entry::<String, Tree>()? {
                    // the library drops blanks
                    all.push((key.replace(' ', ""), tree));
                }
                Ok(Tree(all))
            }
        }
        deserializer.deserialize_map(Conditions)
    }
}
