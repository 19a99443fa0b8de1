//! The page: everything in one file, styles, data and script inside.

use super::tables::visible;
use super::{Block, Chooser, Figure, Report, View};
use crate::error::{Error, Result};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, context, escape_formatter};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;

/// Templates: how figures are written is the same in all.
const PAGE: &str = concat!(include_str!("figures.html"), include_str!("page.html"));
const VIEWS: &str = concat!(include_str!("figures.html"), include_str!("views.html"));

/// Views of one collective and one root as the page has them, together: what is drawn for one size is much like what is drawn for the next.
#[derive(Serialize)]
struct Seen {
    collective: usize,
    root: Option<usize>,
    sizes: Vec<usize>,
    /// True of the one that is seen at first, which is alone.
    at_first: bool,
    /// Their text; packed, if they are not seen at first.
    html: String,
}

/// What one of them is made of.
#[derive(Serialize)]
struct Pieces<'a> {
    words: &'a str,
    size: Option<usize>,
    figures: &'a [Figure],
}

impl Report {
    /// The page. What comes from files is text in it, whatever it says. Where it would be too long, pictures give way.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the page cannot be filled in, which a report always can.
    pub fn html(&self) -> Result<String> {
        let mut page = self.filled_in()?;
        if page.len() > self.most_bytes {
            let mut shorter = self.clone();
            while page.len() > self.most_bytes && shorter.give_way(page.len() - self.most_bytes) {
                page = shorter.filled_in()?;
            }
        }
        Ok(page)
    }

    fn filled_in(&self) -> Result<String> {
        let failed = |e: minijinja::Error| Error::invalid(format!("fill in the page of the report: {e:#}"));
        let mut page = Environment::new();
        page.set_auto_escape_callback(|_| AutoEscape::Html);
        page.set_formatter(|out, state, value| match value.as_str().filter(|_| !value.is_safe()) {
            Some(text) => escape_formatter(out, state, &visible(text).into()),
            None => escape_formatter(out, state, value),
        });
        page.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(failed)?);
        page.add_template("page", PAGE).and_then(|()| page.add_template("views", VIEWS)).map_err(failed)?;
        let (style, script) = (include_str!("page.css"), include_str!("page.js"));
        let views: BTreeMap<&str, Vec<Seen>> = self
            .choosers()
            .map(|chooser| Ok((chooser.id, seen(chooser, &page)?)))
            .collect::<std::result::Result<_, _>>()
            .map_err(failed)?;
        let context = context! { report => Serde(self), views => Serde(views), style, script };
        page.get_template("page").and_then(|t| t.render(context)).map_err(failed)
    }

    fn choosers(&self) -> impl Iterator<Item = &Chooser> {
        let blocks = self.sections.iter().flat_map(|s| &s.blocks);
        blocks.filter_map(|block| if let Block::Chooser(chooser) = block { Some(chooser) } else { None })
    }
}

/// The views of a chooser: most of a page, those of each collective and root written by themselves.
fn seen(chooser: &Chooser, page: &Environment) -> std::result::Result<Vec<Seen>, minijinja::Error> {
    let template = page.get_template("views")?;
    let mut alike: BTreeMap<(usize, Option<usize>, bool), Vec<&View>> = BTreeMap::new();
    for view in &chooser.views {
        alike.entry((view.collective, view.root, !view.is_seen_at_first(chooser.start))).or_default().push(view);
    }
    let written = alike.into_par_iter().map(|((collective, root, later), views)| {
        // all trees, then all charts: within what packing looks back are those of the size before
        let most = views.iter().map(|view| view.figures.len()).max().unwrap_or(0);
        let pieces: Vec<Pieces> = views.iter().map(|v| Pieces { words: &v.words, size: v.size, figures: &v.figures }).collect();
        let html = template.render(context! { views => Serde(pieces), most })?;
        let sizes = views.iter().filter_map(|view| view.size).collect();
        Ok(Seen { collective, root, sizes, at_first: !later, html: if later { packed(html) } else { html } })
    });
    // the first one's error, whoever comes to one first
    written.collect::<Vec<_>>().into_iter().collect()
}

/// What is not seen at first, as the page's script unpacks it when it is asked for: one of a hundred schedules takes a tenth of a megabyte else.
pub(super) fn packed(html: String) -> String {
    const LEVEL: u8 = 6;
    BASE64_STANDARD.encode(miniz_oxide::deflate::compress_to_vec(html.as_bytes(), LEVEL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_there_again() {
        let html = "<p>64KiB &lt;ü&gt;</p>".repeat(500);
        let text = packed(html.clone());
        assert!(text.len() < html.len() / 10);
        assert_eq!(miniz_oxide::inflate::decompress_to_vec(&BASE64_STANDARD.decode(text).unwrap()).unwrap(), html.as_bytes());
    }
}
