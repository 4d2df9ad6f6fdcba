// SPDX-License-Identifier: Apache-2.0
// The run of a job that had none when its link was made: the page waits for one, and goes there.

import { job, jobRuns } from "/web/api.js";
import { element } from "/web/dom.js";

const ENDED = ["SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT"];

export function jobView(id) {
  const said = element("p", { class: "line" });
  const view = { element: element("section", {}, said), crumbs: [{ text: `job ${id}` }] };
  view.refresh = async (signal) => {
    const [state, [newest]] = await Promise.all([job(id, signal).then((found) => found.state), jobRuns(id, signal)]);
    if (newest && newest.tracking_uri === null) {
      location.replace(`#/experiments/${newest.experiment_id}/runs/${newest.run_id}`);
      return false;
    }
    const ended = ENDED.includes(state);
    const elsewhere = newest ? `It tracks at ${newest.tracking_uri}.` : "";
    const none = ended
      ? "It has no run: it logged nothing by MLflow or runtime.log_metric."
      : "It has no run yet. This page shows the run as soon as the job logs something.";
    said.textContent = `Job ${id} is ${state}. ${elsewhere || none}`;
    return !ended && !elsewhere;
  };
  return view;
}
