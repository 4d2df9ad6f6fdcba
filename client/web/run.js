// SPDX-License-Identifier: Apache-2.0
// One run: what it is, its parameters, metrics, tags and artifacts. It renews itself while the run is under way.

import { experiment, run } from "/web/api.js";
import { Artifacts } from "/web/artifacts.js";
import { element, replace, table } from "/web/dom.js";
import { Metrics } from "/web/metrics.js";
import { moment, status, took } from "/web/words.js";

const LIVE = ["RUNNING", "SCHEDULED"];

function fact(name, value) {
  return value ? [element("dt", {}, name), element("dd", {}, value)] : [];
}

function facts(info, tags) {
  const job = tags.get("gpuctl.job_id");
  const attempt = tags.get("gpuctl.attempt");
  const nodes = Number(tags.get("gpuctl.nodes") ?? 1);
  const size = job ? `${tags.get("gpuctl.gpus") ?? "?"} on ${nodes} node${nodes === 1 ? "" : "s"}` : "";
  return element(
    "dl",
    {},
    fact("Status", status(info)),
    fact("Started", moment(info.start_time)),
    fact("Ended", moment(info.end_time)),
    fact("Duration", took(info)),
    fact("Job", job ? [element("code", {}, job), Number(attempt) > 1 ? `, attempt ${attempt}` : ""] : null),
    fact("Ranks", size),
    fact("User", info.user_id),
    fact("Run", element("code", {}, info.run_id)),
    job ? fact("Output", element("code", {}, `gpuctl logs ${job}`)) : [],
  );
}

function pairs(items) {
  if (items.length === 0) {
    return element("p", { class: "faint" }, "None.");
  }
  const sorted = [...items].sort((a, b) => (a.key < b.key ? -1 : 1));
  return table(["Name", "Value"], sorted.map((item) => [item.key, item.value]));
}

function section(title, kind, ...children) {
  return element("section", { class: `part ${kind}` }, element("h2", {}, title), children);
}

export function runView(experimentId, id) {
  const title = element("h1");
  const about = element("div");
  const params = element("div");
  const tags = element("div");
  const metrics = new Metrics(id);
  const files = new Artifacts(id);
  const side = element("div", { class: "side" }, element("section", { class: "card" }, about), section("Parameters", "params", params),
    section("Last values", "values", metrics.values), section("Tags", "tags", tags));
  const wide = element("div", { class: "wide" }, section("Metrics", "metrics", metrics.charts, metrics.none, metrics.more),
    section("Artifacts", "artifacts", files.element));
  const view = { element: element("article", { hidden: true }, title, element("div", { class: "columns" }, side, wide)), crumbs: [] };
  let where = "";

  view.refresh = async (signal) => {
    const { info, data } = await run(id, signal);
    where ||= (await experiment(info.experiment_id, signal)).name;
    const named = new Map((data.tags ?? []).map((tag) => [tag.key, tag.value]));
    const live = LIVE.includes(info.status);
    view.crumbs = [{ text: where, href: `#/experiments/${info.experiment_id}` }, { text: info.run_name || info.run_id }];
    title.textContent = info.run_name || info.run_id;
    replace(about, JSON.stringify([info, data.tags]) + (live ? took(info) : ""), () => facts(info, named));
    replace(params, JSON.stringify(data.params ?? []), () => pairs(data.params ?? []));
    replace(tags, JSON.stringify(data.tags ?? []), () => pairs(data.tags ?? []));
    view.element.hidden = false;
    await Promise.all([metrics.refresh(data.metrics ?? [], signal), files.refresh(signal)]);
    return live;
  };
  return view;
}
