// SPDX-License-Identifier: Apache-2.0
// The metrics of runs: the last values as a table, and a chart for each name with a line for each rank that logged it.
// A metric is fetched again only when its last value has changed.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Metric, Point } from "../../controller/answers";
import { Failure, history } from "../../controller/api";
import { Chart } from "./chart";
import { lineOf, type Axis } from "./lines";
import { AGAIN_MS, isForLater } from "../renew";
import { Table } from "../table";
import { number } from "../words";

const CHARTS = 24; // before somebody asks for all
const AT_ONCE = 4; // requests

/** A metric of a run, of which the points are wanted. */
export interface Wanted {
  run: string;
  key: string;
  mark: string; // another one when the metric has changed
}
export interface History {
  mark: string;
  points: Point[];
  whole: boolean;
}
interface Member extends Wanted {
  rank: number;
}
type Group = [string, Member[]];

export const markOf = (metric: Metric) => `${metric.timestamp} ${metric.step} ${metric.value}`;
export const SYSTEM = "system/";
export const isOfSystem = (name: string) => name.startsWith(SYSTEM);
/** "loss" and 3 of "loss/rank_3", which rank 3 logged. */
export function rankOf(key: string): [string, number] {
  const [, base, rank] = /^(.+)\/rank_(\d+)$/.exec(key) ?? [null, key, "0"];
  return [base!, Number(rank)];
}
/** What is measured of nodes comes behind what the run says. */
export const byName = (a: string, b: string) => Number(isOfSystem(a)) - Number(isOfSystem(b)) || (a < b ? -1 : 1);

/** What ranks above 0 log as NAME/rank_N belongs to the chart of NAME. */
function group(run: string, metrics: Metric[]): Group[] {
  const groups = new Map<string, Member[]>();
  for (const metric of metrics) {
    const [base, rank] = rankOf(metric.key);
    const members = groups.get(base) ?? [];
    members.push({ run, key: metric.key, rank, mark: markOf(metric) });
    groups.set(base, members.sort((a, b) => a.rank - b.rank));
  }
  return [...groups].sort((a, b) => byName(a[0], b[0]));
}

async function each<T>(items: T[], act: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const work = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) {
      await act(item);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

const NO_POINTS: History = { mark: "", points: [], whole: true };

/** The points of metrics, as far as they are here; at most `pages` replies of each. What got no answer is asked for again. */
export function useHistories(wanted: Wanted[], pages?: number): (one: Wanted) => History {
  const [turn, setTurn] = useState(0);
  const [, setFetched] = useState(0);
  const histories = useRef(new Map<string, History>()).current;
  const keyOf = (one: Wanted) => `${one.run} ${one.key}`;
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    let failed = false;
    const stale = wanted.filter((one) => histories.get(keyOf(one))?.mark !== one.mark);
    each(stale, (one) =>
      history(one.run, one.key, stop.signal, pages).then(
        (found) => void histories.set(keyOf(one), { mark: one.mark, ...found }),
        (failure: unknown) => void (failed ||= failure instanceof Failure && isForLater(failure)),
      ),
    ).then(() => {
      if (failed && !stop.signal.aborted) {
        timer = window.setTimeout(() => setTurn((count) => count + 1), AGAIN_MS);
      }
      setFetched((count) => count + 1);
    });
    return () => {
      stop.abort();
      window.clearTimeout(timer);
    };
  }, [JSON.stringify(wanted), turn]);
  return (one) => histories.get(keyOf(one)) ?? NO_POINTS;
}

export function LastValues({ metrics }: { metrics: Metric[] }) {
  if (metrics.length === 0) {
    return <p class="faint">None yet.</p>;
  }
  const sorted = [...metrics].sort((a, b) => (a.key < b.key ? -1 : 1));
  const rows = sorted.map((metric) => [metric.key, number(metric.value, 6), number(metric.step ?? 0)]);
  return <Table titles={["Name", "#Value", "#Step"]} rows={rows} />;
}

/** What the charts of several parts have in common. */
interface Shared {
  axis?: Axis;
  span?: [number, number];
  sync?: string;
}

/** A line of a chart, and when its run began; without it the first point of the chart is the start. */
export interface Part {
  label: string;
  history: History;
  start?: number;
  colour?: number;
}

/** A chart is worth it from two values on. */
export function hasChart(parts: Part[]): boolean {
  return parts.some(({ history: { points } }) => {
    const first = points.findIndex((point) => Number.isFinite(point.value));
    return first >= 0 && points.some((point, index) => index > first && Number.isFinite(point.value));
  });
}

/** Without an axis it is the step, or the time where no steps were given. */
export function MetricChart({ name, parts, axis, ...shared }: Shared & { name: string; parts: Part[] }) {
  const [chosen, lines] = useMemo(() => {
    const all = parts.flatMap(({ history: { points } }) => points);
    const first = all.reduce((least, point) => Math.min(least, point.at), Infinity);
    const found: Axis = axis ?? (all.every((point) => point.step === all[0]!.step) ? "after" : "step");
    return [found, parts.map((part) => ({ ...lineOf(part.label, part.history.points, found, part.start ?? first), ...(part.colour !== undefined && { colour: part.colour }) }))];
  }, [axis, ...parts.flatMap((part) => [part.history, part.label, part.start])]);
  const whole = parts.every((part) => part.history.whole);
  return <Chart title={name} lines={lines} axis={chosen} note={!whole && "Only the first points are shown; gpuctl metrics has all."} {...shared} />;
}

export function Charts({ run, metrics, ...shared }: Shared & { run: string; metrics: Metric[] }) {
  const [all, showAll] = useState(false);
  const groups = group(run, metrics);
  const shown = all ? groups : groups.slice(0, CHARTS);
  const find = useHistories(shown.flatMap(([, members]) => members));
  const charts = shown.flatMap(([name, members]) => {
    const label = (rank: number) => (members.length > 1 || rank > 0 ? `rank ${rank}` : "");
    const parts = members.map((member) => ({ label: label(member.rank), history: find(member) }));
    return hasChart(parts) ? [<MetricChart key={name} name={name} parts={parts} {...shared} />] : [];
  });
  return (
    <>
      <div class="charts">{charts}</div>
      {charts.length === 0 && <p class="faint">A metric has a chart here once it has two values.</p>}
      {shown.length < groups.length && <button type="button" onClick={() => showAll(true)}>{`Show all ${groups.length} charts`}</button>}
    </>
  );
}
