import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { cuttingProxy } from "../../src/api/streams/testing-streams.ts";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** Starts a server that accepts connections and never responds, like a station with a blocked event loop. */
async function silentServer(listen: { path: string } | { port: number; host: string }) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket.on("error", () => {})));
  await new Promise<void>((resolve) => server.listen(listen, resolve));
  ends.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { server, connected: () => sockets.size };
}

async function silentStation(): Promise<string> {
  const home = join(await cli.folder(), "state");
  mkdirSync(join(home, "station"), { recursive: true, mode: 0o700 });
  const note = { pid: process.pid, version: "0.0.0", protocol: 1, settings: "" };
  writeFileSync(join(home, "station", "station.json"), JSON.stringify(note));
  await silentServer({ path: join(home, "station", "socket") });
  return home;
}

describe("a station that accepts connections and never responds", () => {
  test("is reported by `status`", async () => {
    const { code, stderr } = await cli.run(["status"], { home: await silentStation() });
    expect([code, stderr]).toEqual([125, expect.stringMatching(/does not answer[\s\S]*hint: /)]);
  });

  test.each(["SIGTERM", "SIGINT"] as const)("does not keep a command from ending on %s", async (signal) => {
    const { server, connected } = await silentServer({ port: 0, host: "127.0.0.1" });
    const address = server.address();
    const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
    const env = { CAISSON_URL: url, CAISSON_TOKEN: "tok_aaaaaaaaaaaa_x" };
    for (const argv of [["status"], ["ps"], ["exec", "--", "true"], ["run", "a task", "--model", "scripted:demo"]]) {
      const before = connected();
      const { child, ended } = cli.start(argv, { env, home: join(await cli.folder(), "state") });
      while (connected() === before) await delay(20);
      child.kill(signal);
      const { code, signal: by } = await ended;
      expect([code === 0, by === "SIGKILL"], argv.join(" ")).toEqual([false, false]);
    }
  });
});

describe("a connection that goes silent without closing", () => {
  test("makes `exec` fail with a hint", async () => {
    const home = join(await cli.folder(), "state");
    const station = cli.start(["up", "--port", "0", "--json"], { home });
    const { url, token } = JSON.parse(await station.output(/^\{.*"token".*\}$/m)) as { url: string; token: string };
    const line = await cuttingProxy({ status: { url } });
    ends.push(() => void line.close());
    const env = { CAISSON_URL: line.url, CAISSON_TOKEN: token };
    const exec = cli.start(["exec", "--no-workspace", "--", "sh", "-c", "echo begun; sleep 600"], {
      env,
      home: join(await cli.folder(), "state"),
    });
    await exec.output(/begun/);
    line.silence();
    const { code, stderr } = await exec.ended;
    expect([code, stderr]).toEqual([125, expect.stringMatching(/fell silent\nhint: /)]);
    station.child.kill("SIGTERM");
    await station.ended;
  });
});
