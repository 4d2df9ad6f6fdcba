// SPDX-License-Identifier: Apache-2.0
// States of runs, jobs, nodes, webhooks and deliveries as chips, and how long a run has run.

import type { RunInfo } from "../controller/answers";
import { duration } from "./words";

/** The colours of the style sheet, by state; another state is grey. */
const COLOURS: Record<string, string> = {
  RUNNING: "running",
  FINISHED: "good",
  SUCCEEDED: "good",
  READY: "good",
  DELIVERED: "good",
  ok: "good",
  FAILED: "bad",
  LOST: "bad",
  KILLED: "warning",
  TIMED_OUT: "warning",
  SUSPECT: "warning",
  DRAINING: "warning",
  DRAINED: "warning",
  failing: "warning",
};

export function Chip({ state }: { state: string }) {
  return <span class={`chip ${COLOURS[state] ?? ""}`}>{state}</span>;
}

export function RunState({ info }: { info: RunInfo }) {
  return <Chip state={info.lifecycle_stage === "deleted" ? "DELETED" : info.status} />;
}

/** How long a run has run; of one that runs, until now. */
export function took(info: RunInfo): string {
  const start = Number(info.start_time);
  const end = Number(info.end_time) || (info.status === "RUNNING" ? Date.now() : 0);
  return start && end ? duration(end - start) : "";
}
