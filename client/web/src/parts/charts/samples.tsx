// SPDX-License-Identifier: Apache-2.0
// What nodes and their GPUs have used, as charts over the same time.

import type { NodeSamples } from "../../controller/answers";
import { Chart } from "./chart";
import { known, sampleLine, type Line } from "./lines";

const GIB = 1 / 1024 ** 3;

/** What one node has used, and which of its GPUs are of interest; undefined: all. */
export interface Used {
  node: string;
  samples: NodeSamples;
  devices?: Set<number>;
}
type Column = "utilization_percent" | "memory_bytes" | "power_w" | "temperature_c";

/** `span` in seconds since 1970. Charts of one `sync` share their cursor. */
export function SampleCharts({ all, span, sync }: { all: Used[]; span?: [number, number]; sync: string }) {
  const named = (one: Used, what: string) => (all.length > 1 ? `${one.node}${what && ` ${what}`}` : what);
  const gpus = (column: Column, scale = 1) =>
    all.flatMap((one) =>
      one.samples.gpus
        .filter((gpu) => one.devices?.has(gpu.index) ?? true)
        .map((gpu) => sampleLine(named(one, `GPU ${gpu.index}`), one.samples.at_ms, gpu[column], scale)),
    );
  const nodes = (column: "cpu_percent" | "memory_bytes", scale = 1) => all.map((one) => sampleLine(named(one, ""), one.samples.at_ms, one.samples[column], scale));
  const charts: [string, Line[]][] = [
    ["GPU utilization in percent", gpus("utilization_percent")],
    ["GPU memory in GiB", gpus("memory_bytes", GIB)],
    ["GPU power in watts", gpus("power_w")],
    ["GPU temperature in °C", gpus("temperature_c")],
    ["CPU of the node in percent", nodes("cpu_percent")],
    ["Memory of the node in GiB", nodes("memory_bytes", GIB)],
  ];
  const some = charts.filter(([, lines]) => lines.some((line) => known(line).length > 1));
  return <div class="charts">{some.map(([title, lines]) => <Chart key={title} title={title} lines={lines} axis="clock" span={span} sync={sync} />)}</div>;
}
