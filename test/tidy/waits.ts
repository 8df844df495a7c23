import type { Rule } from "./rules.ts";

/** What a wait of a test is given at least: less is a claim on the speed of the machine. */
const WAIT_MS_MIN = 30_000;

/** `vi.waitFor` gives up after a second unless told otherwise; `expect.poll` has the project's own, longer bound. */
export const waitsArePatient: Rule = (files) =>
  files
    .filter((file) => file.path.endsWith(".test.ts"))
    .flatMap((file) =>
      waitsIn(file.text)
        .filter((wait) => boundOf(wait) < WAIT_MS_MIN)
        .map((wait) => ({ path: file.path, what: `${wait.split("\n")[0]}… gives up before ${WAIT_MS_MIN} ms` })),
    );

/** What a test has by vitest.config.ts. */
const TEST_MS = 120_000;

/** A bound is for what hangs: one below the project's own only fails tests on a slow machine. */
export const testsHaveTime: Rule = (files) =>
  files
    .filter((file) => file.path.endsWith(".test.ts"))
    .flatMap((file) =>
      [...file.text.matchAll(/^ *(?:(?:test|describe)\b.*\{ timeout: |\}, |)([\d_]+_000)(?: \}.*|,?\n? *\);|,)$/gm)]
        .filter(([, bound = ""]) => Number(bound.replaceAll("_", "")) < TEST_MS)
        .map(([line]) => ({ path: file.path, what: `${line.trim()}: tests have ${TEST_MS} ms` })),
    );

/** Each call as its text up to the end of the statement. */
function waitsIn(text: string): string[] {
  return [...text.matchAll(/\bvi\.wait(?:For|Until)\([\s\S]*?\);\n/g)].map(([wait]) => wait);
}

function boundOf(wait: string): number {
  const bound = /\btimeout: ([\d_]+)/.exec(wait)?.[1];
  return bound === undefined ? 0 : Number(bound.replaceAll("_", ""));
}
