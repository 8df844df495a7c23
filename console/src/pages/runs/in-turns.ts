const AT_ONCE = 4;

/** Does it for each, a few at once; what went wrong is collected, and the others go on. */
export async function inTurns<Item>(items: readonly Item[], act: (item: Item) => Promise<unknown>): Promise<unknown[]> {
  const failures: unknown[] = [];
  const rest = [...items];
  const work = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await act(item).catch((error) => failures.push(error));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return failures;
}
