/** Ends a `switch` that names every case: a new case does not compile until the switch handles it. */
export function unreachable(value: never): never {
  const { type, kind } = Object(value) as { type?: unknown; kind?: unknown };
  // Not the whole value: it may contain data that does not belong in an error.
  throw new Error(`unexpected case ${String(type ?? kind ?? typeof value)}`);
}
