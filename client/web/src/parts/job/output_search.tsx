// SPDX-License-Identifier: Apache-2.0
// The box of a job's output: as it comes, of all ranks or of one, and a search in all of it, whose matches lead to their places. What is searched
// for stands in the address, so a link leads to the same lines.

import { useEffect, useRef, useState } from "preact/hooks";

import type { LogMatch } from "../../controller/answers";
import { Failure, outputPart, searchOutput } from "../../controller/api";
import { LiveOutput } from "./output";
import { moment, size } from "../words";

const ENOUGH = 50; // matches that are fetched at once
const PAGES = 64; // that are asked for at once: 1 GiB of output
const AROUND = 8192; // bytes that are shown before a match, and three times as many from it on
const RANKS = 64; // that a list of ranks has

interface Found {
  matches: LogMatch[];
  scanned: number;
  next: string | null;
}
const NOTHING: Found = { matches: [], scanned: 0, next: null };

/** Fetches matches behind those that were found, until there are `enough` of them more. */
async function searchOn(job: string, asked: Record<string, string>, before: Found, enough: number, signal: AbortSignal): Promise<Found> {
  const found = { ...before, matches: [...before.matches] };
  for (let page = 0; page < PAGES && (page === 0 || found.next !== null) && found.matches.length < before.matches.length + enough; page++) {
    const more = await searchOutput(job, { ...asked, limit: String(enough) }, found.next, signal);
    found.matches.push(...more.matches);
    found.scanned += more.scanned;
    found.next = more.next;
  }
  return found;
}

/** The parameters of the API for those of the address; null: nothing is searched for. */
function askedOf(search: URLSearchParams): Record<string, string> | null {
  const text = search.get("q");
  const rank = search.get("rank");
  return text ? { q: text, case: search.get("case") ?? "0", regex: search.get("regex") ?? "0", ...(rank && { rank }) } : null;
}

/** The lines around a match, of its rank and stream alone. */
function Place({ job, match, close }: { job: string; match: LogMatch; close: () => void }) {
  const [reach, setReach] = useState(AROUND);
  const [text, setText] = useState<{ before: string; behind: string }>();
  const [said, setSaid] = useState("");
  const mark = useRef<HTMLElement>(null);
  useEffect(() => {
    const stop = new AbortController();
    const from = Math.max(0, match.offset - reach);
    Promise.all([outputPart(job, match, from, match.offset, stop.signal), outputPart(job, match, match.offset, match.offset + 3 * reach, stop.signal)]).then(
      ([before, behind]) => setText({ before: from > 0 ? before.slice(before.indexOf("\n") + 1) : before, behind }),
      (failure: unknown) => failure instanceof Failure && setSaid(failure.message),
    );
    return () => stop.abort();
  }, [job, match, reach]);
  useEffect(() => mark.current?.scrollIntoView({ block: "center" }), [text]);
  const end = text === undefined ? 0 : text.behind.search(/[\r\n]|$/);
  return (
    <>
      <div class="tools tight">
        <span>{`Rank ${match.rank}, ${match.stream}, from byte ${match.offset}`}</span>
        <span class="gap" />
        <button type="button" onClick={() => setReach(4 * reach)}>Show more around it</button>
        <button type="button" onClick={close}>Back to the newest output</button>
      </div>
      {said !== "" && <p class="line error" role="alert">{said}</p>}
      {text && (
        <pre class="output" tabIndex={0} aria-label={`Output of rank ${match.rank} around byte ${match.offset}`}>
          {text.before}<mark ref={mark}>{text.behind.slice(0, end)}</mark>{text.behind.slice(end)}
        </pre>
      )}
    </>
  );
}

function Matches({ found, many, open }: { found: Found; many: boolean; open: (match: LogMatch) => void }) {
  return (
    <ul class="plain matches">
      {found.matches.map((match) => (
        <li key={`${match.rank} ${match.stream} ${match.offset}`}>
          <button type="button" class="match" title={match.at === null ? "" : moment(Date.parse(match.at))} onClick={() => open(match)}>
            {many && <i>{`${match.rank} `}</i>}<span class={match.stream === "stderr" ? "error" : undefined}>{match.text}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function summaryOf(found: Found): string {
  const count = found.matches.length;
  const so = found.next === null ? "" : ` in the first ${size(found.scanned)}`;
  return count === 0 ? `No line has it${so}.` : `${count} line${count === 1 ? " has" : "s have"} it${so}.`;
}

/** What is searched for, in fields; `set` changes the address. */
function Fields({ search, ranks, set, first }: { search: URLSearchParams; ranks: number; set: (changed: Record<string, string>) => void; first: () => void }) {
  const text = useRef<HTMLInputElement>(null);
  const rank = search.get("rank") ?? "";
  const send = (event: Event) => {
    event.preventDefault();
    set({ q: text.current!.value });
  };
  return (
    <form class="tools" role="search" onSubmit={send}>
      <label>
        Search the output
        <input key={search.get("q")} ref={text} type="search" defaultValue={search.get("q") ?? ""} maxLength={256} spellcheck={false} />
      </label>
      <label class="check">
        <input type="checkbox" checked={search.get("regex") === "1"} onChange={(event) => set({ regex: event.currentTarget.checked ? "1" : "" })} />
        Regular expression
      </label>
      <label class="check">
        <input type="checkbox" checked={search.get("case") === "1"} onChange={(event) => set({ case: event.currentTarget.checked ? "1" : "" })} />
        Match case
      </label>
      {ranks > 1 && (
        <label>
          Rank
          {ranks <= RANKS ? (
            <select value={rank} onChange={(event) => set({ rank: event.currentTarget.value })}>
              <option value="">all</option>
              {Array.from({ length: ranks }, (_, index) => <option key={index} value={String(index)}>{String(index)}</option>)}
            </select>
          ) : (
            <input type="number" min="0" max={ranks - 1} value={rank} placeholder="all" onChange={(event) => set({ rank: event.currentTarget.value })} />
          )}
        </label>
      )}
      <button type="submit">Search</button>
      <button type="button" onClick={first}>First error</button>
    </form>
  );
}

export function Output({ job, ranks, search }: { job: string; ranks: number; search: URLSearchParams }) {
  const [found, setFound] = useState<Found>();
  const [place, setPlace] = useState<LogMatch>();
  const [said, setSaid] = useState("");
  const [turn, setTurn] = useState(0);
  const asked = askedOf(search);
  const stop = useRef(new AbortController());
  const rank = search.get("rank");
  /** Does one search at a time; what is refused is said. */
  const run = (work: (signal: AbortSignal) => Promise<void>) => {
    stop.current.abort();
    const mine = (stop.current = new AbortController());
    setSaid("");
    work(mine.signal).catch((failure: unknown) => {
      if (mine.signal.aborted) {
        return;
      }
      if (!(failure instanceof Failure)) {
        throw failure;
      }
      setSaid(failure.message);
    });
  };
  const fetchMore = (before: Found) => run(async (signal) => setFound(await searchOn(job, asked!, before, ENOUGH, signal)));
  useEffect(() => {
    setPlace(undefined);
    setFound(undefined);
    if (asked !== null) {
      fetchMore(NOTHING);
    }
    return () => stop.current.abort();
  }, [job, JSON.stringify(asked), turn]);
  const set = (changed: Record<string, string>) => {
    const all = new URLSearchParams(search);
    for (const [name, value] of Object.entries(changed)) {
      value === "" ? all.delete(name) : all.set(name, value);
    }
    const address = `#/jobs/${job}${all.size > 0 ? `?${all}` : ""}`;
    if (address === location.hash) {
      setTurn(turn + 1); // there may be more output by now
    } else {
      location.hash = address;
    }
  };
  const first = () =>
    run(async (signal) => {
      const errors = await searchOn(job, { errors: "1", ...(rank && { rank }) }, NOTHING, 1, signal);
      setPlace(errors.matches[0]);
      setSaid(errors.matches.length === 0 ? `No line looks like an error${errors.next === null ? "" : ` in the first ${size(errors.scanned)}`}.` : "");
    });
  return (
    <>
      <Fields search={search} ranks={ranks} set={set} first={first} />
      {said !== "" && <p class="line" role="alert">{said}</p>}
      {asked !== null && (
        <>
          <p class="faint" role="status">{said !== "" ? "" : found === undefined ? "Searching." : summaryOf(found)}</p>
          {found && <Matches found={found} many={ranks > 1} open={setPlace} />}
          {found && found.next !== null && <button type="button" onClick={() => fetchMore(found)}>Search on</button>}
        </>
      )}
      {place ? <Place job={job} match={place} close={() => setPlace(undefined)} /> : <LiveOutput job={job} rank={rank ? Number(rank) : null} />}
    </>
  );
}
