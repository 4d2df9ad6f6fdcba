// SPDX-License-Identifier: Apache-2.0
// Where the time of an attempt went: each span with its beginning and its length, to the millisecond.

import type { AttemptTiming } from "../../controller/answers";
import { Table } from "../table";
import { duration } from "../words";

/** Spans between two moments, in their order. The first moment that is known of each list counts. */
const SPANS: [string, string[], string[]][] = [
  ["the submission is written", ["received_ms"], ["queued_ms"]],
  ["waits for GPUs", ["queued_ms"], ["placed_ms"]],
  ["the order goes to its nodes", ["placed_ms"], ["ordered_ms"]],
  ["nodes prepare", ["ordered_ms"], ["prepared_ms"]],
  ["ranks are started", ["prepared_ms", "ordered_ms"], ["ranks_started_ms"]],
  ["first output", ["ranks_started_ms"], ["first_output_ms"]],
  ["runs", ["ranks_started_ms"], ["ended_ms"]],
  ["the rest of its output comes", ["ended_ms"], ["settled_ms"]],
  ["its results are written", ["settled_ms"], ["visible_ms"]],
];

/** "0.417 ms", "12.5 ms", and from 10 s on as elsewhere. */
const spell = (ms: number) => (ms >= 10000 ? duration(ms) : `${ms.toFixed(ms < 100 ? 3 : 0)} ms`);

export function Timeline({ timing }: { timing: AttemptTiming }) {
  const first = (names: string[]) => names.map((name) => timing.moments[name]).find((value) => value !== null && value !== undefined);
  const rows = SPANS.flatMap(([what, from, to]) => {
    const begin = first(from);
    const end = first(to);
    return begin === undefined || end === undefined || begin === null || end === null ? [] : [[what, spell(begin), spell(Math.max(end - begin, 0))]];
  });
  const marks = timing.marks.map((mark) => [`${mark.name} (rank ${mark.rank} on ${mark.node})`, mark.at_ms === null ? "" : spell(mark.at_ms), ""]);
  return <Table titles={["What", "#After the submission", "#Took"]} rows={[...rows, ...marks]} />;
}
