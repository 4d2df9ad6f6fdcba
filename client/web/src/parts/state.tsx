// SPDX-License-Identifier: Apache-2.0
// The state of a run as a chip, and how long it has run.

import type { RunInfo } from "../controller/api";
import { duration } from "./words";

const KNOWN = ["RUNNING", "FINISHED", "FAILED", "KILLED"];

export function State({ info }: { info: RunInfo }) {
  const text = info.lifecycle_stage === "deleted" ? "DELETED" : info.status;
  return <span class={`chip ${KNOWN.includes(text) ? text.toLowerCase() : ""}`}>{text}</span>;
}

/** How long a run has run; of one that runs, until now. */
export function took(info: RunInfo): string {
  const start = Number(info.start_time);
  const end = Number(info.end_time) || (info.status === "RUNNING" ? Date.now() : 0);
  return start && end ? duration(end - start) : "";
}
