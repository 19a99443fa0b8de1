//! The pipeline from measuring to a policy.

use crate::cluster::{Bound, Method};
use crate::discover::{Declared, Discovery, discover};
use crate::error::Result;
use crate::fit::fit_groups;
use crate::measure::{Experiment, Session};
use crate::model::{Fitted, MODELS, Roster, model};
use crate::policy::{GroupPolicy, LinkPolicy, Policy, Provenance, Whole};
use crate::score::score_groups;
use crate::select::choose;

/// What tuning may be told.
#[derive(Clone, Copy)]
pub struct TuneOptions<'a> {
    /// Hosts and groups that the user declares.
    pub declared: Option<&'a Declared>,
    /// The way to group.
    pub method: &'static Method,
    /// Its bound.
    pub bound: Bound,
}

/// Sizes at which the library's own broadcast over all groups is measured.
const WHOLE_BYTES: [usize; 5] = [1, 4 << 10, 64 << 10, 512 << 10, 4 << 20];

/// Measures, groups, fits, scores and selects.
///
/// # Errors
/// The session's, or fewer than two ranks.
pub fn tune(session: &mut Session, options: TuneOptions) -> Result<(Discovery, Policy)> {
    let discovery = discover(session, options.declared, options.method, options.bound)?;
    let rosters: Vec<Roster> = discovery.groups.iter().map(|g| Roster { ranks: by_host(&g.ranks, &g.hosts) }).collect();
    let fitted = fit_groups(session, &rosters, MODELS)?;
    let links = fit_links(session, &discovery, &rosters)?;
    let mut scores = score_groups(session, &rosters, &fitted)?;
    let choices = choose(session, &rosters, &fitted, &mut scores)?;
    let whole = if rosters.len() > 1 && session.has_native() { measure_whole(session)? } else { Vec::new() };
    let settings = session.settings().clone();
    let groups =
        discovery.groups.iter().zip(&rosters).zip(fitted).zip(scores).zip(choices).map(|((((g, roster), models), scores), bcast)| {
            let host = |r: &usize| g.hosts[g.ranks.iter().position(|x| x == r).unwrap_or(0)].clone();
            GroupPolicy {
                name: g.name.clone(),
                latency_s: g.latency_s,
                hosts: roster.ranks.iter().map(host).collect(),
                bcast,
                scores: scores.models,
                models,
                experience: scores.experience,
            }
        });
    let policy = Policy {
        format: 1,
        groups: groups.collect(),
        links,
        whole,
        provenance: Provenance {
            platform: settings.platform,
            ranks: settings.hosts.len(),
            library: settings.library,
            timer: settings.timer,
            date: settings.date,
            made_by: concat!("collwise ", env!("CARGO_PKG_VERSION")).into(),
            measuring_s: session.elapsed(),
        },
    };
    // what is used is what is written, to the last digit
    Ok((discovery, Policy::parse("the new policy", &policy.to_toml()?)?))
}

/// The ranks of a group with those of different hosts first: the pair that stands for the group should cross its network.
fn by_host(ranks: &[usize], hosts: &[String]) -> Vec<usize> {
    let mut rounds: Vec<(usize, usize)> = Vec::new();
    for (k, host) in hosts.iter().enumerate() {
        rounds.push((hosts[..k].iter().filter(|h| *h == host).count(), ranks[k]));
    }
    rounds.sort_unstable();
    rounds.into_iter().map(|(_, r)| r).collect()
}

/// Fits a model of each link between groups, on their first ranks.
fn fit_links(session: &mut Session, discovery: &Discovery, rosters: &[Roster]) -> Result<Vec<LinkPolicy>> {
    let n = rosters.len();
    let pairs: Vec<(usize, usize)> = crate::topology::pair_rounds(n).into_iter().flatten().collect();
    let ends: Vec<Roster> = pairs.iter().map(|&(a, b)| Roster { ranks: vec![rosters[a].ranks[0], rosters[b].ranks[0]] }).collect();
    let fitted = fit_groups(session, &ends, &[model("tables")?])?;
    let link = |(&(a, b), mut models): (&(usize, usize), Vec<Fitted>)| {
        let between = [discovery.groups[a].name.clone(), discovery.groups[b].name.clone()];
        models.pop().map(|model| LinkPolicy { between, latency_s: discovery.between_s[a][b], model })
    };
    let mut links: Vec<LinkPolicy> = pairs.iter().zip(fitted).filter_map(link).collect();
    let place = |name: &String| discovery.groups.iter().position(|g| &g.name == name);
    links.sort_by_key(|l| (place(&l.between[0]), place(&l.between[1])));
    Ok(links)
}

/// Measures the library's own broadcast over all ranks.
fn measure_whole(session: &mut Session) -> Result<Vec<Whole>> {
    let ranks: Vec<usize> = (0..session.ranks()).collect();
    let all = WHOLE_BYTES.map(|bytes| Experiment::Broadcast {
        ranks: ranks.clone(),
        root: 0,
        bytes,
        algorithm: "native".into(),
        parameters: Default::default(),
    });
    session.measure("the library's own broadcast", &all)?;
    all.iter().zip(WHOLE_BYTES).map(|(e, bytes)| Ok(Whole { bytes, native_s: session.samples().need(e)? })).collect()
}
