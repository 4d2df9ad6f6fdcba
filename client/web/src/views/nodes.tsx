// SPDX-License-Identifier: Apache-2.0
// The nodes, and what is free on them: in all by GPU type and pool, GPU by GPU as a map, and by node. Administrators drain nodes here, and have them
// take work again. What the colours of the map show stands in the address.

import { useState } from "preact/hooks";

import type { Node } from "../controller/answers";
import { changeNode, gpus, nodes } from "../controller/api";
import { mayOperate } from "../controller/session";
import { Bar } from "../parts/bar";
import { useChange } from "../parts/change";
import { COLOURS, type Colour } from "../parts/cluster/gpu_looks";
import { GpuMap } from "../parts/cluster/gpu_map";
import { useCrumbs, useRenewed } from "../parts/renew";
import { Chip } from "../parts/state";
import { Table } from "../parts/table";
import { duration, freeOf, moment, size } from "../parts/words";

const RENEW_MS = 3000;
const MAP_RENEW_MS = 10000;
const MANY = 100; // nodes, whose lists are megabytes
const MANY_RENEW_MS = 30000; // then both

type Change = (name: string, what: "drain" | "resume") => void;
type Counts = Pick<Node, "gpus" | "free_gpus" | "unavailable_gpus">;

const isInWindow = ({ window }: Node) => window !== null && Date.parse(window.from) <= Date.now();

/** No job can get what nobody holds on a node that takes no work. */
function countsOf(node: Node): Counts {
  const { gpus, free_gpus, unavailable_gpus } = node;
  const works = node.state === "READY" && !isInWindow(node);
  return { gpus, free_gpus: works ? free_gpus : 0, unavailable_gpus: works ? unavailable_gpus : unavailable_gpus + free_gpus };
}

function Use({ gpus, free_gpus, unavailable_gpus }: Counts) {
  return (
    <Bar
      whole={gpus}
      shares={[
        { kind: "running", count: gpus - free_gpus - unavailable_gpus, what: "in use" },
        { kind: "bad", count: unavailable_gpus, what: "unavailable" },
        { kind: "good", count: free_gpus, what: "free" },
      ]}
    />
  );
}

/** Totals by GPU type and pool. */
function Totals({ all }: { all: Node[] }) {
  const sums = new Map<string, Counts & { type: string; pool: string; kind: string; nodes: number }>();
  for (const node of all) {
    const type = node.gpu_type ?? "none";
    const key = JSON.stringify([type, node.pool]);
    const sum = sums.get(key) ?? { type, pool: node.pool, kind: node.pool_kind, nodes: 0, gpus: 0, free_gpus: 0, unavailable_gpus: 0 };
    const counts = countsOf(node);
    sum.nodes++;
    sum.gpus += counts.gpus;
    sum.free_gpus += counts.free_gpus;
    sum.unavailable_gpus += counts.unavailable_gpus;
    sums.set(key, sum);
  }
  const sorted = [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = sorted.map(([, sum]) => [sum.type, `${sum.pool} (${sum.kind})`, String(sum.nodes), String(sum.gpus), String(sum.free_gpus), <Use {...sum} />]);
  return <Table titles={["GPU type", "Pool", "#Nodes", "#GPUs", "#Free", "Use"]} rows={rows} keys={sorted.map(([key]) => key)} />;
}

function row(node: Node, change: (what: "drain" | "resume") => void) {
  const takesWork = node.state === "READY" || node.state === "SUSPECT";
  const counts = countsOf(node);
  const window = isInWindow(node) && `maintenance until ${moment(Date.parse(node.window!.until))}`;
  const button = <button type="button" class="small" onClick={() => change(takesWork ? "drain" : "resume")}>{takesWork ? "Drain" : "Resume"}</button>;
  return [
    <a href={`#/nodes/${node.name}`}>{node.name}</a>,
    <Chip state={node.state} />,
    node.pool,
    node.gpu_type ?? "",
    `${counts.free_gpus} of ${counts.gpus}`,
    <Use {...counts} />,
    freeOf(node.free_cpus, node.cpus),
    freeOf(node.free_memory_bytes, node.memory_bytes, size),
    node.beat_age_s === null ? "" : duration(node.beat_age_s * 1000),
    <div class="reason">{[window, node.reason, node.unavailable].filter(Boolean).join("; ")}</div>,
    mayOperate() && button,
  ];
}

function ColourChoice({ colour }: { colour: Colour }) {
  return (
    <div class="tools">
      <label>
        Colour by
        <select value={colour} onChange={(event) => { location.hash = `#/nodes?${new URLSearchParams({ colour: event.currentTarget.value })}`; }}>
          {COLOURS.map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      </label>
    </div>
  );
}

export function NodesView({ search }: { search: URLSearchParams }) {
  const [many, setMany] = useState(false);
  const [all, againNodes] = useRenewed(`nodes ${many}`, async (signal) => {
    const value = await nodes(signal);
    setMany(value.length > MANY);
    return { value, more: true };
  }, many ? MANY_RENEW_MS : RENEW_MS);
  const [each, againGpus] = useRenewed(`gpus ${many}`, async (signal) => ({ value: await gpus({}, signal), more: true }), many ? MANY_RENEW_MS : MAP_RENEW_MS);
  const [refused, tryTo] = useChange(() => {
    againNodes();
    againGpus();
  });
  useCrumbs({ text: "nodes" });
  const change: Change = (name, what) => tryTo(changeNode(name, what), name);
  const colour = COLOURS.find((name) => name === search.get("colour")) ?? COLOURS[0];
  return (
    <section>
      <h1>Nodes</h1>
      {refused !== "" && <p class="line error" role="alert">{refused}</p>}
      {all?.length === 0 && <p class="line">No node is registered.</p>}
      {all && all.length > 0 && (
        <div>
          <Totals all={all} />
          <h2 class="part">GPU by GPU</h2>
          <ColourChoice colour={colour} />
          {each && <GpuMap gpus={each} colour={colour} change={mayOperate() ? change : null} />}
          <h2 class="part">By node</h2>
          <Table
            titles={["Node", "State", "Pool", "GPU type", "Free", "Use", "CPUs", "Memory", "Heard", "Reason", "Change"]}
            rows={all.map((node) => row(node, (what) => change(node.name, what)))}
            keys={all.map((node) => node.name)}
          />
        </div>
      )}
    </section>
  );
}
