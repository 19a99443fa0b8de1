//! What gives way where a page would be too long to send: pictures of schedules from other roots than the first, of how models fit, those of the best first,
//! then all of schedules, what was traced last.

use super::page::packed;
use super::{Block, Chooser, Report, View};

/// A page of more ranks than these is larger, and less is decided anew for its maps, where each decision takes longer.
pub(super) const FEW: usize = 100;

/// A page of so many ranks has this many bytes at most.
pub(super) fn most_bytes(ranks: usize) -> usize {
    const OF_FEW: usize = 2_000_000;
    const OF_EACH_MORE: usize = 5_000;
    const OF_MANY: usize = 8_000_000;
    (OF_FEW + ranks.saturating_sub(FEW) * OF_EACH_MORE).min(OF_MANY)
}

impl Report {
    /// Leaves out pictures of about so many bytes, and says so where they were; false if there is none left.
    pub(super) fn give_way(&mut self, mut bytes: usize) -> bool {
        let before = bytes;
        self.without_schedules(&mut bytes, |view| view.root.is_some_and(|root| root > 0) && !is_traced(view));
        for section in &mut self.sections {
            if section.id == "models" {
                without_fits(&mut section.blocks, &mut bytes);
            }
        }
        self.without_schedules(&mut bytes, |view| !is_traced(view));
        self.without_schedules(&mut bytes, |_| true);
        bytes < before
    }

    fn without_schedules(&mut self, bytes: &mut usize, of: impl Fn(&View) -> bool) {
        for block in self.sections.iter_mut().flat_map(|s| &mut s.blocks) {
            if let Block::Chooser(chooser) = block {
                without_schedules(chooser, bytes, &of);
            }
        }
    }
}

fn is_traced(view: &View) -> bool {
    view.figures.iter().any(|f| f.id.starts_with("traced-"))
}

/// Without pictures of models, the last first: those of links come after those of groups.
fn without_fits(blocks: &mut Vec<Block>, bytes: &mut usize) {
    const SAID: &str =
        "Other groups and links have no picture here, so that the page stays small: --svg FOLDER writes them; the table below has all.";
    let mut last = None;
    while *bytes > 0
        && let Some(at) = blocks.iter().rposition(|b| matches!(b, Block::Figure(_)))
        && let Block::Figure(figure) = blocks.remove(at)
    {
        *bytes = bytes.saturating_sub(figure.svg.len());
        last = Some(at);
    }
    if let Some(at) = last {
        blocks.retain(|b| !matches!(b, Block::Missing(said) if said == SAID));
        blocks.insert(at.min(blocks.len()), Block::Missing(SAID.into()));
    }
}

/// Without those of some schedules that have the largest pictures, but for what is seen at first.
fn without_schedules(chooser: &mut Chooser, bytes: &mut usize, of: impl Fn(&View) -> bool) {
    if *bytes == 0 {
        return;
    }
    let start = chooser.start;
    // together with others of its root each takes about three fifths of what it does alone
    let size = |view: &View| view.figures.iter().map(|f| packed(f.svg.clone()).len() * 3 / 5).sum::<usize>();
    let mut views: Vec<(usize, &mut View)> = chooser
        .views
        .iter_mut()
        .filter(|view| !view.figures.is_empty() && !view.is_seen_at_first(start) && of(view))
        .map(|view| (size(view), view))
        .collect();
    views.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    for (size, view) in views {
        if *bytes == 0 {
            break;
        }
        *bytes = bytes.saturating_sub(size);
        view.figures.clear();
        view.words += " Its pictures are left out here, so that the page stays small: --svg FOLDER writes them.";
    }
}
