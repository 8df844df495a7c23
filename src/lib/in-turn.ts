import { ignore } from "./failures.ts";
/** Creates a queue per key: work with the same key runs one piece at a time, in call order. */
export function createTurns(): <Result>(key: string, work: () => Promise<Result>) => Promise<Result> {
  const last = new Map<string, Promise<unknown>>();
  return async (key, work) => {
    const before = last.get(key) ?? Promise.resolve();
    const done = before.then(work);
    const settled = ignore(done, "its caller awaits it; the next turn does not depend on its result");
    last.set(key, settled);
    try {
      return await done;
    } finally {
      if (last.get(key) === settled) last.delete(key);
    }
  };
}
