import { CaissonError } from "../contract/error/error.ts";
import { showBytes } from "../lib/quantity.ts";

const MIB = 1024 ** 2;
/** A JSON body stays in memory until it is parsed. These bound the bytes of one caller and of all callers. */
const budget = { perKeyBytes: 16 * MIB, totalBytes: 128 * MIB } as const;

/** The bytes of one body, from its first piece until it is parsed. */
export interface HeldBody extends Disposable {
  /** Throws `busy` above the caller's limit, and `unavailable` above the station's. */
  add(bytes: number): void;
}

export interface BodyBudget {
  hold(key: string): HeldBody;
}

/** Bounds the memory for bodies that are still arriving: many slow ones cost as much as one that is too long. */
export function createBodyBudget({ perKeyBytes, totalBytes }: { perKeyBytes: number; totalBytes: number } = budget): BodyBudget {
  const byKey = new Map<string, number>();
  let total = 0;
  return {
    hold(key) {
      let held = 0;
      const count = (bytes: number) => {
        held += bytes;
        total += bytes;
        const left = (byKey.get(key) ?? 0) + bytes;
        if (left > 0) byKey.set(key, left);
        else byKey.delete(key);
      };
      return {
        add(bytes) {
          if ((byKey.get(key) ?? 0) + bytes > perKeyBytes) throw tooMuch("busy", "of this caller", perKeyBytes);
          if (total + bytes > totalBytes) throw tooMuch("unavailable", "of all callers", totalBytes);
          count(bytes);
        },
        [Symbol.dispose]: () => count(-held),
      };
    },
  };
}

function tooMuch(code: "busy" | "unavailable", whose: string, bytesMax: number): CaissonError {
  return new CaissonError(code, `incomplete request bodies ${whose} exceed ${showBytes(bytesMax)}`, {
    hint: "Send fewer requests at once, or send them faster.",
    details: { retryAfterSeconds: 5 },
  });
}
