import { constants } from "node:os";

/** The signals that ask this process to end. */
export interface Interruption {
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP. */
  readonly signal: AbortSignal;
  /** The first signal, or null. */
  received(): NodeJS.Signals | null;
  /** Resolves with the first signal, at once if it has already arrived. */
  readonly first: Promise<NodeJS.Signals>;
  /** Resolves with the second signal: the user does not want to wait. */
  readonly second: Promise<NodeJS.Signals>;
  /** Resolves with the first signal after this moment (`Date.now()`), which may be in the past. */
  since(momentMs: number): Promise<NodeJS.Signals>;
}

export const endingSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export function watchSignals(): Interruption {
  const controller = new AbortController();
  const first = Promise.withResolvers<NodeJS.Signals>();
  const second = Promise.withResolvers<NodeJS.Signals>();
  let received: NodeJS.Signals | null = null;
  let last: { name: NodeJS.Signals; atMs: number } | null = null;
  let coming = Promise.withResolvers<NodeJS.Signals>();
  for (const name of endingSignals) {
    process.on(name, () => {
      last = { name, atMs: Date.now() };
      coming.resolve(name);
      coming = Promise.withResolvers();
      if (received !== null) {
        second.resolve(name);
        return;
      }
      received = name;
      controller.abort();
      first.resolve(name);
    });
  }
  return {
    signal: controller.signal,
    received: () => received,
    first: first.promise,
    second: second.promise,
    since: (momentMs) => (last !== null && last.atMs >= momentMs ? Promise.resolve(last.name) : coming.promise),
  };
}

/** Returns the exit code that a shell reports for a signal: 130 for SIGINT. */
export function exitCodeOf(signal: string): number {
  const number = (constants.signals as Readonly<Record<string, number | undefined>>)[signal];
  return 128 + (number ?? 0);
}
