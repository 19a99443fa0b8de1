//! Models' errors as they stand in a policy's file: a table for each collective, with a column for each model and a line for each size and each algorithm.

use super::toml_file::{Fault, ascend};
use crate::collective::Collective;
use crate::error::key_path;
use crate::score::ModelScore;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorTable {
    collective: &'static Collective,
    models: Vec<String>,
    /// Of all cases; not there where there were none that took time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mean: Vec<f64>,
    standard_error: Vec<f64>,
    measuring_s: Vec<f64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    by_bytes: BTreeMap<Bytes, Vec<f64>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    by_algorithm: BTreeMap<String, Vec<f64>>,
}

/// True of scores that have a table together.
fn are_together(a: &ModelScore, b: &ModelScore) -> bool {
    let algorithms = |s: &ModelScore| s.error_by_algorithm.keys().cloned().collect::<Vec<_>>();
    let sizes = |s: &ModelScore| (s.bytes.clone(), s.error_by_bytes.len());
    (a.collective, a.error.is_some()) == (b.collective, b.error.is_some()) && sizes(a) == sizes(b) && algorithms(a) == algorithms(b)
}

/// The way to the table of the k-th of a group's scores.
pub(super) fn table_of(group: &str, scores: &[ModelScore], k: usize) -> Vec<String> {
    let before = scores[..=k].chunk_by(are_together).count() - 1;
    key_path(&[&"errors", &group, &before])
}

impl ErrorTable {
    /// Those of a group's scores, in their order.
    pub fn all_of(scores: &[ModelScore]) -> Vec<ErrorTable> {
        let table = |together: &[ModelScore]| {
            let first = &together[0];
            let column = |of: &dyn Fn(&ModelScore) -> f64| together.iter().map(of).collect::<Vec<_>>();
            let sizes = first.bytes.iter().enumerate();
            ErrorTable {
                collective: first.collective,
                models: together.iter().map(|s| s.model.clone()).collect(),
                mean: together.iter().filter_map(|s| s.error).collect(),
                standard_error: column(&|s| s.error_se),
                measuring_s: column(&|s| s.measuring_s),
                by_bytes: sizes.map(|(k, &bytes)| (Bytes(bytes), column(&|s| s.error_by_bytes[k]))).collect(),
                by_algorithm: first.error_by_algorithm.keys().map(|a| (a.clone(), column(&|s| s.error_by_algorithm[a]))).collect(),
            }
        };
        scores.chunk_by(are_together).map(table).collect()
    }

    /// A score for each model. `at`: the way to the table.
    pub fn scores(self, at: Vec<String>) -> Result<Vec<ModelScore>, Fault> {
        let n = self.models.len();
        let lists = [&self.standard_error, &self.measuring_s].into_iter().chain(self.by_bytes.values()).chain(self.by_algorithm.values());
        let bytes: Vec<usize> = self.by_bytes.keys().map(|bytes| bytes.0).collect();
        if lists.into_iter().any(|list| list.len() != n) || ![0, n].contains(&self.mean.len()) || !ascend(&bytes) {
            return Err((at, "errors need a value for each of the models".into()));
        }
        let score = |(k, model): (usize, &String)| ModelScore {
            collective: self.collective,
            model: model.clone(),
            error: self.mean.get(k).copied(),
            error_se: self.standard_error[k],
            measuring_s: self.measuring_s[k],
            bytes: bytes.clone(),
            error_by_bytes: self.by_bytes.values().map(|errors| errors[k]).collect(),
            error_by_algorithm: self.by_algorithm.iter().map(|(a, errors)| (a.clone(), errors[k])).collect(),
        };
        Ok(self.models.iter().enumerate().map(score).collect())
    }
}
