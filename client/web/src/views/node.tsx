// SPDX-License-Identifier: Apache-2.0
// One node: how it is, and what it and its GPUs have used in the last hours.

import { useState } from "preact/hooks";

import { changeNode, node, nodeSamples, type NodeDetail } from "../controller/api";
import { person } from "../controller/session";
import { useChange } from "../parts/change";
import { Fact, Part } from "../parts/page";
import { useCrumbs, useRenewed } from "../parts/renew";
import { SampleCharts } from "../parts/samples";
import { Chip } from "../parts/state";
import { Table } from "../parts/table";
import { duration, size } from "../parts/words";

const RENEW_MS = 10000;
const SAMPLES_RENEW_MS = 60000;
const HOUR_MS = 3600000;
const SPANS: Record<string, number> = { "1 hour": HOUR_MS, "6 hours": 6 * HOUR_MS, "1 day": 24 * HOUR_MS };

function Facts({ found }: { found: NodeDetail }) {
  return (
    <dl>
      <Fact name="State"><Chip state={found.state} /></Fact>
      <Fact name="Reason">{found.reason}</Fact>
      <Fact name="Pool">{`${found.pool}${found.pool_kind === "reserved" ? " (reserved)" : ""}`}</Fact>
      <Fact name="GPUs">{`${found.free_gpus} of ${found.gpus} ${found.gpu_type ?? ""} free`}</Fact>
      <Fact name="Heard">{found.beat_age_s !== null && `${duration(found.beat_age_s * 1000)} ago`}</Fact>
      <Fact name="Address">{found.address}</Fact>
      <Fact name="Version">{found.version}</Fact>
    </dl>
  );
}

function Devices({ found }: { found: NodeDetail }) {
  const rows = found.devices.map((one) => [String(one.index), one.type, one.memory_bytes > 0 ? size(one.memory_bytes) : "", <code>{one.uuid}</code>, <div class="reason">{one.unavailable}</div>]);
  return <Table titles={["#GPU", "Type", "#Memory", "UUID", "Unavailable"]} rows={rows} keys={found.devices.map((one) => String(one.index))} />;
}

function Samples({ name }: { name: string }) {
  const [span, setSpan] = useState("1 hour");
  const [found] = useRenewed(`${name} ${span}`, async (signal) => ({ value: await nodeSamples(name, Date.now() - SPANS[span]!, undefined, signal), more: true }), SAMPLES_RENEW_MS);
  if (found === undefined) {
    return null;
  }
  return (
    <>
      <div class="tools">
        <label>
          Time
          <select value={span} onChange={(event) => setSpan(event.currentTarget.value)}>
            {Object.keys(SPANS).map((text) => <option key={text} value={text}>{text}</option>)}
          </select>
        </label>
      </div>
      {found.at_ms.length < 2 && <p class="faint">There are charts here once the node has been measured twice: each 30 s.</p>}
      {found.at_ms.length >= 2 && <SampleCharts all={[{ node: name, samples: found }]} sync={name} />}
    </>
  );
}

export function NodeView({ name }: { name: string }) {
  const [found, again] = useRenewed(name, async (signal) => ({ value: await node(name, signal), more: true }), RENEW_MS);
  const [refused, tryTo] = useChange(again);
  useCrumbs({ text: "nodes", href: "#/nodes" }, { text: name });
  if (found === undefined) {
    return null;
  }
  const takesWork = found.state === "READY" || found.state === "SUSPECT";
  const change = () => tryTo(changeNode(name, takesWork ? "drain" : "resume"));
  return (
    <article>
      <div class="tools">
        <h1>{name}</h1>
        <span class="gap" />
        {person()?.role === "admin" && <button type="button" onClick={change}>{takesWork ? "Drain" : "Resume"}</button>}
      </div>
      {refused !== "" && <p class="line error" role="alert">{refused}</p>}
      <div class="columns">
        <div class="side">
          <section class="card"><Facts found={found} /></section>
          <Part title="GPUs" kind="values"><Devices found={found} /></Part>
        </div>
        <div class="wide"><Part title="What it used" kind="metrics"><Samples name={name} /></Part></div>
      </div>
    </article>
  );
}
