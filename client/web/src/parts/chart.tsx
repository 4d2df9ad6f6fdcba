// SPDX-License-Identifier: Apache-2.0
// The chart of a metric as SVG: lines over the step, or over the time where no steps were given. Values that are not finite leave gaps.

import { useState } from "preact/hooks";

import type { Point } from "../controller/api";
import { duration, number } from "./words";

const WIDTH = 460;
const HEIGHT = 190;
const LEFT = 52;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 24;
const DOTS = 600; // points of a line; more are thinned
const COLOURS = 8; // that the style sheet has

export interface Series {
  label: string;
  points: Point[];
}
interface Dot {
  x: number;
  y: number;
}
interface Line {
  label: string;
  points: Dot[];
}
type Extent = [number, number];
type Place = (dot: Dot) => [number, number];
type Found = Dot & { label: string; index: number };

const isFinite = (dot: Dot) => Number.isFinite(dot.y);

/** Of neighbours that share a place the smallest and the largest, so that no peak is lost. */
function thin(points: Dot[]): Dot[] {
  if (points.length <= DOTS) {
    return points;
  }
  const kept: Dot[] = [];
  const share = points.length / (DOTS / 2);
  for (let at = 0; at < DOTS / 2; at++) {
    const part = points.slice(Math.floor(at * share), Math.floor((at + 1) * share));
    const finite = part.filter(isFinite);
    const some = finite[0] ?? part[0]!;
    const low = finite.reduce((a, b) => (b.y < a.y ? b : a), some);
    const high = finite.reduce((a, b) => (b.y > a.y ? b : a), some);
    kept.push(...(low.x <= high.x ? [low, high] : [high, low]));
  }
  return kept;
}

/** Round numbers between two, about `count` of them. */
function ticks(from: number, to: number, count: number): number[] {
  const raw = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((factor) => power * factor >= raw) ?? 10);
  const found: number[] = [];
  for (let at = Math.ceil(from / step); at * step <= to + step * 1e-9; at++) {
    found.push(at * step);
  }
  return found;
}

/** The extent of some numbers, widened where it is a single one or leaves no room. */
function extent(values: number[], margin: number): Extent {
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

/** The lines of a chart, and whether their x axis is the time. */
function prepare(series: Series[]): { byTime: boolean; lines: Line[] } {
  const all = series.flatMap((one) => one.points);
  const byTime = all.every((point) => point.step === all[0]!.step);
  const start = Math.min(...series.map((one) => one.points[0]?.at ?? Infinity));
  const lines = series.map((one) => {
    const points = one.points.map((point) => ({ x: byTime ? (point.at - start) / 1000 : point.step, y: point.value }));
    return { label: one.label, points: thin(points.sort((a, b) => a.x - b.x)) };
  });
  return { byTime, lines };
}

function path(points: Dot[], place: Place): string {
  let text = "";
  let pen = false;
  for (const point of points) {
    if (!isFinite(point)) {
      pen = false;
      continue;
    }
    const [x, y] = place(point);
    text += `${pen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
  }
  return text;
}

/** The dots that stand nearest to a place on the x axis, one a line. */
function nearest(lines: Line[], x: number): Found[] {
  return lines.flatMap((line, index) => {
    const finite = line.points.filter(isFinite);
    const best = finite.reduce<Dot | null>((a, b) => (a !== null && Math.abs(a.x - x) <= Math.abs(b.x - x) ? a : b), null);
    return best !== null ? [{ ...best, label: line.label, index }] : [];
  });
}

function Axes({ x, y, place, spell }: { x: Extent; y: Extent; place: Place; spell: (value: number) => string }) {
  return (
    <>
      {ticks(y[0], y[1], 4).map((value) => {
        const at = place({ x: x[0], y: value })[1];
        return (
          <g key={value}>
            <line class="grid" x1={LEFT} x2={WIDTH - RIGHT} y1={at} y2={at} />
            <text x={LEFT - 6} y={at + 3.5} text-anchor="end">{number(value, 4)}</text>
          </g>
        );
      })}
      {ticks(x[0], x[1], 5).map((value) => (
        <text key={value} x={place({ x: value, y: y[0] })[0]} y={HEIGHT - 6} text-anchor="middle">{spell(value)}</text>
      ))}
    </>
  );
}

function Stroke({ line, index, place }: { line: Line; index: number; place: Place }) {
  const finite = line.points.filter(isFinite);
  const colour = `colour-${index % COLOURS}`;
  if (finite.length === 1) {
    const [cx, cy] = place(finite[0]!);
    return <circle class={`dot ${colour}`} cx={cx} cy={cy} r={3.2} />;
  }
  return <path class={`stroke ${colour}`} d={path(line.points, place)} />;
}

function Legend({ found, spell, byTime }: { found: Found[]; spell: (value: number) => string; byTime: boolean }) {
  const at = found.length > 0 ? Math.max(...found.map((dot) => dot.x)) : 0;
  return (
    <div class="legend">
      <span class="at">{`${byTime ? "after" : "step"} ${spell(at)}`}</span>
      {found.map((dot) => (
        <span key={dot.index} class={`key colour-${dot.index % COLOURS}`}>{dot.label && `${dot.label} `}<b>{number(dot.y)}</b></span>
      ))}
    </div>
  );
}

/** What stands under the pointer: a line across, and a dot on each stroke. */
function Cursor({ found, place }: { found: Found[]; place: Place }) {
  const at = place(found[0]!)[0];
  return (
    <>
      <line class="cursor" x1={at} x2={at} y1={TOP} y2={HEIGHT - BOTTOM} />
      {found.map((dot) => {
        const [cx, cy] = place(dot);
        return <circle key={dot.index} class={`dot colour-${dot.index % COLOURS}`} cx={cx} cy={cy} r={3.2} />;
      })}
    </>
  );
}

/** A figure. `whole` false: it shows only the first points. */
export function Chart({ name, series, whole }: { name: string; series: Series[]; whole: boolean }) {
  const [pointed, setPointed] = useState<Found[]>([]);
  const { byTime, lines } = prepare(series.filter((one) => one.points.length > 0));
  const x = extent(lines.flatMap((line) => line.points.map((point) => point.x)), 0);
  const y = extent(lines.flatMap((line) => line.points.filter(isFinite).map((point) => point.y)), 0.06);
  const place: Place = (dot) => [
    LEFT + ((dot.x - x[0]) / (x[1] - x[0])) * (WIDTH - LEFT - RIGHT),
    HEIGHT - BOTTOM - ((dot.y - y[0]) / (y[1] - y[0])) * (HEIGHT - TOP - BOTTOM),
  ];
  const spell = (value: number) => (byTime ? duration(value * 1000) : number(value));
  const follow = (event: PointerEvent) => {
    const box = (event.currentTarget as SVGSVGElement).getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    setPointed(nearest(lines, x[0] + ((at - LEFT) / (WIDTH - LEFT - RIGHT)) * (x[1] - x[0])));
  };
  return (
    <figure class="card chart">
      <figcaption>{name}</figcaption>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`${name} over ${byTime ? "time" : "steps"}`}
        onPointerMove={follow}
        onPointerLeave={() => setPointed([])}
      >
        <Axes x={x} y={y} place={place} spell={spell} />
        {lines.map((line, index) => <Stroke key={line.label} line={line} index={index} place={place} />)}
        {pointed.length > 0 && <Cursor found={pointed} place={place} />}
      </svg>
      <Legend found={pointed.length > 0 ? pointed : nearest(lines, x[1])} spell={spell} byTime={byTime} />
      {!whole && <p class="faint">Only the first points are shown; gpuctl metrics has all.</p>}
    </figure>
  );
}
