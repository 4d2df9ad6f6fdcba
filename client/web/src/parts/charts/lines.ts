// SPDX-License-Identifier: Apache-2.0
// The lines of a chart as numbers: of metrics, of samples, and what is said of them in words. Values that are not finite are gaps.

import type { Point } from "../../controller/answers";
import { duration, moment, number } from "../words";

const SAID = 8; // lines of which the label of a chart tells the values
export const COLOURS = 8; // that the style sheet has; lines beyond are dashed
const HOLE_MS = 150000; // without a sample: five are missing

/** What the x axis counts: steps of a run, seconds after a start, or seconds since 1970. */
export type Axis = "step" | "after" | "clock";

export interface Line {
  label: string;
  x: number[]; // rising
  y: (number | null)[]; // null: a gap
  colour?: number; // without it the place of the line
}

/** The classes of what names a line. */
export const keyOf = (colour: number) => `key colour-${colour % COLOURS}${colour >= COLOURS ? " dashed" : ""}`;

const finite = (value: number) => (Number.isFinite(value) ? value : null);

/** `start` is where "after" begins, in ms since 1970. */
export function lineOf(label: string, points: Point[], axis: Axis, start: number): Line {
  const place = (point: Point) => (axis === "step" ? point.step : (point.at - (axis === "after" ? start : 0)) / 1000);
  const dots = points.map((point) => ({ x: place(point), y: finite(point.value) })).sort((a, b) => a.x - b.x);
  return { label, x: dots.map((dot) => dot.x), y: dots.map((dot) => dot.y) };
}

/** A column of samples. Where a node was silent, the line ends and begins again. */
export function sampleLine(label: string, atMs: number[], values: (number | null)[], scale: number): Line {
  const line: Line = { label, x: [], y: [] };
  atMs.forEach((ms, index) => {
    const before = atMs[index - 1];
    if (before !== undefined && ms - before > HOLE_MS) {
      line.x.push((before + 1000) / 1000);
      line.y.push(null);
    }
    const value = values[index] ?? null;
    line.x.push(ms / 1000);
    line.y.push(value === null ? null : value * scale);
  });
  return line;
}

export const known = (line: Line): number[] => line.y.filter((value) => value !== null);

/** A place on the x axis: "step 12", "after 3 min 05 s", "2026-11-23 19:05:07". */
export function spellX(axis: Axis, x: number): string {
  return axis === "step" ? `step ${number(x)}` : axis === "after" ? `after ${duration(x * 1000)}` : moment(x * 1000);
}

/** What a chart shows, for those who do not see it. */
export function summary(lines: Line[], stacked: boolean): string {
  const said = lines.slice(0, SAID).map((line) => {
    const values = known(line);
    const name = line.label && `${line.label} `;
    if (values.length === 0) {
      return `${name}without values`;
    }
    if (stacked) {
      return `${name}${number(values.reduce((a, b) => a + b, 0), 3)}`;
    }
    const [least, most] = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
    return `${name}last ${number(values.at(-1)!)}, from ${number(least)} to ${number(most)}`;
  });
  return [...said, ...(lines.length > SAID ? [`and ${lines.length - SAID} more`] : [])].join("; ") || "nothing";
}
