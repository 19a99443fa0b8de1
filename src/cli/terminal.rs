//! Small pictures for terminals: latencies as a heat map, and a schedule as a tree. What is piped has none.

use crate::report::picture::Branch;
use crate::units;
use std::fmt::Write;
use std::io::IsTerminal;

/// More rows than these are no small picture.
const MOST_ROWS: usize = 24;
/// More branches than these are left out.
const MOST_BRANCHES: usize = 40;
/// From near to far.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// True if pictures are wanted: where the output is looked at and can show them, unless it is to be plain.
pub fn shows_pictures(plain: bool) -> bool {
    !plain && std::io::stdout().is_terminal() && can_show(|name| std::env::var(name).ok())
}

/// True if a terminal with these variables shows what is not ASCII.
fn can_show(variable: impl Fn(&str) -> Option<String>) -> bool {
    // the first one that is set counts
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(&variable).find(|value| !value.is_empty());
    let is_utf8 = locale.is_some_and(|l| l.to_lowercase().replace('-', "").contains("utf8"));
    is_utf8 && variable("TERM").is_none_or(|term| term != "dumb")
}

/// Latencies between groups and inside them, a row for some ranks each, by names and numbers of ranks.
pub fn heat(groups: &[(&str, usize)], seconds: impl Fn(usize, usize) -> Option<f64>) -> String {
    let ranks: usize = groups.iter().map(|g| g.1).sum();
    let step = ranks.div_ceil(MOST_ROWS).max(1);
    let rows: Vec<usize> = groups.iter().enumerate().flat_map(|(g, (_, n))| std::iter::repeat_n(g, n.div_ceil(step))).collect();
    let known = || rows.iter().flat_map(|&a| rows.iter().map(move |&b| (a, b))).filter_map(|(a, b)| seconds(a, b)).filter(|t| *t > 0.0);
    let (low, high) = known().fold((f64::INFINITY, 0.0f64), |(l, h), t| (l.min(t), h.max(t)));
    if rows.len() > 2 * MOST_ROWS || low > high {
        return String::new();
    }
    let shade = |t: f64| {
        let share = if high > low { (t / low).ln() / (high / low).ln() } else { 0.0 };
        SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)]
    };
    let width = groups.iter().map(|g| g.0.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (k, &a) in rows.iter().enumerate() {
        let name = if k == 0 || rows[k - 1] != a { groups[a].0 } else { "" };
        let cells: String = rows.iter().map(|&b| seconds(a, b).filter(|t| *t > 0.0).map_or(' ', shade)).flat_map(|c| [c, c]).collect();
        let _ = writeln!(text, "{name:>width$} {cells}");
    }
    let _ = writeln!(text, "{:width$} {} {} to {} {}", "", SHADES[0], units::seconds(low), SHADES[SHADES.len() - 1], units::seconds(high));
    text
}

/// Which groups, by names and numbers of ranks, join at which latency, as complete linkage joins them; or why there is no such tree.
pub fn joins(groups: &[(&str, usize)], seconds: impl Fn(usize, usize) -> f64) -> String {
    let n = groups.len();
    if n < 2 {
        return "one group, which nothing joins\n".into();
    }
    let mut condensed: Vec<f64> = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).map(|(a, b)| seconds(a, b)).collect();
    let dendrogram = kodama::linkage(&mut condensed, n, kodama::Method::Complete);
    let steps = dendrogram.steps();
    // the last that joins is the root, groups come behind all that join
    let place = |node: usize| if node < n { n - 1 + node } else { 2 * n - 2 - node };
    let joins = steps.iter().rev().map(|step| units::seconds(step.dissimilarity));
    let names = joins.chain(groups.iter().map(|g| g.0.to_string()));
    let mut branches: Vec<Branch> = names.map(|name| Branch { name, group: 0, ranks: 1, parent: 0 }).collect();
    for (k, step) in steps.iter().enumerate() {
        for node in [step.cluster1, step.cluster2] {
            branches[place(node)].parent = place(n + k);
        }
    }
    let text = tree(&branches);
    if text.is_empty() { format!("{n} groups: what joins them is too much for a terminal\n") } else { text }
}

/// Who hears from whom.
pub fn tree(branches: &[Branch]) -> String {
    let mut text = String::new();
    if branches.is_empty() || branches.len() > MOST_BRANCHES {
        return text;
    }
    let _ = writeln!(text, "{}", branches[0].name);
    below(&mut text, branches, 0, "");
    text
}

fn below(text: &mut String, branches: &[Branch], of: usize, indent: &str) {
    let own: Vec<usize> = (1..branches.len()).filter(|&k| branches[k].parent == of).collect();
    for (k, &branch) in own.iter().enumerate() {
        let (mark, deeper) = if k + 1 == own.len() { ("└── ", "    ") } else { ("├── ", "│   ") };
        let _ = writeln!(text, "{indent}{mark}{}", branches[branch].name);
        below(text, branches, branch, &format!("{indent}{deeper}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_is_darker_and_groups_have_their_rows() {
        let seconds = |a: usize, b: usize| Some(if a == b { 1e-5 } else { 1e-2 });
        assert_eq!(heat(&[("ab", 2), ("c", 1)], seconds), "ab ░░░░██\n   ░░░░██\n c ████░░\n   ░ 10.0 us to █ 10.0 ms\n");
        // 3,000 ranks are a small picture too
        assert!(heat(&[("a", 1500), ("b", 1500)], seconds).lines().count() <= MOST_ROWS + 1);
        assert_eq!(heat(&[("a", 1)], |_, _| None), "");
    }

    #[test]
    fn groups_join_the_nearest_first() {
        let seconds = |a: usize, b: usize| if a + b == 1 { 1e-4 } else { 1e-2 };
        assert_eq!(joins(&[("a", 1), ("b", 1), ("c", 1)], seconds), "10.0 ms\n├── 100 us\n│   ├── a\n│   └── b\n└── c\n");
        assert!(joins(&[("a", 9)], seconds).contains("one group"));
        assert!(joins(&[("a", 1); 30], seconds).contains("30 groups"));
    }

    #[test]
    fn pictures_are_for_terminals_that_show_them() {
        let with = |lc_all: &'static str, lang: &'static str, term: &'static str| {
            can_show(move |name| [("LC_ALL", lc_all), ("LANG", lang), ("TERM", term)].into_iter().find(|v| v.0 == name).map(|v| v.1.into()))
        };
        assert!(with("", "en_US.UTF-8", "xterm") && with("C.utf8", "C", "xterm"));
        assert!(!with("C", "en_US.UTF-8", "xterm") && !with("", "", "xterm") && !with("", "C.UTF-8", "dumb"));
    }

    #[test]
    fn a_tree_has_a_line_for_each_branch() {
        let branch = |name: &str, parent| Branch { name: name.into(), group: 0, ranks: 1, parent };
        let all = [branch("a", 0), branch("b", 0), branch("c", 1), branch("d", 0)];
        assert_eq!(tree(&all), "a\n├── b\n│   └── c\n└── d\n");
        assert_eq!(tree(&[]), "");
    }
}
