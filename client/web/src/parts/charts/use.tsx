// SPDX-License-Identifier: Apache-2.0
// What a job has measured, and under it what its nodes used meanwhile: charts over one time, of which the cursor and the zoom are shared.

import { Failure, nodeSamples, run, type JobDetail, type JobRun, type Metric } from "../../controller/api";
import { Charts, isOfSystem } from "./metrics";
import { Part } from "../page";
import { useRenewed } from "../renew";
import { SampleCharts, type Used } from "./samples";

const RENEW_MS = 10000;
const SAMPLES_RENEW_MS = 30000;
const SAMPLED_NODES = 8; // whose use is drawn
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

/** What the run of the newest attempt says; nothing where the job tracks elsewhere. What it measured of the system the samples show. */
async function metricsOf(newest: JobRun | undefined, signal: AbortSignal): Promise<Metric[]> {
  const found = newest !== undefined ? await orNull(run(newest.run_id, signal)) : null;
  return (found?.data.metrics ?? []).filter((metric) => !isOfSystem(metric.key));
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
  const hasMetrics = metrics !== undefined && metrics.length > 0;
  const hasSamples = samples !== undefined && samples.length > 0;
  return (
    <>
      {hasMetrics && <Part title="Metrics" kind="metrics"><Charts run={newest!.run_id} metrics={metrics} axis="clock" {...shared} /></Part>}
      {hasSamples && <Part title="What its nodes used" kind="metrics"><SampleCharts all={samples} {...shared} /></Part>}
    </>
  );
}
