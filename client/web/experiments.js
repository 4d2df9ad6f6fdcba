// SPDX-License-Identifier: Apache-2.0
// The list of experiments.

import { experiments } from "/web/api.js";
import { element, replace, table } from "/web/dom.js";
import { moment } from "/web/words.js";

function row(experiment) {
  return [
    element("a", { href: `#/experiments/${experiment.experiment_id}` }, experiment.name),
    moment(experiment.creation_time),
    moment(experiment.last_update_time),
  ];
}

export function experimentsView() {
  const list = element("div");
  const view = { element: element("section", {}, element("h1", {}, "Experiments"), list), crumbs: [] };
  view.refresh = async (signal) => {
    const all = [];
    let page = "";
    do {
      const reply = await experiments(page, signal);
      all.push(...(reply.experiments ?? []));
      page = reply.next_page_token ?? "";
    } while (page);
    replace(list, JSON.stringify(all), () => table(["Experiment", "Made", "Changed"], all.map(row)));
    return false;
  };
  return view;
}
