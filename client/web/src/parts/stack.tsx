// SPDX-License-Identifier: Apache-2.0
// Sums over time as stacked bars: a bar for each step, a colour for each name.

import { useEffect, useRef, useState } from "preact/hooks";

import type { UsageRow } from "../controller/api";
import { number } from "./words";

const HEIGHT = 180;
const LEFT = 56;
const RIGHT = 16;
const LABEL = 90; // width that a label of the time has
const BOTTOM = 22;
const TOP = 8;
const COLOURS = 8; // that the style sheet has; names beyond share the last one

export interface Step {
  label: string; // of the axis
  values: Map<string, number>;
}

const colour = (index: number) => `fill-${Math.min(index, COLOURS - 1)}`;

/** The least of 1, 2, 5, 10, 20 ... that is no smaller. */
function round(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return power * [1, 2, 5, 10].find((factor) => power * factor >= value)!;
}

/** GPU hours in steps, from since on; the first step may be shorter. */
export function stepsOf(rows: UsageRow[], since: number, until: number, stepMs: number, name: (row: UsageRow) => string, label: (at: Date) => string): Step[] {
  const steps: Step[] = [];
  const places = new Map<number, Step>();
  for (let at = since; at < until; at = Math.floor(at / stepMs) * stepMs + stepMs) {
    const step = { label: label(new Date(at)), values: new Map<string, number>() };
    places.set(at, step);
    steps.push(step);
  }
  for (const row of rows) {
    const values = places.get(Date.parse(row.at))?.values;
    values?.set(name(row), (values.get(name(row)) ?? 0) + row.gpu_seconds / 3600);
  }
  return steps;
}

/** The names by their sums, the largest first. */
export function namesOf(steps: Step[]): string[] {
  const sums = new Map<string, number>();
  for (const step of steps) {
    for (const [name, value] of step.values) {
      sums.set(name, (sums.get(name) ?? 0) + value);
    }
  }
  return [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
}

function Column({ step, names, x, width, scale, unit }: { step: Step; names: string[]; x: number; width: number; scale: number; unit: string }) {
  let top = HEIGHT - BOTTOM;
  return (
    <g>
      {names.map((name, index) => {
        const value = step.values.get(name) ?? 0;
        const height = value * scale;
        top -= height;
        return value > 0 && (
          <rect key={name} class={colour(index)} x={x} y={top} width={width} height={height}>
            <title>{`${step.label}: ${name} ${number(value, 3)} ${unit}`}</title>
          </rect>
        );
      })}
    </g>
  );
}

/** The width of an element, so that a picture in it has as many units as pixels. */
function useWidth(): [{ current: HTMLElement | null }, number] {
  const element = useRef<HTMLElement | null>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    watch.observe(element.current!);
    return () => watch.disconnect();
  }, []);
  return [element, width];
}

export function Stack({ title, unit, steps }: { title: string; unit: string; steps: Step[] }) {
  const [figure, width] = useWidth();
  const names = namesOf(steps);
  const most = round(Math.max(...steps.map((step) => [...step.values.values()].reduce((a, b) => a + b, 0)), 0));
  const scale = (HEIGHT - TOP - BOTTOM) / most;
  const wide = Math.max(width - LEFT - RIGHT, 0) / Math.max(steps.length, 1);
  const every = Math.max(Math.ceil(LABEL / Math.max(wide, 1)), 1);
  return (
    <figure class="card chart" ref={figure}>
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${Math.max(width, 1)} ${HEIGHT}`} role="img" aria-label={`${title}: ${names.join(", ") || "nothing"}`}>
        {[0, most / 2, most].map((value) => {
          const y = HEIGHT - BOTTOM - value * scale;
          return (
            <g key={value}>
              <line class="grid" x1={LEFT} x2={width - RIGHT} y1={y} y2={y} />
              <text x={LEFT - 6} y={y + 3.5} text-anchor="end">{number(value, 3)}</text>
            </g>
          );
        })}
        {steps.map((step, index) => (
          <Column key={index} step={step} names={names} x={LEFT + index * wide + wide * 0.1} width={wide * 0.8} scale={scale} unit={unit} />
        ))}
        {steps.map((step, index) => index % every === 0 && (
          <text key={index} x={LEFT + (index + 0.5) * wide} y={HEIGHT - 6} text-anchor="middle">{step.label}</text>
        ))}
      </svg>
      <div class="legend">
        {names.slice(0, COLOURS).map((name, index) => (
          <span key={name} class={`key colour-${index}`}>{index === COLOURS - 1 && names.length > COLOURS ? `${names.length - index} more` : name}</span>
        ))}
      </div>
    </figure>
  );
}
