import type { CliContext } from "../context.ts";
import { createKeyDecoder, type Key } from "./key-decoder.ts";

/** How long an escape may wait for the rest of its sequence, which terminals send in one piece. */
const ESCAPE_MS = 50;

/**
 * Passes every key to the listener, Ctrl-C included, until disposed. The end of the input, such as a closed terminal,
 * arrives as `endOfInput`.
 */
export function readKeys({ stdin }: Pick<CliContext, "stdin">, onKey: (key: Key) => void): Disposable {
  const decoder = createKeyDecoder();
  let timer: NodeJS.Timeout | undefined;
  const tell = (keys: readonly Key[]) => {
    for (const key of keys) onKey(key);
  };
  const onData = (bytes: Buffer) => {
    clearTimeout(timer);
    tell(decoder.push(bytes));
    if (decoder.pending()) timer = setTimeout(() => tell(decoder.flush()), ESCAPE_MS);
  };
  const onEnd = () => tell([{ kind: "press", name: "endOfInput" }]);
  stdin.setRawMode(true);
  stdin.on("data", onData);
  stdin.on("end", onEnd);
  return {
    [Symbol.dispose]() {
      clearTimeout(timer);
      stdin.off("data", onData);
      stdin.off("end", onEnd);
      stdin.setRawMode(false);
      stdin.pause();
    },
  };
}
