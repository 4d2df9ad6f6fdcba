// SPDX-License-Identifier: Apache-2.0
// A chart: uPlot on a canvas. It has the width of its place and the colours of the style sheet, shows the values under the pointer, and zooms
// into what is dragged over; a double click shows all again. With the keyboard: arrows and Escape. uPlot is fetched with the first chart.

import type uPlot from "uplot";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { COLOURS, keyOf, known, spellX, summary, type Axis, type Line } from "./lines";
import { duration, number } from "../words";

const HEIGHT = 190;
const VALUES_WIDTH = 58; // of the y axis
const FONT = "11px system-ui, sans-serif";
/** Distances of marks: steps are whole, times in whole seconds. */
const STEPS = Array.from({ length: 13 }, (_, power) => [1, 2, 5].map((factor) => factor * 10 ** power)).flat();
const SECONDS = [1, 60, 3600].flatMap((unit) => [1, 2, 5, 10, 15, 30].map((count) => count * unit)).filter((distance) => distance < 36000);
const DAYS = [0.5, 1, 2, 4, 7, 14, 28, 56, 112].map((days) => days * 86400);
const DISTANCES: Record<Axis, number[] | undefined> = { step: STEPS, after: undefined, clock: [...SECONDS, ...DAYS] };

type Data = (number | null | undefined)[][];

const wantsDark = matchMedia("(prefers-color-scheme: dark)");

let fetched: Promise<typeof uPlot> | undefined;

/** uPlot; undefined until it is here, null: it could not be fetched. */
function usePlot(): typeof uPlot | null | undefined {
  const [plot, setPlot] = useState<{ make: typeof uPlot | null }>();
  useEffect(() => {
    fetched ??= import("uplot").then((module) => module.default);
    fetched.then(
      (make) => setPlot({ make }),
      () => {
        fetched = undefined;
        setPlot({ make: null });
      },
    );
  }, []);
  return plot?.make;
}

/** Whether the page is dark, anew when that changes. */
function useDark(): boolean {
  const [dark, setDark] = useState(wantsDark.matches);
  useEffect(() => {
    const changed = () => setDark(wantsDark.matches);
    wantsDark.addEventListener("change", changed);
    return () => wantsDark.removeEventListener("change", changed);
  }, []);
  return dark;
}

/** All lines over one column of x, which begins and ends with the span. Of a stack each one has what comes behind it, too. */
function columns(make: typeof uPlot, lines: Line[], span: number[], stacked: boolean): { shown: Data; drawn: Data } {
  const shown: Data = make.join([[span], ...lines.map((line) => [line.x, line.y])] as uPlot.AlignedData[]) as Data;
  if (!stacked) {
    return { shown, drawn: shown };
  }
  const drawn = [...shown];
  for (let place = drawn.length - 2; place > 0; place--) {
    drawn[place] = drawn[place]!.map((value, index) => (value === undefined ? value : (value ?? 0) + (drawn[place + 1]![index] ?? 0)));
  }
  return { shown, drawn };
}

const two = (value: number) => String(value).padStart(2, "0");

/** "19:05:07", "19:05" or "11-23", by the distance of the marks in seconds; also the day where one begins. */
function clock(x: number, distance: number): string {
  const at = new Date(x * 1000);
  const isDay = at.getHours() === 0 && at.getMinutes() === 0 && at.getSeconds() === 0;
  if (distance >= 86400 || isDay) {
    return `${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  }
  return `${two(at.getHours())}:${two(at.getMinutes())}${distance < 60 ? `:${two(at.getSeconds())}` : ""}`;
}

const spellMark = (axis: Axis, x: number, distance: number) => (axis === "clock" ? clock(x, distance) : axis === "after" ? duration(x * 1000) : number(x));

interface Shape {
  axis: Axis;
  colours: number[];
  stacked: boolean;
  sync?: string | undefined;
  points: (places: (number | null)[] | null) => void; // what the pointer is at, a place in each column; null: it is gone
}

function options(make: typeof uPlot, width: number, { axis, colours, stacked, sync, points }: Shape): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const marks = { stroke: colour("faint"), font: FONT, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    padding: [10, 20, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: !stacked }, ...(sync && { sync: { key: sync, scales: ["x", null] } }) },
    scales: { x: { time: axis === "clock" }, ...(stacked && { y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.05 : 1] } }) },
    axes: [
      {
        ...marks,
        size: 26,
        space: 72,
        grid: { show: false },
        ...(DISTANCES[axis] && { incrs: DISTANCES[axis] }),
        values: (_plot, all, _axis, _space, distance) => all.map((x) => spellMark(axis, x, distance)),
      },
      { ...marks, size: VALUES_WIDTH, grid: { stroke: colour("line"), width: 1 }, values: (_plot, all) => all.map((y) => number(y, 4)) },
    ],
    series: [
      {},
      ...colours.map((index) => ({
        stroke: colour(`c${index % COLOURS}`),
        width: stacked ? 0 : 1.8,
        ...(index >= COLOURS && { dash: [6, 4] }),
        points: { ...(stacked && { show: false }), fill: colour("card") },
        ...(stacked && { fill: colour(`c${index % COLOURS}`), paths: make.paths.bars!({ size: [0.8, 100], align: 1 }) }),
      })),
    ],
    hooks: { setCursor: [(plot) => points(plot.cursor.idx === null || plot.cursor.idx === undefined ? null : plot.cursor.idxs!)] },
  };
}

const isZoomed = (plot: uPlot) => plot.scales["x"]!.min! > plot.data[0][0]! || plot.scales["x"]!.max! < plot.data[0].at(-1)!;

function renewData(plot: uPlot, data: Data): void {
  const { min, max } = plot.scales["x"]!;
  if (isZoomed(plot)) {
    plot.setData(data as uPlot.AlignedData, false);
    plot.setScale("x", { min: min!, max: max! });
  } else {
    plot.setData(data as uPlot.AlignedData);
  }
}

/** Moves the cursor to the next place where there is a value, in one direction. */
function step(plot: uPlot, by: 1 | -1): void {
  const xs = plot.data[0];
  const isSome = (place: number) => plot.data.some((column, index) => index > 0 && typeof column[place] === "number");
  let at = (plot.cursor.idx ?? (by > 0 ? -1 : xs.length)) + by;
  while (at >= 0 && at < xs.length && !isSome(at)) {
    at += by;
  }
  if (at >= 0 && at < xs.length) {
    plot.setCursor({ left: plot.valToPos(xs[at]!, "x"), top: 0 }, true);
  }
}

function heedKey(plot: uPlot | null, event: KeyboardEvent): void {
  if (plot !== null && ["ArrowLeft", "ArrowRight", "Escape"].includes(event.key)) {
    event.preventDefault();
    if (event.key === "Escape") {
      plot.setData(plot.data);
    } else {
      step(plot, event.key === "ArrowRight" ? 1 : -1);
    }
  }
}

/** The values at the cursor; without one the last ones, of a stack the sums. */
function Legend({ lines, shown, at, axis, stacked }: { lines: Line[]; shown: Data | undefined; at: (number | null)[] | null; axis: Axis; stacked: boolean }) {
  const value = (line: Line, index: number) => {
    if (at !== null) {
      return shown?.[index + 1]?.[at[index + 1] ?? -1];
    }
    return stacked ? known(line).reduce((a, b) => a + b, 0) : known(line).at(-1);
  };
  const x = at === null ? Math.max(...lines.map((line) => line.x.at(-1) ?? -Infinity)) : shown?.[0]?.[at[0] ?? -1];
  const where = stacked && at === null ? (lines.length > 0 ? "in all" : "nothing yet") : typeof x === "number" && Number.isFinite(x) ? spellX(axis, x) : "";
  return (
    <div class="legend">
      <span class="at">{where}</span>
      {lines.map((line, index) => {
        const read = value(line, index);
        return (
          <span key={index} class={keyOf(line.colour ?? index)}>
            {line.label && `${line.label} `}<b>{typeof read === "number" ? number(read, stacked ? 3 : 5) : ""}</b>
          </span>
        );
      })}
    </div>
  );
}

export interface ChartProps {
  title: string;
  lines: Line[];
  axis: Axis;
  span?: [number, number] | undefined; // what the x axis has at least
  sync?: string | undefined; // charts of one name share their cursor and their zoom
  stacked?: boolean; // as bars, one on another
  note?: string | false | undefined;
}

export function Chart({ title, lines, axis, span, sync, stacked = false, note }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<(number | null)[] | null>(null);
  const make = usePlot();
  const dark = useDark();
  const colours = lines.map((line, index) => line.colour ?? index);
  const data = useMemo(() => (make ? columns(make, lines, span ?? [], stacked) : undefined), [make, lines, span?.[0], span?.[1]]);
  const over = stacked ? "" : axis === "step" ? " over steps" : " over time";
  const label = useMemo(() => `${title}${over}: ${summary(lines, stacked)}`, [title, over, lines]);
  useEffect(() => {
    if (plot.current !== null && data !== undefined) {
      renewData(plot.current, data.drawn);
    }
  }, [data]);
  useEffect(() => {
    if (!make || data === undefined) {
      return;
    }
    const points = (places: (number | null)[] | null) => setAt(places && [...places]);
    const made = new make(options(make, box.current!.clientWidth, { axis, colours, stacked, sync, points }), data.drawn as uPlot.AlignedData, box.current!);
    plot.current = made;
    const watch = new ResizeObserver(([entry]) => made.setSize({ width: Math.floor(entry!.contentRect.width), height: HEIGHT }));
    watch.observe(box.current!);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
      setAt(null);
    };
  }, [make, dark, axis, sync, colours.join()]);
  return (
    <figure class="card chart">
      <figcaption>{title}</figcaption>
      <div class="plot" ref={box} role="img" tabIndex={0} aria-label={label} onKeyDown={(event) => heedKey(plot.current, event)} />
      {make === null && <p class="error">What draws charts could not be fetched. Load the page again.</p>}
      <Legend lines={lines} shown={data?.shown} at={at} axis={axis} stacked={stacked} />
      {note && <p class="faint">{note}</p>}
    </figure>
  );
}
