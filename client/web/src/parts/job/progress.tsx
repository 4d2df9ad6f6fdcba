// SPDX-License-Identifier: Apache-2.0
// How far the tasks of an array are, and how long a job has run.

import type { ArrayProgress, Job } from "../../controller/answers";
import { Bar } from "../bar";
import { duration } from "../words";

export function Progress({ array }: { array: ArrayProgress }) {
  return (
    <Bar
      whole={array.tasks}
      shares={[
        { kind: "good", count: array.succeeded, what: "succeeded" },
        { kind: "bad", count: array.failed, what: "failed" },
        { kind: "warning", count: array.canceled, what: "canceled" },
        { kind: "running", count: array.running, what: "under way" },
      ]}
    />
  );
}

/** Since its start; "" before. */
export function ran(job: Job): string {
  const until = job.ended_at === null ? Date.now() : Date.parse(job.ended_at);
  return job.started_at === null ? "" : duration(until - Date.parse(job.started_at));
}
