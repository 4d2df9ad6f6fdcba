// SPDX-License-Identifier: Apache-2.0
// How a GPU looks on the map, by what the colours show, and what is said of it. Each look has characters beside its colour.

import type { Gpu } from "../../controller/answers";
import { size } from "../words";

/** What colours may show; the first is shown unless the address says something else. */
export const COLOURS = ["health", "use", "owner", "temperature"] as const;
export type Colour = (typeof COLOURS)[number];

/** kind: its class in the style sheet. means: its line in the legend, which are shown by their order. */
export interface Look {
  kind: string;
  sign: string;
  means: string;
  order: number;
}

const OWNER_COLOURS = 8;
const UNKNOWN: Look = { kind: "unknown", sign: "–", means: "not known", order: 99 };
const USE_STEPS: [number, string][] = [[5, "below 5 %"], [30, "5 to 29 %"], [60, "30 to 59 %"], [90, "60 to 89 %"], [Infinity, "90 % and more"]];
const TEMPERATURE_STEPS: [number, string][] = [[40, "below 40 °C"], [60, "40 to 59 °C"], [75, "60 to 74 °C"], [85, "75 to 84 °C"], [Infinity, "85 °C and more"]];
const HEALTH: Record<string, Look> = {
  free: { kind: "free", sign: "", means: "free", order: 0 },
  allocated: { kind: "allocated", sign: "A", means: "allocated", order: 1 },
  unavailable: { kind: "unavailable", sign: "!", means: "unavailable", order: 2 },
  silent: { kind: "silent", sign: "?", means: "its node is silent", order: 3 },
  drained: { kind: "drained", sign: "D", means: "its node takes no new work", order: 4 },
};

function stepped(value: number | null | undefined, steps: [number, string][], kind: string): Look {
  const order = steps.findIndex(([end]) => (value ?? Infinity) < end);
  const step = steps[order];
  return value == null || step === undefined ? UNKNOWN : { kind: `${kind}-${order}`, sign: String(value), means: step[1], order };
}

function hash(text: string): number {
  let sum = 0;
  for (let at = 0; at < text.length; at++) {
    sum = (sum * 31 + text.charCodeAt(at)) >>> 0;
  }
  return sum;
}

/** A colour for each owner by its name, so that it stays when others come and go; the next free one where two would have the same. */
export function ownerColours(gpus: Gpu[]): Map<string, number> {
  const colours = new Map<string, number>();
  const owners = new Set(gpus.flatMap((gpu) => (gpu.holder ? [gpu.holder.owner] : [])));
  const taken = new Set<number>();
  for (const owner of [...owners].sort()) {
    let colour = hash(owner) % OWNER_COLOURS;
    while (taken.size < OWNER_COLOURS && taken.has(colour)) {
      colour = (colour + 1) % OWNER_COLOURS;
    }
    taken.add(colour);
    colours.set(owner, colour);
  }
  return colours;
}

function ownerLook(gpu: Gpu, colours: Map<string, number>): Look {
  if (gpu.holder) {
    const { owner } = gpu.holder;
    return { kind: `owner-${colours.get(owner) ?? 0}`, sign: owner[0]! + owner.at(-1)!, means: owner, order: 0 };
  }
  return gpu.state === "allocated" ? { kind: "unknown", sign: "·", means: "somebody else", order: 1 } : { kind: "free", sign: "", means: "nobody", order: 2 };
}

export function lookOf(gpu: Gpu, colour: Colour, colours: Map<string, number>): Look {
  switch (colour) {
    case "use":
      return stepped(gpu.sample?.utilization_percent, USE_STEPS, "use");
    case "temperature":
      return stepped(gpu.sample?.temperature_c, TEMPERATURE_STEPS, "heat");
    case "owner":
      return ownerLook(gpu, colours);
    case "health":
      return HEALTH[gpu.state] ?? UNKNOWN;
  }
}

/** All that is known, in one line. */
export function sayGpu(gpu: Gpu): string {
  const { holder, sample } = gpu;
  const by = holder && `, job ${holder.job}${holder.name === null ? "" : ` (${holder.name})`} of ${holder.owner}${holder.rank === null ? "" : `, rank ${holder.rank}`}`;
  const figures = sample && [
    sample.utilization_percent !== null && `${sample.utilization_percent} %`,
    sample.memory_bytes !== null && sample.memory_total_bytes !== null && `${size(sample.memory_bytes)} of ${size(sample.memory_total_bytes)}`,
    sample.temperature_c !== null && `${sample.temperature_c} °C`,
    sample.power_w !== null && `${sample.power_w} W`,
  ].filter(Boolean).join(", ");
  const what = `${gpu.slot ? "CPU slot" : "GPU"} ${gpu.index} of ${gpu.node}, ${gpu.gpu_type}: ${gpu.state}${by ?? ""}`;
  return [what, figures, gpu.unavailable].filter(Boolean).join("; ");
}
