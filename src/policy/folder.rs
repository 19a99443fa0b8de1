//! Folders of policies: a site has one for each of its partitions, and a job uses that of its hosts.

use super::{GroupPolicy, Policy};
use crate::error::{Error, Result};
use crate::names;
use std::path::{Path, PathBuf};

impl Policy {
    /// The policies of a folder, by name: its files `*.toml`.
    ///
    /// # Errors
    /// The folder cannot be read, or has none.
    pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
        let failed = |e: std::io::Error| Error::Io { action: "read", path: folder.into(), reason: e };
        let entries = std::fs::read_dir(folder).map_err(failed)?.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
        let mut files: Vec<PathBuf> =
            entries.into_iter().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
        files.sort();
        if files.is_empty() {
            return Err(Error::invalid(format!("find a policy in {}: it has no *.toml", folder.display())));
        }
        Ok(files)
    }

    /// The policy of a folder for a host: the first one, by name, that lists it in `hosts`, or else the first one that has it in `also`.
    ///
    /// # Errors
    /// None has it, or one that comes before the one that lists it cannot be read.
    pub fn of_host(folder: &Path, host: &str) -> Result<Policy> {
        let files = Policy::files(folder)?;
        let mut may_stand_in = None;
        for file in &files {
            let policy = Policy::read(file)?;
            let has = |list: fn(&GroupPolicy) -> &Vec<String>| {
                let mut hosts = policy.groups.iter().flat_map(list);
                hosts.any(|known| names::of_host(host).contains(&known.as_str()))
            };
            if has(|group| &group.hosts) {
                return Ok(policy);
            }
            if may_stand_in.is_none() && has(|group| &group.also) {
                may_stand_in = Some(policy);
            }
        }
        may_stand_in.ok_or_else(|| {
            Error::invalid(format!("find a policy for host \"{host}\" in {}: none of its {} has it", folder.display(), files.len()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_policy_by_name_that_has_a_host_is_its_policy() {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
        assert!(Policy::files(&shipped).unwrap().len() > 1);
        let policy = Policy::of_host(&shipped, "orsay-7").unwrap();
        assert_eq!(policy.provenance.platform, "ccgrid2007");
        let none = Policy::of_host(&shipped, "nowhere").unwrap_err().to_string();
        assert!(none.contains("nowhere") && none.contains("policies"), "{none}");
        assert!(Policy::of_host(&shipped.join("none"), "orsay-7").is_err());
    }
}
