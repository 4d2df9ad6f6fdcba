// SPDX-License-Identifier: Apache-2.0
// Who gets which nodes when: what runs until its expected end, reservations of jobs that wait, and maintenance windows, a line for each node.

import type { MaintenanceWindow, Queue } from "../../controller/answers";
import { useWidth } from "../width";
import { duration } from "../words";

const LINE = 16;
const GAP = 6;
const TOP = 6;
const BOTTOM = 22;
const LABEL = 110;
const RIGHT = 30;
const LINES = 40; // that are shown
const MOST_MS = 24 * 3600000;
const LEAST_MS = 1800000;
const STEPS_MS = [300000, 600000, 1800000, 3600000, 2 * 3600000, 6 * 3600000];

type Kind = "running" | "warning" | "other";
const WORDS: Record<Kind, string> = { running: "runs, until its expected end", warning: "is reserved for a job that waits", other: "maintenance window" };

export interface Span {
  lane: string; // a node, or which nodes
  kind: Kind;
  from: number; // ms since 1970
  to: number;
  text: string;
  href?: string;
}

const at = (text: string) => Date.parse(text);

function ofRunning(queue: Queue, now: number): Span[] {
  return queue.running.flatMap((job) => {
    const text = `job ${job.name ?? job.id} of ${job.owner}, ${job.gpus} ${job.gpus === 1 ? "GPU" : "GPUs"}`;
    return job.nodes.map((lane): Span => ({ lane, kind: "running", from: now, to: at(job.ends_at), text, href: `#/jobs/${job.id}` }));
  });
}

function ofReservations(queue: Queue): Span[] {
  return queue.jobs.flatMap((job) => job.reservations.flatMap((reserved) => {
    const from = at(reserved.from);
    const whose = `reserved for job ${job.name ?? job.id} of ${job.owner}${reserved.firm ? ", firmly" : ""}`;
    const span = (lane: string, text: string): Span => ({ lane, kind: "warning", from, to: from + 1000 * job.estimate_s, text, href: `#/jobs/${job.id}` });
    return reserved.nodes.length > 0
      ? reserved.nodes.map((place) => span(place.node, `${place.gpus} ${place.gpus === 1 ? "GPU" : "GPUs"} ${whose}`))
      : [span(`pool ${reserved.pool}`, `${reserved.all ? "all free" : "given up"} ${reserved.gpu_type} ${whose}`)];
  }));
}

function ofWindows(windows: MaintenanceWindow[], pool: string): Span[] {
  return windows.filter((one) => pool === "" || one.pool === null || one.pool === pool).flatMap((one) => {
    const lanes = one.nodes ?? [one.pool === null ? "all nodes" : `pool ${one.pool}`];
    const text = `${one.hard ? "what runs is stopped" : "what runs may end"}${one.reason === null ? "" : `: ${one.reason}`}`;
    return lanes.map((lane): Span => ({ lane, kind: "other", from: at(one.from), to: at(one.until), text }));
  });
}

/** All that is to come within a day. */
export function spansOf(queue: Queue, windows: MaintenanceWindow[], pool: string): Span[] {
  const now = at(queue.as_of);
  return [...ofWindows(windows, pool), ...ofReservations(queue), ...ofRunning(queue, now)]
    .filter((span) => span.to > now && span.from < now + MOST_MS)
    .map((span) => ({ ...span, from: Math.max(span.from, now) }));
}

/** Lanes in the order of their names, and in each the first row where a span is free of others. */
function layOut(spans: Span[]): { lane: string; row: number; rows: number; placed: [Span, number][] }[] {
  const lanes = new Map<string, Span[]>();
  for (const span of spans) {
    lanes.set(span.lane, [...(lanes.get(span.lane) ?? []), span]);
  }
  let row = 0;
  return [...lanes].sort(([a], [b]) => a.localeCompare(b, undefined, { numeric: true })).map(([lane, own]) => {
    const ends: number[] = [];
    const placed = own.sort((a, b) => a.from - b.from).map((span): [Span, number] => {
      const free = ends.findIndex((end) => end <= span.from);
      const chosen = free < 0 ? ends.length : free;
      ends[chosen] = span.to;
      return [span, chosen];
    });
    const first = row;
    row += ends.length;
    return { lane, row: first, rows: ends.length, placed };
  });
}

const clock = (ms: number) => `${String(new Date(ms).getHours()).padStart(2, "0")}:${String(new Date(ms).getMinutes()).padStart(2, "0")}`;

function say(span: Span, now: number): string {
  const begins = span.from > now ? `from ${clock(span.from)} in ${duration(span.from - now)} ` : "";
  return `${span.lane}: ${span.text}, ${begins}until ${clock(span.to)}`;
}

function Ticks({ now, end, x, bottom }: { now: number; end: number; x: (ms: number) => number; bottom: number }) {
  const room = Math.max(x(end) - x(now), 1);
  const step = STEPS_MS.find((size) => (room * size) / (end - now) >= 48) ?? STEPS_MS[STEPS_MS.length - 1]!;
  const ticks: number[] = [];
  for (let tick = Math.ceil(now / step) * step; tick <= end; tick += step) {
    ticks.push(tick);
  }
  return (
    <>
      {ticks.map((tick) => (
        <g key={tick}>
          <line class="grid" x1={x(tick)} x2={x(tick)} y1={0} y2={bottom} />
          <text x={x(tick)} y={bottom + 14} text-anchor="middle">{clock(tick)}</text>
        </g>
      ))}
    </>
  );
}

export function Schedule({ queue, windows, pool }: { queue: Queue; windows: MaintenanceWindow[]; pool: string }) {
  const [figure, width] = useWidth();
  const now = at(queue.as_of);
  const spans = spansOf(queue, windows, pool);
  const lanes = layOut(spans);
  const shown = lanes.filter((lane) => lane.row + lane.rows <= LINES);
  const last = shown[shown.length - 1];
  const bottom = TOP + (last === undefined ? 0 : (last.row + last.rows) * LINE + shown.length * GAP);
  const end = now + Math.min(Math.max(...spans.map((span) => span.to - now), LEAST_MS), MOST_MS);
  const x = (ms: number) => LABEL + ((ms - now) / (end - now)) * Math.max(width - LABEL - RIGHT, 1);
  const kinds = (Object.keys(WORDS) as Kind[]).filter((kind) => spans.some((span) => span.kind === kind));
  return (
    <figure class="card chart" ref={figure}>
      <figcaption>{`The next ${duration(end - now)}`}</figcaption>
      {spans.length === 0 && <p class="faint">Nothing runs, is reserved or is to be maintained within a day.</p>}
      <svg class="schedule" viewBox={`0 0 ${Math.max(width, 1)} ${bottom + BOTTOM}`} role="group" aria-label="Who gets which nodes when">
        <Ticks now={now} end={end} x={x} bottom={bottom} />
        {shown.map((lane, index) => {
          const top = TOP + lane.row * LINE + index * GAP;
          return (
            <g key={lane.lane}>
              <text x={0} y={top + 12}>{lane.lane.length > 16 ? `${lane.lane.slice(0, 15)}…` : lane.lane}</text>
              {lane.placed.map(([span, row], place) => {
                const bar = <rect class={`share-${span.kind}`} x={x(span.from)} y={top + row * LINE} width={Math.max(x(Math.min(span.to, end)) - x(span.from), 2)} height={LINE - 3} rx={2}><title>{say(span, now)}</title></rect>;
                return span.href === undefined ? <g key={place} role="img" aria-label={say(span, now)}>{bar}</g> : <a key={place} href={span.href} aria-label={say(span, now)}>{bar}</a>;
              })}
            </g>
          );
        })}
      </svg>
      <div class="legend">
        {kinds.map((kind) => <span key={kind} class={`key share-${kind}`}>{WORDS[kind]}</span>)}
        {lanes.length > shown.length && <span>{`${lanes.length - shown.length} more nodes are not shown`}</span>}
      </div>
    </figure>
  );
}
