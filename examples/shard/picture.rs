//! Draws when each rank computed and when its elements were under way.

use super::common::pictures::{Picture, colour};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use tilework::shard::{Activity, RankSpan};

/// The spans of all ranks in one run.
pub(crate) struct RankTimelines {
    pub(crate) title: String,
    pub(crate) ranks: Vec<Vec<RankSpan>>,
}

const LANES: [(Activity, &str); 2] = [(Activity::Device, "device"), (Activity::Link, "link")];
const WIDTH: i32 = 1200;
const LEFT: i32 = 120;
const RIGHT: i32 = 30;
const HEAD: i32 = 84;
const LANE: i32 = 26;
/// Height of a rank's lanes and the gap below.
const PANEL: i32 = 2 * LANE + 14;
const FOOT: i32 = 70;

/// Rounds up to 1, 2 or 5 times a power of ten.
fn rounded(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|r| *r >= x * 0.999).unwrap_or(x)
}

impl Picture for RankTimelines {
    fn size(&self) -> (u32, u32) {
        (WIDTH as u32, (HEAD + self.ranks.len() as i32 * PANEL + FOOT) as u32)
    }

    fn draw<D: DrawingBackend>(&self, area: &DrawingArea<D, Shift>) -> Result<(), String> {
        let said = |e: &dyn std::fmt::Display| e.to_string();
        let sized = |size: i32| ("sans-serif", size).into_text_style(area);
        area.draw_text(&self.title, &sized(22), (16, 12)).map_err(|e| said(&e))?;
        for (i, (_, name)) in LANES.into_iter().enumerate() {
            let x = LEFT + 160 * i as i32;
            let mark = Rectangle::new([(x, 48), (x + 14, 62)], colour(i).filled());
            area.draw(&mark).map_err(|e| said(&e))?;
            area.draw_text(name, &sized(14), (x + 20, 47)).map_err(|e| said(&e))?;
        }
        let longest = self.ranks.iter().flatten().map(|span| span.end).fold(1e-6, f64::max);
        let scale = f64::from(WIDTH - LEFT - RIGHT) / longest;
        let at = |seconds: f64| LEFT + (seconds * scale).round() as i32;
        let bottom = HEAD + self.ranks.len() as i32 * PANEL;
        let step = rounded(longest / 10.0);
        for tick in 0..=(longest / step) as usize {
            let x = at(tick as f64 * step);
            let line = PathElement::new([(x, HEAD), (x, bottom)], BLACK.mix(0.12));
            area.draw(&line).map_err(|e| said(&e))?;
            let text = sized(13).pos(Pos::new(HPos::Center, VPos::Top));
            // As many digits as the step needs.
            let digits = (-(step * 1e3).log10().floor()).max(0.0) as usize;
            let label = format!("{:.digits$} ms", tick as f64 * step * 1e3);
            area.draw_text(&label, &text, (x, bottom + 4)).map_err(|e| said(&e))?;
        }
        for (rank, spans) in self.ranks.iter().enumerate() {
            for (lane, (activity, name)) in LANES.into_iter().enumerate() {
                let y = HEAD + rank as i32 * PANEL + lane as i32 * LANE;
                let text = sized(14).pos(Pos::new(HPos::Right, VPos::Center));
                let title = format!("rank {rank} {name}");
                area.draw_text(&title, &text, (LEFT - 8, y + LANE / 2)).map_err(|e| said(&e))?;
                for span in spans.iter().filter(|span| span.activity == activity) {
                    let (from, to) = (at(span.begin), at(span.end).max(at(span.begin) + 1));
                    let bar = [(from, y + 2), (to, y + LANE - 2)];
                    area.draw(&Rectangle::new(bar, colour(lane).mix(0.8).filled())).map_err(|e| said(&e))?;
                    if to - from > 3 {
                        area.draw(&Rectangle::new(bar, WHITE)).map_err(|e| said(&e))?;
                    }
                }
            }
        }
        let foot =
            "By the host's clock. A device counts as busy from a submission, or the end of the one before, to its end.";
        area.draw_text(foot, &sized(15), (LEFT, bottom + 32)).map_err(|e| said(&e))
    }
}
