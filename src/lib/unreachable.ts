/** The end of a `switch` that names every case: one that is added later does not compile until it is named, too. */
export function unreachable(value: never): never {
  const { type, kind } = Object(value) as { type?: unknown; kind?: unknown };
  // Not the whole value: it may hold what nobody should read in an error.
  throw new Error(`unexpected case ${String(type ?? kind ?? typeof value)}`);
}
