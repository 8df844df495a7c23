import { jsonOrNull } from "../../lib/failures.ts";

/** Redacting shorter secrets would damage ordinary words. */
const SECRET_LENGTH_MIN = 8;

/** Returns a function that redacts known secrets anywhere in a line. */
export function createRedactor(secrets: readonly string[]): (line: string) => string {
  // Escaped as in a line of JSON.
  const values = [...new Set(secrets)]
    .filter(({ length }) => length >= SECRET_LENGTH_MIN)
    .map((secret) => JSON.stringify(secret).slice(1, -1));
  return (line) => {
    let redacted = line
      .replaceAll(/\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi, "$1 [redacted]")
      .replaceAll(/\btok_[A-Za-z0-9_-]{20,}/g, "[redacted]");
    for (const value of values) redacted = redacted.replaceAll(value, "[redacted]");
    return redacted;
  };
}

/** Formats a line for people: time, level, message and facts. */
export function logText(line: string): string {
  const record = jsonOrNull(line) as Record<string, unknown> | null;
  if (record === null) return line.trimEnd();
  const { time, level, msg, pid: _ours, stack, ...facts } = record;
  const words = Object.entries(facts).map(
    ([name, value]) => `${name}=${typeof value === "string" && /^[\w.:/-]+$/.test(value) ? value : JSON.stringify(value)}`,
  );
  const first = [String(time).slice(11, 23), String(level).padEnd(5), String(msg), ...words].join(" ");
  return typeof stack === "string" ? `${first}\n${stack}` : first;
}
