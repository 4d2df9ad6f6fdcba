// SPDX-License-Identifier: Apache-2.0
// The run of a job that had none when its link was made: the page waits for one, and goes there.

import { jobRuns, jobState } from "../controller/api";
import { useCrumbs, useRenewed } from "../parts/renew";

const ENDED = ["SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT"];

function what(ended: boolean, elsewhere: string | null | undefined): string {
  if (elsewhere) {
    return `It tracks at ${elsewhere}.`;
  }
  return ended
    ? "It has no run: it logged nothing by MLflow or runtime.log_metric."
    : "It has no run yet. This page shows the run as soon as the job logs something.";
}

export function JobView({ id }: { id: string }) {
  useCrumbs({ text: `job ${id}` });
  const [said] = useRenewed(id, async (signal) => {
    const [state, [newest]] = await Promise.all([jobState(id, signal), jobRuns(id, signal)]);
    if (newest?.tracking_uri === null) {
      location.replace(`#/experiments/${newest.experiment_id}/runs/${newest.run_id}`);
      return { value: "", more: false };
    }
    const ended = ENDED.includes(state);
    return { value: `Job ${id} is ${state}. ${what(ended, newest?.tracking_uri)}`, more: !ended && newest === undefined };
  });
  return said ? <p class="line">{said}</p> : null;
}
