// SPDX-License-Identifier: Apache-2.0
// Runs that somebody has selected: they stand in the address, so a link leads to what its sender saw. Also how runs are named next to others.

import type { Run } from "../../controller/answers";

const SHORT = 8; // digits of an id that tell runs of one name apart

/** The ids in the address, as MLflow makes them: nothing in them has a meaning elsewhere. */
export function selectedRuns(search: URLSearchParams): string[] {
  return [...new Set((search.get("runs") ?? "").split(",").filter((id) => /^[0-9a-zA-Z_-]+$/.test(id)))];
}

/** The address of a view of an experiment; `rest` may be "/compare". */
export function addressOf(experiment: string, rest: string, ids: string[], more: Record<string, string> = {}): string {
  const search = [...(ids.length > 0 ? [`runs=${ids.join(",")}`] : []), ...Object.entries(more).map(([name, value]) => `${name}=${value}`)];
  return `#/experiments/${experiment}${rest}${search.length > 0 ? `?${search.join("&")}` : ""}`;
}

export const hrefOf = ({ info }: Run) => `#/experiments/${info.experiment_id}/runs/${info.run_id}`;

export const nameOf = ({ info }: Run) => info.run_name || info.run_id;

/** The name of each run, with a part of its id where several have one name. */
export function namesOf(runs: Run[]): string[] {
  const names = runs.map(nameOf);
  return names.map((name, index) => (names.indexOf(name) === names.lastIndexOf(name) ? name : `${name} (${runs[index]!.info.run_id.slice(0, SHORT)})`));
}

/** The values of a run's parameters, by name. */
export const paramsOf = ({ data }: Run) => new Map((data.params ?? []).map((param) => [param.key, param.value]));
