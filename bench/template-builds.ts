import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { timeEach, timeTogether } from "./measure.ts";
import { runPeer } from "./peers.ts";
import type { Place } from "./place.ts";
import type { Figures } from "./report.ts";

const GROUP = "a template whose step writes 20,000 files, 155 MB, and a context of 1,000 files";
const FILES = 20_000;
const FILE_BYTES = 7_750;
const CONTEXT_FILES = 1_000;

const dockerfile = (base: string, last: string) => `FROM ${base}
COPY package.json /app/
RUN mkdir -p /app/deps && cd /app/deps && busybox awk 'BEGIN { for (i = 0; i < ${FILES}; i++) { f = "f" i; printf "%0${FILE_BYTES}d", i > f; close(f) } }'
COPY src/ /app/src/
RUN echo ${last} > /app/built
`;

/** Measures `caisson template build` beside `docker build`, each as a process with the same Dockerfile. */
export async function benchTemplateBuilds(place: Place): Promise<Figures> {
  const ours = join(place.dir, "template");
  const theirs = join(place.dir, "docker-template");
  await writeProject(ours, "host");
  await writeProject(theirs, place.image);
  const home = join(place.dir, "template-home");
  const build = () =>
    runPeer(["env", `CAISSON_HOME=${home}`, join(place.root, "caisson"), "template", "build", ours, "--name", "bench", "-q"]);
  const dockerBuild = () =>
    runPeer(["env", "DOCKER_BUILDKIT=0", ...place.docker, "build", "-q", "--network", "none", "-t", "bench-template", theirs]);
  // The machine's system is copied once, before the first build.
  await runPeer(["env", `CAISSON_HOME=${home}`, join(place.root, "caisson"), "exec", "--no-workspace", "--", "true"]);
  const first = await timeEach({ n: 1, warmup: 0, once: build });
  const dockerFirst = await timeEach({ n: 1, warmup: 0, once: dockerBuild });
  const unchanged = await timeTogether({ n: 15, warmup: 2, each: { build, dockerBuild } });
  let round = 0;
  const changeLastLine = async () => {
    round += 1;
    await writeFile(join(ours, "Dockerfile"), dockerfile("host", String(round)));
    await writeFile(join(theirs, "Dockerfile"), dockerfile(place.image, String(round)));
  };
  const changed = await timeTogether({ n: 7, warmup: 1, before: changeLastLine, each: { build, dockerBuild } });
  const row = (name: string, { p50, p95, n }: typeof first) => ({ group: GROUP, name, value: p50, p95, n, unit: "ms" as const });
  return {
    rows: [
      row("the first build", first),
      row("rebuilt unchanged", unchanged.build),
      row("rebuilt with another last line", changed.build),
      row("the first `docker build`", dockerFirst),
      row("`docker build` unchanged", unchanged.dockerBuild),
      row("`docker build` with another last line", changed.dockerBuild),
    ],
    targets: [
      { name: "template rebuilt unchanged", measured: unchanged.build.p50, unit: "ms", atMost: 300 },
      {
        name: "template with another last line: faster than its first build",
        measured: first.p50 / changed.build.p50,
        unit: "×",
        atLeast: 5,
      },
    ],
  };
}

async function writeProject(folder: string, base: string): Promise<void> {
  await mkdir(join(folder, "src"), { recursive: true });
  await writeFile(join(folder, "Dockerfile"), dockerfile(base, "0"));
  await writeFile(join(folder, "package.json"), "{}");
  for (let file = 0; file < CONTEXT_FILES; file += 1)
    await writeFile(join(folder, "src", `f${file}.ts`), `export const f${file} = "${"x".repeat(4_000)}";\n`);
}
