/**
 * Starts a station as `caisson up` does, and reports its memory: `station-program.ts STATE-FOLDER SANDBOXES-READY`.
 * Prints where it listens, then answers each line it reads: `memory` with the bytes that are not garbage, `delay` with
 * how late its loop was since the last time.
 */
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { createOutput } from "../src/cli/terminal/output.ts";
import { watchSignals } from "../src/cli/terminal/signals.ts";
import { composeCli } from "../src/compose/cli.ts";
import { packageFiles, versionOf } from "../src/package-files.ts";

const [stateDir = "", ready = "2"] = process.argv.slice(2);
const root = join(import.meta.dirname, "..");
const files = packageFiles(join(root, "src", "main.ts"));
const output = (fd: number) => createOutput({ fd, terminal: null, colours: false });
const context = await composeCli({
  variables: { ...process.env, CAISSON_HOME: stateDir },
  argv: ["up"],
  program: [process.execPath, join(root, "src", "main.ts")],
  version: versionOf(files),
  packageDir: files.root,
  guestPath: files.guestPath,
  consoleDir: files.consoleDir,
  cwd: stateDir,
  stdin: process.stdin,
  stdout: output(1),
  stderr: output(2),
  interruption: watchSignals(),
  choices: { place: "here", events: false, ready: Number(ready) },
});
const log = { format: "json", level: "info", file: join(stateDir, "station.log"), print: async () => {} } as const;
const server = await context.server.start({ listenHost: "127.0.0.1", port: 0, proxies: [], log });
const { token } = await context.station.tokens.create({ name: "bench", scope: "admin" });
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
const say = (value: object) => process.stdout.write(`${JSON.stringify(value)}\n`);
say({ url: server.status.url, token, socketPath: server.socketPath });
for await (const request of createInterface({ input: process.stdin })) {
  if (request === "memory") {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    say({ bytes: heapUsed + external });
  } else {
    say({ p50Ms: delay.percentile(50) / 1e6, p99Ms: delay.percentile(99) / 1e6, mostMs: delay.max / 1e6 });
    delay.reset();
  }
}
await server.close();
await context.station[Symbol.asyncDispose]();
process.exit(0);
