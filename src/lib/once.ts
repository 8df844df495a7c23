import { ignore } from "./failures.ts";

/** Opens a value on the first call and returns it from every later one. After a failure the next call tries again. */
export interface Once<Value> {
  (): Promise<Value>;
  /** Resolves to the value, or to undefined if it was never opened or opening failed. */
  opened(): Promise<Value | undefined>;
}

export function once<Value>(open: () => Promise<Value>): Once<Value> {
  let opening: Promise<Value> | undefined;
  const get = () => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
  return Object.assign(get, { opened: async () => await (opening && ignore(opening, "its caller got the error")) });
}
