// SPDX-License-Identifier: Apache-2.0
// The artifacts of a run as a tree. Folders are listed when they are opened, and files are fetched when somebody asks for them: small ones
// are shown as text or as a picture, all are downloaded. No file becomes a page of its own, so nothing in it ever runs.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { artifact, artifacts, Failure, type Artifact } from "../controller/api";
import { save } from "./save";
import { size } from "./words";

const TEXT_BYTES = 256 * 1024; // of a file that is shown as text
const PICTURE_BYTES = 8 * 1024 * 1024;
const PICTURES: Record<string, string> = { png: "png", jpg: "jpeg", jpeg: "jpeg", gif: "gif", webp: "webp", bmp: "bmp", svg: "svg+xml" };

const nameOf = (path: string) => path.split("/").pop() ?? "";
const pictureOf = (path: string) => PICTURES[nameOf(path).split(".").pop()?.toLowerCase() ?? ""];

/** The text of a file; null: it is none. */
async function asText(blob: Blob): Promise<string | null> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await blob.arrayBuffer());
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
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

async function view(root: string, path: string): Promise<ComponentChildren> {
  const bytes = await artifact(root, path);
  const kind = pictureOf(path);
  if (kind !== undefined) {
    return <Picture bytes={bytes} kind={kind} name={nameOf(path)} />;
  }
  const text = await asText(bytes);
  return text === null ? <p class="faint">This file is no text.</p> : <pre tabIndex={0}>{text}</pre>;
}

async function download(root: string, path: string): Promise<void> {
  save(await artifact(root, path), nameOf(path));
}

function File({ root, file }: { root: string; file: Artifact }) {
  const [shown, setShown] = useState<ComponentChildren>(null);
  const bytes = Number(file.file_size ?? 0);
  const small = bytes <= (pictureOf(file.path) !== undefined ? PICTURE_BYTES : TEXT_BYTES);
  const guard = (act: Promise<void>) => {
    act.catch((failure: unknown) => setShown(<p class="error">{failure instanceof Error ? failure.message : String(failure)}</p>));
  };
  const toggle = () => (shown === null ? guard(view(root, file.path).then(setShown)) : setShown(null));
  return (
    <li>
      <div class="file">
        <span class="name">{nameOf(file.path)}</span>
        <span class="faint">{size(bytes)}</span>
        {small && <button type="button" class="small" onClick={toggle}>{shown === null ? "Show" : "Hide"}</button>}
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
