// SPDX-License-Identifier: Apache-2.0
// A download of bytes that the page has.

const KEEP_URL_MS = 60000; // for the browser to begin it

export function save(bytes: Blob, name: string): void {
  const url = URL.createObjectURL(bytes);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(url), KEEP_URL_MS);
}
