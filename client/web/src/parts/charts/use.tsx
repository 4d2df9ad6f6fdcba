// SPDX-License-Identifier: Apache-2.0
// What a job has measured, and under it what its own processes and its nodes used meanwhile: charts over one time, of which the cursor and the
// zoom are shared.

import type { JobDetail, JobRun, Metric } from "../../controller/answers";
import { Failure, nodeSamples, run } from "../../controller/api";
import { Charts, hasChart, isOfSystem, markOf, MetricChart, SYSTEM, useHistories } from "./metrics";
import { Part } from "../page";
import { useRenewed } from "../renew";
import { SampleCharts, type Used } from "./samples";

const RENEW_MS = 10000;
const SAMPLES_RENEW_MS = 30000;
const SAMPLED_NODES = 8; // whose use is drawn
const SAMPLED_RANKS = 8;
const DAY_MS = 86400000; // for so long samples are kept

/** What an answer says; null: what was asked for is gone. */
async function orNull<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (failure) {
    if (failure instanceof Failure && failure.status === 404) {
      return null;
    }
    throw failure;
  }
}

async function samplesOf(found: JobDetail, since: number, until: number | undefined, signal: AbortSignal): Promise<Used[]> {
  const all: Used[] = [];
  for (const one of found.nodes.slice(0, SAMPLED_NODES)) {
    const samples = await orNull(nodeSamples(one.node, Math.max(since, Date.now() - DAY_MS), until, signal));
    if (samples !== null && samples.at_ms.length > 1) {
      all.push({ node: one.node, samples, devices: new Set(one.devices.split(",").map(Number)) });
    }
  }
  return all;
}

/** What the run of the newest attempt says; nothing where the job tracks elsewhere. */
async function metricsOf(newest: JobRun | undefined, signal: AbortSignal): Promise<Metric[]> {
  const found = newest !== undefined ? await orNull(run(newest.run_id, signal)) : null;
  return found?.data.metrics ?? [];
}

/** What the job's own processes used on each node: in its run as system/NODE/NAME. Samples of nodes have no disks. */
const OWN_USE: Record<string, string> = {
  cpu_utilization_percentage: "CPU of its processes in percent of the node",
  system_memory_usage_megabytes: "Memory of its processes in MB",
  io_read_megabytes: "Read from disks so far in MB",
  io_written_megabytes: "Written to disks so far in MB",
};

/** A chart for each of these, with a line for each node, and one with a line for each rank where a node has several. What is not known has none. */
function OwnUse({ id, metrics, ...shared }: { id: string; metrics: Metric[]; sync: string; span: [number, number] }) {
  const charts = Object.entries(OWN_USE).flatMap(([name, title]) => {
    const pattern = new RegExp(`^${SYSTEM}(.+)/${name}(?:/rank_(\\d+))?$`);
    const members = metrics.flatMap((metric) => {
      const [, node, rank] = pattern.exec(metric.key) ?? [];
      return node === undefined ? [] : [{ run: id, key: metric.key, mark: markOf(metric), node, rank: rank === undefined ? -1 : Number(rank) }];
    });
    const nodes = members.filter(({ rank }) => rank < 0).slice(0, SAMPLED_NODES);
    const ranks = members.filter(({ rank }) => rank >= 0).sort((a, b) => a.rank - b.rank).slice(0, SAMPLED_RANKS);
    return [
      { title, members: nodes.map((member) => ({ ...member, label: nodes.length > 1 ? member.node : "" })) },
      { title: `${title}, by rank`, members: ranks.map((member) => ({ ...member, label: `rank ${member.rank}` })) },
    ];
  });
  const find = useHistories(charts.flatMap(({ members }) => members));
  const drawn = charts
    .map(({ title, members }) => ({ title, parts: members.map((member) => ({ label: member.label, history: find(member) })) }))
    .filter(({ parts }) => hasChart(parts));
  return drawn.length === 0 ? null : (
    <Part title="What the job itself used" kind="metrics">
      <div class="charts">{drawn.map(({ title, parts }) => <MetricChart key={title} name={title} parts={parts} axis="clock" {...shared} />)}</div>
    </Part>
  );
}

/** The time that all charts have, in seconds: that of the job, and what was measured by a clock of a node that differs. */
function spanOf(since: number, until: number, samples: Used[], metrics: Metric[]): [number, number] {
  const begins = samples.map((one) => one.samples.at_ms[0]!);
  const ends = [...samples.map((one) => one.samples.at_ms.at(-1)!), ...metrics.map((metric) => Number(metric.timestamp))];
  return [Math.min(since, ...begins) / 1000, Math.max(until, ...ends) / 1000];
}

export function Use({ found, runs }: { found: JobDetail; runs: JobRun[] }) {
  const since = Date.parse(found.started_at!);
  const until = found.ended_at === null ? undefined : Date.parse(found.ended_at);
  const newest = runs.filter((one) => one.tracking_uri === null).sort((a, b) => (b.attempt ?? 0) - (a.attempt ?? 0))[0];
  const isLive = until === undefined;
  const key = `${found.id} ${until}`;
  const [metrics] = useRenewed(`${key} ${newest?.run_id}`, async (signal) => ({ value: await metricsOf(newest, signal), more: isLive }), RENEW_MS);
  const [samples] = useRenewed(key, async (signal) => ({ value: await samplesOf(found, since, until, signal), more: isLive }), SAMPLES_RENEW_MS);
  const shared = { sync: found.id, span: spanOf(since, until ?? Date.now(), samples ?? [], metrics ?? []) };
  const own = (metrics ?? []).filter((metric) => !isOfSystem(metric.key));
  const hasSamples = samples !== undefined && samples.length > 0;
  return (
    <>
      {own.length > 0 && <Part title="Metrics" kind="metrics"><Charts run={newest!.run_id} metrics={own} axis="clock" {...shared} /></Part>}
      {newest && <OwnUse id={newest.run_id} metrics={metrics ?? []} {...shared} />}
      {hasSamples && <Part title="What its nodes used" kind="metrics"><SampleCharts all={samples} {...shared} /></Part>}
    </>
  );
}
