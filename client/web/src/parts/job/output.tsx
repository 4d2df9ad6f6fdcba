// SPDX-License-Identifier: Apache-2.0
// The output of a job's ranks, or of one, in the order in which it came, as it comes. Only the newest lines are kept; output_search.tsx finds
// others, and `gpuctl logs` has all.

import { useEffect, useRef, useState } from "preact/hooks";

import type { LogPiece } from "../../controller/answers";
import { Failure, jobOutput } from "../../controller/api";

const TAIL_BYTES = 65536; // of each stream, at the beginning
const LINES = 2000;
const SHOW_MS = 100; // output that floods is shown so often
const AGAIN_MS = 5000; // after a connection that broke

interface Line {
  rank: number;
  stream: string;
  text: string;
  open: boolean; // its end has not come
}

/** Appends a piece, whose first line may go on with the newest line of its stream. */
function append(lines: Line[], piece: LogPiece): void {
  const parts = piece.text.split("\n");
  const newest = lines.findLastIndex((line) => line.rank === piece.rank && line.stream === piece.stream);
  if (newest >= 0 && lines[newest]!.open) {
    const before = lines[newest]!;
    lines[newest] = { ...before, text: before.text + parts.shift()!, open: parts.length === 0 };
  }
  parts.forEach((text, index) => {
    const open = index === parts.length - 1;
    if (text !== "" || !open) {
      lines.push({ rank: piece.rank, stream: piece.stream, text, open });
    }
  });
  lines.splice(0, Math.max(0, lines.length - LINES));
}

export function LiveOutput({ job, rank }: { job: string; rank: number | null }) {
  const lines = useRef<Line[]>([]).current;
  const [, setShown] = useState(0);
  const [said, setSaid] = useState("");
  const end = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true); // whoever looks further up is left there
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const show = () => {
      timer ||= window.setTimeout(() => {
        timer = 0;
        setShown((count) => count + 1);
      }, SHOW_MS);
    };
    const follow = async () => {
      lines.length = 0;
      for await (const piece of jobOutput(job, rank, TAIL_BYTES, stop.signal)) {
        append(lines, piece);
        setSaid("");
        show();
      }
      show();
    };
    const start = () => {
      follow().catch((failure: unknown) => {
        if (stop.signal.aborted) {
          return;
        }
        if (!(failure instanceof Failure)) {
          throw failure;
        }
        setSaid(failure.message);
        if (failure.status === 0 || failure.status === 429 || failure.status >= 500) {
          window.setTimeout(() => stop.signal.aborted || start(), AGAIN_MS);
        }
      });
    };
    start();
    return () => stop.abort();
  }, [job, rank]);
  useEffect(() => {
    const box = end.current;
    if (box && atEnd.current) {
      box.scrollTop = box.scrollHeight;
    }
  });
  const scrolled = () => {
    const box = end.current!;
    atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 200;
  };
  const ranks = new Set(lines.map((line) => line.rank));
  return (
    <>
      {said !== "" && <p class="faint">{said}</p>}
      {lines.length === 0 && said === "" && <p class="faint">None yet.</p>}
      {lines.length > 0 && (
        <pre ref={end} class="output" tabIndex={0} aria-label="Output" onScroll={scrolled}>
          {lines.map((line, index) => (
            <span key={index} class={line.stream === "stderr" ? "error" : undefined}>{ranks.size > 1 && <i>{`${line.rank} `}</i>}{`${line.text}\n`}</span>
          ))}
        </pre>
      )}
    </>
  );
}
