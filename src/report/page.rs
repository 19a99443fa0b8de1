//! The page: everything in one file, styles, data and script inside.

use super::Report;
use crate::error::{Error, Result};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, context};

impl Report {
    /// The page. What comes from files is text in it, whatever it says.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the page cannot be filled in, which a report always can.
    pub fn html(&self) -> Result<String> {
        let failed = |e: minijinja::Error| Error::invalid(format!("fill in the page of the report: {e:#}"));
        let mut page = Environment::new();
        page.set_auto_escape_callback(|_| AutoEscape::Html);
        page.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(failed)?);
        page.add_template("page", include_str!("page.html")).map_err(failed)?;
        let (style, script) = (include_str!("page.css"), include_str!("page.js"));
        page.get_template("page").and_then(|t| t.render(context! { report => Serde(self), style, script })).map_err(failed)
    }
}
