import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Client, connect } from "../src/client/connect.ts";

/** A station in a separate process, so that the cost of its callers does not count as its own. */
export interface StationProcess extends AsyncDisposable {
  url: string;
  token: string;
  client: Client;
  /** Returns the bytes it holds that are not garbage. */
  keptBytes(): Promise<number>;
  /** Returns how late its loop was since the last call. */
  delay(): Promise<{ p50Ms: number; p99Ms: number; mostMs: number }>;
}

/** Starts a station; `prepare` fills its state folder first. */
export async function startStationProcess({
  ready,
  prepare = async () => {},
}: {
  ready: number;
  prepare?: (stateDir: string) => Promise<void>;
}): Promise<StationProcess> {
  const folder = await mkdtempDisposable(join(tmpdir(), "caisson-bench-station-"));
  await prepare(folder.path);
  const program = join(import.meta.dirname, "station-program.ts");
  const child = spawn(process.execPath, ["--expose-gc", program, folder.path, String(ready)], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async <Said>() => {
    const { done, value } = await lines.next();
    if (done) throw new Error(`the station ended; its log is in ${folder.path}`);
    return JSON.parse(value) as Said;
  };
  const ask = async <Said>(word: string) => {
    child.stdin.write(`${word}\n`);
    return await next<Said>();
  };
  const { url, token } = await next<{ url: string; token: string }>();
  const client = connect({ url, token });
  return {
    url,
    token,
    client,
    keptBytes: async () => (await ask<{ bytes: number }>("memory")).bytes,
    delay: () => ask("delay"),
    async [Symbol.asyncDispose]() {
      // Sandboxes of runs, and of jobs that wait for a person, outlive the station.
      for (const { id } of (await client.sandboxes.list({})).sandboxes) await client.sandboxes.remove(id);
      const closed = once(child, "close");
      child.stdin.end();
      await closed;
      await folder.remove();
    },
  };
}
