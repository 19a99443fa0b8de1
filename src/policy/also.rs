//! Hosts that are like a group's, as whoever tunes names them.

use super::Policy;
use super::hosts::{MOST_HOSTS, unfold};
use crate::error::{Error, Result};
use crate::names::of_host;
use std::collections::BTreeSet;

/// Hosts that may stand in for those of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Also {
    /// The group; the only one there is if none is named.
    group: Option<String>,
    hosts: Vec<String>,
}

impl Also {
    /// Parses `GROUP=HOSTS`, or `HOSTS`: names and patterns with commas between, as Slurm prints them.
    ///
    /// # Errors
    /// What is wrong with a pattern.
    pub fn parse(text: &str) -> std::result::Result<Also, String> {
        let (group, list) = text.split_once('=').map_or((None, text), |(group, list)| (Some(group.to_string()), list));
        let mut hosts = Vec::new();
        for pattern in patterns(list) {
            hosts.extend(unfold(pattern, MOST_HOSTS - hosts.len())?);
        }
        Ok(Also { group, hosts })
    }
}

/// The parts between commas that are in no brackets.
fn patterns(list: &str) -> Vec<&str> {
    let mut inside = false;
    let between = |c: char| {
        inside = (inside || c == '[') && c != ']';
        c == ',' && !inside
    };
    list.split(between).collect()
}

impl Policy {
    /// Adds hosts to those that may stand in for a group's, but for those that the policy lists, which are themselves.
    ///
    /// # Errors
    /// [`Error::Invalid`]: a group that there is not, or several where none is named; hosts that are like another group's, or too many. Nothing is added
    /// then.
    pub fn add_also(&mut self, also: &Also) -> Result<()> {
        let names = || self.groups.iter().map(|g| g.name.as_str()).collect::<Vec<_>>().join(", ");
        let place = match &also.group {
            Some(name) => self.groups.iter().position(|g| g.name == *name),
            None => (self.groups.len() == 1).then_some(0),
        };
        let wrong = |why: String| Error::invalid(format!("have other hosts stand in: {why}"));
        let place = place.ok_or_else(|| wrong(format!("name one of the groups, which are {}: GROUP=HOSTS", names())))?;
        let known = self.groups.iter().flat_map(|g| &g.hosts).chain(&self.groups[place].also);
        // by their short names too, which is how schedulers write them
        let listed: BTreeSet<&str> = known.flat_map(|host| of_host(host)).collect();
        let added: Vec<String> = also.hosts.iter().filter(|host| !listed.contains(host.as_str())).cloned().collect();
        let of_others: BTreeSet<&String> = self.groups.iter().enumerate().filter(|(n, _)| *n != place).flat_map(|(_, g)| &g.also).collect();
        if let Some(host) = added.iter().find(|host| of_others.contains(host)) {
            return Err(wrong(format!("host \"{host}\" cannot be like those of two groups")));
        }
        let all: usize = self.groups.iter().map(|g| g.hosts.len() + g.also.len()).sum();
        if all + added.len() > MOST_HOSTS {
            return Err(wrong(format!("a policy has at most {MOST_HOSTS} hosts")));
        }
        self.groups[place].also.extend(added);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn hosts_are_added_but_for_those_that_the_policy_lists() {
        let mut policy = Policy::read(Path::new("policies/ccgrid2007.toml")).unwrap();
        let mut add = |text: &str| Also::parse(text).map_err(Error::Invalid).and_then(|also| policy.add_also(&also));
        add("orsay=orsay-[1-22,30],spare,grenoble-a-3").unwrap();
        add("sophia=x[1-2]").unwrap();
        for (wrong, words) in [
            ("x", "name one of the groups, which are orsay, "),
            ("nice=x", "orsay"),
            ("orsay=x2", "\"x2\" cannot be like"),
            ("orsay=x[2-1]", "ends where"),
            ("orsay=a,,b", "name"),
        ] {
            let said = add(wrong).unwrap_err().to_string();
            assert!(said.contains(words), "{wrong}: {said}");
        }
        let also = |name: &str| policy.groups.iter().find(|g| g.name == name).unwrap().also.clone();
        assert_eq!(also("orsay"), ["orsay-21", "orsay-22", "orsay-30", "spare"]);
        assert_eq!(also("sophia"), ["x1", "x2"]);
        policy.groups.truncate(1);
        policy.add_also(&Also::parse("y").unwrap()).unwrap();
        assert_eq!(policy.groups[0].also.last().unwrap(), "y");
    }
}
