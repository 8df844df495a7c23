import { type Rule, relativeImportsOf, type SourceFile } from "./rules.ts";

/**
 * Resources that a test must have to itself: a user of the machine, an engine, the processor whose time it measures.
 */
const notShared: Readonly<Record<string, string>> = {
  "test/support/ordinary-user.ts": "makes an ordinary user",
  "test/support/docker-engine.ts": "uses the docker engine",
  "test/support/podman-engine.ts": "uses the podman engine",
  "test/support/cpu-time.ts": "measures processor time",
};

/** Files of the waiting lane run two at a time, next to the other lane, so they share the machine with other tests. */
export const waitingTestsShare: Rule = (files) => {
  const known = new Map(files.map((file) => [file.path, file]));
  return files
    .filter(({ path }) => path.endsWith(".wait.e2e.test.ts"))
    .flatMap((file) =>
      supportOf(file, known).flatMap((path) => {
        const what = notShared[path];
        return what === undefined ? [] : [{ path: file.path, what: `${what} (${path}): only for .e2e.test.ts` }];
      }),
    );
};

/** Returns the support files that a test imports, directly or not. */
function supportOf(file: SourceFile, known: ReadonlyMap<string, SourceFile>): string[] {
  const found = new Set([file.path]);
  for (const path of found) {
    const { text } = path === file.path ? file : (known.get(path) ?? { text: "" });
    for (const target of relativeImportsOf({ path, text })) {
      if (/^test\/|\/testing[^/]*\.ts$/.test(target)) found.add(target);
    }
  }
  return [...found];
}
