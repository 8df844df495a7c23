import type { SandboxId } from "../contract/ids.ts";
import type { SandboxEvent } from "../contract/sandbox/sandbox-event.ts";
import type { NetworkHost } from "./network-host.ts";
import type { Redactor } from "./secrets/redactor.ts";

type Redactors = NetworkHost["redactors"];

/**
 * Passes events on with the secret values of their sandbox redacted, by the redactors of all its handles in this
 * process.
 */
export function redactedEvents(onEvent: (event: SandboxEvent) => void, redactors: Redactors): (event: SandboxEvent) => void {
  return (event) => onEvent([...(redactors.get(event.data.sandbox) ?? [])].reduce((before, redactor) => redactor.json(before), event));
}

/** Adds the redactor of one handle until the returned function is called. Those of other handles stay. */
export function addRedactor(redactors: Redactors, options: { sandbox: SandboxId; redactor: Pick<Redactor, "json"> }): () => void {
  const { sandbox, redactor } = options;
  const known = redactors.get(sandbox) ?? new Set();
  redactors.set(sandbox, known.add(redactor));
  return () => {
    known.delete(redactor);
    if (known.size === 0 && redactors.get(sandbox) === known) redactors.delete(sandbox);
  };
}
