//! A drawing of one run: a lane for every host and server, who ran the command when, and what was broken meanwhile.
//!
//! Never: a script or a font that a viewer must fetch.

use std::fmt::Write as _;
use std::time::Duration;

use super::checker::Findings;
use super::ensemble::Mode;
use super::host::Life;
use super::nemesis::Strike;
use super::world::{SERVERS, View};

/// Everything that is drawn.
pub struct Timeline<'a> {
    pub title: String,
    pub began: Duration,
    pub ended: Duration,
    pub hosts: Vec<String>,
    pub lives: &'a [Life],
    pub views: &'a [View],
    pub strikes: &'a [Strike],
    pub findings: &'a Findings,
}

/// One row shows so much.
const ROW: Duration = Duration::from_secs(60);
const PER_SECOND: f64 = 24.0;
const LEFT: f64 = 46.0;
const LANE: f64 = 13.0;
const LABELS: f64 = 74.0;
const HEAD: f64 = 62.0;
const RIGHT: f64 = LEFT + 60.0 * PER_SECOND;
/// How wide a letter is, about.
const LETTER: f64 = 4.9;
const LEGEND: [(&str, &str, f64); 8] = [
    ("<rect y=\"1\" width=\"22\" height=\"9\" fill=\"#2a78b5\"/>", "the command runs (a colour for each host)", 262.0),
    ("<rect y=\"5\" width=\"22\" height=\"1.5\" fill=\"#aaa\"/>", "supervisor up", 112.0),
    ("<rect y=\"1\" width=\"22\" height=\"9\" fill=\"#e0503c\" opacity=\".3\"/>", "broken here", 104.0),
    ("<rect y=\"1\" width=\"22\" height=\"9\" fill=\"#c00\"/>", "two at once", 102.0),
    (
        "<rect x=\"9\" y=\"1\" width=\"4\" height=\"9\" fill=\"#000\"/>",
        "a suspended one not yet dead (stated limit)",
        262.0,
    ),
    ("<rect y=\"4\" width=\"22\" height=\"4\" fill=\"#444\"/>", "ZooKeeper's leader", 138.0),
    ("<rect y=\"4\" width=\"22\" height=\"4\" fill=\"#bbb\"/>", "its follower", 102.0),
    (
        "<rect y=\"1\" width=\"22\" height=\"9\" fill=\"#f3ecd8\"/>",
        "no command possible: no quorum, or no whole host",
        290.0,
    ),
];
/// For a dark page: the colours that would not be seen on it.
const STYLE: &str = "<style>@media(prefers-color-scheme:dark){svg{fill:#e6edf3}[fill=\"#fff\"]{fill:#0d1117}\
[fill=\"#000\"]{fill:#fff}[fill=\"#777\"]{fill:#9da7b3}[fill=\"#444\"]{fill:#c9d1d9}[fill=\"#bbb\"]{fill:#6e7681}\
[fill=\"#f3ecd8\"]{fill:#3a3423}[fill=\"#a02a18\"]{fill:#ff8f7a}[stroke=\"#ddd\"]{stroke:#30363d}}</style>";
const COLOURS: [&str; 6] = ["#2a78b5", "#d9822b", "#3a9a5b", "#8a5fb0", "#1f9d9d", "#a0722a"];

impl Timeline<'_> {
    pub fn svg(&self) -> String {
        let rows = self.rows();
        let width = LEFT + ROW.as_secs_f64() * PER_SECOND + 12.0;
        let height = HEAD + f64::from(u32::try_from(rows).unwrap()) * self.row_height() + 6.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"9\" role=\"img\">\n\
             <title>{}</title>\n{STYLE}\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
            self.title
        );
        self.draw_head(&mut svg);
        for row in 0..rows {
            self.draw_row(&mut svg, row);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn rows(&self) -> usize {
        usize::try_from(self.ended.saturating_sub(self.began).as_secs().div_ceil(ROW.as_secs()).max(1)).unwrap()
    }

    fn lanes(&self) -> usize {
        self.hosts.len() + SERVERS
    }

    fn row_height(&self) -> f64 {
        LABELS + lane(self.lanes()) + 26.0
    }

    fn draw_head(&self, svg: &mut String) {
        text(svg, 8.0, 18.0, "font-size=\"14\" font-weight=\"bold\"", &self.title);
        let mut x = 8.0;
        let mut entry = |swatch: &str, words: &str, width: f64| {
            writeln!(svg, "<g transform=\"translate({x:.0} 30)\">{swatch}</g>").unwrap();
            text(svg, x + 28.0, 39.0, "font-size=\"10\"", words);
            x += width;
        };
        for (swatch, words, width) in LEGEND {
            entry(swatch, words, width);
        }
    }

    fn draw_row(&self, svg: &mut String, row: usize) {
        let from = self.began + ROW * u32::try_from(row).unwrap();
        let window = Window { from, to: (from + ROW).min(self.ended) };
        let top = HEAD + f64::from(u32::try_from(row).unwrap()) * self.row_height();
        writeln!(svg, "<g transform=\"translate(0 {top:.0})\">").unwrap();
        self.draw_impossible(svg, window);
        self.draw_grid(svg, window);
        self.draw_servers(svg, window);
        self.draw_hosts(svg, window);
        self.draw_strikes(svg, window);
        self.draw_overlaps(svg, window);
        svg.push_str("</g>\n");
    }

    fn draw_impossible(&self, svg: &mut String, window: Window) {
        for (view, end) in self.views.iter().zip(self.ends_of_views()) {
            if let Some((x, width)) = window.clip(view.at, end).filter(|_| !view.possible) {
                rect(svg, x, LABELS, width, lane(self.lanes()), "fill=\"#f3ecd8\"");
            }
        }
    }

    fn draw_grid(&self, svg: &mut String, window: Window) {
        let bottom = LABELS + lane(self.lanes());
        for index in 0..self.lanes() {
            let y = LABELS + lane(index);
            let name = self.hosts.get(index).cloned().unwrap_or_else(|| format!("z{}", index - self.hosts.len()));
            text(svg, 30.0, y + 10.0, "text-anchor=\"end\" font-size=\"10\"", &name);
        }
        let mut at = window.from;
        while at <= window.to {
            let x = window.x(at);
            writeln!(svg, "<path d=\"M{x:.1} {LABELS}V{bottom:.1}\" stroke=\"#ddd\" stroke-width=\".6\"/>").unwrap();
            let second = at.saturating_sub(self.began).as_secs();
            text(svg, x, bottom + 10.0, "text-anchor=\"middle\" fill=\"#777\"", &format!("{second} s"));
            at += Duration::from_secs(5);
        }
    }

    fn draw_servers(&self, svg: &mut String, window: Window) {
        for (view, end) in self.views.iter().zip(self.ends_of_views()) {
            let Some((x, width)) = window.clip(view.at, end) else { continue };
            for (server, mode) in view.modes.iter().enumerate() {
                let colour = match mode {
                    Mode::Leader => "#444",
                    Mode::Follower => "#bbb",
                    Mode::Away => continue,
                };
                let y = LABELS + lane(self.hosts.len() + server) + 4.5;
                rect(svg, x, y, width, 4.0, &format!("fill=\"{colour}\""));
            }
        }
    }

    fn draw_hosts(&self, svg: &mut String, window: Window) {
        for life in self.lives {
            let Some(index) = self.lane_of(&life.host) else { continue };
            if let Some((x, width)) = window.clip(life.began, life.ended.unwrap_or(self.ended)) {
                rect(svg, x, LABELS + lane(index) + 6.0, width, 1.5, "fill=\"#aaa\"");
            }
        }
        for run in &self.findings.runs {
            let Some(index) = self.lane_of(&run.host) else { continue };
            let colour = COLOURS[index % COLOURS.len()];
            if let Some((x, width)) = window.clip(run.began, run.ended) {
                let tip = format!("token {}", run.token);
                let y = LABELS + lane(index) + 2.0;
                writeln!(svg, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"9\" fill=\"{colour}\"><title>{tip}</title></rect>").unwrap();
            }
        }
    }

    fn draw_strikes(&self, svg: &mut String, window: Window) {
        let mut free = [LEFT; 7];
        for strike in self.strikes {
            let Some((x, width)) = window.clip(strike.began, strike.ended) else { continue };
            for index in strike.nodes.iter().filter_map(|node| self.lane_of(node)) {
                rect(svg, x, LABELS + lane(index), width.max(2.5), LANE, "fill=\"#e0503c\" opacity=\".3\"");
            }
            if strike.began < window.from {
                continue;
            }
            let also = strike.also.map(|also| format!(" + {}", also.name())).unwrap_or_default();
            let label = format!("{}{also}", strike.kind.name());
            let width = LETTER * f64::from(u32::try_from(label.len()).unwrap()) + 6.0;
            // To the right of its mark, or to the left where there is no room.
            let turned = x + width > RIGHT;
            let left = if turned { x - width } else { x };
            let line = line_for(&free, left);
            free[line] = left + width;
            let y = 9.0 + 10.0 * f64::from(u32::try_from(line).unwrap());
            writeln!(
                svg,
                "<path d=\"M{x:.1} {:.1}V{:.1}\" stroke=\"#e0503c\" stroke-width=\".7\"/>",
                y - 7.0,
                LABELS + lane(self.lanes())
            )
            .unwrap();
            let (shift, anchor) = if turned { (-2.0, "end") } else { (2.0, "start") };
            text(svg, x + shift, y, &format!("fill=\"#a02a18\" text-anchor=\"{anchor}\""), &label);
        }
    }

    fn draw_overlaps(&self, svg: &mut String, window: Window) {
        for overlap in &self.findings.overlaps {
            let from = overlap.later.began;
            let Some((x, width)) = window.clip(from, from + overlap.length.max(Duration::from_millis(80))) else {
                continue;
            };
            for index in [&overlap.earlier.host, &overlap.later.host].into_iter().filter_map(|host| self.lane_of(host))
            {
                let style = if overlap.apart.is_some() { "fill=\"#000\"" } else { "fill=\"#c00\"" };
                rect(svg, x, LABELS + lane(index), width, LANE, style);
            }
        }
    }

    fn ends_of_views(&self) -> impl Iterator<Item = Duration> {
        self.views.iter().skip(1).map(|view| view.at).chain([self.ended])
    }

    fn lane_of(&self, node: &str) -> Option<usize> {
        let server = || node.strip_prefix('z')?.parse::<usize>().ok().map(|server| self.hosts.len() + server);
        self.hosts.iter().position(|host| host == node).or_else(server)
    }
}

/// What one row shows.
#[derive(Clone, Copy)]
struct Window {
    from: Duration,
    to: Duration,
}

impl Window {
    fn x(self, at: Duration) -> f64 {
        LEFT + at.saturating_sub(self.from).as_secs_f64() * PER_SECOND
    }

    /// Where it begins, and how wide it is; `None` if nothing of it is in here.
    fn clip(self, begin: Duration, end: Duration) -> Option<(f64, f64)> {
        let (begin, end) = (begin.max(self.from), end.min(self.to));
        (begin < end).then(|| (self.x(begin), (self.x(end) - self.x(begin)).max(0.6)))
    }
}

/// The first line that is free from there on, else the one that will be free next.
fn line_for(free: &[f64], left: f64) -> usize {
    let first = free.iter().position(|&end| end <= left);
    first.or_else(|| (0..free.len()).min_by(|&one, &other| free[one].total_cmp(&free[other]))).unwrap_or(0)
}

fn lane(index: usize) -> f64 {
    LANE * f64::from(u32::try_from(index).unwrap())
}

fn rect(svg: &mut String, x: f64, y: f64, width: f64, height: f64, style: &str) {
    writeln!(svg, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {style}/>").unwrap();
}

fn text(svg: &mut String, x: f64, y: f64, style: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{words}</text>").unwrap();
}
