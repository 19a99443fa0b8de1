//! The page: everything in one file, styles, data and script inside.

use super::Report;
use super::tables::visible;
use crate::error::{Error, Result};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, context, escape_formatter};

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
        page.add_filter("packed", packed);
        page.set_formatter(|out, state, value| match value.as_str().filter(|_| !value.is_safe()) {
            Some(text) => escape_formatter(out, state, &visible(text).into()),
            None => escape_formatter(out, state, value),
        });
        page.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(failed)?);
        page.add_template("page", include_str!("page.html")).map_err(failed)?;
        let (style, script) = (include_str!("page.css"), include_str!("page.js"));
        page.get_template("page").and_then(|t| t.render(context! { report => Serde(self), style, script })).map_err(failed)
    }
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
