// SPDX-License-Identifier: Apache-2.0
// The runs of an experiment, newest first, with their parameters and metrics. Selected ones stand in the address, and are compared.

import { useState } from "preact/hooks";

import type { Run } from "../controller/answers";
import { experiment, runs } from "../controller/api";
import { isOfSystem, rankOf } from "../parts/charts/metrics";
import { useCrumbs, useRenewed } from "../parts/renew";
import { addressOf, hrefOf, nameOf, paramsOf, selectedRuns } from "../parts/runs/selection";
import { RunState, took } from "../parts/state";
import { Table } from "../parts/table";
import { moment, number } from "../parts/words";

const COLUMNS = 4; // names of metrics, and of parameters, that the table has room for
const CUT = 24; // characters of a parameter

const metricsOf = (run: Run) => new Map((run.data.metrics ?? []).map((metric) => [metric.key, metric.value]));

/** The names that most runs have, those first of which `weight` says more. */
function common(maps: Map<string, unknown>[], weight: (name: string) => number): string[] {
  const counts = new Map<string, number>();
  for (const name of maps.flatMap((map) => [...map.keys()])) {
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const sorted = [...counts].sort((a, b) => weight(b[0]) - weight(a[0]) || b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return sorted.slice(0, COLUMNS).map(([name]) => name).sort();
}

/** What is measured of nodes and what ranks above 0 say is on the page of a run. */
function metricNames(all: Run[]): string[] {
  const isShown = (key: string) => !isOfSystem(key) && rankOf(key)[1] === 0;
  return common(all.map((run) => new Map([...metricsOf(run)].filter(([key]) => isShown(key)))), () => 0);
}

/** Parameters in which runs differ say more. */
function paramNames(all: Run[]): string[] {
  const maps = all.map(paramsOf);
  return common(maps, (name) => (new Set(maps.map((map) => map.get(name))).size > 1 ? 1 : 0));
}

const cut = (text: string) => (text.length > CUT ? `${text.slice(0, CUT)}…` : text);

interface ListingProps {
  all: Run[];
  selected: string[];
  select: (id: string, on: boolean) => void;
}

function Listing({ all, selected, select }: ListingProps) {
  if (all.length === 0) {
    return <p class="line">This experiment has no runs yet.</p>;
  }
  const metrics = metricNames(all);
  const params = paramNames(all);
  const row = (run: Run) => {
    const id = run.info.run_id;
    const values = metricsOf(run);
    return [
      <input type="checkbox" aria-label={`Select run ${nameOf(run)}`} checked={selected.includes(id)} onChange={(event) => select(id, event.currentTarget.checked)} />,
      <a href={hrefOf(run)}>{nameOf(run)}</a>,
      <RunState info={run.info} />,
      moment(run.info.start_time),
      took(run.info),
      ...params.map((name) => cut(paramsOf(run).get(name) ?? "")),
      ...metrics.map((name) => (values.has(name) ? number(values.get(name)!) : "")),
    ];
  };
  const titles = ["Select", "Run", "Status", "Started", "Duration", ...params.map((name) => <>{name}</>), ...metrics.map((name) => `#${name}`)];
  return <Table titles={titles} rows={all.map(row)} keys={all.map((run) => run.info.run_id)} />;
}

export function RunsView({ id, search }: { id: string; search: URLSearchParams }) {
  const [pages, setPages] = useState(1);
  const [found] = useRenewed(`${id} ${pages}`, async (signal) => {
    const about = await experiment(id, signal);
    const listed = await runs(id, pages, signal);
    const running = listed.runs.some((run) => run.info.status === "RUNNING");
    return { value: { name: about.name, ...listed }, more: running };
  });
  const selected = selectedRuns(search);
  const select = (one: string, on: boolean) => location.replace(addressOf(id, "", on ? [...selected, one] : selected.filter((other) => other !== one)));
  useCrumbs({ text: found?.name ?? `experiment ${id}` });
  return (
    <section>
      <div class="tools">
        <h1>{found?.name}</h1>
        <span class="gap" />
        {selected.length > 0 && <a class="button" href={addressOf(id, "/compare", selected)}>{`Compare ${selected.length}`}</a>}
      </div>
      {found && <div><Listing all={found.runs} selected={selected} select={select} /></div>}
      {found?.more && <button type="button" onClick={() => setPages(pages + 1)}>Show older runs</button>}
    </section>
  );
}
