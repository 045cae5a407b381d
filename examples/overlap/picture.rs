//! Draws timelines: a panel per stream, a lane per stage, on one scale.

use super::common::pictures::{Picture, colour};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use tilework::program::Clock;
use tilework::stream::{Stage, Timeline};

/// A stream.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) timeline: Timeline,
}

/// Streams below one another.
pub(crate) struct TimelinePicture {
    pub(crate) title: String,
    pub(crate) panels: Vec<Panel>,
}

/// Lanes from the top, and the stages drawn in each.
const LANES: [(&str, &[Stage]); 4] = [
    ("fill", &[Stage::Fill]),
    ("submit", &[Stage::Submit]),
    ("device", &[Stage::Upload, Stage::Kernels, Stage::Download]),
    ("drain", &[Stage::Drain]),
];
/// Stages of the legend, in the order of their colours.
const LEGEND: [(Stage, &str); 7] = [
    (Stage::Fill, "fill (host)"),
    (Stage::Upload, "upload (device)"),
    (Stage::Kernels, "kernels (device)"),
    (Stage::Download, "download (device)"),
    (Stage::Drain, "drain (host)"),
    (Stage::Device, "on the device"),
    (Stage::Submit, "submit (host)"),
];
const WIDTH: i32 = 1200;
const LEFT: i32 = 70;
const RIGHT: i32 = 30;
const HEAD: i32 = 84;
const LANE: i32 = 30;
/// Height of title, lanes, axis and gap.
const PANEL: i32 = 28 + 4 * LANE + 50;
const FOOT: i32 = 70;

/// Rounds up to 1, 2 or 5 times a power of ten.
fn rounded(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|r| *r >= x * 0.999).unwrap_or(x)
}

fn paint(stage: Stage) -> RGBColor {
    colour(LEGEND.iter().position(|(s, _)| *s == stage).unwrap_or(0))
}

impl Picture for TimelinePicture {
    fn size(&self) -> (u32, u32) {
        (WIDTH as u32, (HEAD + self.panels.len() as i32 * PANEL + FOOT) as u32)
    }

    fn draw<D: DrawingBackend>(&self, area: &DrawingArea<D, Shift>) -> Result<(), String> {
        let said = |e: &dyn std::fmt::Display| e.to_string();
        let sized = |size: i32| ("sans-serif", size).into_text_style(area);
        area.draw_text(&self.title, &sized(22), (16, 12)).map_err(|e| said(&e))?;
        let known = |stage| self.panels.iter().any(|p| p.timeline.events.iter().any(|e| e.stage == stage));
        let stamped = known(Stage::Kernels);
        let mut x = LEFT;
        for (stage, text) in LEGEND {
            // Without timestamps the device's stages are drawn as one.
            if !known(stage) || stage == Stage::Device && stamped {
                continue;
            }
            let mark = Rectangle::new([(x, 48), (x + 14, 62)], paint(stage).filled());
            area.draw(&mark).map_err(|e| said(&e))?;
            area.draw_text(text, &sized(14), (x + 20, 47)).map_err(|e| said(&e))?;
            x += 38 + 8 * text.len() as i32;
        }
        let longest = self.panels.iter().map(|p| p.timeline.seconds).fold(0.0, f64::max);
        for (i, panel) in self.panels.iter().enumerate() {
            self.draw_panel(area, panel, HEAD + i as i32 * PANEL, longest)?;
        }
        let foot = HEAD + self.panels.len() as i32 * PANEL;
        let unsure = self.panels.iter().map(|p| p.timeline.uncertainty).fold(0.0, f64::max);
        let clock = if self.panels.iter().any(|p| p.timeline.clock == Clock::Device) {
            format!(
                "Device stages are its own timestamps, aligned with the host's clock within {:.2} ms.",
                unsure * 1e3
            )
        } else {
            "Without device timestamps, a chunk counts as on the device from its submission or its predecessor's end."
                .into()
        };
        let prevented = "wgpu has one queue, and its barriers are stage-wide: an upload waits for the kernels before \
                         it, so device stages never overlap each other.";
        for (line, text) in [prevented, &clock].into_iter().enumerate() {
            let at = (LEFT, foot + 8 + 22 * line as i32);
            area.draw_text(text, &sized(15), at).map_err(|e| said(&e))?;
        }
        Ok(())
    }
}

impl TimelinePicture {
    fn draw_panel<D: DrawingBackend>(
        &self, area: &DrawingArea<D, Shift>, panel: &Panel, top: i32, longest: f64,
    ) -> Result<(), String> {
        let said = |e: &dyn std::fmt::Display| e.to_string();
        let sized = |size: i32| ("sans-serif", size).into_text_style(area);
        let scale = f64::from(WIDTH - LEFT - RIGHT) / longest.max(1e-9);
        let at = |seconds: f64| LEFT + (seconds * scale).round() as i32;
        let t = &panel.timeline;
        let chunks = if t.chunks == 1 { "chunk" } else { "chunks" };
        let title = format!("{}: {:.2} ms for {} {chunks}", panel.title, t.seconds * 1e3, t.chunks);
        area.draw_text(&title, &sized(16), (LEFT, top)).map_err(|e| said(&e))?;
        let lanes = top + 26;
        let bottom = lanes + 4 * LANE;
        let step = rounded(longest / 10.0);
        for tick in 0..=(longest / step) as usize {
            let x = at(tick as f64 * step);
            let line = PathElement::new([(x, lanes), (x, bottom)], BLACK.mix(0.12));
            area.draw(&line).map_err(|e| said(&e))?;
            let text = sized(13).pos(Pos::new(HPos::Center, VPos::Top));
            // As many digits as the step needs.
            let digits = (-(step * 1e3).log10().floor()).max(0.0) as usize;
            let label = format!("{:.digits$} ms", tick as f64 * step * 1e3);
            area.draw_text(&label, &text, (x, bottom + 4)).map_err(|e| said(&e))?;
        }
        let stamped = t.events.iter().any(|e| e.stage == Stage::Kernels);
        for (i, (name, stages)) in LANES.into_iter().enumerate() {
            let y = lanes + i as i32 * LANE;
            let text = sized(14).pos(Pos::new(HPos::Right, VPos::Center));
            area.draw_text(name, &text, (LEFT - 8, y + LANE / 2)).map_err(|e| said(&e))?;
            let stages = if name == "device" && !stamped { &[Stage::Device][..] } else { stages };
            for event in t.events.iter().filter(|e| stages.contains(&e.stage)) {
                let (from, to) = (at(event.begin), at(event.end).max(at(event.begin) + 1));
                let bar = [(from, y + 3), (to, y + LANE - 3)];
                area.draw(&Rectangle::new(bar, paint(event.stage).filled())).map_err(|e| said(&e))?;
                if to - from > 3 {
                    area.draw(&Rectangle::new(bar, WHITE)).map_err(|e| said(&e))?;
                }
                let number = event.chunk.to_string();
                if to - from > 10 * number.len() as i32 + 4 {
                    let text = sized(13).color(&WHITE).pos(Pos::new(HPos::Center, VPos::Center));
                    area.draw_text(&number, &text, ((from + to) / 2, y + LANE / 2)).map_err(|e| said(&e))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn steps_are_round() {
        for (x, step) in [(0.0011, 0.002), (0.002, 0.002), (3.0, 5.0), (70.0, 100.0)] {
            assert!((rounded(x) / step - 1.0).abs() < 1e-9, "{x}: {}", rounded(x));
        }
    }
}
