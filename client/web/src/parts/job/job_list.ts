// SPDX-License-Identifier: Apache-2.0
// A long list of jobs that stays new without being fetched whole. It is fetched in spans, each of which begins behind a cursor of the API.
// At each turn the newest span is fetched again, those that somebody looks at, and one of the others.

import { useEffect, useRef } from "preact/hooks";

import type { Job } from "../../controller/answers";
import { jobsBehind } from "../../controller/api";
import { useRenewed } from "../renew";

const WIDEST = 400; // jobs: a span that has grown beyond is two

export interface Span {
  from: string; // cursor; "": it has the newest
  jobs: Job[];
  next: string | null; // the cursor behind it; null: nothing comes
}

/** The spans after one of them was fetched again: jobs that it had and that did not come are gone, unless they lie behind what came. */
export function renewed(spans: Span[], index: number, came: { jobs: Job[]; next: string | null }): Span[] {
  const span = spans[index]!;
  const before = spans.slice(0, index);
  const after = spans.slice(index + 1);
  const known = new Set(spans.slice(index).flatMap((one) => one.jobs.map((job) => job.id)));
  const last = came.jobs.findLast((job) => known.has(job.id));
  if (last === undefined) {
    return [...before, { from: span.from, ...came }]; // all of it is new: what was known lies far behind
  }
  const later = new Set(after.flatMap((one) => one.jobs.map((job) => job.id)));
  const jobs = came.jobs.filter((job) => !later.has(job.id));
  if (jobs.length < came.jobs.length) {
    return [...before, { from: span.from, jobs, next: span.next }, ...after];
  }
  const rest = span.jobs.slice(span.jobs.findIndex((job) => job.id === last.id) + 1);
  const [follower, ...others] = after;
  if (came.next === null || (rest.length === 0 && follower === undefined)) {
    return [...before, { from: span.from, ...came }];
  }
  const joined = [...rest, ...(follower?.jobs ?? [])];
  const made = { from: span.from, ...came };
  if (follower === undefined || joined.length > WIDEST) {
    return [...before, made, ...(rest.length > 0 ? [{ from: came.next, jobs: rest, next: span.next }] : []), ...after];
  }
  return [...before, made, { from: came.next, jobs: joined, next: follower.next }, ...others];
}

export interface JobList {
  jobs: Job[];
  more: boolean; // there are older ones
}

/** The jobs that fit the filter, as far back as `most`. `seen` are the first and the last that somebody looks at. */
export function useJobList(filter: Record<string, string>, most: number, seen: { current: [number, number] }): [JobList | undefined, () => void] {
  const key = JSON.stringify(filter);
  const spans = useRef<Span[]>([]);
  const turn = useRef(0);
  useEffect(() => {
    spans.current = [];
  }, [key]);
  return useRenewed(`${key} ${most}`, async (signal) => {
    let held = spans.current;
    const fetchAt = async (index: number) => {
      held = renewed(held, index, await jobsBehind(filter, held[index]!.from, signal));
    };
    for (const index of due(held, seen.current, turn.current++).reverse()) {
      await fetchAt(index); // from the end: a span that becomes two moves those behind it
    }
    held = held.length > 0 ? held : [{ from: "", ...(await jobsBehind(filter, "", signal)) }];
    for (let count = countOf(held), next = held.at(-1)!.next; count < most && next !== null; next = held.at(-1)!.next) {
      held = [...held, { from: next, ...(await jobsBehind(filter, next, signal)) }];
      count = countOf(held);
    }
    spans.current = held;
    return { value: { jobs: held.flatMap((span) => span.jobs), more: held.at(-1)!.next !== null }, more: true };
  });
}

const countOf = (spans: Span[]) => spans.reduce((sum, span) => sum + span.jobs.length, 0);

/** Which spans are fetched at this turn. */
function due(spans: Span[], [first, last]: [number, number], turn: number): number[] {
  const wanted = new Set(spans.length > 0 ? [0, turn % spans.length] : []);
  let begin = 0;
  spans.forEach((span, index) => {
    if (begin <= last && begin + span.jobs.length > first) {
      wanted.add(index);
    }
    begin += span.jobs.length;
  });
  return [...wanted].sort((a, b) => a - b);
}
