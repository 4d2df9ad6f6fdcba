// SPDX-License-Identifier: Apache-2.0
// The chart of a metric as SVG: lines over the step, or over the time where no steps were given. Values that are not finite leave gaps.

import { drawn, element } from "/web/dom.js";
import { duration, number } from "/web/words.js";

const WIDTH = 460;
const HEIGHT = 190;
const LEFT = 52;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 24;
const DOTS = 600; // points of a line; more are thinned
const COLOURS = 8; // that the style sheet has

/** Of neighbours that share a place the smallest and the largest, so that no peak is lost. */
function thin(points) {
  if (points.length <= DOTS) {
    return points;
  }
  const kept = [];
  const share = points.length / (DOTS / 2);
  for (let at = 0; at < DOTS / 2; at++) {
    const part = points.slice(Math.floor(at * share), Math.floor((at + 1) * share));
    const finite = part.filter((point) => Number.isFinite(point.y));
    const low = finite.reduce((a, b) => (b.y < a.y ? b : a), finite[0] ?? part[0]);
    const high = finite.reduce((a, b) => (b.y > a.y ? b : a), finite[0] ?? part[0]);
    kept.push(...(low.x <= high.x ? [low, high] : [high, low]));
  }
  return kept;
}

/** Round numbers between two, about `count` of them. */
function ticks(from, to, count) {
  const raw = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((factor) => power * factor >= raw) ?? 10);
  const found = [];
  for (let at = Math.ceil(from / step); at * step <= to + step * 1e-9; at++) {
    found.push(at * step);
  }
  return found;
}

/** The extent of some numbers, widened where it is a single one or leaves no room. */
function extent(values, margin) {
  let from = Infinity;
  let to = -Infinity;
  for (const value of values) {
    from = Math.min(from, value);
    to = Math.max(to, value);
  }
  if (from > to) {
    return [0, 1];
  }
  const room = from === to ? Math.abs(from) * 0.1 || 1 : (to - from) * margin;
  return [from - room, to + room];
}

/** The lines of a chart: what stands on the x axis, and for each series its points {x, y} in that order. */
function prepare(series) {
  const all = series.flatMap((one) => one.points);
  const byTime = all.every((point) => point.step === all[0].step);
  const start = Math.min(...series.map((one) => one.points[0]?.at ?? Infinity));
  const lines = series.map((one) => {
    const points = one.points.map((point) => ({ x: byTime ? (point.at - start) / 1000 : point.step, y: point.value }));
    return { label: one.label, points: thin(points.sort((a, b) => a.x - b.x)) };
  });
  return { byTime, lines };
}

function path(points, place) {
  let text = "";
  let pen = false;
  for (const point of points) {
    if (!Number.isFinite(point.y)) {
      pen = false;
      continue;
    }
    const [x, y] = place(point);
    text += `${pen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
  }
  return text;
}

function axes(x, y, place, spell) {
  const grid = ticks(y[0], y[1], 4).map((value) => {
    const [, at] = place({ x: x[0], y: value });
    const text = drawn("text", { x: LEFT - 6, y: at + 3.5, "text-anchor": "end" }, number(value, 4));
    return drawn("g", {}, drawn("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: at, y2: at }), text);
  });
  const below = ticks(x[0], x[1], 5).map((value) => {
    const [at] = place({ x: value, y: y[0] });
    return drawn("text", { x: at, y: HEIGHT - 6, "text-anchor": "middle" }, spell(value));
  });
  return [...grid, ...below];
}

/** The dots that stand nearest to a place on the x axis, one a line. */
function nearest(lines, x) {
  return lines.flatMap((line, index) => {
    const finite = line.points.filter((point) => Number.isFinite(point.y));
    const best = finite.reduce((a, b) => (a && Math.abs(a.x - x) <= Math.abs(b.x - x) ? a : b), null);
    return best ? [{ ...best, label: line.label, index }] : [];
  });
}

function legend(name, lines, found, spell, byTime) {
  const items = found.map((dot) =>
    element("span", { class: `key colour-${dot.index % COLOURS}` }, dot.label ? `${dot.label} ` : "", element("b", {}, number(dot.y))),
  );
  const at = found.length > 0 ? Math.max(...found.map((dot) => dot.x)) : 0;
  return [element("span", { class: "at" }, `${byTime ? "after" : "step"} ${spell(at)}`), ...items];
}

/** Moves a line under the pointer, and writes what stands there. */
function follow(svg, caption, view, last) {
  const cursor = drawn("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  const dots = drawn("g");
  svg.append(cursor, dots);
  const move = (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    const x = view.x[0] + ((at - LEFT) / (WIDTH - LEFT - RIGHT)) * (view.x[1] - view.x[0]);
    const found = nearest(view.lines, x);
    if (found.length > 0) {
      const [place] = view.place(found[0]);
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
      cursor.setAttribute("visibility", "visible");
      caption.replaceChildren(...view.tell(found));
      dots.replaceChildren(...found.map((dot) => {
        const [cx, cy] = view.place(dot);
        return drawn("circle", { class: `dot colour-${dot.index % COLOURS}`, cx, cy, r: 3.2 });
      }));
    }
  };
  const leave = () => {
    cursor.setAttribute("visibility", "hidden");
    dots.replaceChildren();
    caption.replaceChildren(...view.tell(last));
  };
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerleave", leave);
}

/** A figure. `series` is [{label, points: [{step, at, value}]}]; `whole` false: it shows only the first points. */
export function chart(name, series, whole) {
  const { byTime, lines } = prepare(series.filter((one) => one.points.length > 0));
  const x = extent(lines.flatMap((line) => line.points.map((point) => point.x)), 0);
  const y = extent(lines.flatMap((line) => line.points.map((point) => point.y)).filter(Number.isFinite), 0.06);
  const place = (point) => [
    LEFT + ((point.x - x[0]) / (x[1] - x[0])) * (WIDTH - LEFT - RIGHT),
    HEIGHT - BOTTOM - ((point.y - y[0]) / (y[1] - y[0])) * (HEIGHT - TOP - BOTTOM),
  ];
  const spell = (value) => (byTime ? duration(value * 1000) : number(value));
  const tell = (found) => legend(name, lines, found, spell, byTime);
  const strokes = lines.map((line, index) => {
    const single = line.points.filter((point) => Number.isFinite(point.y)).length === 1;
    const dot = single ? line.points.find((point) => Number.isFinite(point.y)) : null;
    return dot
      ? drawn("circle", { class: `dot colour-${index % COLOURS}`, cx: place(dot)[0], cy: place(dot)[1], r: 3.2 })
      : drawn("path", { class: `stroke colour-${index % COLOURS}`, d: path(line.points, place) });
  });
  const last = nearest(lines, Infinity).length > 0 ? nearest(lines, x[1]) : [];
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${name} over ${byTime ? "time" : "steps"}` },
    ...axes(x, y, place, spell), ...strokes);
  const caption = element("div", { class: "legend" }, tell(last));
  follow(svg, caption, { x, lines, place, tell }, last);
  const cut = whole ? null : element("p", { class: "faint" }, "Only the first points are shown; gpuctl metrics has all.");
  return element("figure", { class: "card chart" }, element("figcaption", {}, name), svg, caption, cut);
}
