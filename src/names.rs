//! Names of hosts, groups and platforms. They become file names, words of commands, addresses of launchers and lines of files, so a name
//! holds only what means nothing in any of these. Everything that reads names reads them here.

use serde::{Deserialize, Deserializer, de::Error as _};
use std::path::Path;

/// A name becomes a file's or folder's, for which file systems leave so many bytes.
const MOST_BYTES: usize = 255;

const RULE: &str = "a name holds letters, digits, '-', '_' and '.', begins with a letter, a digit or '_', and is at most 255 bytes long";

/// True for a name: ASCII letters, digits, `-`, `_` and `.`, the first a letter, a digit or `_`, at most 255 bytes.
///
/// ```
/// use collwise::names::is_name;
/// assert!(is_name("node-17.cluster.example") && is_name("_x"));
/// assert!(!is_name("../evil") && !is_name("-o") && !is_name("a b") && !is_name("a\nb") && !is_name(""));
/// ```
pub fn is_name(text: &str) -> bool {
    let of_a_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=MOST_BYTES).contains(&text.len()) && of_a_word(text.as_bytes()[0]) && text.bytes().all(|b| of_a_word(b) || b == b'-' || b == b'.')
}

/// Checks a name.
///
/// # Errors
/// What is wrong, with the text escaped, so that it can be shown and logged.
pub fn check(text: &str) -> Result<(), String> {
    if is_name(text) { Ok(()) } else { Err(format!("{} is no name: {RULE}", shown(text))) }
}

/// Takes a name from the command line.
///
/// # Errors
/// As [`check`].
pub fn parse(text: &str) -> Result<String, String> {
    check(text).map(|()| text.into())
}

/// The names by which a host may be known, the first that is first: its own, and that without its domain.
///
/// ```
/// assert_eq!(collwise::names::of_host("node-7.site.example"), ["node-7.site.example", "node-7"]);
/// ```
pub fn of_host(host: &str) -> [&str; 2] {
    [host, host.split('.').next().unwrap_or(host)]
}

/// A text, escaped; the rest of a long one is left out.
pub fn shown(text: &str) -> String {
    const MOST_SHOWN: usize = 80;
    let start: String = text.chars().take(MOST_SHOWN).collect();
    if start.len() < text.len() { format!("{start:?}...") } else { format!("{text:?}") }
}

/// A name for what a file describes: the file's, without folder and ending, `_` for whatever no name may hold.
///
/// ```
/// use collwise::names::of_file;
/// assert_eq!(of_file("/data/my latencies.csv".as_ref()), "my_latencies");
/// assert_eq!(of_file("..".as_ref()), "unnamed");
/// ```
pub fn of_file(path: &Path) -> String {
    made(&path.file_stem().unwrap_or_default().to_string_lossy())
}

/// A name as like a text as may be: `_` for whatever no name may hold; `unnamed` for an empty text.
pub fn made(text: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = text.trim_start_matches(['-', '.']).chars().map(allowed).take(MOST_BYTES).collect();
    if name.is_empty() { "unnamed".into() } else { name }
}

/// A name in a file; a wrong one is reported with its line.
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Name, D::Error> {
        let text = String::deserialize(d)?;
        check(&text).map_err(D::Error::custom)?;
        Ok(Name(text))
    }
}

/// For serde: a name.
pub fn de_name<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    Name::deserialize(d).map(|n| n.0)
}

/// For serde: an optional name.
pub fn de_name_option<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    de_name(d).map(Some)
}

/// For serde: names.
pub fn de_names<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<Name>::deserialize(d)?.into_iter().map(|n| n.0).collect())
}

/// For serde: two names.
pub fn de_two_names<'de, D: Deserializer<'de>>(d: D) -> Result<[String; 2], D::Error> {
    <[Name; 2]>::deserialize(d).map(|two| two.map(|n| n.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_is_made_is_a_name(text in "\\PC{0,300}|[-./\n a]{0,5}") {
            prop_assert!(is_name(&made(&text)), "{text:?}");
            prop_assert!(!is_name(&text) || made(&text) == text);
        }

        #[test]
        fn a_name_means_nothing_to_shells_and_file_systems(text in "[ -~\n\t]{0,4}") {
            if is_name(&text) {
                prop_assert!(!text.starts_with(['-', '.']) && !text.contains(['/', '\\', '\n', ' ', '$', '`', ';', '&', '<', '"', '\'', ':', '@', '%']));
            }
        }
    }

    #[test]
    fn wrong_names_are_shown_escaped_and_short() {
        let said = check("a\nnetns add evil").unwrap_err();
        assert!(said.contains(r#""a\nnetns add evil" is no name"#) && !said.contains('\n'), "{said}");
        assert!(check(&"x".repeat(256)).unwrap_err().len() < 300);
        assert!(check(&"x".repeat(255)).is_ok());
    }
}
