//! Discovery: which ranks are alike, and how far the groups are from each other.

mod asking;
mod evidence;
mod processors;
mod sampled;

use crate::cluster::{Bound, GroupQuality, Method, quality, quality_of};
use crate::error::{Error, Result};
use crate::measure::{Experiment, Session};
use crate::names;
use crate::platform::{Group, GroupLink, HostParameters, Platform};
use crate::stats;
use crate::topology::{Declared, FAR_S, LatencyMatrix, Rank, pair_rounds};
use processors::without_processors;
use rustc_hash::FxHashMap;
use serde::Serialize;

pub use asking::Measure;
pub use sampled::{Sampled, sampled};

/// A group that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundGroup {
    /// From the names of its hosts.
    pub name: String,
    /// Its ranks, ascending.
    pub ranks: Vec<Rank>,
    /// Median latency inside (half a round trip); between ranks of one host if it has only one; `None` for one rank alone.
    pub latency_s: Option<f64>,
    /// The hosts of its ranks.
    #[serde(skip)]
    pub hosts: Vec<String>,
}

/// How good the grouping is, and how sure the measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quality {
    /// By group, over the hosts' first ranks.
    pub groups: Vec<GroupQuality>,
    /// Median time of pairs measured side by side over the same pairs measured alone; `None` if not checked.
    pub side_by_side_ratio: Option<f64>,
    /// Where not all pairs were measured: rounds, and the most probes that one host took part in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<(usize, usize)>,
}

/// What discovery finds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Discovery {
    /// The groups, in the order of their first ranks.
    pub groups: Vec<FoundGroup>,
    /// How good the grouping is.
    pub quality: Quality,
    /// Median latency between each two groups.
    #[serde(skip)]
    pub between_s: Vec<Vec<f64>>,
}

/// Measures the latency matrix and groups the ranks. Ranks of one host are grouped first; the hosts are then clustered by their
/// first ranks. Declared groups are taken as they are.
///
/// # Errors
/// Fewer than two ranks, declared hosts that are not as many as the ranks, or the session's error.
pub fn discover(session: &mut Session, declared: Option<&Declared>, method: &Method, bound: Bound) -> Result<Discovery> {
    let n = session.ranks();
    if n < 2 {
        return Err(Error::invalid(format!("discover groups of {n} rank: at least two are needed, since one has nobody to send to")));
    }
    if let Some(d) = declared.filter(|d| d.hosts.len() != n) {
        return Err(Error::invalid(format!("use the declared hosts: {} are declared for {n} ranks", d.hosts.len())));
    }
    let hosts: Vec<String> = declared.map_or_else(|| session.settings().hosts.clone(), |d| d.hosts.clone());
    let leaders = first_ranks(&hosts);
    let clusters = declared.and_then(|d| declared_clusters(d, &leaders));
    let known = if leaders.len() > MOST_IN_MATRIX && clusters.is_none() {
        Known::Sampled(sample(session, &leaders, method, bound)?)
    } else {
        Known::All(matrix(session, &leaders, method, bound)?)
    };
    let clusters = match (clusters, &known) {
        (Some(clusters), _) => clusters,
        (None, Known::Sampled(found)) => found.groups.clone(),
        (None, Known::All(matrix)) => {
            let groups = (method.group)(matrix, bound);
            let groups = without_processors(session, &leaders, matrix, groups, (method, bound))?;
            groups.into_iter().flat_map(|c| apart(matrix, c, &leaders, &hosts)).collect()
        }
    };
    let mut on_host: FxHashMap<&str, Vec<Rank>> = FxHashMap::default();
    (0..n).for_each(|r| on_host.entry(&hosts[r]).or_default().push(r));
    let members = |cluster: &Vec<usize>| {
        let mut ranks: Vec<Rank> = cluster.iter().flat_map(|&l| on_host[hosts[leaders[l]].as_str()].clone()).collect();
        ranks.sort_unstable();
        ranks
    };
    let groups: Vec<Vec<Rank>> = clusters.iter().map(members).collect();
    let names = match declared {
        Some(d) => groups.iter().map(|g| d.groups[g[0]].clone()).collect::<Option<Vec<_>>>(),
        None => None,
    };
    let names = names.unwrap_or_else(|| group_names(&groups, &hosts));
    let between = |a: usize, b: usize| known.between(&clusters, a, b);
    let quality = quality_of(clusters.len(), between);
    // a group of one host: between its own ranks
    let own: Vec<Experiment> = groups
        .iter()
        .zip(&quality)
        .filter(|(g, q)| q.latency_s.is_none() && g.len() > 1)
        .map(|(g, _)| Experiment::RoundTrip { a: g[0], b: g[1], out: 0, back: 0 })
        .collect();
    session.measure_well("latencies inside hosts", &own)?;
    let mut found = Vec::new();
    for ((ranks, name), q) in groups.iter().zip(names).zip(&quality) {
        let inside = match (q.latency_s, &ranks[..]) {
            (None, [a, b, ..]) => Some(session.samples().need(&Experiment::RoundTrip { a: *a, b: *b, out: 0, back: 0 })? / 2.0),
            (known, _) => known,
        };
        let hosts = ranks.iter().map(|&r| hosts[r].clone()).collect();
        found.push(FoundGroup { name, ranks: ranks.clone(), latency_s: inside, hosts });
    }
    let n = clusters.len();
    let median_between = |a: usize, b: usize| if a == b { 0.0 } else { stats::median(&between(a, b)).unwrap_or(0.0) };
    let between_s = (0..n).map(|a| (0..n).map(|b| median_between(a, b)).collect()).collect();
    let (side_by_side_ratio, sampled) = match &known {
        Known::All(_) => (disturbance(session, &all_pairs(&leaders)), None),
        Known::Sampled(found) => (None, Some((found.rounds, found.probes.iter().copied().max().unwrap_or(0)))),
    };
    Ok(Discovery { groups: found, quality: Quality { groups: quality, side_by_side_ratio, sampled }, between_s })
}

/// More hosts than this are sampled: a full matrix takes `n(n-1)/2` pairs in `n` rounds.
const MOST_IN_MATRIX: usize = 160;

/// What is known about the latencies between hosts.
enum Known {
    All(LatencyMatrix),
    Sampled(Sampled),
}

impl Known {
    /// The latencies that are known between two groups, or inside one.
    fn between(&self, clusters: &[Vec<usize>], a: usize, b: usize) -> Vec<f64> {
        match self {
            Known::All(matrix) => matrix.between(&clusters[a], &clusters[b]),
            Known::Sampled(found) => found.between(a, b).to_vec(),
        }
    }
}

fn round_trip(leaders: &[Rank], a: usize, b: usize) -> Experiment {
    Experiment::RoundTrip { a: leaders[a], b: leaders[b], out: 0, back: 0 }
}

fn all_pairs(leaders: &[Rank]) -> Vec<Experiment> {
    pair_rounds(leaders.len()).into_iter().flatten().map(|(a, b)| round_trip(leaders, a, b)).collect()
}

/// Half a round trip; never 0, which would be alike to nothing.
fn half(session: &Session, e: &Experiment) -> Result<f64> {
    session.samples().need(e).map(|t| (t / 2.0).max(f64::MIN_POSITIVE))
}

/// Measures all latencies between hosts, and those once more on which the groups hang.
fn matrix(session: &mut Session, leaders: &[Rank], method: &Method, bound: Bound) -> Result<LatencyMatrix> {
    session.measure_well("latencies", &all_pairs(leaders))?;
    let first = known_matrix(session, leaders)?;
    let pairs = unsure(&first, &(method.group)(&first, bound), bound);
    let again: Vec<Vec<Experiment>> = pairs.into_iter().map(|(a, b)| vec![round_trip(leaders, a, b)]).collect();
    session.remeasure("latencies on which groups hang", &again)?;
    known_matrix(session, leaders)
}

fn known_matrix(session: &Session, leaders: &[Rank]) -> Result<LatencyMatrix> {
    let n = leaders.len();
    let mut latencies = vec![vec![0.0; n]; n];
    for (a, b) in pair_rounds(n).into_iter().flatten() {
        let e = round_trip(leaders, a, b);
        let all = session.samples().all(&e);
        latencies[a][b] = stats::median(&all).map_or_else(|| half(session, &e), |t| Ok((t / 2.0).max(f64::MIN_POSITIVE)))?;
    }
    Ok(LatencyMatrix::from_pairs(n, "measured", |a, b| latencies[a][b]))
}

/// Pairs of two groups whose latency was at most so much above what would have joined them: noise makes latencies longer, and a group
/// of two hangs on one pair.
const UNSURE: f64 = 1.25;

/// Those pairs, nearest first, some for each host at most.
fn unsure(matrix: &LatencyMatrix, groups: &[Vec<Rank>], bound: Bound) -> Vec<(usize, usize)> {
    let n = matrix.len();
    let nearest: Vec<f64> = (0..n).map(|v| (0..n).filter(|&u| u != v).map(|u| matrix.get(u, v)).fold(f64::INFINITY, f64::min)).collect();
    let mut group = vec![0; n];
    groups.iter().enumerate().for_each(|(g, ranks)| ranks.iter().for_each(|&r| group[r] = g));
    let limit = |a: usize, b: usize| UNSURE * bound.limit(nearest[a].min(nearest[b]));
    let is_unsure = |&(a, b): &(usize, usize)| group[a] != group[b] && matrix.get(a, b) <= limit(a, b);
    let mut pairs: Vec<(usize, usize)> = pair_rounds(n).into_iter().flatten().filter(is_unsure).collect();
    pairs.sort_by(|x, y| matrix.get(x.0, x.1).total_cmp(&matrix.get(y.0, y.1)).then(x.cmp(y)));
    pairs.truncate(2 * n);
    pairs
}

/// Measures some latencies between hosts and groups them.
fn sample(session: &mut Session, leaders: &[Rank], method: &Method, bound: Bound) -> Result<Sampled> {
    sampled(leaders.len(), method, bound, &mut |pairs| {
        let experiments: Vec<Experiment> = pairs.iter().map(|&(a, b)| round_trip(leaders, a.min(b), a.max(b))).collect();
        session.measure_well("latencies of some hosts", &experiments)?;
        experiments.iter().map(|e| half(session, e)).collect()
    })
}

/// A cluster as it is, or its hosts one by one if they are sites of their own. Two hosts always look alike, and so do three at about the
/// same distance; but no local network is that slow, and what is inside them is nearer by far.
fn apart(matrix: &LatencyMatrix, cluster: Vec<usize>, leaders: &[Rank], hosts: &[String]) -> Vec<Vec<usize>> {
    let several = |&l: &usize| hosts.iter().filter(|h| **h == hosts[leaders[l]]).count() > 1;
    let inside = stats::median(&matrix.between(&cluster, &cluster));
    if cluster.iter().any(several) && inside.is_some_and(|t| t > FAR_S) {
        cluster.into_iter().map(|l| vec![l]).collect()
    } else {
        vec![cluster]
    }
}

/// Does measuring pairs side by side disturb them? Some of them are measured again, alone. `None` if they never ran side by side,
/// or nothing can be measured (a recording).
fn disturbance(session: &mut Session, rounds: &[Experiment]) -> Option<f64> {
    const CHECKED: usize = 8;
    if !session.is_side_by_side() || rounds.len() < 6 {
        return None;
    }
    let picked = rounds.iter().step_by(rounds.len().div_ceil(CHECKED));
    let ratios: Option<Vec<f64>> = picked.map(|e| Some(session.samples().median(e)? / session.alone(e).ok()?)).collect();
    stats::median(&ratios?).filter(|r| r.is_finite())
}

/// Groups a matrix that somebody else measured.
pub fn discover_matrix(matrix: &LatencyMatrix, method: &Method, bound: Bound) -> Discovery {
    let groups = (method.group)(matrix, bound);
    let quality = quality(matrix, &groups);
    let between = |a: &Vec<usize>, b: &Vec<usize>| if a == b { 0.0 } else { stats::median(&matrix.between(a, b)).unwrap_or(0.0) };
    let between_s = groups.iter().map(|a| groups.iter().map(|b| between(a, b)).collect()).collect();
    let found = groups.into_iter().zip(&quality).enumerate().map(|(k, (ranks, q))| FoundGroup {
        name: format!("group-{}", k + 1),
        hosts: ranks.iter().map(|r| format!("host-{}", r + 1)).collect(),
        ranks,
        latency_s: q.latency_s,
    });
    Discovery { groups: found.collect(), quality: Quality { groups: quality.clone(), side_by_side_ratio: None, sampled: None }, between_s }
}

impl Discovery {
    /// The findings as a platform: groups, hosts and latencies, without what only a fit can tell.
    pub fn platform(&self, name: &str, source: &str) -> Platform {
        let group = |g: &FoundGroup| {
            let mut hosts: Vec<String> = Vec::new();
            g.hosts.iter().for_each(|h| {
                if !hosts.contains(h) {
                    hosts.push(h.clone())
                }
            });
            let count = hosts.len();
            Group {
                name: g.name.clone(),
                count,
                latency_s: g.latency_s,
                host_names: hosts,
                hosts: HostParameters::default(),
                variants: vec![],
            }
        };
        let pairs = (0..self.groups.len()).flat_map(|a| (a + 1..self.groups.len()).map(move |b| (a, b)));
        let link = |(a, b): (usize, usize)| GroupLink {
            between: [self.groups[a].name.clone(), self.groups[b].name.clone()],
            latency_s: self.between_s[a][b],
            bandwidth_bytes_per_s: None,
            trunk: None,
        };
        Platform {
            format: 1,
            name: name.into(),
            source: source.into(),
            assumed: vec![],
            hosts: HostParameters::default(),
            tcp: None,
            noise: None,
            groups: self.groups.iter().map(group).collect(),
            links: pairs.map(link).collect(),
        }
    }
}

/// The first rank of each host, in the order of ranks.
fn first_ranks(hosts: &[String]) -> Vec<Rank> {
    let mut seen = std::collections::BTreeSet::new();
    (0..hosts.len()).filter(|&r| seen.insert(&hosts[r])).collect()
}

/// The declared groups over leaders, if every rank has one.
fn declared_clusters(declared: &Declared, leaders: &[Rank]) -> Option<Vec<Vec<usize>>> {
    let labels: Vec<&String> = leaders.iter().map(|&r| declared.groups[r].as_ref()).collect::<Option<_>>()?;
    let mut clusters: Vec<(&String, Vec<usize>)> = Vec::new();
    for (leader, label) in labels.into_iter().enumerate() {
        match clusters.iter_mut().find(|(l, _)| *l == label) {
            Some((_, members)) => members.push(leader),
            None => clusters.push((label, vec![leader])),
        }
    }
    Some(clusters.into_iter().map(|(_, m)| m).collect())
}

/// A name for each group: what its hosts' short names share at the front; a number where that is nothing or not unique.
fn group_names(groups: &[Vec<Rank>], hosts: &[String]) -> Vec<String> {
    let short = |r: Rank| names::of_host(&hosts[r])[1];
    let stem = |ranks: &Vec<Rank>| {
        let first = short(ranks[0]);
        let shared = ranks.iter().map(|&r| first.bytes().zip(short(r).bytes()).take_while(|(a, b)| a == b).count()).min().unwrap_or(0);
        let clean: String = first.chars().take(shared).filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
        clean.trim_end_matches(|c: char| c.is_ascii_digit() || "-_".contains(c)).to_string()
    };
    let stems: Vec<String> = groups.iter().map(stem).collect();
    let unique = |s: &String| !s.is_empty() && stems.iter().filter(|o| *o == s).count() == 1;
    stems
        .iter()
        .enumerate()
        .map(|(k, s)| if unique(s) { s.clone() } else { format!("{}-{}", if s.is_empty() { "group" } else { s }, k + 1) })
        .collect()
}
