import type { Rule } from "./rules.ts";

/** The minimum time for a wait in a test. Less would assume a fast machine. */
const WAIT_MS_MIN = 30_000;

/** `vi.waitFor` gives up after a second by default; `expect.poll` has the project's longer bound. */
export const waitsArePatient: Rule = (files) =>
  files
    .filter((file) => file.path.endsWith(".test.ts"))
    .flatMap((file) =>
      waitsIn(file.text)
        .filter((wait) => boundOf(wait) < WAIT_MS_MIN)
        .map((wait) => ({ path: file.path, what: `${wait.split("\n")[0]}… gives up before ${WAIT_MS_MIN} ms` })),
    );

/** The timeout of a test in vitest.config.ts. */
const TEST_MS = 120_000;

/** Timeouts only catch hangs: one below the project's own just fails tests on a slow machine. */
export const testsHaveTime: Rule = (files) =>
  files
    .filter((file) => file.path.endsWith(".test.ts"))
    .flatMap((file) =>
      [...file.text.matchAll(/^ *(?:(?:test|describe)\b.*\{ timeout: |\}, |)([\d_]+_000)(?: \}.*|,?\n? *\);|,)$/gm)]
        .filter(([, bound = ""]) => Number(bound.replaceAll("_", "")) < TEST_MS)
        .map(([line]) => ({ path: file.path, what: `${line.trim()}: tests have ${TEST_MS} ms` })),
    );

/**
 * On a busy machine everything takes long. An event, or processor time, shows what was slow and why. A bound may be
 * measured, because it grows with the load.
 */
export const noWallClock: Rule = (files) =>
  files
    .filter((file) => file.path.endsWith(".test.ts"))
    .flatMap(({ path, text }) => {
      const measured = [...text.matchAll(/\b(\w+)\s*[:=]\s*(?:Math\.\w+\()?(?:Date|performance)\.now\(\) - /g)].map(([, name]) => name);
      const elapsed = [...measured, "\\w*(?:[eE]lapsed|[tT]ook)(?:Ms)?", "(?:Date|performance)\\.now\\(\\) - [a-z]\\w*\\b(?! *[|?])"].join(
        "|",
      );
      const limits = new RegExp(
        `\\bexpect\\((?:[^;]*[^;\\w])?(?:${elapsed})[^;]*\\)\\.(?:toBeLess|toBeCloseTo|not\\.toBeGreater)\\w*`,
        "g",
      );
      return [...text.matchAll(limits), ...text.matchAll(/\breturn (?:Date|performance)\.now\(\) - .*/g)].map(([claim]) => ({
        path,
        what: `${claim} limits wall-clock time`,
      }));
    });

/**
 * Unit tests share their modules, so a mock only works if no earlier file in the same worker has loaded the real
 * module.
 */
export const noModuleMocks: Rule = (files) =>
  files
    .filter((file) => /\.test\.tsx?$/.test(file.path) && /\bvi\.(?:do)?[mM]ock\(/.test(file.text))
    .map((file) => ({ path: file.path, what: "replaces a module; pass the part that fails as an option instead" }));

/** Returns the text of each call, up to the end of the statement. */
function waitsIn(text: string): string[] {
  return [...text.matchAll(/\bvi\.wait(?:For|Until)\([\s\S]*?\);\n/g)].map(([wait]) => wait);
}

function boundOf(wait: string): number {
  const bound = /\btimeout: ([\d_]+)/.exec(wait)?.[1];
  return bound === undefined ? 0 : Number(bound.replaceAll("_", ""));
}
