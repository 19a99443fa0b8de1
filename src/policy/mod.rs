//! A policy: what was decided for a platform, and why. Versioned, strict TOML (`policies/*.toml`).

mod also;
mod check;
mod classes;
mod decision;
mod errors;
mod file;
mod folder;
mod hosts;
mod layout;
mod toml_file;
mod unmeasured;

use crate::collective::{Algorithm, Collective, Parameters, is_zero};
use crate::decide::{is_missed, times_apart};
use crate::error::{Error, Result};
use crate::model::{Compute, Fitted, Inside, Losses};
use crate::names;
use crate::score::{Calibration, ModelScore, Ratios};
use crate::stats::fnv1a;
use crate::units;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use also::Also;
pub use decision::{CompiledGroup, CompiledPolicy, Decision, TRAIN_BYTES, bounded};
#[cfg(feature = "cli")]
pub(crate) use hosts::fold;

/// The version of the file format that is read and written.
pub const FORMAT: u32 = 2;

/// A policy.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Policy {
    /// What collectives do over several groups.
    pub collectives: BTreeMap<&'static Collective, OverGroups>,
    /// Who measured what, when, with what.
    pub provenance: Provenance,
    /// The groups.
    pub groups: Vec<GroupPolicy>,
    /// The links between groups, one for each two.
    pub links: Vec<LinkPolicy>,
}

/// What a collective does over several groups.
#[derive(Debug, Clone, PartialEq)]
pub struct OverGroups {
    /// How the ranks were placed when the library's own was measured over all of them: a hash of each rank's group. Placed otherwise, it
    /// takes other times.
    pub placement: Option<String>,
    /// What is done, by size.
    pub two_level: Vec<TwoLevelRow>,
    /// By inter-group algorithm, or [`PER_GROUP`]: what predictions of the fastest that was measured of it missed, from the first rank.
    pub calibration: BTreeMap<String, Ratios>,
}

/// Where a policy comes from.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Seconds that setting a communicator of all ranks up takes, once, before its calls go by a policy; none where no MPI library was there to measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_s: Option<f64>,
    /// Latencies within a group differ by at most this factor; none: by the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
}

/// A larger factor than this is no bound that anybody means.
pub const LARGEST_BOUND: f64 = 100.0;

/// A group of alike hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupPolicy {
    /// Unique name.
    pub name: String,
    /// Latency inside: half a round trip of an empty message.
    pub latency_s: Option<f64>,
    /// How much of a link's gap a message to another group keeps its sender from sending to a third one: 1 where one port carries all,
    /// down to one over the number of links where each has a capacity of its own.
    pub port_sharing: f64,
    /// The host of each position: models that tell processors apart are about positions. A host with several ranks is there so
    /// many times.
    pub hosts: Vec<String>,
    /// Hosts that are like these and may stand in for them; those that `hosts` lists are themselves.
    pub also: Vec<String>,
    /// What messages cost between two ranks of one host, where some of the ranks share hosts and some do not.
    pub inside_host: Option<Fitted>,
    /// As `port_sharing`, of messages to hosts of the group itself.
    pub inside_port_sharing: f64,
    /// What copying and combining takes its processors: one for all positions or, where they differ, one for each; none where nobody measured it.
    pub compute: Vec<Compute>,
    /// What its network loses, if anything.
    pub losses: Option<Losses>,
    /// What to do, by collective and size.
    pub choices: BTreeMap<&'static Collective, Vec<Choice>>,
    /// How well each model did.
    pub scores: Vec<ModelScore>,
    /// The fitted models.
    pub models: Vec<Fitted>,
    /// What measured collectives taught.
    pub calibration: Vec<Calibration>,
}

impl GroupPolicy {
    /// Of a group of which nothing is known but this.
    pub fn new(name: &str, latency_s: Option<f64>, hosts: Vec<String>) -> GroupPolicy {
        GroupPolicy {
            name: name.into(),
            latency_s,
            port_sharing: 1.0,
            hosts,
            also: Vec::new(),
            inside_host: None,
            inside_port_sharing: 1.0,
            compute: Vec::new(),
            losses: None,
            choices: BTreeMap::new(),
            scores: Vec::new(),
            models: Vec::new(),
            calibration: Vec::new(),
        }
    }

    /// What is known of its inside.
    pub(crate) fn inside(&self) -> Inside {
        let network = Inside::new(&self.hosts, self.inside_host.clone(), self.inside_port_sharing, &self.models);
        network.with_compute(self.compute.clone()).with_losses(self.losses.clone(), &self.models)
    }
}

/// What a group does by itself, for sizes from `from_bytes` on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// It holds from this size up to the next row's.
    #[serde(rename = "from", deserialize_with = "units::de_bytes")]
    pub from_bytes: usize,
    /// The size it was made at.
    #[serde(rename = "at", deserialize_with = "units::de_bytes")]
    pub at_bytes: usize,
    /// The algorithm.
    pub algorithm: String,
    /// Its segment; 0: none.
    #[serde(rename = "segment", default, deserialize_with = "units::de_bytes", skip_serializing_if = "is_zero")]
    pub segment_bytes: usize,
    /// Its radix; 0: none, or the default.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub radix: usize,
    /// Messages under way to each peer; 0: as many as bandwidth and delay want.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_flight: usize,
    /// To how many peers at once a rank sends; 0: to all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peers: usize,
    /// True if hosts take their places by the speed of their processors, and not in their order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_speed: bool,
    /// True if models missed by a multiple what some of its rivals take: then it is taken too where only some of the group's ranks are there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub irregular: bool,
    /// The same, with the fastest of its rivals in one piece of which models did not miss that: one of the two is taken; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub holds: String,
    /// The model that was selected.
    pub model: String,
    /// What it rests on.
    #[serde(skip)]
    pub evidence: Evidence,
}

impl Choice {
    /// True if models missed by a multiple what some of its rivals take.
    pub fn is_irregular(&self) -> bool {
        self.irregular || !self.holds.is_empty()
    }

    /// What `holds`, if anything does.
    ///
    /// # Errors
    /// An algorithm that there is not.
    pub fn held(&self, collective: &'static Collective) -> Result<Option<&'static Algorithm>> {
        if self.holds.is_empty() { Ok(None) } else { collective.algorithm(&self.holds).map(Some) }
    }

    /// The parameters.
    pub fn parameters(&self) -> Parameters {
        Parameters { segment: self.segment_bytes, radix: self.radix, in_flight: self.in_flight, peers: self.peers, by_speed: self.by_speed }
    }
}

/// What all groups do together, for sizes from `from_bytes` on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwoLevelRow {
    /// It holds from this size up to the next row's.
    #[serde(rename = "from", deserialize_with = "units::de_bytes")]
    pub from_bytes: usize,
    /// The size it was made at.
    #[serde(rename = "at", deserialize_with = "units::de_bytes")]
    pub at_bytes: usize,
    /// The algorithm between groups; of a collective without a message and without `intra_group`, the algorithm over all ranks.
    pub inter_group: String,
    /// Its segment; 0: the whole message at once.
    #[serde(rename = "segment", default, deserialize_with = "units::de_bytes", skip_serializing_if = "is_zero")]
    pub segment_bytes: usize,
    /// Its radix; 0: none, or the default.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub radix: usize,
    /// Messages under way to each peer in another group; 0: as many as bandwidth and delay of the links want. Of broadcasts, inside a site, which is groups whose
    /// links want far fewer, as many as these want.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub in_flight: usize,
    /// To how many peers at once a coordinator sends (without `intra_group`: every rank); 0: to all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub peers: usize,
    /// The algorithm inside each group; [`PER_GROUP`]: the whole message goes from group to group, and each group does what its own row says
    /// when it has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intra_group: Option<String>,
    /// Its segment; 0: none, or that of `inter_group`, which passes through.
    #[serde(rename = "intra_segment", default, deserialize_with = "units::de_bytes", skip_serializing_if = "is_zero")]
    pub intra_segment_bytes: usize,
    /// Its radix; 0: none, or the default.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub intra_radix: usize,
    /// Messages under way to each peer of the group, and of broadcasts at least so many to those of the same site, but no more than `in_flight`; 0: as many as
    /// bandwidth and delay want.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub intra_in_flight: usize,
    /// To how many peers at once ranks send inside a group, where they are no coordinators, 0 being all; none: to one, where that costs little by
    /// the links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intra_peers: Option<usize>,
    /// True if ranks take their places in the algorithm inside each group (or over all ranks) by the speed of their processors, and not in
    /// their order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_speed: bool,
    /// True if the library's own is used when all ranks take part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub native: bool,
    /// What it rests on.
    #[serde(skip)]
    pub evidence: Evidence,
}

impl TwoLevelRow {
    /// How many times one size is as large as the other: the one that it was made at, and another one.
    pub fn times_apart(&self, bytes: usize) -> usize {
        times_apart(self.at_bytes, bytes)
    }

    /// The parameters between groups.
    pub fn parameters(&self) -> Parameters {
        Parameters { segment: self.segment_bytes, radix: self.radix, in_flight: self.in_flight, peers: self.peers, by_speed: false }
    }

    /// The parameters inside each group.
    pub fn intra_parameters(&self) -> Parameters {
        let (segment, peers) = (self.intra_segment_bytes, self.intra_peers.unwrap_or(0));
        Parameters { segment, radix: self.intra_radix, in_flight: self.intra_in_flight, peers, by_speed: false }
    }

    /// True if the whole message goes from group to group, and each group does what its own row says.
    pub fn is_per_group(&self) -> bool {
        self.intra_group.as_deref() == Some(PER_GROUP)
    }
}

/// What a row rests on, at the size it was made at.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Predicted time (for the library's own inside a group, which no model knows: the measured one).
    #[serde(deserialize_with = "units::de_seconds")]
    pub predicted_s: f64,
    /// Measured time, if it was measured.
    #[serde(default, deserialize_with = "units::de_seconds_option", skip_serializing_if = "Option::is_none")]
    pub measured_s: Option<f64>,
    /// What the library's own took over all ranks of several groups, if it was measured; between two sizes that it was measured at, between
    /// its times there.
    #[serde(default, deserialize_with = "units::de_seconds_option", skip_serializing_if = "Option::is_none")]
    pub native_s: Option<f64>,
    /// The next best.
    pub runner_up: String,
    /// How much longer the next best takes, as a share.
    #[serde(deserialize_with = "units::de_margin")]
    pub margin: f64,
}

impl Evidence {
    /// What it should take, in seconds: as predicted, or as measured where models missed that by a multiple.
    pub fn seconds(&self) -> f64 {
        self.measured_s.filter(|&measured| is_missed(self.predicted_s, measured)).unwrap_or(self.predicted_s)
    }
}

/// What lies between two groups.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkPolicy {
    /// The two groups.
    pub between: [String; 2],
    /// Half a round trip of an empty message.
    pub latency_s: f64,
    /// The model of the link.
    pub model: Fitted,
}

/// What evidence says of the next best where no other was measured or predicted.
pub const NO_OTHER: &str = "none";

/// What a row says of groups that follow their own rows.
pub const PER_GROUP: &str = "per_group";

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
    /// A number that two policies share only if they decide alike: a hash of all that is in them, to the last digit.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a value cannot be written, which no valid policy has.
    pub fn fingerprint(&self) -> Result<u64> {
        let text = serde_json::to_vec(self).map_err(|e| Error::invalid(format!("take the fingerprint of the policy: {e}")))?;
        Ok(fnv1a(text.into_iter().map(u64::from)))
    }

    /// What a collective does over several groups, by size.
    pub fn two_level(&self, collective: &'static Collective) -> &[TwoLevelRow] {
        self.collectives.get(collective).map_or(&[], |c| &c.two_level)
    }

    /// The links by the names of their two groups, both ways.
    pub(crate) fn links_by_names(&self) -> FxHashMap<(&str, &str), &LinkPolicy> {
        let mut all = FxHashMap::default();
        for link in &self.links {
            let [a, b] = link.between.each_ref().map(String::as_str);
            [(a, b), (b, a)].into_iter().for_each(|names| _ = all.entry(names).or_insert(link));
        }
        all
    }

    /// The model of the link between two groups.
    pub fn link(&self, a: usize, b: usize) -> Option<&LinkPolicy> {
        let (a, b) = (&self.groups.get(a)?.name, &self.groups.get(b)?.name);
        self.links.iter().find(|l| (&l.between[0] == a && &l.between[1] == b) || (&l.between[0] == b && &l.between[1] == a))
    }
}
