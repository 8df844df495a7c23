import type { Transform } from "node:stream";
import type { SandboxId } from "../../contract/ids.ts";
import type { NetworkHost } from "../network-host.ts";
import { addRedactor } from "../redacted-events.ts";
import type { SecretBook } from "../secrets/secret-book.ts";
import type { NetworkState } from "./network-state.ts";

/** The secrets of a sandbox as one handle of it uses them: loaded when they are first needed. */
export interface HeldSecrets {
  book(): Promise<SecretBook>;
  /** Known values become their names. */
  redact(text: string): string;
  /** Redacts values in output, keeping every length; null while none is known. */
  outputRedactor(): Transform | null;
  /** The sandbox's events are not redacted any more, unless another handle does so. */
  close(): void;
}

export function createHeldSecrets(options: { sandbox: SandboxId; state: () => NetworkState; host: NetworkHost }): HeldSecrets {
  const { sandbox, state, host } = options;
  let book: SecretBook | null = null;
  let closed = false;
  let forgetRedactor = () => {};
  return {
    async book() {
      if (book !== null) return book;
      const { secretsOf } = await import("./secrets-of.ts");
      const made = secretsOf(state(), host, host.warn);
      book ??= made;
      // So that what is shown and stored can be looked through for values from the beginning.
      if (book === made) {
        if (!closed) forgetRedactor = addRedactor(host.redactors, { sandbox, redactor: made.redactor() });
        await made.load();
      }
      return book;
    },
    redact: (text) => book?.redactor().text(text) ?? text,
    outputRedactor: () => book?.answerRedactor(Object.keys(state().secrets))?.body() ?? null,
    close() {
      closed = true;
      forgetRedactor();
    },
  };
}
