/**
 * Whether it is one of the events that everything driven has in common. A kind's own fold and views leave those to the
 * facts that all kinds share, and name their own; without a schema, since a browser has a use for it, too.
 */
export function isDrivenEvent<Event extends { type: string }>(event: Event): event is Extract<Event, { type: `driven.${string}` }> {
  return event.type.startsWith("driven.");
}
