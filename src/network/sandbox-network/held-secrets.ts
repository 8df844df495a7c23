import type { Transform } from "node:stream";
import type { SandboxId } from "../../contract/ids.ts";
import type { NetworkHost } from "../network-host.ts";
import { addRedactor } from "../redacted-events.ts";
import type { SecretBook } from "../secrets/secret-book.ts";
import type { NetworkState } from "./network-state.ts";

/** The secrets of a sandbox as one of its handles uses them, loaded on first use. */
export interface HeldSecrets {
  book(): Promise<SecretBook>;
  /** Replaces known values with their names. */
  redact(text: string): string;
  /** Redacts values in output, keeping every length. Null if no value is known. */
  outputRedactor(): Transform | null;
  /** Stops redacting the sandbox's events, unless another handle does so. */
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
      const newBook = secretsOf(state(), host, host.warn);
      book ??= newBook;
      // Loads the values, so that whatever is shown and stored can be redacted from the beginning.
      if (book === newBook) {
        if (!closed) forgetRedactor = addRedactor(host.redactors, { sandbox, redactor: newBook.redactor() });
        await newBook.load();
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
