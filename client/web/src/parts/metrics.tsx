// SPDX-License-Identifier: Apache-2.0
// The metrics of a run: the last values as a table, and a chart for each name with a line for each rank that logged it.
// A metric is fetched again only when its last value has changed.

import { useEffect, useRef, useState } from "preact/hooks";

import { history, type Metric, type Point } from "../controller/api";
import { Chart } from "./chart";
import { Table } from "./table";
import { number } from "./words";

const CHARTS = 24; // before somebody asks for all
const AT_ONCE = 4; // requests

interface Member {
  key: string;
  rank: number;
  mark: string; // another one when the metric has changed
}
interface Known {
  mark: string;
  points: Point[];
  whole: boolean;
}
type Group = [string, Member[]];

/** What ranks above 0 log as NAME/rank_N belongs to the chart of NAME. */
function group(metrics: Metric[]): Group[] {
  const groups = new Map<string, Member[]>();
  for (const metric of metrics) {
    const [, base, rank] = /^(.+)\/rank_(\d+)$/.exec(metric.key) ?? [null, metric.key, "0"];
    const members = groups.get(base!) ?? [];
    members.push({ key: metric.key, rank: Number(rank), mark: `${metric.timestamp} ${metric.step} ${metric.value}` });
    groups.set(base!, members.sort((a, b) => a.rank - b.rank));
  }
  const own = (name: string) => (name.startsWith("system/") ? 1 : 0);
  return [...groups].sort((a, b) => own(a[0]) - own(b[0]) || (a[0] < b[0] ? -1 : 1));
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

export function LastValues({ metrics }: { metrics: Metric[] }) {
  if (metrics.length === 0) {
    return <p class="faint">None yet.</p>;
  }
  const sorted = [...metrics].sort((a, b) => (a.key < b.key ? -1 : 1));
  const rows = sorted.map((metric) => [metric.key, number(metric.value, 6), number(metric.step ?? 0)]);
  return <Table titles={["Name", "#Value", "#Step"]} rows={rows} />;
}

/** The lines of a chart; null: it has too few values for one. */
function seriesOf(members: Member[], known: Map<string, Known>) {
  const label = (member: Member) => (members.length > 1 || member.rank > 0 ? `rank ${member.rank}` : "");
  const series = members.map((member) => ({ label: label(member), points: known.get(member.key)?.points ?? [] }));
  const several = series.some((one) => one.points.filter((point) => Number.isFinite(point.value)).length > 1);
  return several ? series : null;
}

export function Charts({ run, metrics }: { run: string; metrics: Metric[] }) {
  const [all, showAll] = useState(false);
  const [, setFetched] = useState(0);
  const known = useRef(new Map<string, Known>()).current;
  const groups = group(metrics);
  const shown = all ? groups : groups.slice(0, CHARTS);
  const members = shown.flatMap(([, some]) => some);
  useEffect(() => {
    const stop = new AbortController();
    const stale = members.filter((member) => known.get(member.key)?.mark !== member.mark);
    each(stale, async (member) => {
      known.set(member.key, { mark: member.mark, ...(await history(run, member.key, stop.signal)) });
    }).then(
      () => setFetched((count) => count + 1),
      () => undefined, // what was not fetched is still stale when the run is looked at next
    );
    return () => stop.abort();
  }, [JSON.stringify(members)]);
  const charts = shown.flatMap(([name, some]) => {
    const series = seriesOf(some, known);
    const whole = some.every((member) => known.get(member.key)?.whole ?? true);
    return series ? [<div key={name} data-name={name}><Chart name={name} series={series} whole={whole} /></div>] : [];
  });
  return (
    <>
      <div class="charts">{charts}</div>
      {charts.length === 0 && <p class="faint">A metric has a chart here once it has two values.</p>}
      {shown.length < groups.length && <button type="button" onClick={() => showAll(true)}>{`Show all ${groups.length} charts`}</button>}
    </>
  );
}
