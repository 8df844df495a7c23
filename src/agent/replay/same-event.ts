import type { NewRunEvent } from "../../contract/run/run-event.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";

/** What depends on time or chance. */
const volatile: ReadonlySet<string> = new Set(["workedMs", "durationMs", "question"]);
const EXCERPT_CHARACTERS_MAX = 500;

type Data = Readonly<Record<string, unknown>>;

/** Returns the fields in which an event differs from the recorded one; null for an event of another type. */
export function differentFields(event: NewRunEvent, recorded: NewRunEvent): string[] | null {
  if (event.type !== recorded.type) return null;
  const [now, then] = [comparable(event), comparable(recorded)];
  const names = [...new Set([...Object.keys(now), ...Object.keys(then)])].sort();
  return names.filter((name) => canonicalJson(now[name] ?? null) !== canonicalJson(then[name] ?? null));
}

function comparable({ type, data }: NewRunEvent): Data {
  const all = JSON.parse(JSON.stringify(data)) as Record<string, unknown>;
  for (const name of volatile) delete all[name];
  if (type === "message.received") delete all.message;
  // Older versions left empty details out.
  if (type === "tool.ended") all.details ??= {};
  return all;
}

/** Describes an event, or some of its fields, in a bounded line. */
export function excerpt(event: NewRunEvent, fields?: readonly string[]): string {
  const data = event.data as Data;
  const chosenFields = fields === undefined ? data : Object.fromEntries(fields.map((name) => [name, data[name] ?? null]));
  const text = JSON.stringify(chosenFields) ?? "";
  return `${event.type} ${text.length > EXCERPT_CHARACTERS_MAX ? `${text.slice(0, EXCERPT_CHARACTERS_MAX).toWellFormed()}…` : text}`;
}
