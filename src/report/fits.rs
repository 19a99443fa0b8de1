//! How well models fit, for every group and link.

use super::Titled;
use super::models::{MISFIT, Measured, Predict, SIZES, predictors, selected_at, width};
use super::tables::{Cell, Table, difference, or_dash, percent};
use crate::collective::COLLECTIVES;
use crate::policy::{CompiledPolicy, GroupPolicy};
use crate::stats;
use std::collections::BTreeMap;

/// A mean error, with its 95 % interval if it has one.
pub(super) struct Error {
    pub mean: f64,
    interval: Option<(f64, f64)>,
}

/// How well a group's or a link's model fits.
pub(super) struct Fit {
    /// The group twice, or the two groups of a link, the lower one first.
    pub of: (usize, usize),
    model: String,
    /// Other models that are selected for some of its collectives and sizes.
    others: Vec<String>,
    /// On messages that were measured.
    pub messages: Option<Error>,
    /// The model that errs least on these.
    best: Option<(String, f64)>,
    /// On collectives that they were not fitted to, of each size the model that is selected there.
    collectives: Option<Error>,
    /// The model that errs least on these.
    best_of_collectives: Option<(String, f64)>,
    /// How wide the widest interval of its parameters is.
    width: Option<f64>,
}

impl Error {
    /// A mean whose standard error is so large.
    fn new(mean: f64, standard_error: Option<f64>) -> Error {
        // 95 % of a normal distribution
        const DEVIATIONS: f64 = 1.96;
        let ends = |se: f64| ((mean - DEVIATIONS * se).max(0.0), mean + DEVIATIONS * se);
        Error { mean, interval: standard_error.map(ends) }
    }

    /// Of errors at several sizes.
    fn over(errors: &[f64]) -> Option<Error> {
        let (mean, n) = (stats::mean(errors)?, errors.len() as f64);
        let variance = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some(Error::new(mean, (errors.len() > 1).then(|| (variance / n).sqrt())))
    }
}

impl Fit {
    /// The larger, the worse it fits: by what was measured, or else by how sure its parameters are.
    pub(super) fn misses(&self) -> f64 {
        let errors = [&self.messages, &self.collectives].into_iter().flatten().map(|e| e.mean);
        errors.reduce(f64::max).or(self.width).unwrap_or(0.0)
    }

    fn says(&self) -> String {
        let no_message = self.best.as_ref().is_some_and(|b| b.1 > MISFIT);
        // of collectives each size has the model that is selected there, which may err less than any has in the mean
        let no_collective = [self.collectives.as_ref().map(|e| e.mean), self.best_of_collectives.as_ref().map(|b| b.1)];
        let no_collective = no_collective.into_iter().all(|error| error.is_some_and(|error| error > MISFIT));
        match (no_message, no_collective) {
            (true, true) => "none fits".into(),
            (true, false) => "none fits messages".into(),
            (false, true) => "none fits collectives".into(),
            (false, false) => {
                let better = |own: &Option<Error>, best: &Option<(String, f64)>, of: &str| {
                    let (name, error) = best.as_ref().filter(|_| own.as_ref().is_some_and(|own| own.mean > MISFIT))?;
                    Some(format!("on {of} {name} errs by {}", percent(*error)))
                };
                let messages = better(&self.messages, &self.best, "messages");
                let all: Vec<String> =
                    messages.into_iter().chain(better(&self.collectives, &self.best_of_collectives, "collectives")).collect();
                all.join(", ")
            }
        }
    }
}

/// The models that are selected for a group's collectives and sizes, that for most of them first, and what each errs by where it is.
fn selected(group: &GroupPolicy) -> (Vec<&str>, Vec<f64>) {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    let mut errors = Vec::new();
    for collective in COLLECTIVES.iter().copied().filter(|c| !group.rows(c).is_empty()) {
        for (model, error) in SIZES.iter().filter_map(|&bytes| selected_at(group, collective, bytes)) {
            *times.entry(model).or_default() += 1;
            errors.extend(error);
        }
    }
    let mut models: Vec<(&str, usize)> = times.into_iter().collect();
    models.sort_by_key(|&(name, n)| (std::cmp::Reverse(n), name));
    (models.into_iter().map(|m| m.0).collect(), errors)
}

/// Of every group with models and every link, those that fit worst first.
pub(super) fn fits(compiled: &CompiledPolicy, measured: &Measured, links: &[(usize, usize)]) -> Vec<Fit> {
    let policy = &compiled.policy;
    let groups = (0..policy.groups.len()).filter(|&g| !policy.groups[g].models.is_empty()).map(|g| (g, g));
    let fit = |of: (usize, usize)| {
        let models = predictors(compiled, of);
        let medians: Vec<(usize, f64)> =
            measured.get(&of).into_iter().flatten().filter_map(|(&bytes, all)| Some((bytes, stats::median(all)?))).collect();
        let error = |predict: &Predict| Error::over(&medians.iter().map(|m| (predict(m.0) / m.1 - 1.0).abs()).collect::<Vec<_>>());
        let errors: Vec<(&String, Option<Error>)> = models.iter().map(|(name, predict)| (name, error(predict))).collect();
        let best = errors.iter().filter_map(|(name, e)| Some((name.to_string(), e.as_ref()?.mean))).min_by(|a, b| a.1.total_cmp(&b.1));
        let group = (of.0 == of.1).then(|| &policy.groups[of.0]);
        // of a link there is one; where nothing scored a group's, the one that fits best
        let (used, errors_of_collectives) = group.map(selected).unwrap_or_default();
        let chosen = used.first().map(|name| name.to_string());
        let model = chosen.or(best.as_ref().map(|b| b.0.clone())).or(models.first().map(|m| m.0.clone())).unwrap_or_default();
        let messages = errors.into_iter().find(|(name, _)| **name == model).and_then(|(_, e)| e);
        let of_model = |model: &str| {
            let own = group.iter().flat_map(|g| &g.scores).filter(|s| s.model == model);
            stats::mean(&own.filter_map(|s| s.error).collect::<Vec<_>>())
        };
        let collectives = Error::over(&errors_of_collectives);
        let best_of_collectives =
            models.iter().filter_map(|(name, _)| Some((name.to_string(), of_model(name)?))).min_by(|a, b| a.1.total_cmp(&b.1));
        let fitted = match group {
            Some(g) => g.models.iter().find(|m| m.model == model),
            None => policy.link(of.0, of.1).map(|l| &l.model),
        };
        let others = used.iter().skip(1).map(|name| name.to_string()).collect();
        Fit { of, width: fitted.and_then(width), model, others, messages, best, collectives, best_of_collectives }
    };
    let mut all: Vec<Fit> = groups.chain(links.iter().copied()).map(fit).collect();
    all.sort_by(|a, b| b.misses().total_cmp(&a.misses()));
    all
}

/// A row for each.
pub(super) fn table(compiled: &CompiledPolicy, fits: &[Fit]) -> Titled {
    let name = |g: usize| compiled.policy.groups[g].name.as_str();
    let header =
        ["of", "model", "errs on messages by", "95 % interval", "on collectives by", "95 % interval", "parameters within", "none fits?"];
    let mut table = Table::new(&header);
    // a bar of full length is twice what fits nothing
    let mean = |e: &Option<Error>| e.as_ref().map_or("-".into(), |e| Cell::bar(difference(e.mean), e.mean / (2.0 * MISFIT)));
    let interval =
        |e: &Option<Error>| or_dash(e.as_ref().and_then(|e| e.interval), |(low, high)| format!("{} to {}", percent(low), percent(high)));
    for fit in fits {
        let of = if fit.of.0 == fit.of.1 { name(fit.of.0).into() } else { format!("{} to {}", name(fit.of.0), name(fit.of.1)) };
        let says = fit.says();
        table.rows.push(vec![
            of.into(),
            if fit.others.is_empty() { fit.model.clone() } else { format!("{} (and {})", fit.model, fit.others.join(", ")) }.into(),
            mean(&fit.messages),
            interval(&fit.messages).into(),
            mean(&fit.collectives),
            interval(&fit.collectives).into(),
            or_dash(fit.width, |w| if w == 0.0 { "exact".into() } else { format!("±{}", difference(w)) }).into(),
            says.into(),
        ]);
    }
    let none = fits.iter().filter(|f| f.says().starts_with("none")).count();
    Titled {
        title: "How well models fit".into(),
        words: format!(
            "Every group and link, the worst first, with the model that is selected for most collectives and sizes (and the others): mean of |predicted / measured - 1| over the sizes of messages \
             that were measured (with --samples), and over collectives and sizes, each by the model that is selected there; how wide the widest 95 % interval of its parameters is. Of {} in {none} none fits: the best \
             errs by more than 25 %. A full bar is 50 % and more.",
            fits.len()
        ),
        table,
    }
}
