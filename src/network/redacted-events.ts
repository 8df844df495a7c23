import type { SandboxEvent } from "../contract/event.ts";
import type { SandboxId } from "../contract/ids.ts";
import type { NetworkHost } from "./network-host.ts";
import type { Redactor } from "./secrets/redactor.ts";

type Redactors = NetworkHost["redactors"];

/**
 * Passes events on with the values of their sandbox's secrets redacted, by the redactors of all handles that this
 * process has of it.
 */
export function redactedEvents(onEvent: (event: SandboxEvent) => void, redactors: Redactors): (event: SandboxEvent) => void {
  return (event) => onEvent([...(redactors.get(event.data.sandbox) ?? [])].reduce((before, redactor) => redactor.json(before), event));
}

/** What one handle knows counts until the returned function is called; what other handles know stays. */
export function addRedactor(redactors: Redactors, options: { sandbox: SandboxId; redactor: Pick<Redactor, "json"> }): () => void {
  const { sandbox, redactor } = options;
  const known = redactors.get(sandbox) ?? new Set();
  redactors.set(sandbox, known.add(redactor));
  return () => {
    known.delete(redactor);
    if (known.size === 0 && redactors.get(sandbox) === known) redactors.delete(sandbox);
  };
}
