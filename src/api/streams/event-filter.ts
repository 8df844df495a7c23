import type { EventFilter, StreamedEvent } from "../../contract/api/streams.ts";
import type { FedEvent } from "../../contract/feed/fed-event.ts";

/**
 * Returns a function that tells whether an event passes. An event of a run that names its sandbox also counts as the
 * sandbox's.
 */
export function createFilter({ types, entityKinds, entityIds }: EventFilter): (event: StreamedEvent) => boolean {
  const whole = new Set(types?.filter((type) => !type.endsWith(".*")));
  const beginnings = types?.filter((type) => type.endsWith(".*")).map((type) => type.slice(0, -1)) ?? [];
  const kinds = entityKinds && new Set<string>(entityKinds);
  const ids = entityIds && new Set(entityIds);
  const hasType = (type: string) => types === undefined || whole.has(type) || beginnings.some((each) => type.startsWith(each));
  return (streamed) => {
    if (!hasType(streamed.event?.type ?? "damaged")) return false;
    const sandbox = sandboxOf(streamed);
    const { kind, id } = streamed.entity;
    // Kind and id must match the same entity: a run's sandbox does not pass as the run.
    const passes = (each: { kind: string; id: string }) => (kinds?.has(each.kind) ?? true) && (ids?.has(each.id) ?? true);
    return passes({ kind, id }) || (sandbox !== null && passes({ kind: "sandbox", id: sandbox }));
  };
}

function sandboxOf({ event }: StreamedEvent): string | null {
  const data = event?.data as { sandbox?: unknown } | undefined;
  return typeof data?.sandbox === "string" ? data.sandbox : null;
}

export function streamedOf(fedEvent: FedEvent): StreamedEvent {
  if ("run" in fedEvent) {
    const { run, ...fed } = fedEvent;
    return { entity: { kind: "run", id: run }, ...fed };
  }
  if ("driven" in fedEvent) {
    const { driven, owner: _, ...fed } = fedEvent;
    return { entity: driven, ...fed };
  }
  const { sandbox, owner: _, ...fed } = fedEvent;
  return { entity: { kind: "sandbox", id: sandbox }, ...fed };
}
