// SPDX-License-Identifier: Apache-2.0
// Reads a stream of server-sent events from a reply. The browser's own EventSource cannot send the header of a session.

export interface ServerEvent {
  name: string;
  data: string;
}

function parse(block: string): ServerEvent {
  const event = { name: "", data: "" };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") {
      event.name = value;
    } else if (field === "data") {
      event.data += event.data ? `\n${value}` : value;
    }
  }
  return event;
}

/** The events of a reply until it ends, or breaks off; comments have no data. */
export async function* serverEvents(reply: Response, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      text += read.value;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        yield parse(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  } catch (error) {
    if (signal.aborted) {
      throw error;
    }
  } finally {
    reader.releaseLock();
  }
}
