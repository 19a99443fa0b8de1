//! Reading and writing platform files.

use super::Platform;
use crate::error::{Error, Result, line_starting, parse_toml};
use crate::files::read_text;
use crate::names;
use std::collections::BTreeSet;
use std::path::Path;

impl Platform {
    /// Reads a platform file.
    ///
    /// # Errors
    /// As [`Platform::parse`], or the file cannot be read.
    pub fn read(path: &Path) -> Result<Platform> {
        Platform::parse(&path.display().to_string(), &read_text(path)?)
    }

    /// Parses a platform's text strictly.
    ///
    /// # Errors
    /// [`Error::Format`] with file and line: unknown keys, values that are no times, groups or links that do not fit together.
    pub fn parse(file: &str, text: &str) -> Result<Platform> {
        let platform: Platform = parse_toml(file, text)?;
        match platform.fault() {
            None => Ok(platform),
            Some((prefix, n, reason)) => Err(Error::Format { file: file.into(), line: line_starting(text, prefix, n), reason }),
        }
    }

    /// The platform as TOML, to be parsed by [`Platform::parse`].
    ///
    /// # Errors
    /// [`Error::Invalid`] if a value cannot be written, which no valid platform has.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|e| Error::invalid(format!("write platform {}: {e}", self.name)))
    }

    /// The first thing that is wrong with a platform: the start of the line to blame, which of these lines, and the reason.
    fn fault(&self) -> Option<(&'static str, usize, String)> {
        let fault = |prefix, n, reason: String| Some((prefix, n, reason));
        if self.format != 1 {
            return fault("format", 0, format!("format {} is not known, this version reads format = 1", self.format));
        }
        if self.groups.is_empty() {
            return fault("name", 0, "the platform has no [[group]]".into());
        }
        let mut seen = BTreeSet::new();
        for (n, g) in self.groups.iter().enumerate() {
            if !seen.insert(&g.name) {
                return fault("[[group]]", n, format!("group \"{}\" is there twice", g.name));
            }
            if g.count == 0 || g.count > 1_000_000 {
                return fault("[[group]]", n, format!("group \"{}\" has count = {}: 1 to 1000000 hosts", g.name, g.count));
            }
            if g.count > 1 && g.latency_s.is_none() {
                return fault("[[group]]", n, format!("group \"{}\" has several hosts and no latency_s", g.name));
            }
            // the last host's name is the longest
            if let Err(reason) = names::check(&g.host_name(g.count - 1)) {
                return fault("[[group]]", n, format!("the hosts of group \"{}\" have no names: {reason}", g.name));
            }
            if !g.host_names.is_empty() && g.host_names.len() != g.count {
                let have = g.host_names.len();
                return fault("[[group]]", n, format!("group \"{}\" has count = {} and {have} host_names", g.name, g.count));
            }
            if g.variants.iter().map(|v| v.count).fold(0, usize::saturating_add) > g.count {
                return fault("[[group]]", n, format!("group \"{}\" has more hosts in variants than hosts", g.name));
            }
        }
        self.link_fault().or_else(|| self.noise_fault())
    }

    fn link_fault(&self) -> Option<(&'static str, usize, String)> {
        let mut pairs = BTreeSet::new();
        for (n, link) in self.links.iter().enumerate() {
            let [a, b] = &link.between;
            for name in [a, b] {
                if !self.groups.iter().any(|g| &g.name == name) {
                    return Some(("[[link]]", n, format!("there is no group \"{name}\"")));
                }
            }
            if a == b {
                return Some(("[[link]]", n, format!("a link joins two groups; inside \"{a}\" its latency_s holds")));
            }
            if !pairs.insert((a.min(b), a.max(b))) {
                return Some(("[[link]]", n, format!("the link between \"{a}\" and \"{b}\" is there twice")));
            }
            if link.bandwidth_bytes_per_s.is_some_and(|w| !w.is_finite() || w <= 0.0) {
                return Some(("[[link]]", n, format!("the bandwidth between \"{a}\" and \"{b}\" must be above zero bytes per second")));
            }
        }
        for (i, a) in self.groups.iter().enumerate() {
            for (j, b) in self.groups.iter().enumerate().skip(i + 1) {
                if self.link(i, j).is_none() {
                    return Some(("[[group]]", j, format!("there is no [[link]] between \"{}\" and \"{}\"", a.name, b.name)));
                }
            }
        }
        None
    }

    fn noise_fault(&self) -> Option<(&'static str, usize, String)> {
        let share = |x: f64| (0.0..=1.0).contains(&x);
        if let Some(n) = &self.noise
            && (!(0.0..=10.0).contains(&n.sigma) || !share(n.outlier_share) || !(0.0..=1e6).contains(&n.outlier_factor))
        {
            return Some(("[noise]", 0, "sigma is 0 to 10, outlier_share 0 to 1, outlier_factor 0 to 1e6".into()));
        }
        if let Some(t) = &self.tcp
            && !share(t.gather_escalation_share)
        {
            return Some(("[tcp]", 0, "gather_escalation_share is 0 to 1".into()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "format = 1\nname = \"two\"\n\n[[group]]\nname = \"a\"\ncount = 2\nlatency_s = 5e-5\n\n[[group]]\nname = \"b\"\ncount = 1\n\n[[link]]\nbetween = [\"a\", \"b\"]\nlatency_s = 5e-3\n";

    #[test]
    fn a_platform_reads_back_as_it_was_written() {
        let platform = Platform::parse("two.toml", GOOD).unwrap();
        assert_eq!(Platform::parse("again", &platform.to_toml().unwrap()).unwrap(), platform);
    }

    #[test]
    fn faults_are_reported_with_file_and_line() {
        for (from, to, line, word) in [
            ("count = 2", "cuont = 2", 6, "unknown field"),
            ("latency_s = 5e-5", "latency_s = -5e-5", 7, "no valid time"),
            ("latency_s = 5e-5", "latency_s = nan", 7, "no valid time"),
            ("latency_s = 5e-5", "latency_s = \"50us\"", 7, "invalid type"),
            ("latency_s = 5e-5", "", 4, "no latency_s"),
            ("count = 1\n", "count = 0\n", 9, "count = 0"),
            ("name = \"b\"", "name = \"a\"", 9, "twice"),
            ("\"a\", \"b\"]", "\"a\", \"c\"]", 13, "no group \"c\""),
            ("format = 1", "format = 2", 1, "format 2"),
            ("name = \"two\"", "name = \"../evil\"", 2, r#""../evil" is no name"#),
            ("name = \"two\"", "name = \"\"", 2, "is no name"),
            ("name = \"b\"", "name = \"b b\"", 10, r#""b b" is no name"#),
            ("count = 2", "count = 2\nhost_names = [\"a1\",\n  \"x\\nnetns add evil\"]", 7, r#""x\nnetns add evil" is no name"#),
            ("count = 2", "count = 2\n[[group.variant]]\nname = \"-v\"\ncount = 1\nhosts = {}", 8, r#""-v" is no name"#),
            ("latency_s = 5e-3", "latency_s = 5e-3\ntrunk = \"<t>\"", 16, r#""<t>" is no name"#),
            ("[\"a\", \"b\"]", "[\"a\", \"b\\u001b\"]", 14, r#""b\u{1b}" is no name"#),
        ] {
            let text = GOOD.replacen(from, to, 1);
            let e = Platform::parse("two.toml", &text).unwrap_err().to_string();
            assert!(e.contains(&format!("two.toml, line {line}")) && e.contains(word), "{to}: {e}");
        }
        // 254 letters, '-' and a number
        let long = GOOD.replace("\"a\"", &format!("\"{}\"", "a".repeat(254)));
        assert!(Platform::parse("two.toml", &long).unwrap_err().to_string().contains("have no names"));
        let lonely = &GOOD[..GOOD.find("[[link]]").unwrap()];
        assert!(Platform::parse("two.toml", lonely).unwrap_err().to_string().contains("no [[link]] between"));
    }
}
