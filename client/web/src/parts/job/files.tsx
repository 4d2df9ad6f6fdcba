// SPDX-License-Identifier: Apache-2.0
// The files that the ranks of a job kept.

import { useState } from "preact/hooks";

import type { KeptFile, KeptFiles } from "../../controller/answers";
import { jobFile } from "../../controller/api";
import { save } from "../save";
import { Table } from "../table";
import { size } from "../words";

const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/** The first of them, and how many more there are elsewhere. */
export function Files({ id, found }: { id: string; found: KeptFiles }) {
  const [refused, setRefused] = useState("");
  const fetchIt = (file: KeptFile) => {
    setRefused("");
    jobFile(id, file.path).then(
      (bytes) => save(bytes, nameOf(file.path)),
      (failure: unknown) => setRefused(failure instanceof Error ? failure.message : String(failure)),
    );
  };
  const rows = found.files.map((file) => [
    <code>{file.path}</code>,
    size(file.size),
    file.complete ? <button type="button" class="small" aria-label={`Download ${file.path}`} onClick={() => fetchIt(file)}>Download</button> : "on its way",
  ]);
  return (
    <>
      {refused !== "" && <p class="line error" role="alert">{refused}</p>}
      <Table titles={["File", "Size", ""]} rows={rows} keys={found.files.map((file) => file.path)} />
      {found.next !== null && <p class="faint">{`These are the first ${found.files.length}. All: `}<code>{`gpuctl cp ${id}: FOLDER`}</code></p>}
      {found.left_out.files > 0 && <p class="faint">{`Left out: ${found.left_out.files}, of ${size(found.left_out.bytes)}. Links, special files, or more than a rank may keep.`}</p>}
    </>
  );
}
