//! Text tables.

use comfy_table::{CellAlignment, Table, presets};

/// So many groups fit a screen, with what was decided over all of them.
pub const GROUPS_ON_A_SCREEN: usize = 20;

/// A plain table; all columns but the first `left` are aligned to the right.
pub fn table(header: &[&str], left: usize, rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    for (k, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        column.set_cell_alignment(if k < left { CellAlignment::Left } else { CellAlignment::Right });
    }
    table.lines().map(|l| l.trim_end().to_string() + "\n").collect()
}

/// A share as percent; a dash for one that is not known.
pub fn percent_or_dash(share: Option<f64>) -> String {
    share.filter(|s| (s * 100.0).is_finite()).map_or("-".into(), percent)
}

/// A share as percent.
pub fn percent(share: f64) -> String {
    // no "-0.0 %"
    let share = if share.abs() < 0.0005 { 0.0 } else { share };
    if share.abs() < 0.0995 { format!("{:.1} %", share * 100.0) } else { format!("{:.0} %", share * 100.0) }
}
