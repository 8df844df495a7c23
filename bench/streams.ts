import type { OwnedSandbox } from "../src/sandbox/sandbox.ts";
import { summarise } from "./measure.ts";
import { countOutput, runPeer } from "./peers.ts";
import { configOf, type Place } from "./place.ts";
import type { Row, Target } from "./report.ts";

const OUTPUT_BYTES = 100 * 1024 * 1024;
const FILES = 1000;
/** `docker cp` is so slow that a sample has to represent the whole. */
const FILES_OF_DOCKER = 30;

export async function benchStreams(place: Place): Promise<{ rows: Row[]; targets: Target[] }> {
  const rows: Row[] = [];
  const id = (await runPeer([...place.docker, "run", "-d", "--network", "none", place.image, "sleep", "600"])).trim();
  const script = `head -c ${OUTPUT_BYTES} /dev/zero`;
  await using oci = await place.oci({ ociRuntime: "crun" }).create(configOf());
  await using docker = await place.dockerRuntime.create(configOf({ template: { kind: "image", reference: place.image } }));
  const rate = (ms: number) => OUTPUT_BYTES / 1e6 / (ms / 1000);
  const add = (name: string, value: number, n: number, note = "") =>
    rows.push({ group: "100 MB of output", name, value, unit: "MB/s", n, ...(note ? { note } : {}) });
  add(
    "`docker exec … head -c 100M /dev/zero`",
    rate(await best(3, () => expectBytes(countOutput([...place.docker, "exec", id, "sh", "-c", script])))),
    3,
  );
  add("plain spawn", rate(await best(5, () => expectBytes(countOutput(["sh", "-c", script])))), 5);
  // The first pass allocates the buffers that all later ones use.
  await expectBytes(readOutput(oci, script));
  const before = rss();
  const ociRate = rate(await best(5, () => expectBytes(readOutput(oci, script))));
  const grown = rss() - before;
  add("**oci**, library", ociRate, 5, `memory +${(grown / 2 ** 20).toFixed(0)} MiB`);
  add("**docker** runtime, library", rate(await best(5, () => expectBytes(readOutput(docker, script)))), 5);
  await addFiles(place, id, { oci, docker }, rows);
  await runPeer([...place.docker, "rm", "-f", id]);
  return {
    rows,
    targets: [
      { name: "output of a command in oci", measured: ociRate, unit: "MB/s", atLeast: 300 },
      { name: "host memory growth over 500 MB", measured: grown / 2 ** 20, unit: "MiB", atMost: 32 },
    ],
  };
}

async function addFiles(place: Place, id: string, sandboxes: Record<"oci" | "docker", OwnedSandbox>, rows: Row[]): Promise<void> {
  const content = Buffer.alloc(1024, "x");
  const add = (name: string, ms: number, n: number, note = "") =>
    rows.push({ group: `${FILES} files of 1 KiB, each written and read`, name, value: ms, unit: "ms", n, ...(note ? { note } : {}) });
  const start = performance.now();
  for (let index = 0; index < FILES_OF_DOCKER; index++) {
    await runPeer([...place.docker, "exec", "-i", id, "sh", "-c", `cat > /tmp/f${index}`], { input: content.toString() });
    await runPeer([...place.docker, "exec", id, "cat", `/tmp/f${index}`]);
  }
  add(
    "`docker exec`, cat",
    ((performance.now() - start) / FILES_OF_DOCKER) * FILES,
    FILES_OF_DOCKER,
    `${FILES_OF_DOCKER} measured, scaled`,
  );
  for (const [name, sandbox] of Object.entries(sandboxes))
    add(`**${name}**, one after another`, await writeAndRead(sandbox, content, 1), FILES);
  add("**oci**, 16 at once", await writeAndRead(sandboxes.oci, content, 16), FILES);
}

async function writeAndRead(sandbox: OwnedSandbox, content: Buffer, atOnce: number): Promise<number> {
  const folder = `/home/user/bench-${atOnce}`;
  await sandbox.mkdir(folder, { parents: true });
  const start = performance.now();
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < FILES; index = next++) {
      await sandbox.writeFile(`${folder}/f${index}`, content);
      let bytes = 0;
      for await (const piece of await sandbox.readFile(`${folder}/f${index}`)) bytes += piece.length;
      if (bytes !== content.length) throw new Error(`read ${bytes} bytes of ${content.length}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return performance.now() - start;
}

async function readOutput(sandbox: OwnedSandbox, script: string): Promise<number> {
  const process = await sandbox.spawn({ argv: ["sh", "-c", script] });
  let bytes = 0;
  for await (const chunk of process.output) bytes += chunk.data.length;
  await process.ended;
  return bytes;
}

async function expectBytes(reading: Promise<number>): Promise<void> {
  const bytes = await reading;
  if (bytes !== OUTPUT_BYTES) throw new Error(`${bytes} bytes came of ${OUTPUT_BYTES}`);
}

async function best(n: number, once: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < n; index++) {
    const start = performance.now();
    await once();
    times.push(performance.now() - start);
  }
  return summarise(times).p50;
}

function rss(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}
