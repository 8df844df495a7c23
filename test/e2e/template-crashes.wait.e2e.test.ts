import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writeLayout } from "../../src/runtimes/oci/template/image-fixture.ts";
import { stationMode } from "../support/station-modes.ts";
import { useTemplateProjects } from "../support/template-projects.ts";
import { expectNothingLeftAfterEach, useCaisson } from "./caisson-process.ts";

const caisson = useCaisson();
const { run, home, base, sandboxes } = caisson;
const { project, inside } = useTemplateProjects(caisson);
expectNothingLeftAfterEach(sandboxes);

const dockerfile = `FROM mine AS image
FROM host
ARG WORD
RUN echo one > /one; echo carried > /tmp/carried
COPY a /a
COPY --from=image /content /content
RUN cat /one /tmp/carried /a /content > /all; echo "$WORD" >> /all; rm /tmp/carried
`;

/** What an interrupted build must not leave behind. */
function leftovers(): string[] {
  const builds = join(home(), "builds");
  const files = readdirSync(builds, { recursive: true, withFileTypes: true }).map(({ parentPath, name }) => join(parentPath, name));
  const steps = files.filter((file) => /\/steps\/[0-9a-f]+\.json$/.test(file));
  const named = new Set(steps.map((file) => (JSON.parse(readFileSync(file, "utf8")) as { snapshot: string }).snapshot));
  const archives = files.filter((file) => file.endsWith(".tmp.tar") && !existsSync(file.replace(/\.tmp\.tar$/, ".json")));
  const folder = join(home(), "snapshots");
  const snapshots = readdirSync(folder).filter((name) => !named.has(name.split(".")[0] ?? ""));
  const temporary = files.filter((file) => /\.tmp$|\.hidden$|\/active\/.+/.test(file));
  return [...temporary, ...archives, ...snapshots];
}

// Only without a station: otherwise the test would have to kill the station.
test.runIf(stationMode === "none")(
  "a build killed at any write leaves no half step, and the next one continues it",
  { timeout: 1_200_000 },
  async () => {
    const folder = project({ Dockerfile: dockerfile, a: "copied\n" });
    const layout = join(base(), "layout");
    mkdirSync(layout);
    writeLayout(layout, [{ layers: [[{ name: "content", content: "from an image\n" }]] }]);
    const argv = (word: string) => {
      const options = ["--name", `t-${word}`, "--build-arg", `WORD=${word}`, "--base", `mine=${layout}`];
      return ["template", "build", folder, "--json", ...options];
    };
    const list = join(base(), "points");
    const whole = await run(argv("whole"), { env: { CAISSON_CRASH_LIST: list } });
    expect(whole.code, whole.text).toBe(0);
    const points = readFileSync(list, "utf8")
      .split("\n")
      .filter((name) => /^build\./.test(name));
    const distinct = [...new Set(points)];
    expect(distinct).toEqual(
      expect.arrayContaining(["registered", "snapshot", "tmp", "step", "base", "template", "ended"].map((name) => `build.${name}:before`)),
    );
    const last = points.filter((name) => name === "build.step:before").length;
    for (const [index, point] of [
      ...distinct.map((name) => `${name}#1`),
      `build.snapshot:after#${last}`,
      `build.step:before#${last}`,
    ].entries()) {
      const word = `w${index}`;
      // The image is another one each time, or its settings would be known.
      writeLayout(layout, [{ layers: [[{ name: "content", content: `from an image ${word}\n` }]] }]);
      const died = await run(argv(word), { env: { CAISSON_CRASH_AT: point } });
      expect(died.signal, `it does not die at ${point}: ${died.text}`).toBe("SIGKILL");
      const finished = died.text.split("\n").filter((line) => line.includes('"state":"ended"')).length;
      const names = (JSON.parse((await run(["template", "ls", "--json"])).text) as { names: string[] }[]).flatMap((each) => each.names);
      if (names.includes(`t-${word}`)) expect(["build.template:after#1", "build.ended:before#1", "build.ended:after#1"]).toContain(point);
      await run(["sandbox", "ls"]);
      expect(sandboxes()).toEqual([]);
      const again = await run(argv(word));
      expect(again.code, `${point}: ${again.text}`).toBe(0);
      const cached = again.text.split("\n").filter((line) => line.includes('"state":"cached"')).length;
      expect([point, cached >= finished]).toEqual([point, true]);
      expect(await inside(`t-${word}`, "cat /all")).toBe(`one\ncarried\ncopied\nfrom an image ${word}\n${word}\n`);
      expect([point, leftovers()]).toEqual([point, []]);
    }
  },
);

test.runIf(stationMode === "none")("a prune killed at any write can be repeated", { timeout: 300_000 }, async () => {
  const points = ["hidden:before", "hidden:after", "removed:before", "removed:after", "swept:before", "swept:after"];
  for (const point of points) {
    const folder = project({ Dockerfile: "FROM host\nARG WORD\nRUN echo $WORD > /word", a: point });
    expect(await run(["template", "build", folder, "--build-arg", `WORD=${point}`, "-q", "--name", "gone"])).toMatchObject({ code: 0 });
    expect(await run(["template", "rm", "gone"])).toMatchObject({ code: 0 });
    const steps = join(home(), "builds", "steps");
    for (const name of readdirSync(steps)) utimesSync(join(steps, name), 0, 0);
    const prune = ["prune", "builds", "--older-than", "1d", "--yes"];
    const died = await run(prune, { env: { CAISSON_CRASH_AT: `build.${point}` } });
    expect(died.signal, `it does not die at ${point}: ${died.stderr}`).toBe("SIGKILL");
    const again = await run(prune);
    expect(again.code, again.stderr).toBe(0);
    expect([point, leftovers()]).toEqual([point, []]);
  }
});
