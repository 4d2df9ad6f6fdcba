// SPDX-License-Identifier: Apache-2.0
// What made the place of a job in the queue, as a bar. Under the policy default it is due at its submission, ten times its run time, and what
// its accounts have used beyond their shares; under others its age or its length counts alone.

import type { Queue, QueuedJob } from "../../controller/answers";
import { duration } from "../words";

const WIDTH = 160;
const HEIGHT = 10;

export interface Piece {
  kind: "running" | "warning" | "good" | "other";
  from: number; // 0 to 1, of the width
  to: number;
}

export interface Order {
  pieces: Piece[];
  text: string;
}

const at = (text: string) => Date.parse(text);

/** From the first submission of those that are shown to the last due time. */
function span(queue: Queue): [number, number] {
  const from = Math.min(...queue.jobs.map((job) => at(job.submitted_at)));
  const ends = queue.jobs.flatMap((job) => (job.due_at === null ? [] : [at(job.due_at), at(job.submitted_at) + 1000 * job.allowance_s!]));
  return [from, Math.max(...ends, from + 1)];
}

function byDue(queue: Queue, job: QueuedJob): Order {
  const [from, to] = span(queue);
  const place = (ms: number) => (ms - from) / (to - from);
  const submitted = at(job.submitted_at);
  const allowed = submitted + 1000 * job.allowance_s!;
  const due = at(job.due_at!);
  const delay = job.share_delay_s!;
  const later = delay > 0;
  const words = [`due ${duration(Math.abs(due - at(queue.as_of)))} ${due >= at(queue.as_of) ? "from now" : "ago"}`, `submitted ${duration(at(queue.as_of) - submitted)} ago`, `${duration(1000 * job.allowance_s!)} for ${duration(1000 * job.estimate_s)} of run time`];
  if (Math.abs(delay) >= 1) {
    words.push(`${duration(1000 * Math.abs(delay))} ${later ? "later" : "earlier"} for its share`);
  }
  return {
    pieces: [
      { kind: "running", from: place(submitted), to: place(later ? allowed : due) },
      { kind: later ? "warning" : "good", from: place(Math.min(allowed, due)), to: place(Math.max(allowed, due)) },
    ],
    text: words.join(", "),
  };
}

function byOne(queue: Queue, job: QueuedJob): Order {
  const old = !["sjf", "srtf", "srsf"].includes(queue.policy);
  const size = (one: QueuedJob) => (old ? at(queue.as_of) - at(one.submitted_at) : 1000 * one.estimate_s);
  const most = Math.max(...queue.jobs.map(size), 1);
  return { pieces: [{ kind: "running", from: 0, to: size(job) / most }], text: old ? `submitted ${duration(size(job))} ago` : `about ${duration(size(job))} of run time` };
}

export const orderOf = (queue: Queue, job: QueuedJob): Order => (job.due_at === null ? byOne(queue, job) : byDue(queue, job));

/** What the bars mean, in one sentence. */
export function ruleOf(policy: string): string {
  switch (policy) {
    case "default":
      return "The highest priority goes first, then the job that is due first: blue is ten times its run time from its submission on, amber what its project and owner have used beyond their shares, green what they have not.";
    case "fifo":
    case "easy":
      return "The oldest job goes first.";
    default:
      return "The shortest job goes first.";
  }
}

export function OrderBar({ queue, job }: { queue: Queue; job: QueuedJob }) {
  const { pieces, text } = orderOf(queue, job);
  return (
    <>
      <svg class="bar" width={WIDTH} height={HEIGHT} role="img" aria-label={text}>
        <title>{text}</title>
        {pieces.map((piece) => {
          const from = Math.max(piece.from, 0) * WIDTH;
          return <rect key={piece.kind} class={`share-${piece.kind}`} x={from} y={0} width={Math.max(Math.min(piece.to, 1) * WIDTH - from, piece.to > piece.from ? 1 : 0)} height={HEIGHT} />;
        })}
      </svg>
      <span class="reason">{text.split(", ")[0]}</span>
    </>
  );
}
