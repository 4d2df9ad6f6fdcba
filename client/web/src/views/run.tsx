// SPDX-License-Identifier: Apache-2.0
// One run: what it is, its parameters, metrics, tags and artifacts. It renews itself while the run is under way.

import { useRef } from "preact/hooks";

import type { Pair, RunInfo } from "../controller/answers";
import { experiment, run } from "../controller/api";
import { Artifacts } from "../parts/runs/artifacts";
import { Charts, LastValues } from "../parts/charts/metrics";
import { Fact, Part } from "../parts/page";
import { useCrumbs, useRenewed } from "../parts/renew";
import { RunState, took } from "../parts/state";
import { Table } from "../parts/table";
import { moment } from "../parts/words";

const LIVE = ["RUNNING", "SCHEDULED"];

function Facts({ info, tags }: { info: RunInfo; tags: Pair[] }) {
  const named = new Map(tags.map((tag) => [tag.key, tag.value]));
  const job = named.get("gpuctl.job_id");
  const attempt = named.get("gpuctl.attempt");
  const nodes = Number(named.get("gpuctl.nodes") ?? 1);
  return (
    <dl>
      <Fact name="Status"><RunState info={info} /></Fact>
      <Fact name="Started">{moment(info.start_time)}</Fact>
      <Fact name="Ended">{moment(info.end_time)}</Fact>
      <Fact name="Duration">{took(info)}</Fact>
      <Fact name="Job">{job && <><a href={`#/jobs/${job}`}><code>{job}</code></a>{Number(attempt) > 1 && `, attempt ${attempt}`}</>}</Fact>
      <Fact name="Ranks">{job && `${named.get("gpuctl.gpus") ?? "?"} on ${nodes} node${nodes === 1 ? "" : "s"}`}</Fact>
      <Fact name="User">{info.user_id}</Fact>
      <Fact name="Run"><code>{info.run_id}</code></Fact>
      <Fact name="Output">{job && <code>{`gpuctl logs ${job}`}</code>}</Fact>
    </dl>
  );
}

function Pairs({ items }: { items: Pair[] }) {
  if (items.length === 0) {
    return <p class="faint">None.</p>;
  }
  const sorted = [...items].sort((a, b) => (a.key < b.key ? -1 : 1));
  return <Table titles={["Name", "Value"]} rows={sorted.map((item) => [item.key, item.value])} keys={sorted.map((item) => item.key)} />;
}

export function RunView({ experimentId, id }: { experimentId: string; id: string }) {
  const turn = useRef(0);
  const [found] = useRenewed(id, async (signal) => {
    const newest = await run(id, signal);
    const about = await experiment(newest.info.experiment_id, signal);
    turn.current++;
    return { value: { ...newest, experiment: about.name, turn: turn.current }, more: LIVE.includes(newest.info.status) };
  });
  const title = found ? found.info.run_name || found.info.run_id : id;
  useCrumbs({ text: found?.experiment ?? `experiment ${experimentId}`, href: `#/experiments/${experimentId}` }, { text: title });
  if (found === undefined) {
    return null;
  }
  const metrics = found.data.metrics ?? [];
  const tags = found.data.tags ?? [];
  return (
    <article>
      <h1>{title}</h1>
      <div class="columns">
        <div class="side">
          <section class="card"><Facts info={found.info} tags={tags} /></section>
          <Part title="Parameters" kind="params"><Pairs items={found.data.params ?? []} /></Part>
          <Part title="Last values" kind="values"><LastValues metrics={metrics} /></Part>
          <Part title="Tags" kind="tags"><Pairs items={tags} /></Part>
        </div>
        <div class="wide">
          <Part title="Metrics" kind="metrics"><Charts run={id} metrics={metrics} /></Part>
          <Part title="Artifacts" kind="artifacts"><Artifacts run={id} turn={found.turn} /></Part>
        </div>
      </div>
    </article>
  );
}
