//! Reading policies.

use super::file::{CalibrationTable, CollectiveTable, Column, EvidenceTable, EvidenceTables, File, GroupTable, LinkTable, ModelTable};
use super::hosts::{self, MOST_HOSTS};
use super::{Evidence, FORMAT, GroupPolicy, LinkPolicy, OverGroups, Policy};
use crate::collective::Collective;
use crate::error::{Error, Result, key_path, line_of, parse_toml};
use crate::files::read_text;
use crate::model::{Fitted, LARGEST, TABLE_SIZES, Table};
use crate::score::Calibration;
use crate::units::{Bytes, bytes_in_file};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What is wrong, and the path of its key in the file.
pub(super) type Fault = (Vec<String>, String);

type Found<T> = std::result::Result<T, Fault>;

/// The version alone: a file of another one has other keys. And the name, which a platform has there and no policy.
#[derive(Deserialize)]
struct Version {
    format: Option<u32>,
    name: Option<IgnoredAny>,
}

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
    /// [`Error::Format`] with file and line: another format, unknown keys, algorithms or models, times that are none, rows out of order.
    pub fn parse(file: &str, text: &str) -> Result<Policy> {
        let faulty = |(key_path, reason): Fault| Error::Format { file: file.into(), line: line_of(text, &key_path), reason };
        // a program that starts waits for this: the version is looked at by itself only where the rest cannot be read
        let parsed = match parse_toml::<File>(file, text) {
            Ok(parsed) if parsed.format == FORMAT => parsed,
            other => match version_fault(file, text)? {
                Some(fault) => return Err(faulty(fault)),
                None => other?,
            },
        };
        let policy = parsed.policy().map_err(faulty)?;
        policy.fault().map_or(Ok(policy), |fault| Err(faulty(fault)))
    }
}

/// Why a file is no policy of this version, if it is none.
///
/// # Errors
/// It is no TOML.
fn version_fault(file: &str, text: &str) -> Result<Option<Fault>> {
    let Version { format, name } = parse_toml(file, text)?;
    if name.is_some() {
        let reason = "this is a platform, not a policy: collwise tune --platform makes one of it".into();
        return Ok(Some((key_path(&[&"name"]), reason)));
    }
    let reason = match format {
        Some(FORMAT) => return Ok(None),
        None => format!("it does not say its format, which is {FORMAT} in policies that this version reads: tune anew"),
        Some(newer) if newer > FORMAT => {
            format!("format {newer} is of a newer collwise, this version reads format = {FORMAT}: update it, or tune anew")
        }
        Some(older) => format!("format {older} is not known, this version reads format = {FORMAT}: tune anew"),
    };
    Ok(Some((key_path(&[&"format"]), reason)))
}

impl File {
    /// The policy, put together.
    pub(super) fn policy(mut self) -> Found<Policy> {
        let mut left = MOST_HOSTS;
        let mut groups = Vec::new();
        for (n, table) in self.group.iter().enumerate() {
            if self.group[..n].iter().any(|g| g.name == table.name) {
                return Err((key_path(&[&"group", &n, &"name"]), format!("group \"{}\" is there twice", table.name)));
            }
        }
        // before a row is blamed for what stands under another name
        let nobodys = self.evidence.group.keys().find(|name| self.group.iter().all(|g| g.name != **name));
        if let Some(name) = nobodys {
            return Err((key_path(&[&"evidence", &"group", name]), format!("there is no group \"{name}\"")));
        }
        for (n, table) in self.group.into_iter().enumerate() {
            let evidence = self.evidence.group.remove(&table.name).unwrap_or_default();
            let mut g = table.policy(n, left, evidence)?;
            left -= g.hosts.len() + g.also.len();
            g.scores = self.score.remove(&g.name).unwrap_or_default();
            for (k, table) in self.errors.remove(&g.name).unwrap_or_default().into_iter().enumerate() {
                g.scores.extend(table.scores(key_path(&[&"errors", &g.name, &k]))?);
            }
            for (k, table) in self.calibration.remove(&g.name).unwrap_or_default().into_iter().enumerate() {
                g.calibration.extend(table.rows(key_path(&[&"calibration", &g.name, &k]))?);
            }
            for (key, models) in [("model", &mut self.model), ("measured", &mut self.measured)] {
                for (k, table) in models.remove(&g.name).unwrap_or_default().into_iter().enumerate() {
                    g.models.push(table.fitted(|| key_path(&[&key, &g.name, &k]))?);
                }
            }
            g.compute = self.compute.remove(&g.name).unwrap_or_default();
            g.inside_host =
                self.inside_host.remove(&g.name).map(|table| table.fitted(|| key_path(&[&"inside_host", &g.name]))).transpose()?;
            groups.push(g);
        }
        let mut links = Vec::new();
        for (n, LinkTable { between: [a, b], latency_s }) in self.link.into_iter().enumerate() {
            let table = self.link_model.get_mut(&a).and_then(|to| to.remove(&b));
            let table = table.ok_or_else(|| (key_path(&[&"link", &n]), format!("there is no [link_model.{a}.{b}]")))?;
            let model = table.fitted(|| key_path(&[&"link_model", &a, &b]))?;
            links.push(LinkPolicy { between: [a, b], latency_s, model });
        }
        let nobodys = [
            ("errors", self.errors.into_keys().next()),
            ("score", self.score.into_keys().next()),
            ("calibration", self.calibration.into_keys().next()),
            ("model", self.model.into_keys().next()),
            ("measured", self.measured.into_keys().next()),
            ("inside_host", self.inside_host.into_keys().next()),
            ("compute", self.compute.into_keys().next()),
        ];
        if let Some((key, name)) = nobodys.into_iter().find_map(|(key, name)| Some((key, name?))) {
            return Err((key_path(&[&key, &name]), format!("there is no group \"{name}\"")));
        }
        if let Some((a, b)) = self.link_model.into_iter().find_map(|(a, to)| Some((a, to.into_keys().next()?))) {
            return Err((key_path(&[&"link_model", &a, &b]), format!("there is no [[link]] between \"{a}\" and \"{b}\"")));
        }
        let mut collectives = BTreeMap::new();
        for (collective, CollectiveTable { placement, mut two_level, evidence, calibration }) in self.collective {
            let name = &collective.name;
            let newer = (self.evidence.over_groups.remove(collective), key_path(&[&"evidence", &"over_groups", name]));
            let (evidence, to_evidence) = either((evidence, key_path(&[&"collective", name, &"evidence"])), newer)?;
            let newer = (self.calibration_over_groups.remove(collective), Vec::new());
            let (calibration, _) = either((calibration, key_path(&[&"collective", name, &"calibration"])), newer)?;
            let rows = two_level.iter_mut().map(|row| (row.at_bytes, &mut row.evidence));
            put_together(rows, &evidence.unwrap_or_default(), key_path(&[&"collective", name, &"two_level"]), to_evidence)?;
            let calibration = calibration.unwrap_or_default();
            collectives.insert(collective, OverGroups { placement, two_level, calibration });
        }
        let nobodys = [
            (key_path(&[&"evidence", &"over_groups"]), self.evidence.over_groups.into_keys().next()),
            (key_path(&[&"calibration_over_groups"]), self.calibration_over_groups.into_keys().next()),
        ];
        if let Some((mut key, collective)) = nobodys.into_iter().find_map(|(key, collective)| Some((key, collective?))) {
            key.push(collective.name.into());
            return Err((key, format!("there is no [collective.{}]", collective.name)));
        }
        Ok(Policy { collectives, provenance: self.provenance, groups, links })
    }
}

/// What stands where older versions wrote it, or where it is written now, with the way to it; not both.
fn either<T>((older, to_older): (Option<T>, Vec<String>), (newer, to_newer): (Option<T>, Vec<String>)) -> Found<(Option<T>, Vec<String>)> {
    match (older, newer) {
        (Some(_), Some(_)) => Err((to_older, "this is there twice: here, as older versions wrote it, and behind all decisions".into())),
        (None, newer) => Ok((newer, to_newer)),
        (older, None) => Ok((older, to_older)),
    }
}

/// Gives each row its evidence. The ways are those to the rows and to the evidence.
fn put_together<'a>(
    rows: impl Iterator<Item = (usize, &'a mut Evidence)>,
    evidence: &EvidenceTable,
    mut to_rows: Vec<String>,
    to_evidence: Vec<String>,
) -> Found<()> {
    let mut used = BTreeSet::new();
    for (k, (at, row)) in rows.enumerate() {
        let Some(found) = evidence.0.get(&Bytes(at)) else {
            to_rows.push(k.to_string());
            return Err((to_rows, format!("there is no evidence at {}, the size that it was made at", bytes_in_file(at))));
        };
        *row = found.clone();
        used.insert(at);
    }
    match evidence.0.keys().find(|at| !used.contains(&at.0)) {
        Some(at) => Err((to_evidence, format!("no row was made at {}", bytes_in_file(at.0)))),
        None => Ok(()),
    }
}

impl GroupTable {
    /// The `n`-th group, of at most so many hosts, as far as it stands here, with what its rows rest on.
    fn policy(mut self, n: usize, most: usize, mut evidence: EvidenceTables) -> Found<GroupPolicy> {
        let unfolded = |key: &str, patterns: &[String], most: usize| {
            let mut found = Vec::new();
            for (k, pattern) in patterns.iter().enumerate() {
                found.extend(hosts::unfold(pattern, most - found.len()).map_err(|why| (key_path(&[&"group", &n, &key, &k]), why))?);
            }
            Ok(found)
        };
        let found = unfolded("hosts", &self.hosts, most)?;
        let also = unfolded("also", &self.also, most - found.len())?;
        let to_older = |collective: &Collective| key_path(&[&"group", &n, &"evidence", &collective.name]);
        let to_newer = |collective: &Collective| key_path(&[&"evidence", &"group", &self.name, &collective.name]);
        for (collective, rows) in &mut self.choices {
            let (older, newer) = (self.evidence.remove(collective), evidence.remove(collective));
            let (found, to_evidence) = either((older, to_older(collective)), (newer, to_newer(collective)))?;
            let rows = rows.iter_mut().map(|row| (row.at_bytes, &mut row.evidence));
            put_together(rows, &found.unwrap_or_default(), key_path(&[&"group", &n, &"choices", &collective.name]), to_evidence)?;
        }
        let (older, newer) = (self.evidence.into_keys().next(), evidence.into_keys().next());
        if let Some((collective, at)) = older.map(|c| (c, to_older(c))).or(newer.map(|c| (c, to_newer(c)))) {
            return Err((at, format!("the group has no choices of {}", collective.name)));
        }
        Ok(GroupPolicy {
            port_sharing: self.port_sharing,
            inside_port_sharing: self.inside_port_sharing,
            losses: self.losses,
            choices: self.choices,
            also,
            ..GroupPolicy::new(&self.name, self.latency_s, found)
        })
    }
}

/// True if sizes ascend.
pub(super) fn ascend(sizes: &[usize]) -> bool {
    sizes.windows(2).all(|s| s[0] < s[1])
}

impl CalibrationTable {
    /// What it says of each algorithm. `at`: the way to it.
    fn rows(self, at: Vec<String>) -> Found<Vec<Calibration>> {
        let CalibrationTable { collective, model, bytes, ratio } = self;
        let fits = |ratio: &Vec<f64>| ratio.len() == bytes.len() && ratio.iter().all(|r| *r > 0.0 && *r <= LARGEST);
        if !ascend(&bytes) || !ratio.values().all(fits) {
            return Err((at, "calibration needs sizes that ascend and a positive ratio for each".into()));
        }
        let row = |(algorithm, ratio)| Calibration { collective, algorithm, model: model.clone(), bytes: bytes.clone(), ratio };
        Ok(ratio.into_iter().map(row).collect())
    }
}

impl ModelTable {
    /// The model. `at`: the way to it.
    fn fitted(self, at: impl Fn() -> Vec<String>) -> Found<Fitted> {
        let mut tables = BTreeMap::new();
        if !self.bytes.is_empty() {
            let sizes: Vec<f64> = self.bytes.iter().map(|&m| m as f64).collect();
            tables.insert(TABLE_SIZES.to_string(), Table { value: sizes.clone(), low: sizes.clone(), high: sizes });
        }
        for (name, Column { value, low, high }) in self.tables {
            let narrow = low.is_empty() && high.is_empty();
            if name == TABLE_SIZES || (!narrow && (low.len(), high.len()) != (value.len(), value.len())) {
                let mut at = at();
                at.extend(["tables".into(), name.clone()]);
                let reason =
                    if name == TABLE_SIZES { "its sizes stand before the tables" } else { "it needs as many low and high ends as values" };
                return Err((at, format!("table {name} is not valid: {reason}")));
            }
            let (low, high) = if narrow { (value.clone(), value.clone()) } else { (low, high) };
            tables.insert(name, Table { value, low, high });
        }
        let ModelTable { model, estimator, clamped, parameters, .. } = self;
        let fitted = Fitted { model, estimator, clamped, parameters, tables };
        fitted.costs().map_err(|e| (at(), format!("failed to {e}")))?;
        Ok(fitted)
    }
}
