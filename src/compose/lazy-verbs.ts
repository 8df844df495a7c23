type Call = (...args: never[]) => unknown;
type Kind<Verb> = Verb extends (...args: never[]) => AsyncIterable<unknown> ? "stream" : "answer";

/**
 * A group of verbs that is loaded with the first call of one, so that a command pays for nothing it does not use. The
 * table says of every verb what it gives: an answer, or a stream of them.
 */
export function lazyVerbs<Verbs extends object>(kinds: { [Name in keyof Verbs]: Kind<Verbs[Name]> }, load: () => Promise<Verbs>): Verbs {
  let loading: Promise<Verbs> | undefined;
  const verb = async (name: string): Promise<Call> => {
    loading ??= load().catch((error: unknown) => {
      // The next call tries again.
      loading = undefined;
      throw error;
    });
    return ((await loading) as Record<string, Call>)[name] as Call;
  };
  const answer =
    (name: string) =>
    async (...args: never[]) =>
      (await verb(name))(...args);
  const stream = (name: string) =>
    async function* (...args: never[]) {
      yield* (await verb(name))(...args) as AsyncIterable<unknown>;
    };
  const verbs = Object.entries(kinds).map(([name, kind]) => [name, kind === "stream" ? stream(name) : answer(name)]);
  return Object.fromEntries(verbs) as Verbs;
}
