import { setTimeout as delay } from "node:timers/promises";

const LOOKS = 5;
const EVERY_MS = 50;

/**
 * Returns a growing number when it has stopped growing: it must be the same several times in a row, since once proves
 * nothing on a busy machine.
 */
export async function settled(read: () => number | Promise<number>): Promise<number> {
  let last = await read();
  for (let same = 1; same < LOOKS; ) {
    await delay(EVERY_MS);
    const next = await read();
    same = next === last ? same + 1 : 1;
    last = next;
  }
  return last;
}
