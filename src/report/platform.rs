//! The platform: latencies between hosts, groups, and what lies between them.

use super::latencies::Latencies;
use super::picture::{Heat, LinkDrawn, Node, heat, links};
use super::tables::{Table, or_dash};
use super::{Block, Cells, Figure, Inputs, Section, Titled};
use crate::cluster::{Bound, quality_of};
use crate::error::Result;
use crate::policy::{CompiledPolicy, Policy, fold};
use crate::units;
use petgraph::unionfind::UnionFind;
use rustc_hash::{FxHashMap, FxHashSet};

/// What large messages carry is told by one of so many bytes.
const LARGE: usize = 1 << 20;

pub(super) fn section(inputs: &Inputs) -> Result<Section> {
    let policy = &inputs.policy.policy;
    let latencies = Latencies::of(policy, inputs.samples)?;
    if latencies.pairs.1 == 0 {
        let missing = "All ranks are on one host: nothing lies between hosts.".into();
        return Ok(titled(vec![Block::Missing(missing), Block::Table(groups(policy, &latencies))]));
    }
    let mut blocks = vec![Block::Figure(matrix(policy, &latencies)?)];
    blocks.push(match inputs.samples {
        Some(_) if latencies.pairs.0 < latencies.pairs.1 => Block::Figure(sampled(policy, &latencies)?),
        Some(_) => Block::Missing(format!("All {} pairs of hosts were measured: none is inferred.", latencies.pairs.1)),
        None => Block::Missing(
            "The policy keeps one latency for each group and link. With --samples FILE, of the samples that were kept when it was tuned, each pair is \
             shown as it was measured, and which were."
                .into(),
        ),
    });
    blocks.push(Block::Table(groups(policy, &latencies)));
    if policy.groups.len() > 1 {
        blocks.push(Block::Figure(map(inputs.policy, &latencies)?));
    }
    Ok(titled(blocks))
}

fn titled(blocks: Vec<Block>) -> Section {
    let words = "Which hosts are alike, and how far they are from each other.".into();
    Section { id: "platform", title: "The platform", words, blocks }
}

/// Hosts as patterns, those with several ranks once with how many they have.
fn folded(hosts: &[String]) -> String {
    let mut ranks: FxHashMap<&String, usize> = FxHashMap::default();
    hosts.iter().for_each(|host| *ranks.entry(host).or_default() += 1);
    let mut each: Vec<&String> = Vec::new();
    let mut seen = FxHashSet::default();
    each.extend(hosts.iter().filter(|host| seen.insert(*host)));
    let alike = each.chunk_by(|a, b| ranks[a] == ranks[b]).flat_map(|all| {
        let times = if ranks[all[0]] > 1 { format!(" x{}", ranks[all[0]]) } else { String::new() };
        fold(&all.iter().map(|host| host.to_string()).collect::<Vec<_>>()).into_iter().map(move |pattern| pattern + &times)
    });
    alike.collect::<Vec<_>>().join(", ")
}

/// A matrix as a table: a row for each row, named with its group.
fn as_table(policy: &Policy, latencies: &Latencies, words: &[Vec<String>]) -> Table {
    let name = |t: &super::Tile| format!("{} ({})", t.name, policy.groups[t.group].name);
    let mut table = Table::new(&["from"]);
    table.header.extend(latencies.tiles.iter().map(name));
    for (tile, row) in latencies.tiles.iter().zip(words) {
        table.row(std::iter::once(name(tile)).chain(row.iter().cloned()));
    }
    table
}

/// Where cells are.
fn cells([x, y]: [Vec<i32>; 2]) -> Cells {
    Cells { x, y }
}

fn in_words(matrix: &[Vec<Option<f64>>], words: impl Fn(f64) -> String) -> Vec<Vec<String>> {
    matrix.iter().map(|row| row.iter().map(|v| or_dash(*v, &words)).collect()).collect()
}

fn matrix(policy: &Policy, latencies: &Latencies) -> Result<Figure> {
    let usual = Bound::default();
    let bound = Bound { ratio: policy.provenance.bound.unwrap_or(usual.ratio), ..usual };
    let name = |&(g, rows): &(usize, usize)| (policy.groups[g].name.clone(), rows);
    let drawn = heat(&Heat {
        values: latencies.seconds.clone(),
        groups: latencies.groups.iter().map(name).collect(),
        merges: latencies.merges.clone(),
        bounds: latencies.groups.iter().map(|(g, _)| policy.groups[*g].latency_s.map(|t| bound.limit(t))).collect(),
        shares: false,
    })?;
    let words = in_words(&latencies.seconds, units::seconds);
    let hosts: usize = latencies.tiles.iter().map(|t| t.hosts).sum();
    let tiles = if hosts > latencies.tiles.len() {
        format!(
            "{hosts} hosts in {} rows, each of hosts that follow each other in a group; a cell is the median of its pairs. ",
            latencies.tiles.len()
        )
    } else {
        String::new()
    };
    let order = "Groups are in the order in which complete linkage joins them. ";
    let bound = if latencies.groups.is_empty() {
        "There are more groups than rows: what joins them has no room here.".into()
    } else {
        format!(
            "Orange lines mark the latency up to which hosts are alike by the bound that the policy was tuned with, {} times that of their group.",
            bound.ratio
        )
    };
    Ok(Figure {
        id: "latencies".into(),
        title: "Latency between hosts".into(),
        words: format!("{tiles}{order}{bound}"),
        svg: drawn.svg,
        table: as_table(policy, latencies, &words),
        cells: Some(cells(drawn.edges)),
    })
}

fn sampled(policy: &Policy, latencies: &Latencies) -> Result<Figure> {
    let name = |&(g, rows): &(usize, usize)| (policy.groups[g].name.clone(), rows);
    let groups = latencies.groups.iter().map(name).collect();
    let drawn = heat(&Heat { values: latencies.measured.clone(), groups, shares: true, ..Heat::default() })?;
    let words = in_words(&latencies.measured, |share| format!("{:.1} % measured", share * 100.0));
    let (measured, all) = latencies.pairs;
    Ok(Figure {
        id: "sampled".into(),
        title: "What was measured, and what is inferred".into(),
        words: format!(
            "{measured} of {all} pairs of hosts were measured, {:.2} %; of the others it is taken that they take what their groups do.",
            measured as f64 / all.max(1) as f64 * 100.0
        ),
        svg: drawn.svg,
        table: as_table(policy, latencies, &words),
        cells: Some(cells(drawn.edges)),
    })
}

fn groups(policy: &Policy, latencies: &Latencies) -> Titled {
    let between = |a: usize, b: usize| latencies.between.get(&(a.min(b), a.max(b))).cloned().unwrap_or_default();
    let quality = quality_of(policy.groups.len(), between);
    let ratio = |r: Option<f64>| or_dash(r, |r| format!("{r:.2}"));
    let nearest = |name: &String| policy.links.iter().filter(|l| l.between.contains(name)).map(|l| l.latency_s).reduce(f64::min);
    let mut table = Table::new(&["group", "ranks", "latency", "worst ratio", "p90/p10", "separation", "hosts"]);
    for (g, q) in policy.groups.iter().zip(&quality) {
        // the same by what the policy says, where nothing was measured here
        let separation = q.separation.or_else(|| Some(nearest(&g.name)? / g.latency_s?));
        let hosts = folded(&g.hosts) + &if g.also.is_empty() { String::new() } else { format!("; also {}", fold(&g.also).join(", ")) };
        let figures = [ratio(q.worst_ratio), ratio(q.p90_p10_ratio), ratio(separation)];
        let [worst, wide, separation] = figures;
        table.row([g.name.clone(), g.hosts.len().to_string(), or_dash(g.latency_s, units::seconds), worst, wide, separation, hosts]);
    }
    Titled {
        title: "Groups".into(),
        words: "Worst ratio: largest over least latency inside; p90/p10: the same of the 90th and 10th percentiles; separation: least latency to \
                another group over the median inside, near 1 where it is unsure where a group ends."
            .into(),
        table,
    }
}

/// What large messages carry over a link.
pub(super) fn bytes_per_s(policy: &CompiledPolicy, a: usize, b: usize) -> Option<f64> {
    let busy = policy.link_cost(a, b, LARGE).gap.max(policy.link_cost(a, b, LARGE).link_gap);
    Some(LARGE as f64 / busy).filter(|rate| rate.is_finite())
}

/// More links than these are a tangle: then those are drawn that join all groups at the least latency.
const MOST_LINKS: usize = 15;

/// The links of a spanning tree of the least latencies.
fn tree(groups: usize, links: &[LinkDrawn]) -> Vec<LinkDrawn> {
    let mut nearest: Vec<&LinkDrawn> = links.iter().collect();
    let rate = |l: &LinkDrawn| l.bytes_per_s.unwrap_or(0.0);
    nearest.sort_by(|a, b| a.latency_s.total_cmp(&b.latency_s).then(rate(b).total_cmp(&rate(a))));
    let mut joined = UnionFind::<usize>::new(groups);
    nearest.into_iter().filter(|l| joined.union(l.between[0], l.between[1])).cloned().collect()
}

fn map(compiled: &CompiledPolicy, latencies: &Latencies) -> Result<Figure> {
    let policy = &compiled.policy;
    let nodes: Vec<Node> = policy.groups.iter().map(|g| Node { name: g.name.clone(), ranks: g.hosts.len() }).collect();
    let place = |name: &String| policy.groups.iter().position(|g| g.name == *name);
    let drawn = policy.links.iter().filter_map(|link| {
        let (a, b) = (place(&link.between[0])?, place(&link.between[1])?);
        Some(LinkDrawn { between: [a.min(b), a.max(b)], latency_s: link.latency_s, bytes_per_s: bytes_per_s(compiled, a, b) })
    });
    let drawn: Vec<LinkDrawn> = drawn.collect();
    let mut table = Table::new(&["link", "latency", "bandwidth"]);
    for link in &drawn {
        let names = link.between.map(|k| nodes[k].name.as_str()).join(" to ");
        table.row([names, units::seconds(link.latency_s), or_dash(link.bytes_per_s, super::picture::bits)]);
    }
    let mut words = "Bandwidth is what the link's model lets one message of 1 MiB after the other through.".to_string();
    let mut seen = drawn.clone();
    if drawn.len() > MOST_LINKS {
        seen = tree(nodes.len(), &drawn);
        words += &format!(
            " Of {} links the {} are drawn that join all groups at the least latency; the table has all.",
            drawn.len(),
            seen.len()
        );
    }
    Ok(Figure {
        id: "links".into(),
        title: "Groups and links".into(),
        words,
        svg: links(&nodes, &seen, &latencies.order)?,
        cells: None,
        table,
    })
}
