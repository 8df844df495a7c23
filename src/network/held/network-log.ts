import { appendFileSync, readFileSync, renameSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readableEvent } from "../../contract/event-family.ts";
import { type NetworkEvent, type NumberedNetworkEvent, networkEvents } from "../../contract/network-event.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";

/**
 * What happened in a sandbox's network, kept in its folder: one event a line, the oldest dropped when it grows too
 * long. The lines are counted from the first there ever was, so that an event's number stays when others are dropped.
 */
export interface NetworkLog {
  append(event: NetworkEvent): void;
}

const LOG_BYTES_MAX = 4 * 1024 * 1024;
const names = { now: "network.jsonl", before: "network.1.jsonl" };
/** Both files are read again where one became the other meanwhile. */
const READS_MAX = 5;

/** One of the two files. Its first line is no event, and says how many were before it. */
interface Part {
  earlier: number;
  lines: readonly string[];
}

export function openNetworkLog(folder: string): NetworkLog {
  const [path, before] = [join(folder, names.now), join(folder, names.before)];
  const sizeNow = () => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  let bytes = sizeNow();
  const write = (line: string) => {
    appendFileSync(path, line, { mode: 0o600 });
    bytes += Buffer.byteLength(line);
  };
  return {
    append(event) {
      const line = `${JSON.stringify(event)}\n`;
      const fits = () => bytes + Buffer.byteLength(line) <= LOG_BYTES_MAX;
      try {
        // Another process that writes here may have begun the next file already.
        if (bytes === 0 || !fits()) bytes = sizeNow();
        if (!fits()) {
          renameSync(path, before);
          bytes = 0;
        }
        if (bytes === 0) write(`${JSON.stringify({ earlier: endOf(partsOf([readNow(before)])) })}\n`);
        write(line);
      } catch {
        // The folder goes with the sandbox, while its last connections end.
      }
    },
  };
}

/** Oldest first. What cannot be understood, such as a line that a full disk cut off, is passed over. */
export async function readNetworkLog(folder: string): Promise<NumberedNetworkEvent[]> {
  const read = async () => {
    const texts: string[] = [];
    for (const name of [names.before, names.now]) texts.push(await readFile(join(folder, name), "utf8").catch(() => ""));
    return partsOf(texts);
  };
  let parts = await read();
  for (let reads = 1; reads < READS_MAX && !follow(parts); reads++) parts = await read();
  return parts.flatMap((part) => eventsOf(part));
}

function readNow(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** One that does not say how many were before it, as an earlier version began it, follows the other. */
function partsOf(texts: readonly string[]): Part[] {
  const parts: Part[] = [];
  for (const text of texts) {
    const all = text.split("\n");
    // What follows the last end of a line is nothing, or a line that is just being written.
    all.pop();
    const head = all.findLast(isHead);
    const earlier = head === undefined ? null : (jsonOrNull(head) as { earlier?: unknown } | null)?.earlier;
    parts.push({
      earlier: Number.isSafeInteger(earlier) ? (earlier as number) : endOf(parts),
      lines: all.filter((line) => !isHead(line)),
    });
  }
  return parts;
}

/** Usually the first line; not where two processes wrote at the same moment. */
const isHead = (line: string): boolean => line.startsWith('{"earlier":');

function endOf(parts: readonly Part[]): number {
  const last = parts.at(-1);
  return last === undefined ? 0 : last.earlier + last.lines.length;
}

/** Whether nothing is missing between the two, and nothing in both. */
function follow([before, now]: readonly Part[]): boolean {
  return before === undefined || now === undefined || before.lines.length === 0 || now.earlier === endOf([before]);
}

function eventsOf({ lines, earlier }: Part): NumberedNetworkEvent[] {
  return lines.flatMap((line, at) => {
    const event = eventIn(line);
    return event === null ? [] : [{ ...event, seq: earlier + at + 1 }];
  });
}

function eventIn(line: string): NetworkEvent | null {
  try {
    return readableEvent(networkEvents, JSON.parse(line));
  } catch {
    return null;
  }
}
