// SPDX-License-Identifier: Apache-2.0
// The ranks of an attempt as a grid: each is a square with its number, and its colour says how it is.

import type { Attempt } from "../../controller/answers";

function lookOf(attempt: Attempt, rank: number): { kind: string; what: string } {
  const exit = attempt.ranks.find((one) => one.rank === rank);
  if (exit === undefined) {
    return attempt.state === "STARTED" ? { kind: "running", what: "runs" } : { kind: "", what: "has not ended" };
  }
  if (exit.exit_code === 0) {
    return { kind: "good", what: "exited with 0" };
  }
  return { kind: "bad", what: exit.signal === null ? `exited with ${exit.exit_code}` : `was ended by signal ${exit.signal}` };
}

export function Ranks({ attempt }: { attempt: Attempt }) {
  return (
    <ul class="ranks">
      {attempt.nodes.flatMap((node) =>
        Array.from({ length: node.local_ranks }, (_, index) => {
          const rank = node.first_rank + index;
          const { kind, what } = lookOf(attempt, rank);
          const title = `rank ${rank} on ${node.node} ${what}${rank === attempt.failed_rank ? ", the first that failed" : ""}`;
          return <li key={rank} class={`chip ${kind}`} title={title}>{String(rank)}<span class="hidden-text">{` ${what}`}</span></li>;
        }),
      )}
    </ul>
  );
}
