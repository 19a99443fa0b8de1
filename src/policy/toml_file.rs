//! Reading and checking policies.

use super::{Choice, FORMAT, GroupPolicy, OWN, Policy};
use crate::collective::{Collective, bcast};
use crate::error::{Error, Result, line_starting, parse_toml};
use crate::files::read_text;
use crate::model::Fitted;
use crate::schedule::WINDOW;
use crate::score::Experience;
use crate::units::{MAX_BYTES, is_time};
use std::collections::BTreeSet;
use std::path::Path;

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    /// As [`Policy::parse`], or the file cannot be read.
    pub fn read(path: &Path) -> Result<Policy> {
        Policy::parse(&path.display().to_string(), &read_text(path)?)
    }

    /// Parses a policy strictly.
    ///
    /// # Errors
    /// [`Error::Format`] with file and line: unknown keys, algorithms or models, times that are none, rows out of order.
    pub fn parse(file: &str, text: &str) -> Result<Policy> {
        let policy: Policy = parse_toml(file, text)?;
        match policy.fault() {
            None => Ok(policy),
            Some((prefix, n, reason)) => Err(Error::Format { file: file.into(), line: line_starting(text, prefix, n), reason }),
        }
    }

    /// The first thing that is wrong: the start of the line to blame, which of these lines, and the reason.
    fn fault(&self) -> Option<(&'static str, usize, String)> {
        if self.format != FORMAT {
            let reason = format!("format {} is not known, this version reads format = {FORMAT}: tune anew", self.format);
            return Some(("format", 0, reason));
        }
        if self.groups.is_empty() {
            return Some(("format", 0, "the policy has no [[group]]".into()));
        }
        if self.provenance.ranks > MAX_BYTES {
            return Some(("ranks", 0, format!("there are no {} ranks", self.provenance.ranks)));
        }
        let (mut names, mut homes) = (BTreeSet::new(), std::collections::BTreeMap::new());
        // the rows across groups come first in the file
        let (mut rows, mut models) = (self.across.len(), 0);
        for (n, g) in self.groups.iter().enumerate() {
            if !names.insert(&g.name) {
                return Some(("[[group]]", n, format!("group \"{}\" is there twice", g.name)));
            }
            if g.hosts.is_empty() {
                return Some(("[[group]]", n, format!("group \"{}\" has no hosts", g.name)));
            }
            if let Some(host) = g.hosts.iter().find(|h| *homes.entry(*h).or_insert(n) != n) {
                return Some(("[[group]]", n, format!("host \"{host}\" is in two groups")));
            }
            if g.latency_s.is_some_and(|t| !is_time(t)) {
                return Some(("[[group]]", n, format!("latency_s of \"{}\" is no valid time", g.name)));
            }
            for (key, share) in [("fan_out", g.fan_out), ("inside_fan_out", g.inside_fan_out)] {
                if !(share > 0.0 && share <= 1.0) {
                    return Some(("[[group]]", n, format!("{key} of \"{}\" must be above 0 and at most 1", g.name)));
                }
            }
            if let Some(Err(e)) = g.inside_host.as_ref().map(Fitted::costs) {
                return Some(("[[group]]", n, format!("inside_host of \"{}\": failed to {e}", g.name)));
            }
            for (collective, of_collective) in &g.choices {
                if let Some((k, reason)) = rows_fault(collective, of_collective, g) {
                    return Some(("{ from_bytes", rows + k, reason));
                }
                rows += of_collective.len();
            }
            // scores stand before models, in lines that begin alike
            for (k, s) in g.scores.iter().enumerate() {
                let errors = s.error.iter().chain([&s.error_se]).chain(&s.error_by_bytes).chain(s.error_by_algorithm.values());
                if !is_time(s.measuring_s) || errors.into_iter().any(|e| !(0.0..f64::MAX / 100.0).contains(e)) {
                    return Some(("{ model = \"", models + k, "its scores are not valid: finite, zero or more".into()));
                }
            }
            models += g.scores.len();
            for (k, m) in g.models.iter().enumerate() {
                if let Err(e) = m.costs() {
                    return Some(("{ model = \"", models + k, format!("failed to {e}")));
                }
            }
            let ascend = |sizes: &[usize]| sizes.windows(2).all(|s| s[0] < s[1]) && sizes.iter().all(|&s| s <= MAX_BYTES);
            let positive = |e: &Experience| e.ratio.iter().all(|r| r.is_finite() && *r > 0.0);
            if g.experience.iter().any(|e| e.bytes.len() != e.ratio.len() || !positive(e) || !ascend(&e.bytes)) {
                let reason = format!("the experience of \"{}\" needs sizes that ascend and a positive ratio for each", g.name);
                return Some(("[[group]]", n, reason));
            }
            if g.scores.iter().any(|s| s.bytes.len() != s.error_by_bytes.len() || !ascend(&s.bytes)) {
                return Some(("[[group]]", n, format!("the scores of \"{}\" need sizes that ascend and an error for each", g.name)));
            }
            models += g.models.len();
        }
        self.across_fault().or_else(|| self.over_all_fault()).or_else(|| self.link_fault())
    }

    fn link_fault(&self) -> Option<(&'static str, usize, String)> {
        for (n, link) in self.links.iter().enumerate() {
            if let Some(name) = link.between.iter().find(|name| !self.groups.iter().any(|g| g.name == **name)) {
                return Some(("[[link]]", n, format!("there is no group \"{name}\"")));
            }
            if let Err(e) = link.model.costs() {
                return Some(("[[link]]", n, format!("failed to {e}")));
            }
        }
        for a in 0..self.groups.len() {
            for b in a + 1..self.groups.len() {
                if self.link(a, b).is_none() {
                    let (a, b) = (&self.groups[a].name, &self.groups[b].name);
                    return Some(("[[group]]", 0, format!("there is no [[link]] between \"{a}\" and \"{b}\"")));
                }
            }
        }
        None
    }

    fn over_all_fault(&self) -> Option<(&'static str, usize, String)> {
        for (k, (collective, row)) in self.over_all.iter().enumerate() {
            let blame = |reason: String| Some(("over_all.", k, reason));
            if collective.sized {
                return blame(format!("a {} has a message: its rows are in `across`", collective.name));
            }
            let found = collective.algorithm(&row.algorithm).and_then(|_| row.inside.as_ref().map(|a| collective.algorithm(a)).transpose());
            match found {
                Err(e) => return blame(format!("failed to {e}")),
                Ok(Some(a)) if a.tree.is_none() => return blame(format!("\"{}\" is no tree, and stands for the inside of groups", a.name)),
                Ok(_) => {}
            }
            if row.algorithm == collective.native().name {
                return blame("the library's own runs where native = true, and is no algorithm here".into());
            }
            if row.radix.max(row.inside_radix) > MAX_BYTES {
                return blame("its radix is not valid".into());
            }
            if [Some(row.predicted_s), row.measured_s, row.native_s].into_iter().flatten().any(|t| !is_time(t)) {
                return blame("its times are not valid: finite seconds, zero or more".into());
            }
            if row.native && row.native_s.is_none() {
                return blame("native = true needs native_s".into());
            }
        }
        None
    }

    fn across_fault(&self) -> Option<(&'static str, usize, String)> {
        for (k, row) in self.across.iter().enumerate() {
            let blame = |reason: &str| Some(("{ from_bytes", k, reason.to_string()));
            if (k == 0) != (row.from_bytes == 0) || (k > 0 && self.across[k - 1].from_bytes >= row.from_bytes) {
                return blame("from_bytes must begin with 0 and ascend");
            }
            if [row.from_bytes, row.at_bytes, row.segment_bytes].iter().any(|&n| n > MAX_BYTES) {
                return blame("its sizes are not valid: they fit into no memory");
            }
            if row.in_flight > WINDOW {
                return blame(&format!("in_flight is at most {WINDOW}"));
            }
            match bcast::algorithm(&row.local) {
                _ if row.local == OWN => {}
                Err(e) => return blame(&format!("failed to {e}")),
                Ok(a) if a.tree.is_none() => return blame(&format!("\"{}\" is no tree: segments cannot pass through it", row.local)),
                Ok(_) => {}
            }
            if row.segment_bytes > 0 && !row.route.is_segmented() {
                return blame(&format!("route \"{}\" goes in one piece, without segment_bytes", row.route.name()));
            }
            if [Some(row.predicted_s), row.measured_s, row.native_s].into_iter().flatten().any(|t| !is_time(t)) {
                return blame("its times are not valid: finite seconds, zero or more");
            }
            if row.native && row.native_s.is_none() {
                return blame("native = true needs native_s");
            }
        }
        None
    }
}

/// The first thing that is wrong with a group's rows of a collective: which one, and the reason.
fn rows_fault(collective: &Collective, rows: &[Choice], g: &GroupPolicy) -> Option<(usize, String)> {
    for (k, row) in rows.iter().enumerate() {
        if let Err(e) = collective.algorithm(&row.algorithm) {
            return Some((k, format!("failed to {e}")));
        }
        if [row.from_bytes, row.at_bytes, row.segment_bytes, row.radix].iter().any(|&n| n > MAX_BYTES) {
            return Some((k, "its sizes are not valid: they fit into no memory".into()));
        }
        if row.in_flight > WINDOW {
            return Some((k, format!("in_flight is at most {WINDOW}")));
        }
        if !collective.sized && row.at_bytes + row.from_bytes > 0 {
            return Some((k, format!("its sizes are not valid: a {} has no message", collective.name)));
        }
        if !is_time(row.predicted_s) || row.measured_s.is_some_and(|t| !is_time(t)) {
            return Some((k, "its times are not valid: finite seconds, zero or more".into()));
        }
        if (k == 0) != (row.from_bytes == 0) || (k > 0 && rows[k - 1].from_bytes >= row.from_bytes) {
            return Some((k, "from_bytes must begin with 0 and ascend".into()));
        }
        if !g.models.iter().any(|m| m.model == row.model) {
            return Some((k, format!("the group has no model \"{}\"", row.model)));
        }
    }
    None
}
