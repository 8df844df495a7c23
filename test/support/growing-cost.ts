import { expect } from "vitest";
import { cpuMs } from "./cpu-time.ts";

/** Reads a text, at once or in a while. */
export type Read = (text: string) => unknown;

/** One line of each kind of character, and of what begins something that never ends. */
export const foreignLines: readonly string[] = [
  ..."aA0 \t\r\n.-/\\*?[({<&'\"`;|:=#@%,é",
  ..."🙂 A1 ${ <a_ $( \u001b[ \u001b] \u001b[200~ \u202e a_ _a a= a/ \\_ **/ ---_ @@_ *a*_ `a`_ |_a_ <b>_ <!-- a@ _@ a\n data:\n \0a {a, a=_ env_ rm_-a_ "
    .trim()
    .split(" ")
    .map((line) => line.replaceAll("_", " ")),
];

/** The least of some tries: what else the machine does only adds to it. */
async function costOf(read: Read, text: string, enoughMs = 0): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 3; tries += 1) {
    const startMs = cpuMs();
    try {
      await read(text);
    } catch {
      // That it is refused is well; that it takes long would not be.
    }
    least = Math.min(least, cpuMs() - startMs);
    if (least < enoughMs) break;
  }
  return least;
}

const SHORT = 10_000;
const TIMES = 8;
/** Below this, a processor's moods are larger than what is measured. */
const NOISE_MS = 6;

/** Fails where a text that is eight times as long costs much more than eight times as much. */
export async function expectLinearCost(read: Read): Promise<void> {
  for (const line of foreignLines) {
    const text = (characters: number) => line.repeat(Math.ceil(characters / line.length));
    const long = await costOf(read, text(SHORT * TIMES), TIMES * NOISE_MS);
    if (long < TIMES * NOISE_MS) continue;
    // A square would be 64 times as high.
    const short = Math.max(await costOf(read, text(SHORT)), NOISE_MS / 2);
    expect(long / short, `${JSON.stringify(line)}: ${short} ms, then ${long} ms`).toBeLessThan(TIMES * 3);
  }
}
