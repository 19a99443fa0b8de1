//! Lists of hosts as people write them: `orsay-[1-20]`, `node[001-128]`, `n[1-3,7].site`. The hosts of a pattern come in its order, and
//! patterns in theirs, so that every list survives, whatever its order and however often a host is in it.

use crate::names;

/// A policy has at most so many positions: more ranks than any machine runs, in some hundred megabytes.
pub(super) const MOST_HOSTS: usize = 1 << 20;

/// The pattern of a long list ends about here, so that it leaves room on its line.
const MOST_TEXT: usize = 100;

/// Numbers of more digits are a part of the name.
const MOST_DIGITS: usize = 18;

/// The patterns of some hosts.
pub(crate) fn fold(hosts: &[String]) -> Vec<String> {
    let (mut patterns, mut at) = (Vec::new(), 0);
    while let Some(first) = hosts.get(at) {
        // of names with several numbers, the one that counts the farthest
        let runs = numbers(first).into_iter().map(|(from, to)| Run::new(&hosts[at..], &first[..from], &first[to..]));
        let run = runs.max_by_key(|run| run.hosts).filter(|run| run.hosts > 1);
        at += run.as_ref().map_or(1, |run| run.hosts);
        patterns.push(run.map_or(first.clone(), |run| run.pattern));
    }
    patterns
}

/// Where the numbers of a name are.
fn numbers(name: &str) -> Vec<(usize, usize)> {
    let is_digit = |at: usize| name.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let begins = (0..name.len()).filter(|&at| is_digit(at) && (at == 0 || !is_digit(at - 1)));
    let ends = begins.map(|from| (from, (from..).find(|&at| !is_digit(at)).unwrap_or(name.len())));
    ends.filter(|(from, to)| to - from <= MOST_DIGITS).collect()
}

/// The first hosts of a list that differ in one number only.
struct Run {
    hosts: usize,
    pattern: String,
}

impl Run {
    fn new(hosts: &[String], prefix: &str, suffix: &str) -> Run {
        let number = |host: &&String| host.strip_prefix(prefix)?.strip_suffix(suffix).filter(|n| is_number(n)).map(String::from);
        let (mut ranges, mut length): (Vec<(String, String)>, usize) = (Vec::new(), 0);
        let mut taken = 0;
        for number in hosts.iter().map_while(|host| number(&host)) {
            match ranges.last_mut() {
                Some((from, to)) if follows(from, to, &number) => *to = number,
                _ => {
                    // its comma, and room for the end of a range
                    length += 2 * number.len() + 2;
                    if !ranges.is_empty() && prefix.len() + length + suffix.len() > MOST_TEXT {
                        break;
                    }
                    ranges.push((number.clone(), number));
                }
            }
            taken += 1;
        }
        let range = |(from, to): &(String, String)| if from == to { from.clone() } else { format!("{from}-{to}") };
        let ranges: Vec<String> = ranges.iter().map(range).collect();
        Run { hosts: taken, pattern: format!("{prefix}[{}]{suffix}", ranges.join(",")) }
    }
}

fn is_number(text: &str) -> bool {
    (1..=MOST_DIGITS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// The digits of all numbers of a range that begins with leading zeros; 0 for one that does not.
fn width(from: &str) -> usize {
    if from.len() > 1 && from.starts_with('0') { from.len() } else { 0 }
}

fn written(number: u64, width: usize) -> String {
    format!("{number:0width$}")
}

/// True if a range may go on from `to` to a number.
fn follows(from: &str, to: &str, number: &str) -> bool {
    let width = width(from);
    (width == 0 || number.len() == width) && to.parse::<u64>().is_ok_and(|n| written(n + 1, width) == number)
}

/// The hosts of a pattern, at most so many.
///
/// # Errors
/// What is wrong with the pattern, or that it has more hosts; nothing is taken for them then.
pub(super) fn unfold(pattern: &str, most: usize) -> Result<Vec<String>, String> {
    let too_many = |hosts: u64| format!("{} makes {hosts} hosts too many: a policy has at most {MOST_HOSTS}", names::shown(pattern));
    let Some((prefix, rest)) = pattern.split_once('[') else {
        names::check(pattern)?;
        return if most == 0 { Err(too_many(1)) } else { Ok(vec![pattern.into()]) };
    };
    if !prefix.is_empty() && !names::is_name(prefix) {
        names::check(pattern)?;
    }
    let wrong = |why: &str| format!("{} is no list of hosts: {why}, such as node-[1-3,7]", names::shown(pattern));
    let (list, suffix) = rest.split_once(']').ok_or_else(|| wrong("a '[' wants a ']'"))?;
    if suffix.contains(['[', ']']) {
        return Err(wrong("it has one pair of brackets"));
    }
    let mut ranges = Vec::new();
    let mut left = most as u64;
    for range in list.split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let numbers = |text: &str| if is_number(text) { text.parse::<u64>().ok() } else { None };
        let (Some(first), Some(last)) = (numbers(from), numbers(to)) else {
            return Err(wrong("in brackets are numbers and ranges of numbers, with commas between"));
        };
        if first > last {
            return Err(wrong("a range ends where it begins or later"));
        }
        if (width(from) > 0 || width(to) > 0) && from.len() != to.len() {
            return Err(wrong("with leading zeros both ends of a range have as many digits"));
        }
        let count = last - first + 1;
        left = left.checked_sub(count).ok_or_else(|| too_many(count - left))?;
        ranges.push((first..=last, width(from)));
    }
    let mut hosts = Vec::with_capacity(most - left as usize);
    for (numbers, width) in ranges {
        for number in numbers {
            let host = format!("{prefix}{}{suffix}", written(number, width));
            names::check(&host)?;
            hosts.push(host);
        }
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(patterns: &[String]) -> Vec<String> {
        patterns.iter().flat_map(|p| unfold(p, MOST_HOSTS).unwrap()).collect()
    }

    /// Hosts in runs as clusters number them, here and there one again or out of order.
    fn lists() -> impl Strategy<Value = Vec<String>> {
        let odd = "[ab]{0,2}[0-9]{0,3}[-.]?[0-9]{0,3}c?|[0-9]{1,20}".prop_filter("names only", |n| names::is_name(n)).boxed();
        let counted =
            ("[a-z][a-z-]{0,3}", 0u64..2000, 1u64..40, 0usize..5, "(\\.x[0-9])?").prop_map(|(prefix, from, count, width, suffix)| {
                (from..from + count).map(|n| format!("{prefix}{n:0width$}{suffix}")).collect::<Vec<_>>()
            });
        let part = prop_oneof![prop::collection::vec(odd, 0..4), counted.clone(), counted.prop_shuffle()];
        prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn what_is_folded_unfolds_to_the_same_hosts_in_the_same_order(hosts in lists()) {
            let patterns = fold(&hosts);
            prop_assert!(patterns.len() <= hosts.len());
            prop_assert!(patterns.iter().all(|p| p.len() <= MOST_TEXT + 20 || !p.contains('[')), "{patterns:?}");
            prop_assert_eq!(all(&patterns), hosts);
        }

        #[test]
        fn any_text_is_hosts_or_an_error(text in "[-a0-9\\[\\],]{0,12}|[ab]\\[[-0-9,]{0,8}\\]c?") {
            if let Ok(hosts) = unfold(&text, 1000) {
                prop_assert!((1..=1000).contains(&hosts.len()) && hosts.iter().all(|h| names::is_name(h)), "{text}");
                prop_assert_eq!(all(&fold(&hosts)), hosts);
            }
        }
    }

    #[test]
    fn lists_are_written_as_people_write_them() {
        let strings = |list: &[&str]| -> Vec<String> { list.iter().map(|s| s.to_string()).collect() };
        for (pattern, hosts) in [
            ("orsay-[1-3]", vec!["orsay-1", "orsay-2", "orsay-3"]),
            ("n[1-3,7]", vec!["n1", "n2", "n3", "n7"]),
            ("node[008-010]", vec!["node008", "node009", "node010"]),
            ("n[9-10].site3", vec!["n9.site3", "n10.site3"]),
            ("a[1-2,1-2]", vec!["a1", "a2", "a1", "a2"]),
            ("a[3,2,1]", vec!["a3", "a2", "a1"]),
            ("c2-[0-1]", vec!["c2-0", "c2-1"]),
            ("n[98-99,0100]", vec!["n98", "n99", "n0100"]),
        ] {
            assert_eq!(fold(&strings(&hosts)), [pattern]);
            assert_eq!(unfold(pattern, MOST_HOSTS).unwrap(), hosts);
        }
        assert_eq!(fold(&strings(&["vm", "vm", "a1", "b2"])), ["vm", "vm", "a1", "b2"]);
    }

    #[test]
    fn bad_patterns_say_what_is_wrong_and_large_ones_take_no_memory() {
        for (pattern, words) in [
            ("a[1-2", "wants a ']'"),
            ("a[1]b[2]", "one pair"),
            ("a[]", "numbers and ranges"),
            ("a[1,]", "numbers and ranges"),
            ("a[x]", "numbers and ranges"),
            ("a[1-2-3]", "numbers and ranges"),
            ("a[2-1]", "ends where it begins or later"),
            ("a[01-100]", "as many digits"),
            ("a[1-002]", "as many digits"),
            ("-a[1-2]", "is no name"),
            ("a]", "is no name"),
            ("", "is no name"),
            ("a[1-1048577]", "at most 1048576"),
            ("a[0-999999999999999999]", "at most 1048576"),
            ("a[1-1000000,1-1000000]", "at most 1048576"),
            ("a[0-9999999999999999999]", "numbers and ranges"),
        ] {
            let said = unfold(pattern, MOST_HOSTS).unwrap_err();
            assert!(said.contains(words), "{pattern}: {said}");
        }
        assert!(unfold("a", 0).unwrap_err().contains("too many"));
    }
}
