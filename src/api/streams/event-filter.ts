import type { EventFilter, StreamedEvent } from "../../contract/api/streams.ts";
import type { FedEvent } from "../../contract/run-verbs.ts";

/** Whether an event passes. One of a run that tells of its sandbox is that sandbox's, too. */
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
    // The kind and the id are of one thing: the sandbox of a run does not pass as the run.
    const passes = (each: { kind: string; id: string }) => (kinds?.has(each.kind) ?? true) && (ids?.has(each.id) ?? true);
    return passes({ kind, id }) || (sandbox !== null && passes({ kind: "sandbox", id: sandbox }));
  };
}

function sandboxOf({ event }: StreamedEvent): string | null {
  const data = event?.data as { sandbox?: unknown } | undefined;
  return typeof data?.sandbox === "string" ? data.sandbox : null;
}

export function streamedOf(given: FedEvent): StreamedEvent {
  if ("run" in given) {
    const { run, ...fed } = given;
    return { entity: { kind: "run", id: run }, ...fed };
  }
  if ("driven" in given) {
    const { driven, owner: _, ...fed } = given;
    return { entity: driven, ...fed };
  }
  const { sandbox, owner: _, ...fed } = given;
  return { entity: { kind: "sandbox", id: sandbox }, ...fed };
}
