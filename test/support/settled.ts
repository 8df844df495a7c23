import { setTimeout as delay } from "node:timers/promises";

const LOOKS = 5;
const EVERY_MS = 50;

/** A number that grows, once it has stopped: it was the same so many times in a row. On a busy machine once proves nothing. */
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
