// SPDX-License-Identifier: Apache-2.0
// Runs of one experiment side by side: a chart for each metric that they share with a line for each run, their parameters, and their last
// values. The address says which runs, and what the x axis is.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import type { Run } from "../controller/answers";
import { experiment, runsOf } from "../controller/api";
import { keyOf, type Axis } from "../parts/charts/lines";
import { byName, hasChart, markOf, MetricChart, rankOf, useHistories } from "../parts/charts/metrics";
import { Part } from "../parts/page";
import { useCrumbs, useRenewed } from "../parts/renew";
import { addressOf, hrefOf, namesOf, paramsOf, selectedRuns } from "../parts/runs/selection";
import { RunState, took } from "../parts/state";
import { Table } from "../parts/table";
import { moment, number } from "../parts/words";

const MOST = 12; // runs: more lines are not told apart
const CHARTS = 8; // before somebody asks for all: each fetches points of every run
const PAGES = 1; // of points that are fetched of one line
const CUT = 200; // characters of a value that are shown
const AXES = { step: "Step", time: "Time since the start" } as const;

type X = keyof typeof AXES;

const metricsOf = (run: Run) => new Map((run.data.metrics ?? []).filter(({ key }) => rankOf(key)[1] === 0).map((metric) => [metric.key, metric]));

/** All names of some maps. */
const keysOf = (maps: Map<string, unknown>[]) => [...new Set(maps.flatMap((map) => [...map.keys()]))];

/** The names that at least two runs have, or the only one. */
function shared(maps: Map<string, unknown>[]): string[] {
  return keysOf(maps).filter((name) => maps.filter((map) => map.has(name)).length >= Math.min(2, maps.length)).sort(byName);
}

function Name({ run, name, index }: { run: Run; name: string; index: number }) {
  return <a class={keyOf(index)} href={hrefOf(run)}>{name}</a>;
}

function Value({ text }: { text: string }) {
  return text.length > CUT ? <span title={text}>{`${text.slice(0, CUT)}…`}</span> : <>{text}</>;
}

/** A row for each name and a column for each run. Rows in which runs differ come first. */
function Matrix({ titles, maps }: { titles: ComponentChildren[]; maps: Map<string, string>[] }) {
  const differs = (name: string) => new Set(maps.map((map) => map.get(name))).size > 1;
  const names = keysOf(maps).sort((a, b) => Number(differs(b)) - Number(differs(a)) || (a < b ? -1 : 1));
  if (names.length === 0) {
    return <p class="faint">None.</p>;
  }
  const rows = names.map((name) => [<>{name} {differs(name) && <span class="faint">differs</span>}</>, ...maps.map((map) => <Value text={map.get(name) ?? ""} />)]);
  return <Table titles={["Name", ...titles]} rows={rows} keys={names} marked={names.map(differs)} />;
}

function LastValues({ titles, maps }: { titles: ComponentChildren[]; maps: Map<string, { value: number | string }>[] }) {
  const names = keysOf(maps).sort(byName);
  if (names.length === 0) {
    return <p class="faint">None yet.</p>;
  }
  const rows = names.map((name) => [name, ...maps.map((map) => (map.has(name) ? number(map.get(name)!.value, 6) : ""))]);
  return <Table titles={["Name", ...titles]} rows={rows} keys={names} />;
}

function Charts({ runs, names, axis }: { runs: Run[]; names: string[]; axis: Axis }) {
  const [all, showAll] = useState(false);
  const maps = runs.map(metricsOf);
  const found = shared(maps);
  const shown = all ? found : found.slice(0, CHARTS);
  const wanted = (run: Run, key: string) => ({ run: run.info.run_id, key, mark: markOf(metricsOf(run).get(key)!) });
  const has = (key: string) => runs.filter((_, index) => maps[index]!.has(key));
  const find = useHistories(shown.flatMap((key) => has(key).map((run) => wanted(run, key))), PAGES);
  const charts = shown.flatMap((key) => {
    const parts = has(key).map((run) => {
      const colour = runs.indexOf(run);
      return { label: names[colour]!, history: find(wanted(run, key)), start: Number(run.info.start_time), colour };
    });
    return hasChart(parts) ? [<MetricChart key={key} name={key} parts={parts} axis={axis} sync="runs" />] : [];
  });
  return (
    <>
      <div class="charts">{charts}</div>
      {charts.length === 0 && <p class="faint">A metric has a chart here that two of the runs have, once it has two values.</p>}
      {shown.length < found.length && <button type="button" onClick={() => showAll(true)}>{`Show all ${found.length} charts`}</button>}
    </>
  );
}

function Comparison({ runs, x }: { runs: Run[]; x: X }) {
  const names = namesOf(runs);
  const links = runs.map((run, index) => <Name run={run} name={names[index]!} index={index} />);
  const rows = runs.map((run, index) => [links[index]!, <RunState info={run.info} />, moment(run.info.start_time), took(run.info)]);
  return (
    <>
      <div><Table titles={["Run", "Status", "Started", "Duration"]} rows={rows} keys={runs.map((run) => run.info.run_id)} /></div>
      <Part title="Metrics" kind="metrics"><Charts runs={runs} names={names} axis={x === "time" ? "after" : "step"} /></Part>
      <Part title="Parameters" kind="params"><Matrix titles={links} maps={runs.map(paramsOf)} /></Part>
      <Part title="Last values" kind="values"><LastValues titles={links} maps={runs.map(metricsOf)} /></Part>
    </>
  );
}

export function CompareView({ id, search }: { id: string; search: URLSearchParams }) {
  const all = selectedRuns(search);
  const ids = all.slice(0, MOST);
  const x: X = search.get("x") === "time" ? "time" : "step";
  const [found] = useRenewed(`${id} ${ids}`, async (signal) => {
    const about = await experiment(id, signal);
    const listed = ids.length > 0 ? await runsOf(id, ids, signal) : [];
    const runs = ids.flatMap((one) => listed.find((run) => run.info.run_id === one) ?? []);
    return { value: { name: about.name, runs }, more: runs.some((run) => run.info.status === "RUNNING") };
  });
  useCrumbs({ text: found?.name ?? `experiment ${id}`, href: addressOf(id, "", all) }, { text: "compare" });
  if (found === undefined) {
    return null;
  }
  const gone = ids.length - found.runs.length;
  return (
    <section class="compare">
      <div class="tools">
        <h1>{`${found.runs.length} run${found.runs.length === 1 ? "" : "s"} compared`}</h1>
        <span class="gap" />
        <label>
          X axis
          <select value={x} onChange={(event) => location.replace(addressOf(id, "/compare", all, { x: event.currentTarget.value }))}>
            {(Object.keys(AXES) as X[]).map((name) => <option key={name} value={name}>{AXES[name]}</option>)}
          </select>
        </label>
      </div>
      {all.length > MOST && <p class="line">{`${all.length} runs are selected, and ${MOST} are compared: the first ones.`}</p>}
      {gone > 0 && <p class="line">{`${gone} of the selected runs ${gone === 1 ? "is" : "are"} not in this experiment, or deleted.`}</p>}
      {found.runs.length > 0 ? <Comparison runs={found.runs} x={x} /> : <p class="line">No run is selected: select some in the list of runs.</p>}
    </section>
  );
}
