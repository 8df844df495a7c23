/**
 * A table with one handler for each event of a group (`EventFor`). A table does not compile if a handler is missing, or
 * if an event does not concern the group. This file imports no schemas, since browsers use it too.
 */
export type Handlers<Event extends { type: string }, Subject = void, Result = void> = {
  readonly [Type in Event["type"]]: (event: Extract<Event, { type: Type }>, subject: Subject) => Result;
};

/** Calls the event's handler. Returns undefined if the table has none, because the event concerns other readers. */
export function handle<Event extends { type: string }, Subject, Result>(
  handlers: Handlers<Event, Subject, Result>,
  event: { type: string },
  subject: Subject,
): Result | undefined {
  return isHandled(handlers, event) ? handlers[event.type](event, subject) : undefined;
}

function isHandled<Event extends { type: string }, Subject, Result>(
  handlers: Handlers<Event, Subject, Result>,
  event: { type: string },
): event is Extract<Event, { type: Event["type"] }> {
  return Object.hasOwn(handlers, event.type);
}
