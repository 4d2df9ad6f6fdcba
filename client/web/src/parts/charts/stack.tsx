// SPDX-License-Identifier: Apache-2.0
// GPU hours over time as stacked bars: a bar for each step, a colour for each name.

import type { UsageRow } from "../../controller/answers";
import { Chart } from "./chart";
import { COLOURS, type Line } from "./lines";

interface StackProps {
  title: string;
  rows: UsageRow[];
  since: number; // ms since 1970, as the next
  until: number;
  stepMs: number;
  name: (row: UsageRow) => string;
}

/** The names by their sums, the largest first, each with its hours by step. */
function sums(rows: UsageRow[], first: number, count: number, stepMs: number, name: (row: UsageRow) => string): [string, number[]][] {
  const found = new Map<string, number[]>();
  for (const row of rows) {
    const hours = found.get(name(row)) ?? Array<number>(count).fill(0);
    const at = Math.floor((Date.parse(row.at) - first) / stepMs);
    if (at >= 0 && at < count) {
      hours[at]! += row.gpu_seconds / 3600;
    }
    found.set(name(row), hours);
  }
  const all = (hours: number[]) => hours.reduce((a, b) => a + b, 0);
  return [...found].sort((a, b) => all(b[1]) - all(a[1]) || (a[0] < b[0] ? -1 : 1));
}

export function Stack({ title, rows, since, until, stepMs, name }: StackProps) {
  const first = Math.floor(since / stepMs) * stepMs; // the step that since is in
  const count = Math.max(Math.ceil((until - first) / stepMs), 1);
  const x = Array.from({ length: count }, (_, index) => (first + index * stepMs) / 1000);
  const named = sums(rows, first, count, stepMs, name);
  const lines: Line[] = (named.length > COLOURS ? named.slice(0, COLOURS - 1) : named).map(([label, y]) => ({ label, x, y }));
  if (named.length > COLOURS) {
    const rest = named.slice(COLOURS - 1).map(([, hours]) => hours);
    lines.push({ label: `${rest.length} more`, x, y: x.map((_, index) => rest.reduce((sum, hours) => sum + hours[index]!, 0)) });
  }
  return <Chart title={title} lines={lines} axis="clock" span={[first / 1000, (first + count * stepMs) / 1000]} stacked />;
}
