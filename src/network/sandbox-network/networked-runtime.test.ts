import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { networkedForTest } from "../../../test/support/network-host.ts";
import type { SandboxId } from "../../contract/ids.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";
import type { SandboxEvent } from "../../contract/sandbox/sandbox-event.ts";
import { createFakeRuntime, type FakeRuntime } from "../../runtimes/fake/runtime.ts";
import { makeInsideFolder } from "../../sandbox/inside-folder.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { createStore } from "../../sandbox/store.ts";
import type { NetworkHost } from "../network-host.ts";
import { redactedEvents } from "../redacted-events.ts";
import { PROXY_PORT } from "../sandbox-setup/ports.ts";
import { becomeKeeper, createServingMark, servedBy } from "./serving.ts";

const VALUE = "canary-5f2a90c1d7";
const config = SandboxConfig.parse({
  keep: true,
  network: { mode: "allow" },
  secrets: { KEY: { from: "env", hosts: ["api.example.com"] } },
});

describe("two handles of one sandbox in one process", () => {
  let stateDir: string;
  let fake: FakeRuntime;
  let runtime: Runtime;
  let keepersStarted: number;
  let events: SandboxEvent[];
  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), "caisson-networked-"));
    keepersStarted = 0;
    events = [];
    const redactors: NetworkHost["redactors"] = new Map();
    fake = createFakeRuntime({ onEvent: redactedEvents((event) => events.push(event), redactors) });
    runtime = networkedForTest(withRecords(fake, stateDir), {
      stateDir,
      redactors,
      variable: (name) => (name === "KEY" ? VALUE : undefined),
      async startKeeper(id) {
        keepersStarted += 1;
        const [folder, store] = [createStore({ stateDir }).dir(id), createStore({ stateDir })];
        await becomeKeeper(folder, store);
        await createServingMark(folder, store).set();
      },
    });
  });
  afterEach(async () => {
    for (const { id } of await fake.list()) await (await fake.open(id)).destroy();
    await rm(stateDir, { recursive: true });
  });

  const served = (id: SandboxId) => servedBy(createStore({ stateDir }).dir(id), createStore({ stateDir }));
  /** Returns the status that a program inside gets for a denied host. The fake answers 503 if no process serves. */
  const askInside = async (id: SandboxId) => {
    const connection = fake.connectInside(id, PROXY_PORT) as Duplex;
    connection.end("GET http://evil.example.net/ HTTP/1.1\r\nHost: evil.example.net\r\nConnection: close\r\n\r\n");
    return (await text(connection)).split(" ", 2)[1];
  };
  const leaked = () => [VALUE, Buffer.from(VALUE).toString("base64")].filter((form) => JSON.stringify(events).includes(form));
  const tellsValue = { argv: ["echo", "-n", VALUE] };

  test.each(["release", "asyncDispose"] as const)("keep redacting and serving after one closes by %s", async (how) => {
    const first = await runtime.create(config);
    const second = await runtime.open(first.id);
    await runCommand(second, tellsValue);
    await (how === "release" ? second.release() : second[Symbol.asyncDispose]());

    await runCommand(first, tellsValue);
    expect(events.map(({ type }) => type)).toContain("command.output");
    expect(leaked()).toEqual([]);
    expect(served(first.id)).toBe(process.pid);
    expect(await askInside(first.id)).toBe("403");
    // The next process sees that the network is served.
    const third = await runtime.open(first.id);
    await runCommand(third, tellsValue);
    await third.release();
    expect(keepersStarted).toBe(0);
    expect(leaked()).toEqual([]);
  });

  test("hand the network over only when both have been released", async () => {
    const first = await runtime.create(config);
    const second = await runtime.open(first.id, { serveNetwork: true });
    await first.release();
    expect(keepersStarted).toBe(0);
    expect(served(second.id)).toBe(process.pid);
    expect(await askInside(second.id)).toBe("403");
    await runCommand(second, tellsValue);
    expect(leaked()).toEqual([]);
    await second.release();
    expect(keepersStarted).toBe(1);
  });

  test("leave no serving process after both are destroyed", async () => {
    const first = await runtime.create(config);
    const second = await runtime.open(first.id, { serveNetwork: true });
    await second.destroy();
    await first.destroy();
    expect(served(first.id)).toBeNull();
  });

  test("redact output even for a handle that only attaches", async () => {
    const first = await runtime.create(config);
    const { ref } = await first.spawn({ argv: ["sh", "-c", `echo ${VALUE}; sleep 100`] });
    const second = await runtime.open(first.id);
    const attached = await second.attach(ref);
    for await (const { data } of attached.output) {
      expect(data.toString()).not.toContain(VALUE);
      break;
    }
  });
});

/** The fake keeps its sandboxes in memory, but networks store their state in a sandbox's folder. */
function withRecords(fake: FakeRuntime, stateDir: string): Runtime {
  const store = createStore({ stateDir });
  return {
    ...fake,
    async create(sandboxConfig, options) {
      const sandbox = await fake.create(sandboxConfig, options);
      const { id, runtime, state, createdAt, limits, warnings } = sandbox.info;
      await store.write({ id, runtime, state, createdAt, limits, warnings, spec: sandboxConfig, owner: null, details: null });
      makeInsideFolder(store.dir(id));
      return sandbox;
    },
  };
}
