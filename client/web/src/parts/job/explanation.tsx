// SPDX-License-Identifier: Apache-2.0
// Why a job waits, as a picture: the reason, the nodes and what keeps each from it, its turn, its estimated start, and the change that would
// start it now.

import type { WaitAnswer } from "../../controller/answers";
import { Fact } from "../page";
import { duration, moment } from "../words";

const WIDTH = 360;
const HEIGHT = 18;

/** Each test that nodes fail, in words. The order is that in which nodes are tested. */
const TESTS: Record<string, string> = {
  gpu_type: "have another GPU type",
  pool: "are in another pool",
  host: "are not the host of its sender",
  labels: "do not have its labels",
  draining: "take no new work",
  silent: "are silent",
  on_hold: "have declined a job just now",
  leaving: "go away before it would end",
  busy: "are busy",
  cpu_memory: "have too few CPUs or too little memory free",
  not_ready: "prepare its environment",
  reserved: "are reserved for another job",
};

function NodeBar({ answer }: { answer: WaitAnswer }) {
  const nodes = answer.nodes!;
  const parts = [{ test: "usable", nodes: nodes.usable, names: [] as string[] }, ...nodes.failed].filter((part) => part.nodes > 0);
  let from = 0;
  const colour = (test: string) => (test === "usable" ? "share-good" : test === "busy" ? "share-running" : ["draining", "silent", "leaving", "on_hold"].includes(test) ? "share-warning" : "share-other");
  return (
    <>
      <svg class="bar" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} preserveAspectRatio="none" role="img" aria-label={`of ${nodes.total} nodes ${nodes.usable} could take it now`}>
        {parts.map((part) => {
          const width = (part.nodes / Math.max(nodes.total, 1)) * WIDTH;
          from += width;
          return <rect key={part.test} class={colour(part.test)} x={from - width} y={0} width={Math.max(width - 1, 1)} height={HEIGHT} />;
        })}
      </svg>
      <ul class="plain">
        {parts.map((part) => (
          <li key={part.test} class={`key ${colour(part.test)}`}>
            {`${part.nodes} ${part.test === "usable" ? "could take it now" : (TESTS[part.test] ?? part.test)}`}
            {part.names.length > 0 && <span class="faint">{` (${part.names.join(", ")}${part.names.length < part.nodes ? ", ..." : ""})`}</span>}
          </li>
        ))}
      </ul>
    </>
  );
}

function when(start: NonNullable<WaitAnswer["start"]>): string {
  if (start.at === null) {
    return start.later_than === null ? "" : `later than ${moment(Date.parse(start.later_than))}`;
  }
  const window = start.earliest_at !== null && start.latest_at !== null ? `, between ${moment(Date.parse(start.earliest_at))} and ${moment(Date.parse(start.latest_at))}` : "";
  return `in ${duration(Date.parse(start.at) - Date.now())}, at ${moment(Date.parse(start.at))}${window} (${start.confidence} confidence)`;
}

export function Explanation({ answer }: { answer: WaitAnswer }) {
  const { reason, turn, start } = answer;
  return (
    <section class="card">
      {answer.refusal && <p class="error">{`It would be refused: ${answer.refusal.detail}`}{answer.refusal.hint && ` (${answer.refusal.hint})`}</p>}
      {reason && <p><b>{reason.text}</b></p>}
      {!reason && !answer.refusal && <p><b>It would start now.</b></p>}
      {answer.nodes && !answer.refusal && <NodeBar answer={answer} />}
      <dl>
        <Fact name="Ahead">{turn && (turn.ahead > 0 || turn.ahead_more) && `${turn.ahead}${turn.ahead_more ? " or more" : ""} jobs that wait for GPUs which it could use`}</Fact>
        <Fact name="Runs for">{turn && `${duration(turn.estimate_s * 1000)} (${turn.estimate_from.runs > 0 ? `as ${turn.estimate_from.runs} jobs like it` : "a guess"})`}</Fact>
        <Fact name="Starts">{reason && (start ? when(start) : reason.code === "LIMIT" ? "when the limit allows it" : "not with the nodes that take work now")}</Fact>
        <Fact name="Sooner">{reason && (answer.smallest_change ? answer.smallest_change.text : "no single change would start it now")}</Fact>
      </dl>
    </section>
  );
}
