//! A policy: what was decided for a platform, and why. Versioned, strict TOML (`policies/*.toml`).

mod decision;
mod toml_file;
mod writer;

use crate::collective::{Collective, Parameters, is_zero};
use crate::model::Fitted;
use crate::names;
use crate::score::{Experience, ModelScore};
use crate::two_level::RouteKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use decision::{CompiledGroup, CompiledPolicy, Decision, bounded};

/// The version of the file format that is read and written.
pub const FORMAT: u32 = 2;

/// A policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Version of the file format: [`FORMAT`].
    pub format: u32,
    /// Who measured what, when, with what.
    pub provenance: Provenance,
    /// The groups.
    #[serde(rename = "group")]
    pub groups: Vec<GroupPolicy>,
    /// The links between groups, one for each two.
    #[serde(rename = "link", default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkPolicy>,
    /// How the ranks were placed when the library's own broadcast was measured over all of them: a hash of each rank's group. Placed
    /// otherwise, it takes other times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// How messages cross groups, by size; without rows, whole messages go from group to group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub across: Vec<Across>,
    /// What collectives without a message do over all groups.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub over_all: BTreeMap<&'static Collective, OverAll>,
}

/// Where a policy comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The platform's name.
    #[serde(deserialize_with = "names::de_name")]
    pub platform: String,
    /// The number of ranks that were measured.
    pub ranks: usize,
    /// The MPI library, or "simulator".
    pub library: String,
    /// The clock.
    pub timer: String,
    /// When.
    pub date: String,
    /// The program that made it, with its version.
    pub made_by: String,
    /// Seconds of measuring.
    pub measuring_s: f64,
}

/// A group of alike hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupPolicy {
    /// Unique name.
    #[serde(deserialize_with = "names::de_name")]
    pub name: String,
    /// Latency inside: half a round trip of an empty message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_s: Option<f64>,
    /// How much of a link's gap a message to another group keeps its sender from sending to a third one: 1 where one port carries all,
    /// down to one over the number of links where each has a capacity of its own.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub fan_out: f64,
    /// The host of each position: models that tell processors apart are about positions. A host with several ranks is there so
    /// many times.
    #[serde(deserialize_with = "names::de_names")]
    pub hosts: Vec<String>,
    /// What messages cost between two ranks of one host, where some of the ranks share hosts and some do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside_host: Option<Fitted>,
    /// As `fan_out`, of messages to hosts of the group itself.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub inside_fan_out: f64,
    /// What to do, by collective and size.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub choices: BTreeMap<&'static Collective, Vec<Choice>>,
    /// How well each model did.
    #[serde(rename = "score", default, skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<ModelScore>,
    /// The fitted models.
    #[serde(rename = "model", default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Fitted>,
    /// What measured broadcasts taught.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub experience: Vec<Experience>,
}

/// A choice: a row of the policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// It holds from this size up to the next row's.
    pub from_bytes: usize,
    /// The size it was made at.
    pub at_bytes: usize,
    /// The model that was trusted.
    pub model: String,
    /// The algorithm.
    pub algorithm: String,
    /// Its segment; 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub segment_bytes: usize,
    /// Its radix; 0: none, or the default.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub radix: usize,
    /// Messages under way to each peer; 0: as many as bandwidth and delay want.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_flight: usize,
    /// Predicted time (for `native`, which no model knows: the measured one).
    pub predicted_s: f64,
    /// Measured time, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_s: Option<f64>,
    /// The next best.
    pub runner_up: String,
    /// How much longer the next best takes, as a share.
    pub margin: f64,
}

impl Choice {
    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        Parameters { segment: self.segment_bytes, radix: self.radix, in_flight: self.in_flight }
    }
}

/// What lies between two groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPolicy {
    /// The two groups.
    #[serde(deserialize_with = "names::de_two_names")]
    pub between: [String; 2],
    /// Half a round trip of an empty message.
    pub latency_s: f64,
    /// The model of the link.
    pub model: Fitted,
}

/// How a message crosses groups, for sizes from `from_bytes` on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Across {
    /// It holds from this size up to the next row's.
    pub from_bytes: usize,
    /// The size it was made at.
    pub at_bytes: usize,
    /// The route between groups.
    pub route: RouteKind,
    /// Bytes of a segment; 0: the whole message at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub segment_bytes: usize,
    /// Messages under way to each peer in another group; 0: as many as bandwidth and delay of the links want.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_flight: usize,
    /// The tree inside groups that segments pass through; [`OWN`]: the whole message goes from group to group, and each group does what
    /// its own row says when it has it.
    pub local: String,
    /// Predicted time.
    pub predicted_s: f64,
    /// Measured time over all ranks, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_s: Option<f64>,
    /// What the library's own broadcast over all ranks took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_s: Option<f64>,
    /// The next best way.
    pub runner_up: String,
    /// How much longer the next best takes, as a share.
    pub margin: f64,
    /// True if the library's own broadcast is used when all ranks take part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub native: bool,
}

/// What a collective without a message does where several groups take part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverAll {
    /// The algorithm: between the groups' coordinators, or without `inside` over all ranks.
    pub algorithm: String,
    /// Its radix; 0: none, or the default.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub radix: usize,
    /// The tree inside each group, to its coordinator and back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<String>,
    /// Its radix; 0: none, or the default.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inside_radix: usize,
    /// Predicted time.
    pub predicted_s: f64,
    /// Measured time over all ranks, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_s: Option<f64>,
    /// What the library's own took over all ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_s: Option<f64>,
    /// The next best way.
    pub runner_up: String,
    /// How much longer the next best takes, as a share.
    pub margin: f64,
    /// True if the library's own is used when all ranks take part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub native: bool,
}

/// What a row says of groups that follow their own rows.
pub const OWN: &str = "own";

fn one() -> f64 {
    1.0
}

fn is_one(x: &f64) -> bool {
    *x == 1.0
}

impl GroupPolicy {
    /// The rows of a collective.
    pub fn rows(&self, collective: &'static Collective) -> &[Choice] {
        self.choices.get(collective).map_or(&[], Vec::as_slice)
    }

    /// The row for a size.
    pub fn row(&self, collective: &'static Collective, bytes: usize) -> Option<&Choice> {
        self.rows(collective).iter().rev().find(|r| r.from_bytes <= bytes)
    }
}

impl Policy {
    /// A number that two policies share only if they decide alike: FNV-1a over the file's text.
    pub fn fingerprint(&self) -> u64 {
        let text = self.to_toml().unwrap_or_default();
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// The model of the link between two groups.
    pub fn link(&self, a: usize, b: usize) -> Option<&LinkPolicy> {
        let (a, b) = (&self.groups.get(a)?.name, &self.groups.get(b)?.name);
        self.links.iter().find(|l| (&l.between[0] == a && &l.between[1] == b) || (&l.between[0] == b && &l.between[1] == a))
    }
}
