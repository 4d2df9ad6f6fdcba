// SPDX-License-Identifier: Apache-2.0
// The runs of an experiment, newest first.

import { useState } from "preact/hooks";

import { experiment, runs, type Run } from "../controller/api";
import { useCrumbs, useRenewed } from "../parts/renew";
import { RunState, took } from "../parts/state";
import { Table } from "../parts/table";
import { moment, number } from "../parts/words";

const COLUMNS = 4; // names of metrics that the table has room for

/** The names that most runs have; what is measured of nodes and what ranks above 0 say is on the page of a run. */
function names(all: Run[]): string[] {
  const counts = new Map<string, number>();
  for (const run of all) {
    for (const { key } of run.data.metrics ?? []) {
      if (!key.startsWith("system/") && !/\/rank_\d+$/.test(key)) {
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
    }
  }
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return sorted.slice(0, COLUMNS).map(([name]) => name).sort();
}

function row(run: Run, metrics: string[]) {
  const values = new Map((run.data.metrics ?? []).map((metric) => [metric.key, metric.value]));
  return [
    <a href={`#/experiments/${run.info.experiment_id}/runs/${run.info.run_id}`}>{run.info.run_name || run.info.run_id}</a>,
    <RunState info={run.info} />,
    moment(run.info.start_time),
    took(run.info),
    ...metrics.map((name) => (values.has(name) ? number(values.get(name)!) : "")),
  ];
}

function Listing({ all }: { all: Run[] }) {
  if (all.length === 0) {
    return <p class="line">This experiment has no runs yet.</p>;
  }
  const metrics = names(all);
  const titles = ["Run", "Status", "Started", "Duration", ...metrics.map((name) => `#${name}`)];
  return <Table titles={titles} rows={all.map((run) => row(run, metrics))} keys={all.map((run) => run.info.run_id)} />;
}

export function RunsView({ id }: { id: string }) {
  const [pages, setPages] = useState(1);
  const [found] = useRenewed(`${id} ${pages}`, async (signal) => {
    const about = await experiment(id, signal);
    const listed = await runs(id, pages, signal);
    const running = listed.runs.some((run) => run.info.status === "RUNNING");
    return { value: { name: about.name, ...listed }, more: running };
  });
  useCrumbs({ text: found?.name ?? `experiment ${id}` });
  return (
    <section>
      <h1>{found?.name}</h1>
      {found && <Listing all={found.runs} />}
      {found?.more && <button type="button" onClick={() => setPages(pages + 1)}>Show older runs</button>}
    </section>
  );
}
