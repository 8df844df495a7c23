import { appendFileSync, readFileSync, renameSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readableEvent } from "../../contract/event/event-family.ts";
import { type NetworkEvent, type NumberedNetworkEvent, networkEvents } from "../../contract/network/network-event.ts";
import { ABSENT, ifErrno, ifErrnoSync, ignoring, jsonOrNull } from "../../lib/failures.ts";

/**
 * The events of a sandbox's network, stored in its folder: one event per line, the oldest dropped when the log grows
 * too long. Lines are counted from the very first, so that an event keeps its number when others are dropped.
 */
export interface NetworkLog {
  append(event: NetworkEvent): void;
}

const LOG_BYTES_MAX = 4 * 1024 * 1024;
const names = { now: "network.jsonl", before: "network.1.jsonl" };
/** How many times we read both files if a rotation happens during each read. */
const READS_MAX = 5;

/** One of the two files. Its first line is not an event, but states how many lines were before it. */
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
      ignoring("the folder is removed with the sandbox while its last connections end", () => {
        // Another process that writes here may already have started the next file.
        if (bytes === 0 || !fits()) bytes = sizeNow();
        if (!fits()) {
          renameSync(path, before);
          bytes = 0;
        }
        if (bytes === 0) write(`${JSON.stringify({ earlier: endOf(partsOf([readNow(before)])) })}\n`);
        write(line);
      });
    },
  };
}

/** Returns the events, oldest first. Skips lines that cannot be parsed, such as one that a full disk cut off. */
export async function readNetworkLog(folder: string): Promise<NumberedNetworkEvent[]> {
  const read = async () => {
    const texts: string[] = [];
    for (const name of [names.before, names.now]) texts.push(await ifErrno(readFile(join(folder, name), "utf8"), ABSENT, ""));
    return partsOf(texts);
  };
  let parts = await read();
  for (let reads = 1; reads < READS_MAX && !follow(parts); reads++) parts = await read();
  return parts.flatMap((part) => eventsOf(part));
}

function readNow(path: string): string {
  return ifErrnoSync(() => readFileSync(path, "utf8"), ABSENT, "");
}

/**
 * Parses the files. A file that an earlier version started does not state how many lines were before it. It follows the
 * other file.
 */
function partsOf(texts: readonly string[]): Part[] {
  const parts: Part[] = [];
  for (const text of texts) {
    const all = text.split("\n");
    // After the last line break there is nothing, or a line that is still being written.
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

/** Usually the first line, unless two processes wrote at the same moment. */
const isHead = (line: string): boolean => line.startsWith('{"earlier":');

function endOf(parts: readonly Part[]): number {
  const last = parts.at(-1);
  return last === undefined ? 0 : last.earlier + last.lines.length;
}

/** Checks that no line between the two files is missing or in both. */
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
  return ignoring("a line that a full disk cut off", () => readableEvent(networkEvents, JSON.parse(line))) ?? null;
}
