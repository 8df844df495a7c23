import { appendFileSync, renameSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readableEvent } from "../../contract/event-family.ts";
import { type NetworkEvent, networkEvents } from "../../contract/network-event.ts";

/**
 * What happened in a sandbox's network, kept in its folder: one event a line, the oldest dropped when it grows too
 * long.
 */
export interface NetworkLog {
  append(event: NetworkEvent): void;
}

const LOG_BYTES_MAX = 4 * 1024 * 1024;
const names = { now: "network.jsonl", before: "network.1.jsonl" };

export function openNetworkLog(folder: string): NetworkLog {
  const path = join(folder, names.now);
  let bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return {
    append(event) {
      const line = `${JSON.stringify(event)}\n`;
      try {
        if (bytes + line.length > LOG_BYTES_MAX) {
          renameSync(path, join(folder, names.before));
          bytes = 0;
        }
        appendFileSync(path, line, { mode: 0o600 });
        bytes += Buffer.byteLength(line);
      } catch {
        // The folder goes with the sandbox, while its last connections end.
      }
    },
  };
}

/** Oldest first. What cannot be understood, such as a line that a full disk cut off, is passed over. */
export async function readNetworkLog(folder: string): Promise<NetworkEvent[]> {
  const texts = await Promise.all([names.before, names.now].map((name) => readFile(join(folder, name), "utf8").catch(() => "")));
  return texts.flatMap((text) => text.split("\n")).flatMap((line) => parseLine(line));
}

function parseLine(line: string): NetworkEvent[] {
  try {
    const event = readableEvent(networkEvents, JSON.parse(line));
    return event === null ? [] : [event];
  } catch {
    return [];
  }
}
