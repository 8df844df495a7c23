import { constants } from "node:os";

/** What ends us from outside. */
export interface Interruption {
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP. */
  readonly signal: AbortSignal;
  /** Which it was. */
  received(): NodeJS.Signals | null;
  /** Resolves with the first, or at once when it has come already. */
  readonly first: Promise<NodeJS.Signals>;
  /** Resolves with the second: the user is not willing to wait. */
  readonly second: Promise<NodeJS.Signals>;
  /** Resolves with the first one that comes after this moment (`Date.now()`), which may have passed. */
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

/** As a shell would say it: 130 for SIGINT. */
export function exitCodeOf(signal: string): number {
  const number = (constants.signals as Readonly<Record<string, number | undefined>>)[signal];
  return 128 + (number ?? 0);
}
