import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCaisson } from "../src/index.ts";
import { runCommand } from "../src/sandbox/run-command.ts";
import { type Sample, timeTogether } from "./measure.ts";
import type { Figures, Row, Target } from "./report.ts";
import { type StationProcess, startStationProcess } from "./station-process.ts";

const READY = 4;
/** The time until both pools are full again; otherwise one would pay for the other. */
const REFILL_MS = 250;
const TURNS = 40;
const FILE_BYTES = 100 * 1024 * 1024;
const PIECE_BYTES = 256 * 1024;
const TRANSFERS = 5;
const path = "/workspace/large";

/** Measures what a station's callers wait for over HTTP, beside the same work in one process. */
export async function benchStation(): Promise<Figures> {
  await using folder = await mkdtempDisposable(join(tmpdir(), "caisson-bench-library-"));
  await using library = createCaisson({ stateDir: folder.path, pool: { sandboxes: READY } });
  await using station = await startStationProcess({ ready: READY });
  const caisson = { library, station };
  const lives = await benchLives(caisson);
  const files = await benchFiles(caisson);
  return { rows: [...lives.rows, ...files.rows], targets: [...lives.targets, ...files.targets] };
}

interface Both {
  library: ReturnType<typeof createCaisson>;
  station: StationProcess;
}

async function benchLives({ library, station: { client } }: Both): Promise<Figures> {
  const refill = () => new Promise((resolve) => setTimeout(resolve, REFILL_MS));
  const times = await timeTogether({
    n: TURNS,
    warmup: 5,
    before: refill,
    each: {
      async library() {
        await using sandbox = await library.create({});
        const { ended } = await runCommand(sandbox, { argv: ["true"] });
        expectDone(ended);
      },
      async http() {
        const { id } = await client.sandboxes.create({ spec: {} });
        const { ended } = await client.sandboxes.exec(id, { argv: ["true"] });
        expectDone(ended);
        await client.sandboxes.remove(id);
      },
    },
  });
  const group = "create, `true`, delete";
  const row = (name: string, sample: Sample): Row => ({ group, name, value: sample.p50, unit: "ms", p95: sample.p95, n: sample.n });
  return {
    rows: [row("**library**, from the pool", times.library), row("**station**, three requests, from the pool", times.http)],
    targets: [{ name: "create, `true`, delete: HTTP over library", measured: times.http.p50 / times.library.p50, unit: "×", atMost: 1.5 }],
  };
}

async function benchFiles({ library, station }: Both): Promise<Figures> {
  const { client } = station;
  await using sandbox = await library.create({});
  const { id } = await client.sandboxes.create({ spec: {} });
  const upload = async () => {
    await client.files.write(id, { path }, ReadableStream.from(pieces()));
  };
  const download = async () => expectWhole(await bytesIn((await client.files.read(id, { path })) as AsyncIterable<Uint8Array>));
  const writeHere = async () => void (await sandbox.writeFile(path, pieces()));
  const readHere = async () => expectWhole(await bytesIn(await sandbox.readFile(path)));
  const each = { writeHere, upload, readHere, download };
  // The first transfers allocate the buffers that all later ones use.
  await timeTogether({ n: 0, warmup: 2, each });
  const before = await station.keptBytes();
  const times = await timeTogether({ n: TRANSFERS, warmup: 0, each });
  const grownMiB = ((await station.keptBytes()) - before) / 2 ** 20;
  await client.sandboxes.remove(id);
  const rate = ({ p50 }: Sample) => FILE_BYTES / 1e6 / (p50 / 1000);
  const row = (name: string, sample: Sample, note?: string): Row => ({
    ...{ group: "a file of 100 MB", name, value: rate(sample), unit: "MB/s", n: sample.n },
    ...(note !== undefined && { note }),
  });
  const share = (name: string, over: Sample, by: Sample): Target => ({ name, measured: over.p50 / by.p50, unit: "×", atLeast: 0.6 });
  return {
    rows: [
      row("**library**, written", times.writeHere),
      row("**station**, uploaded", times.upload),
      row("**library**, read", times.readHere),
      row("**station**, downloaded", times.download, `memory ${grownMiB < 0 ? "" : "+"}${grownMiB.toFixed(1)} MiB`),
    ],
    targets: [
      share("upload over HTTP, relative to the library's write", times.writeHere, times.upload),
      share("download over HTTP, relative to the library's read", times.readHere, times.download),
      { name: "memory growth of the station over 1 GB", measured: grownMiB, unit: "MiB", atMost: 16 },
    ],
  };
}

async function* pieces(): AsyncGenerator<Uint8Array> {
  const piece = Buffer.alloc(PIECE_BYTES, "x");
  for (let sent = 0; sent < FILE_BYTES; sent += PIECE_BYTES) yield piece;
}

async function bytesIn(content: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const piece of content) bytes += piece.length;
  return bytes;
}

function expectWhole(bytes: number): void {
  if (bytes !== FILE_BYTES) throw new Error(`received ${bytes} of ${FILE_BYTES} bytes`);
}

function expectDone(ended: { kind: string; exitCode?: number }): void {
  if (ended.kind !== "exited" || ended.exitCode !== 0) throw new Error(`true ended as ${JSON.stringify(ended)}`);
}
