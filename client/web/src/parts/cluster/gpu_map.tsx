// SPDX-License-Identifier: Apache-2.0
// Every GPU of the cluster as a small square, by pool and node. A square leads to the job that holds the GPU, else to its node. Nodes that look as
// before are not drawn again, so that thousands of GPUs stay light. content-visibility would make scrolling ten times slower: boxes come into sight one by one.

import { Component } from "preact";

import type { Gpu } from "../../controller/answers";
import { lookOf, ownerColours, sayGpu, type Colour, type Look } from "./gpu_looks";
import { Chip } from "../state";

const LEGEND_LINES = 24;

interface Nodes {
  pool: string;
  kind: string;
  gpus: number;
  nodes: Gpu[][];
}

/** The GPUs by pool, then by node; they come in the order of their nodes. */
function byPool(gpus: Gpu[]): Nodes[] {
  const pools = new Map<string, Nodes>();
  for (const gpu of gpus) {
    const key = `${gpu.pool} ${gpu.pool_kind}`;
    const pool = pools.get(key) ?? { pool: gpu.pool, kind: gpu.pool_kind, gpus: 0, nodes: [] };
    pools.set(key, pool);
    pool.gpus++;
    const last = pool.nodes.at(-1);
    if (last?.[0]?.node === gpu.node) {
      last.push(gpu);
    } else {
      pool.nodes.push([gpu]);
    }
  }
  return [...pools.values()].sort((a, b) => (a.pool < b.pool ? -1 : 1));
}

/** Whether both are said and drawn alike. */
function isSame(a: Gpu, b: Gpu | undefined): boolean {
  return (
    a.uuid === b?.uuid && a.state === b.state && a.node_state === b.node_state && a.unavailable === b.unavailable && a.holder?.job === b.holder?.job &&
    a.holder?.rank === b.holder?.rank && a.sample?.utilization_percent === b.sample?.utilization_percent && a.sample?.memory_bytes === b.sample?.memory_bytes &&
    a.sample?.temperature_c === b.sample?.temperature_c && a.sample?.power_w === b.sample?.power_w
  );
}

interface OneNode {
  gpus: Gpu[];
  colour: Colour;
  colours: Map<string, number>;
  change: ((node: string, what: "drain" | "resume") => void) | null;
}

class NodeBox extends Component<OneNode> {
  override shouldComponentUpdate(next: OneNode): boolean {
    const { gpus, colour, colours, change } = this.props;
    const moved = colour === "owner" && gpus.some(({ holder }) => holder && colours.get(holder.owner) !== next.colours.get(holder.owner));
    return moved || next.colour !== colour || (next.change === null) !== (change === null) || next.gpus.length !== gpus.length || !next.gpus.every((gpu, at) => isSame(gpu, gpus[at]));
  }

  override render({ gpus, colour, colours, change }: OneNode) {
    const { node, node_state } = gpus[0]!;
    const what = node_state === "READY" || node_state === "SUSPECT" ? "drain" : "resume";
    return (
      <li class="node-box">
        <a class="name" href={`#/nodes/${node}`} title={node}>{node}</a>
        {node_state !== "READY" && <Chip state={node_state} />}
        <span class="gpus">
          {gpus.map((gpu) => {
            const { kind, sign } = lookOf(gpu, colour, colours);
            return <a key={gpu.index} class={`gpu gpu-${kind}`} href={gpu.holder ? `#/jobs/${gpu.holder.job}` : `#/nodes/${node}`} aria-label={sayGpu(gpu)} data-sign={sign} tabIndex={-1} />;
          })}
        </span>
        {change && <button type="button" class="small" aria-label={`${what === "drain" ? "Drain" : "Resume"} ${node}`} onClick={() => change(node, what)}>{what === "drain" ? "Drain" : "Resume"}</button>}
      </li>
    );
  }
}

/** What is said of a GPU, under the mouse, too: a title is made when it is looked for, which spares thousands of them. */
function title(event: Event): void {
  const gpu = event.target instanceof Element ? event.target.closest<HTMLElement>("a.gpu") : null;
  if (gpu) {
    gpu.title = gpu.getAttribute("aria-label") ?? "";
  }
}

/** Arrow keys go from a node's name through its GPUs, and to the nodes before and behind it. */
function move(event: KeyboardEvent): void {
  const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const step = steps[event.key];
  const from = event.target instanceof Element ? event.target.closest<HTMLElement>(".node-box > a, .gpu") : null;
  const box = from?.closest(".node-box");
  if (step === undefined || !from || !box) {
    return;
  }
  const links = (of: Element) => [...of.querySelectorAll<HTMLElement>("a")];
  const boxes = step[1] === 0 ? [] : [...(event.currentTarget as Element).querySelectorAll(".node-box")];
  const at = links(box).indexOf(from);
  const row = step[1] === 0 ? box : boxes[boxes.indexOf(box) + step[1]];
  const found = row && links(row);
  const to = found?.[Math.min(at + step[0], step[1] === 0 ? at + step[0] : found.length - 1)];
  if (to) {
    event.preventDefault();
    to.focus();
  }
}

function Legend({ gpus, colour, colours }: { gpus: Gpu[]; colour: Colour; colours: Map<string, number> }) {
  const lines = new Map<string, { look: Look; count: number }>();
  for (const gpu of gpus) {
    const look = lookOf(gpu, colour, colours);
    const line = lines.get(look.means) ?? { look, count: 0 };
    line.count++;
    lines.set(look.means, line);
  }
  const numbers = colour === "use" || colour === "temperature";
  const sorted = [...lines.values()].sort((a, b) => a.look.order - b.look.order || b.count - a.count);
  const shown = sorted.slice(0, LEGEND_LINES);
  return (
    <ul class="map-legend" aria-label="Legend">
      {shown.map(({ look, count }) => (
        <li key={look.means}>
          <span class={`gpu gpu-${look.kind}`} data-sign={numbers && look.kind !== "unknown" ? "" : look.sign} />
          {`${look.means}: ${count}`}
        </li>
      ))}
      {sorted.length > shown.length && <li>{`and ${sorted.length - shown.length} more`}</li>}
    </ul>
  );
}

interface WholeMap {
  gpus: Gpu[];
  colour: Colour;
  /** Drains and resumes nodes; null: the reader may not. */
  change: OneNode["change"];
}

export class GpuMap extends Component<WholeMap> {
  override shouldComponentUpdate(next: WholeMap): boolean {
    const { gpus, colour, change } = this.props;
    return next.gpus !== gpus || next.colour !== colour || (next.change === null) !== (change === null);
  }

  override render({ gpus, colour, change }: WholeMap) {
    const colours = ownerColours(gpus);
    return (
      <div class="map" onKeyDown={move} onMouseOver={title}>
        <Legend gpus={gpus} colour={colour} colours={colours} />
        {byPool(gpus).map((pool) => (
          <section key={`${pool.pool} ${pool.kind}`} aria-label={`Pool ${pool.pool}`}>
            <h3>{`${pool.pool} (${pool.kind}): ${pool.gpus} on ${pool.nodes.length} node${pool.nodes.length === 1 ? "" : "s"}`}</h3>
            <ul class="node-boxes">
              {pool.nodes.map((node) => <NodeBox key={node[0]!.node} gpus={node} colour={colour} colours={colours} change={change} />)}
            </ul>
          </section>
        ))}
        <p class="faint">Arrow keys go through the GPUs of a node.</p>
      </div>
    );
  }
}
