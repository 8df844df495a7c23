import { expect } from "vitest";
import { cpuMs } from "./cpu-time.ts";

/** Reads a text, synchronously or not. */
export type Read = (text: string) => unknown;

/** Lines of each kind of character, and of openings that are never closed. */
export const foreignLines: readonly string[] = [
  ..."aA0 \t\r\n.-/\\*?[({<&'\"`;|:=#@%,é",
  ..."🙂 A1 ${ <a_ $( \u001b[ \u001b] \u001b[200~ \u202e a_ _a a= a/ \\_ **/ ---_ @@_ *a*_ `a`_ |_a_ <b>_ <!-- a@ _@ a\n data:\n \0a {a, a=_ env_ rm_-a_ "
    .trim()
    .split(" ")
    .map((line) => line.replaceAll("_", " ")),
];

/** Returns the least cost of up to three tries, since other load only adds to it. Stops at a cost below `enoughMs`. */
async function costOf(read: Read, text: string, enoughMs: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 3 && least >= enoughMs; tries += 1) {
    const startMs = cpuMs();
    try {
      await read(text);
    } catch {
      // The text may be rejected, as long as that is fast.
    }
    least = Math.min(least, cpuMs() - startMs);
  }
  return least;
}

const SHORT = 10_000;
const TIMES = 8;
/** Below this, noise exceeds the measured cost. */
const NOISE_MS = 6;

/** Fails if a text of eight times the length costs much more than eight times as much. */
export async function expectLinearCost(read: Read): Promise<void> {
  for (const line of foreignLines) {
    const text = (characters: number) => line.repeat(Math.ceil(characters / line.length));
    const short = Math.max(await costOf(read, text(SHORT), NOISE_MS / 2), NOISE_MS / 2);
    // A quadratic cost would be 64 times as high. One linear result is enough.
    const bound = Math.max(short * TIMES * 3, TIMES * NOISE_MS);
    const long = await costOf(read, text(SHORT * TIMES), bound);
    expect(long, `${JSON.stringify(line)}: ${short} ms, then ${long} ms`).toBeLessThan(bound);
  }
}
