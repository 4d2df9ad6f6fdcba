// SPDX-License-Identifier: Apache-2.0
// The metrics of a run: the last values as a table, and a chart for each name with a line for each rank that logged it.
// A metric is fetched again only when its last value has changed.

import { history } from "/web/api.js";
import { chart } from "/web/chart.js";
import { element, replace, table } from "/web/dom.js";
import { number } from "/web/words.js";

const CHARTS = 24; // before somebody asks for all
const AT_ONCE = 4; // requests

/** What ranks above 0 log as NAME/rank_N belongs to the chart of NAME. */
function group(metrics) {
  const groups = new Map();
  for (const metric of metrics) {
    const [, base, rank] = /^(.+)\/rank_(\d+)$/.exec(metric.key) ?? [null, metric.key, "0"];
    const members = groups.get(base) ?? [];
    members.push({ key: metric.key, rank: Number(rank), mark: `${metric.timestamp} ${metric.step} ${metric.value}` });
    groups.set(base, members.sort((a, b) => a.rank - b.rank));
  }
  const own = (name) => (name.startsWith("system/") ? 1 : 0);
  return [...groups].sort((a, b) => own(a[0]) - own(b[0]) || (a[0] < b[0] ? -1 : 1));
}

async function each(items, act) {
  const left = [...items];
  const work = async () => {
    while (left.length > 0) {
      await act(left.shift());
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

export class Metrics {
  constructor(run) {
    this.run = run;
    this.values = element("div");
    this.charts = element("div", { class: "charts" });
    this.none = element("p", { class: "faint" });
    this.more = element("button", { type: "button", hidden: true, onclick: () => this.showAll() });
    this.known = new Map(); // by name: {mark, points, whole}
    this.all = false;
    this.metrics = [];
  }

  showAll() {
    this.all = true;
    this.more.hidden = true;
    this.refresh(this.metrics).catch(() => {
      this.more.hidden = false;
    });
  }

  async refresh(metrics, signal) {
    this.metrics = metrics;
    replace(this.values, JSON.stringify(metrics), () => this.list(metrics));
    const groups = group(metrics);
    const shown = this.all ? groups : groups.slice(0, CHARTS);
    const stale = shown.flatMap(([, members]) => members).filter((member) => this.known.get(member.key)?.mark !== member.mark);
    await each(stale, async (member) => {
      this.known.set(member.key, { mark: member.mark, ...(await history(this.run, member.key, signal)) });
    });
    this.draw(shown);
    this.more.hidden = shown.length === groups.length;
    this.more.textContent = `Show all ${groups.length} charts`;
  }

  list(metrics) {
    if (metrics.length === 0) {
      return element("p", { class: "faint" }, "None yet.");
    }
    const sorted = [...metrics].sort((a, b) => (a.key < b.key ? -1 : 1));
    return table(["Name", "#Value", "#Step"], sorted.map((metric) => [metric.key, number(metric.value, 6), number(metric.step ?? 0)]));
  }

  /** A chart whose metrics have not changed stays as it is, under the pointer of whoever reads it. */
  draw(groups) {
    const before = new Map([...this.charts.children].map((child) => [child.dataset.name, child]));
    const places = groups.map(([name, members]) => {
      const place = before.get(name) ?? element("div", { "data-name": name });
      replace(place, JSON.stringify(members), () => this.one(name, members));
      return place;
    });
    if (places.some((place, index) => this.charts.children[index] !== place) || places.length !== this.charts.children.length) {
      this.charts.replaceChildren(...places);
    }
    const drawn = places.some((place) => place.childElementCount > 0);
    this.none.hidden = drawn;
    this.none.textContent = "A metric has a chart here once it has two values.";
  }

  one(name, members) {
    const known = members.map((member) => this.known.get(member.key));
    const label = (member) => (members.length > 1 || member.rank > 0 ? `rank ${member.rank}` : "");
    const series = members.map((member, index) => ({ label: label(member), points: known[index].points }));
    const several = series.some((one) => one.points.filter((point) => Number.isFinite(point.value)).length > 1);
    return several ? chart(name, series, known.every((one) => one.whole)) : [];
  }
}
