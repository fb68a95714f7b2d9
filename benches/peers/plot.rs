//! Plots by hand, in SVG: bars with their quartiles, and lines over the number of contenders.

use std::fmt::{Display, Write as _};

use crate::contender::Kind;
use crate::crowd::Crowd;
use crate::figures::{Series, Spread};
use crate::latency::Latency;

const WIDTH: f64 = 760.0;
/// Of the names at the left.
const NAMES: f64 = 160.0;
/// Of the figures at the right.
const FIGURES: f64 = 70.0;
const ROW: f64 = 22.0;
const HEAD: f64 = 34.0;
const GREY: &str = "#666";
/// For a dark page: the colours above and below that would not be seen on it.
const STYLE: &str = "<style>@media(prefers-color-scheme:dark){svg{fill:#e6edf3}[fill=\"#fff\"]{fill:#0d1117}\
[fill=\"#000\"]{fill:#e6edf3}[stroke=\"#000\"]{stroke:#e6edf3}[fill=\"#666\"]{fill:#9da7b3}[stroke=\"#ccc\"]{stroke:#444c56}}</style>";

fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::Floor => "#aaaaaa",
        Kind::Ours => "#2a78b5",
        Kind::Etcd => "#e0a03c",
        Kind::Kazoo => "#6aa84f",
        Kind::Curator => "#b05a9c",
    }
}

/// From `low` to `high`, powers of ten, over a span of that many pixels, logarithmically.
struct Scale {
    low: f64,
    high: f64,
    span: f64,
}

impl Scale {
    fn over(values: &[f64], span: f64) -> Self {
        let power = |value: f64| 10_f64.powf(value);
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        Self { low: power(low.log10().floor()), high: power(high.log10().ceil()), span }
    }

    fn at(&self, value: f64) -> f64 {
        self.span * (value / self.low).log10() / (self.high / self.low).log10()
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        let high = self.high;
        std::iter::successors(Some(self.low), |at| Some(at * 10.0)).take_while(move |at| *at <= high * 1.001)
    }
}

#[derive(Default)]
struct Canvas(String);

impl Canvas {
    fn add(&mut self, element: impl Display) {
        writeln!(self.0, "{element}").unwrap();
    }

    fn title(&mut self, x: f64, y: f64, text: &str) {
        self.add(format_args!(r#"<text x="{x:.0}" y="{y:.0}" font-size="13" font-weight="bold">{text}</text>"#));
    }

    /// `anchor` is `start`, `middle` or `end`.
    fn text(&mut self, x: f64, y: f64, anchor: &str, colour: &str, text: impl Display) {
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{:.1}" text-anchor="{anchor}" fill="{colour}">{text}</text>"#,
            y + 4.0
        ));
    }

    fn path(&mut self, path: impl Display, colour: &str, width: f64) {
        self.add(format_args!(r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>"#));
    }

    fn page(self, title: &str, width: f64, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"11\" role=\"img\">\n<title>{title}</title>\n{STYLE}\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
            self.0
        )
    }
}

/// One panel below the other.
pub fn bars(latencies: &[Latency]) -> String {
    let spreads = latencies.iter().flat_map(|latency| &latency.of).filter_map(|(_, series)| series.spread());
    let ends: Vec<_> = spreads.flat_map(|spread| [spread.low, spread.high]).collect();
    let scale = Scale::over(&ends, WIDTH - NAMES - FIGURES);
    let height = latencies.iter().map(|latency| HEAD + ROW * rows(latency) + 8.0).sum::<f64>();
    let mut canvas = Canvas::default();
    for decade in scale.decades() {
        let x = NAMES + scale.at(decade);
        canvas.path(format_args!("M{x:.1} {HEAD}V{height:.0}"), "#ccc", 1.0);
        canvas.text(x, height + 10.0, "middle", GREY, decade);
    }
    let mut top = 0.0;
    for latency in latencies {
        canvas.title(8.0, top + 20.0, &format!("{}, ms", latency.title));
        top += HEAD;
        for (kind, series) in &latency.of {
            bar(&mut canvas, &scale, top + ROW / 2.0, *kind, series);
            top += ROW;
        }
        top += 8.0;
    }
    canvas.page("Start and handover: zk-leader-run, its peers and the floor, in ms", WIDTH, height + 24.0)
}

fn rows(latency: &Latency) -> f64 {
    latency.of.iter().map(|_| 1.0).sum()
}

/// To the median, with a whisker between the quartiles.
fn bar(canvas: &mut Canvas, scale: &Scale, y: f64, kind: Kind, series: &Series) {
    let Some(Spread { low, median, high }) = series.spread() else { return };
    let (width, low, high) = (scale.at(median), NAMES + scale.at(low), NAMES + scale.at(high));
    canvas.text(NAMES - 8.0, y, "end", "#000", kind.name());
    let (top, fill) = (y - 7.0, colour(kind));
    canvas.add(format_args!(r#"<rect x="{NAMES}" y="{top:.1}" width="{width:.1}" height="14" fill="{fill}"/>"#));
    canvas.path(format_args!("M{low:.1} {y:.1}H{high:.1}"), "#000", 1.5);
    canvas.text(high + 6.0, y, "start", "#000", format_args!("{median:.2}"));
}

/// The handover at the left, what it costs the server at the right.
pub fn crowds(crowds: &[Crowd]) -> String {
    let mut canvas = Canvas::default();
    panel(&mut canvas, 50.0, "Handover on SIGTERM, ms", crowds, |crowd| &crowd.handover);
    panel(&mut canvas, WIDTH / 2.0 + 50.0, "Packets to ZooKeeper", crowds, |crowd| &crowd.packets);
    canvas.page("Many contenders: handover on SIGTERM, and packets to ZooKeeper", WIDTH + LABEL, BOTTOM + 30.0)
}

/// Of the longest name beside the last point.
const LABEL: f64 = 40.0;
/// Of a panel.
const BOTTOM: f64 = 220.0;

fn panel(canvas: &mut Canvas, left: f64, title: &str, crowds: &[Crowd], series: fn(&Crowd) -> &Series) {
    let median = |crowd: &Crowd| Some((size(crowd), series(crowd).spread()?.median));
    let points = |kind: Kind| crowds.iter().filter(move |crowd| crowd.kind == kind).filter_map(median);
    let (sizes, medians): (Vec<_>, Vec<_>) = crowds.iter().filter_map(median).unzip();
    let (across, up) = (Scale::over(&sizes, WIDTH / 2.0 - 130.0), Scale::over(&medians, BOTTOM - HEAD));
    canvas.title(left, 20.0, title);
    for decade in up.decades() {
        let y = BOTTOM - up.at(decade);
        canvas.path(format_args!("M{left:.0} {y:.1}h{:.0}", across.span), "#ccc", 1.0);
        canvas.text(left - 6.0, y, "end", GREY, decade);
    }
    for decade in across.decades() {
        canvas.text(left + across.at(decade), BOTTOM + 12.0, "middle", GREY, decade);
    }
    for kind in Kind::ALL {
        let at = |(size, median)| (left + across.at(size), BOTTOM - up.at(median));
        line(canvas, kind, &points(kind).map(at).collect::<Vec<_>>());
    }
}

fn line(canvas: &mut Canvas, kind: Kind, points: &[(f64, f64)]) {
    let colour = colour(kind);
    let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
    let Some((x, y)) = points.last() else { return };
    canvas.path(format_args!("M{}", path.join("L")), colour, 2.0);
    for (x, y) in points {
        canvas.add(format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" fill="{colour}"/>"#));
    }
    canvas.text(x + 7.0, *y, "start", colour, kind.name());
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn size(crowd: &Crowd) -> f64 {
    crowd.contenders as f64
}
