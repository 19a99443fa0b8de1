//! Writing a policy so that people can read it: one row a line, six significant digits.

use super::Policy;
use crate::error::{Error, Result};
use serde::Serialize;
use std::fmt::Write;
use toml::Value;

impl Policy {
    /// The policy as TOML, to be parsed by [`Policy::parse`]. Floating-point values keep six significant digits.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a value cannot be written, which no valid policy has.
    pub fn to_toml(&self) -> Result<String> {
        let mut out = format!("format = {}\n", self.format);
        if let Some(placement) = &self.placement {
            let _ = writeln!(out, "placement = {}", inline(&value(placement)?));
        }
        rows(&mut out, "across", &self.across)?;
        for (collective, row) in &self.over_all {
            let _ = writeln!(out, "over_all.{} = {}", collective.name, inline(&value(row)?));
        }
        out.push_str("\n[provenance]\n");
        pairs(&mut out, &self.provenance)?;
        for g in &self.groups {
            out.push_str("\n[[group]]\n");
            let _ = writeln!(out, "name = {}", inline(&value(&g.name)?));
            if let Some(t) = g.latency_s {
                let _ = writeln!(out, "latency_s = {}", inline(&Value::Float(t)));
            }
            if g.fan_out != 1.0 {
                let _ = writeln!(out, "fan_out = {}", inline(&Value::Float(g.fan_out)));
            }
            let _ = writeln!(out, "hosts = {}", inline(&value(&g.hosts)?));
            if g.inside_fan_out != 1.0 {
                let _ = writeln!(out, "inside_fan_out = {}", inline(&Value::Float(g.inside_fan_out)));
            }
            if let Some(model) = &g.inside_host {
                let _ = writeln!(out, "inside_host = {}", inline(&value(model)?));
            }
            for (collective, choices) in &g.choices {
                rows(&mut out, &format!("choices.{}", collective.name), choices)?;
            }
            rows(&mut out, "score", &g.scores)?;
            rows(&mut out, "model", &g.models)?;
            rows(&mut out, "experience", &g.experience)?;
        }
        for link in &self.links {
            out.push_str("\n[[link]]\n");
            pairs(&mut out, link)?;
        }
        Ok(out)
    }
}

fn value(item: &impl Serialize) -> Result<Value> {
    Value::try_from(item).map_err(|e| Error::invalid(format!("write the policy: {e}")))
}

/// An array of inline tables, one a line; nothing if it is empty.
fn rows(out: &mut String, key: &str, items: &[impl Serialize]) -> Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    let _ = writeln!(out, "{key} = [");
    for item in items {
        let _ = writeln!(out, "  {},", inline(&value(item)?));
    }
    out.push_str("]\n");
    Ok(())
}

/// A table's keys, one a line.
fn pairs(out: &mut String, item: &impl Serialize) -> Result<()> {
    if let Value::Table(table) = value(item)? {
        for (key, value) in &table {
            let _ = writeln!(out, "{key} = {}", inline(value));
        }
    }
    Ok(())
}

/// A value on one line.
fn inline(value: &Value) -> String {
    match value {
        Value::Float(x) => float(*x),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let pair = |(k, v): (&String, &Value)| format!("{k} = {}", inline(v));
            format!("{{ {} }}", table.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Six significant digits, with an exponent where that is shorter; always a TOML float.
fn float(x: f64) -> String {
    // sizes stay exact
    let whole = x.fract() == 0.0 && x.abs() < 1e15;
    let rounded: f64 = if whole { x } else { format!("{x:.5e}").parse().unwrap_or(x) };
    if whole || (1e-3..1e7).contains(&rounded.abs()) {
        if whole { format!("{rounded:.1}") } else { format!("{rounded}") }
    } else {
        format!("{rounded:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::float;
    use crate::policy::{CompiledPolicy, Policy};
    use crate::topology::Link;
    use std::path::Path;

    #[test]
    fn what_two_ranks_of_one_host_take_is_written_and_used() {
        let mut policy = Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap();
        let g = &mut policy.groups[0];
        let mut quick = g.models.iter().find(|m| m.model == "hockney").unwrap().clone();
        quick.parameters.values_mut().for_each(|p| (p.value, p.low, p.high) = (1e-9, 1e-9, 1e-9));
        g.hosts[3] = g.hosts[0].clone();
        g.inside_host = Some(quick);
        let text = policy.to_toml().unwrap();
        let policy = CompiledPolicy::new(Policy::parse("text", &text).unwrap()).unwrap();
        for name in ["hockney", "tables"] {
            let transit = |to| policy.group_costs(0, name).unwrap().cost(Link { from: 0, to }, 1).transit;
            assert!(transit(3) < 1e-8 && transit(2) > 1e-5, "{name}: {} {}", transit(3), transit(2));
        }
        let wrong = text.replacen("value = 1e-9", "value = -1e-9", 1);
        assert!(Policy::parse("text", &wrong).unwrap_err().to_string().contains("inside_host"), "{wrong}");
    }

    #[test]
    fn floats_are_short_and_stay_floats() {
        for (x, want) in [
            (0.0, "0.0"),
            (1.0, "1.0"),
            (0.000137085806, "1.37086e-4"),
            (8.5e-9, "8.5e-9"),
            (0.25, "0.25"),
            (53.877323, "53.8773"),
            (4194304.0, "4194304.0"),
        ] {
            assert_eq!(float(x), want);
            assert!(matches!(toml::from_str::<toml::Table>(&format!("x = {want}")).unwrap()["x"], toml::Value::Float(_)));
        }
    }
}
