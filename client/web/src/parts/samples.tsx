// SPDX-License-Identifier: Apache-2.0
// What nodes and their GPUs have used, as charts over the same time.

import type { NodeSamples, Point } from "../controller/api";
import { Chart, type Series } from "./chart";

const GIB = 1 / 1024 ** 3;

/** What one node has used, and which of its GPUs are of interest; undefined: all. */
export interface Used {
  node: string;
  samples: NodeSamples;
  devices?: Set<number>;
}
type Column = "utilization_percent" | "memory_bytes" | "power_w" | "temperature_c";

function points(at: number[], values: (number | null)[], scale = 1): Point[] {
  return at.flatMap((ms, index) => (values[index] === null || values[index] === undefined ? [] : [{ step: 0, at: ms, value: values[index]! * scale }]));
}

function Drawn({ title, series }: { title: string; series: Series[] }) {
  return series.some((one) => one.points.length > 1) ? <Chart name={title} series={series} whole /> : null;
}

export function SampleCharts({ all }: { all: Used[] }) {
  const named = (one: Used, what: string) => (all.length > 1 ? `${one.node}${what && ` ${what}`}` : what);
  const gpus = (column: Column, scale?: number) =>
    all.flatMap((one) =>
      one.samples.gpus
        .filter((gpu) => one.devices?.has(gpu.index) ?? true)
        .map((gpu) => ({ label: named(one, `GPU ${gpu.index}`), points: points(one.samples.at_ms, gpu[column], scale) })),
    );
  const nodes = (column: "cpu_percent" | "memory_bytes", scale?: number) => all.map((one) => ({ label: named(one, ""), points: points(one.samples.at_ms, one.samples[column], scale) }));
  return (
    <div class="charts">
      <Drawn title="GPU utilization in percent" series={gpus("utilization_percent")} />
      <Drawn title="GPU memory in GiB" series={gpus("memory_bytes", GIB)} />
      <Drawn title="GPU power in watts" series={gpus("power_w")} />
      <Drawn title="GPU temperature in °C" series={gpus("temperature_c")} />
      <Drawn title="CPU of the node in percent" series={nodes("cpu_percent")} />
      <Drawn title="Memory of the node in GiB" series={nodes("memory_bytes", GIB)} />
    </div>
  );
}
