// SPDX-License-Identifier: Apache-2.0
// The runs of an experiment, newest first.

import { experiment, runs } from "/web/api.js";
import { element, replace, table } from "/web/dom.js";
import { moment, number, status, took } from "/web/words.js";

const COLUMNS = 4; // names of metrics that the table has room for

/** The names that most runs have; what is measured of nodes and what ranks above 0 say is on the page of a run. */
function names(all) {
  const counts = new Map();
  for (const run of all) {
    for (const { key } of run.data.metrics ?? []) {
      if (!key.startsWith("system/") && !/\/rank_\d+$/.test(key)) {
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
    }
  }
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return sorted.slice(0, COLUMNS).map(([name]) => name).sort();
}

function row(run, metrics) {
  const values = new Map((run.data.metrics ?? []).map((metric) => [metric.key, metric.value]));
  const href = `#/experiments/${run.info.experiment_id}/runs/${run.info.run_id}`;
  return [
    element("a", { href }, run.info.run_name || run.info.run_id),
    status(run.info),
    moment(run.info.start_time),
    took(run.info),
    ...metrics.map((name) => (values.has(name) ? number(values.get(name)) : "")),
  ];
}

function listing(all) {
  if (all.length === 0) {
    return element("p", { class: "line" }, "This experiment has no runs yet.");
  }
  const metrics = names(all);
  return table(["Run", "Status", "Started", "Duration", ...metrics.map((name) => `#${name}`)], all.map((run) => row(run, metrics)));
}

export function runsView(id) {
  const title = element("h1");
  const list = element("div");
  const older = element("button", { type: "button", hidden: true }, "Show older runs");
  const view = { element: element("section", {}, title, list, older), crumbs: [{ text: `experiment ${id}` }] };
  let pages = 1;
  view.refresh = async (signal) => {
    const about = await experiment(id, signal);
    const all = [];
    let page = "";
    for (let count = 0; count < pages && (count === 0 || page); count++) {
      const reply = await runs(id, page, signal);
      all.push(...(reply.runs ?? []));
      page = reply.next_page_token ?? "";
    }
    view.crumbs = [{ text: about.name }];
    title.textContent = about.name;
    older.hidden = !page;
    const running = all.some((run) => run.info.status === "RUNNING");
    replace(list, JSON.stringify(all) + (running ? Date.now() : ""), () => listing(all));
    return running;
  };
  older.addEventListener("click", () => {
    pages += 1;
    older.hidden = true;
    view.again();
  });
  return view;
}
