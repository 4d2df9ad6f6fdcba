// SPDX-License-Identifier: Apache-2.0
// The artifacts of a run as a tree. Folders are listed when they are opened, and files are fetched when somebody asks for them: as a picture, a
// table, or text, of which large ones show the beginning. All are downloaded. No file becomes a page of its own, so nothing in it ever runs.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import type { Artifact } from "../../controller/answers";
import { artifact, artifacts, artifactStart, Failure } from "../../controller/api";
import { indented, tableOf, type Cells as Found } from "./cells";
import { save } from "../save";
import { Table } from "../table";
import { size } from "../words";

const TEXT_BYTES = 256 * 1024; // of a file that is shown as text
const PICTURE_BYTES = 8 * 1024 * 1024;
const PICTURES: Record<string, string> = { png: "png", jpg: "jpeg", jpeg: "jpeg", gif: "gif", webp: "webp", bmp: "bmp", svg: "svg+xml" };

const nameOf = (path: string) => path.split("/").pop() ?? "";
const endingOf = (path: string) => nameOf(path).split(".").pop()?.toLowerCase() ?? "";

/** The text of bytes, of which the last character may be cut off where they are not the whole; null: they are none. */
async function asText(blob: Blob, whole: boolean): Promise<string | null> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await blob.arrayBuffer(), { stream: !whole });
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

function Cells({ found, name }: { found: Found; name: string }) {
  return (
    <>
      <div class="cells" tabIndex={0} role="region" aria-label={name}><Table titles={found.titles.map((title) => <>{title}</>)} rows={found.rows} /></div>
      {found.more && <p class="faint">{`The first ${found.rows.length} rows and ${found.titles.length} columns. A download has all.`}</p>}
    </>
  );
}

function Picture({ bytes, kind, name }: { bytes: Blob; kind: string; name: string }) {
  const [url, setUrl] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type: `image/${kind}` }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes]);
  return url === "" ? null : <img src={url} alt={name} />;
}

/** What the first bytes of a file show; `whole`: they are all of it. */
async function textView(bytes: Blob, path: string, whole: boolean): Promise<ComponentChildren> {
  const text = await asText(bytes, whole);
  if (text === null) {
    return <p class="faint">This file is no text.</p>;
  }
  const table = tableOf(endingOf(path), text, whole);
  return table !== null ? <Cells found={table} name={nameOf(path)} /> : <pre tabIndex={0}>{endingOf(path) === "json" && whole ? indented(text) : text}</pre>;
}

async function view(root: string, { path, file_size }: Artifact): Promise<ComponentChildren> {
  const kind = PICTURES[endingOf(path)];
  const bytes = Number(file_size ?? 0);
  if (kind !== undefined) {
    return <Picture bytes={await artifact(root, path)} kind={kind} name={nameOf(path)} />;
  }
  const whole = bytes <= TEXT_BYTES;
  return (
    <>
      {await textView(await artifactStart(root, path, TEXT_BYTES), path, whole)}
      {!whole && <p class="faint">{`The first ${size(TEXT_BYTES)} of ${size(bytes)}. A download has all.`}</p>}
    </>
  );
}

async function download(root: string, path: string): Promise<void> {
  save(await artifact(root, path), nameOf(path));
}

function File({ root, file }: { root: string; file: Artifact }) {
  const [shown, setShown] = useState<ComponentChildren>(null);
  const bytes = Number(file.file_size ?? 0);
  const isShown = PICTURES[endingOf(file.path)] === undefined || bytes <= PICTURE_BYTES;
  const guard = (act: Promise<void>) => {
    act.catch((failure: unknown) => setShown(<p class="error">{failure instanceof Error ? failure.message : String(failure)}</p>));
  };
  const toggle = () => (shown === null ? guard(view(root, file).then(setShown)) : setShown(null));
  return (
    <li>
      <div class="file">
        <span class="name">{nameOf(file.path)}</span>
        <span class="faint">{size(bytes)}</span>
        {isShown && <button type="button" class="small" onClick={toggle}>{shown === null ? "Show" : "Hide"}</button>}
        <button type="button" class="small" onClick={() => guard(download(root, file.path))}>Download</button>
      </div>
      <div class="shown">{shown}</div>
    </li>
  );
}

/** The files of a folder, listed anew with each `turn`. What was there keeps its element, and so what of it is open. */
function Listing({ run, path, turn }: { run: string; path: string; turn: number }) {
  const [found, setFound] = useState<{ root: string; files: Artifact[] } | null>(null);
  const [said, setSaid] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    artifacts(run, path, stop.signal).then(
      (listed) => {
        setFound(listed);
        setSaid(listed.files.length > 0 ? "" : path === "" ? "None yet." : "This folder is empty.");
      },
      (failure: unknown) => {
        if (failure instanceof Failure) {
          setSaid(failure.message); // they may lie on another server
        }
      },
    );
    return () => stop.abort();
  }, [run, path, turn]);
  return (
    <>
      {said !== "" && <p class="faint">{said}</p>}
      <ul>
        {found?.files.map((file) =>
          file.is_dir ? <Folder key={file.path} run={run} path={file.path} turn={turn} /> : <File key={file.path} root={found.root} file={file} />,
        )}
      </ul>
    </>
  );
}

function Folder({ run, path, turn }: { run: string; path: string; turn: number }) {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{nameOf(path)}</summary>
        {open && <Listing run={run} path={path} turn={turn} />}
      </details>
    </li>
  );
}

export function Artifacts({ run, turn }: { run: string; turn: number }) {
  return <div class="tree"><Listing run={run} path="" turn={turn} /></div>;
}
