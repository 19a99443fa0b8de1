//! A policy as it stands in its file: decisions first, models last. What is about a group stands under the group's name.

use super::errors::ErrorTable;
use super::{Choice, Evidence, FORMAT, GroupPolicy, OverGroups, Policy, Provenance, TwoLevelRow, hosts};
use crate::collective::Collective;
use crate::model::{Compute, Fitted, Losses, TABLE_SIZES, Table};
use crate::names;
use crate::score::{Calibration, ModelScore, Ratios};
use crate::stats::Estimate;
use crate::units::{self, Bytes, bytes_in_file};
use serde::de::{Error as _, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) format: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) collective: BTreeMap<&'static Collective, CollectiveTable>,
    pub(super) provenance: Provenance,
    #[serde(default)]
    pub(super) group: Vec<GroupTable>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) link: Vec<LinkTable>,
    #[serde(default)]
    pub(super) evidence: Evidences,
    /// By collective and algorithm between groups.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) calibration_over_groups: BTreeMap<&'static Collective, BTreeMap<String, Ratios>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) errors: BTreeMap<String, Vec<ErrorTable>>,
    /// The same, as older versions wrote it: a table for each model.
    #[serde(default, skip_serializing)]
    pub(super) score: BTreeMap<String, Vec<ModelScore>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) calibration: BTreeMap<String, Vec<CalibrationTable>>,
    /// Models of a few parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) model: BTreeMap<String, Vec<ModelTable>>,
    /// Models of tables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) measured: BTreeMap<String, Vec<ModelTable>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) inside_host: BTreeMap<String, ModelTable>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) compute: BTreeMap<String, Vec<Compute>>,
    /// By both groups.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) link_model: BTreeMap<String, BTreeMap<String, ModelTable>>,
}

/// By the size that a row was made at.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub(super) struct EvidenceTable(pub(super) BTreeMap<Bytes, Evidence>);

impl<'de> Deserialize<'de> for EvidenceTable {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<EvidenceTable, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = EvidenceTable;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("what rows rest on, by the sizes that they were made at")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> std::result::Result<EvidenceTable, A::Error> {
                let mut all = BTreeMap::new();
                while let Some((at, evidence)) = entries.next_entry::<Bytes, Evidence>()? {
                    // a size may be written in several ways
                    if let Some(Bytes(at)) = all.insert(at, evidence).map(|_| at) {
                        return Err(A::Error::custom(format!("{} is there twice", bytes_in_file(at))));
                    }
                }
                Ok(EvidenceTable(all))
            }
        }
        d.deserialize_map(Visitor)
    }
}

/// By collective.
pub(super) type EvidenceTables = BTreeMap<&'static Collective, EvidenceTable>;

/// What rows rest on.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Evidences {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) over_groups: EvidenceTables,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) group: BTreeMap<String, EvidenceTables>,
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&bytes_in_file(self.0))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CollectiveTable {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) placement: Option<String>,
    pub(super) two_level: Vec<TwoLevelRow>,
    /// Here older versions wrote it.
    #[serde(default, skip_serializing)]
    pub(super) evidence: Option<EvidenceTable>,
    /// The same.
    #[serde(default, skip_serializing)]
    pub(super) calibration: Option<BTreeMap<String, Ratios>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupTable {
    #[serde(deserialize_with = "names::de_name")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "units::de_seconds_option", skip_serializing_if = "Option::is_none")]
    pub(super) latency_s: Option<f64>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(super) port_sharing: f64,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(super) inside_port_sharing: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) losses: Option<Losses>,
    /// Patterns of hosts.
    pub(super) hosts: Vec<String>,
    /// The same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) also: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) choices: BTreeMap<&'static Collective, Vec<Choice>>,
    /// Here older versions wrote it.
    #[serde(default, skip_serializing)]
    pub(super) evidence: EvidenceTables,
}

fn one() -> f64 {
    1.0
}

fn is_one(x: &f64) -> bool {
    *x == 1.0
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkTable {
    #[serde(deserialize_with = "names::de_two_names")]
    pub(super) between: [String; 2],
    #[serde(deserialize_with = "units::de_seconds")]
    pub(super) latency_s: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CalibrationTable {
    pub(super) collective: &'static Collective,
    pub(super) model: String,
    #[serde(deserialize_with = "units::de_bytes_list")]
    pub(super) bytes: Vec<usize>,
    /// By algorithm.
    pub(super) ratio: BTreeMap<String, Vec<f64>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelTable {
    pub(super) model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) estimator: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) clamped: Vec<String>,
    /// The sizes of its tables, if they are of sizes.
    #[serde(default, deserialize_with = "units::de_bytes_list", skip_serializing_if = "Vec::is_empty")]
    pub(super) bytes: Vec<usize>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) parameters: BTreeMap<String, Estimate>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) tables: BTreeMap<String, Column>,
}

/// A table with intervals, which are not there where they are as narrow as can be.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    pub(super) value: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) low: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) high: Vec<f64>,
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        File::of(self).serialize(serializer)
    }
}

impl File {
    pub(super) fn of(policy: &Policy) -> File {
        let over_groups = policy.collectives.iter();
        let mut file = File {
            format: FORMAT,
            evidence: Evidences {
                over_groups: over_groups.clone().map(|(c, all)| (*c, evidence_of(&all.two_level, |r| (r.at_bytes, &r.evidence)))).collect(),
                group: policy.groups.iter().map(|g| (g.name.clone(), g.evidence())).filter(|(_, tables)| !tables.is_empty()).collect(),
            },
            calibration_over_groups: over_groups
                .filter(|(_, all)| !all.calibration.is_empty())
                .map(|(c, all)| (*c, all.calibration.clone()))
                .collect(),
            collective: policy.collectives.iter().map(|(c, rows)| (*c, CollectiveTable::of(rows))).collect(),
            provenance: policy.provenance.clone(),
            group: policy.groups.iter().map(GroupTable::of).collect(),
            link: policy.links.iter().map(|l| LinkTable { between: l.between.clone(), latency_s: l.latency_s }).collect(),
            errors: BTreeMap::new(),
            score: BTreeMap::new(),
            calibration: BTreeMap::new(),
            model: BTreeMap::new(),
            measured: BTreeMap::new(),
            inside_host: BTreeMap::new(),
            compute: BTreeMap::new(),
            link_model: BTreeMap::new(),
        };
        for g in &policy.groups {
            let (measured, model): (Vec<&Fitted>, Vec<&Fitted>) = g.models.iter().partition(|m| !m.tables.is_empty());
            let put = |under: &mut BTreeMap<String, Vec<ModelTable>>, models: Vec<&Fitted>| {
                under.extend((!models.is_empty()).then(|| (g.name.clone(), models.into_iter().map(ModelTable::of).collect())));
            };
            put(&mut file.model, model);
            put(&mut file.measured, measured);
            file.errors.extend((!g.scores.is_empty()).then(|| (g.name.clone(), ErrorTable::all_of(&g.scores))));
            file.calibration.extend((!g.calibration.is_empty()).then(|| (g.name.clone(), CalibrationTable::all_of(&g.calibration))));
            file.compute.extend((!g.compute.is_empty()).then(|| (g.name.clone(), g.compute.clone())));
            file.inside_host.extend(g.inside_host.iter().map(|m| (g.name.clone(), ModelTable::of(m))));
        }
        for l in &policy.links {
            let [a, b] = l.between.clone();
            file.link_model.entry(a).or_default().insert(b, ModelTable::of(&l.model));
        }
        file
    }
}

/// The evidence of rows by the sizes that they were made at.
fn evidence_of<R>(rows: &[R], of: impl Fn(&R) -> (usize, &Evidence)) -> EvidenceTable {
    EvidenceTable(rows.iter().map(|row| (Bytes(of(row).0), of(row).1.clone())).collect())
}

impl CollectiveTable {
    fn of(rows: &OverGroups) -> CollectiveTable {
        let (placement, two_level) = (rows.placement.clone(), rows.two_level.clone());
        CollectiveTable { placement, two_level, evidence: None, calibration: None }
    }
}

impl GroupPolicy {
    fn evidence(&self) -> EvidenceTables {
        self.choices.iter().map(|(c, rows)| (*c, evidence_of(rows, |r| (r.at_bytes, &r.evidence)))).collect()
    }
}

impl GroupTable {
    fn of(g: &GroupPolicy) -> GroupTable {
        GroupTable {
            name: g.name.clone(),
            latency_s: g.latency_s,
            port_sharing: g.port_sharing,
            inside_port_sharing: g.inside_port_sharing,
            losses: g.losses.clone(),
            hosts: hosts::fold(&g.hosts),
            also: hosts::fold(&g.also),
            choices: g.choices.clone(),
            evidence: BTreeMap::new(),
        }
    }
}

impl CalibrationTable {
    /// A table for each model and each list of sizes.
    fn all_of(calibration: &[Calibration]) -> Vec<CalibrationTable> {
        let mut all: Vec<CalibrationTable> = Vec::new();
        for c in calibration {
            let alike = |t: &&mut CalibrationTable| t.collective == c.collective && t.model == c.model && t.bytes == c.bytes;
            match all.iter_mut().find(alike) {
                Some(table) => drop(table.ratio.insert(c.algorithm.clone(), c.ratio.clone())),
                None => all.push(CalibrationTable {
                    collective: c.collective,
                    model: c.model.clone(),
                    bytes: c.bytes.clone(),
                    ratio: [(c.algorithm.clone(), c.ratio.clone())].into(),
                }),
            }
        }
        all
    }
}

impl ModelTable {
    fn of(fitted: &Fitted) -> ModelTable {
        let column = |t: &Table| {
            let narrow = t.low == t.value && t.high == t.value;
            let (low, high) = if narrow { Default::default() } else { (t.low.clone(), t.high.clone()) };
            Column { value: t.value.clone(), low, high }
        };
        ModelTable {
            model: fitted.model.clone(),
            estimator: fitted.estimator.clone(),
            clamped: fitted.clamped.clone(),
            bytes: fitted.tables.get(TABLE_SIZES).map_or(Vec::new(), |t| t.value.iter().map(|&m| m as usize).collect()),
            parameters: fitted.parameters.clone(),
            tables: fitted.tables.iter().filter(|(name, _)| *name != TABLE_SIZES).map(|(name, t)| (name.clone(), column(t))).collect(),
        }
    }
}
