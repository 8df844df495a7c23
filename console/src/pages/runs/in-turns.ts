const AT_ONCE = 4;

/** Calls `act` for each item, a few at a time, and returns the errors. A failure does not stop the others. */
export async function inTurns<Item>(items: readonly Item[], act: (item: Item) => Promise<unknown>): Promise<unknown[]> {
  const failures: unknown[] = [];
  const rest = [...items];
  const work = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await act(item).catch((error) => failures.push(error));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return failures;
}
