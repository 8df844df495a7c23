import type { SandboxEvent } from "../contract/event.ts";
import type { NetworkHost } from "./network-host.ts";

/** Passes events on with the values of their sandbox's secrets taken out. The redactors are those that networks of this process register. */
export function redactedEvents(onEvent: (event: SandboxEvent) => void, redactors: NetworkHost["redactors"]): (event: SandboxEvent) => void {
  return (event) => onEvent(redactors.get(event.data.sandbox)?.json(event) ?? event);
}
