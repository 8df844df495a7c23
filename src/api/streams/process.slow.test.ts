import { describe, expect, test, vi } from "vitest";
import { useServer } from "../../../test/support/api-station.ts";
import { tries } from "../../../test/support/thorough.ts";
import { type Client, connect } from "../../client/connect.ts";
import { parseSandboxConfig } from "../../sandbox/sandbox-config.ts";
import { block, counted, cuttingProxy, rawSocket, socketClient, streamPrograms } from "./testing-streams.ts";

const { server, token, station } = useServer({ programs: streamPrograms });

async function client(url = server().status.url): Promise<Client> {
  return connect({ url, token: await token("run") });
}

async function sandbox(): Promise<string> {
  await using held = await station().sandboxes.create({ spec: parseSandboxConfig({ keep: true }) });
  return held.id;
}

type Output = AsyncIterable<{ stream: string; offset: number; data: Uint8Array }>;
async function textOf(output: Output): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const { data } of output) chunks.push(data);
  return Buffer.concat(chunks).toString("latin1");
}

/** Reads output until it contains this text. */
async function until(output: AsyncIterator<{ data: Uint8Array }>, wanted: string): Promise<string> {
  let text = "";
  while (!text.includes(wanted)) {
    const { done, value } = await output.next();
    if (done) throw new Error(`it ended with ${JSON.stringify(text)}`);
    text += Buffer.from(value.data).toString();
  }
  return text;
}

const running = async (id: string) => {
  await using held = await station().sandboxes.hold(id);
  return (await held.processes()).filter(({ state, ref }) => state === "running" && ref !== null).map(({ ref }) => ref);
};

describe.each([
  ["over TCP with a token in a subprotocol", () => client()],
  ["by the socket of the state folder", async () => socketClient(server())],
])("a process %s", (_, open) => {
  test("starts, reads its input, and ends", async () => {
    const { streams } = await open();
    const id = await sandbox();
    const process = await streams.openProcess(id, { argv: ["copy"], stdin: "pipe" });
    const text = textOf(process.output);
    await process.write(Buffer.from("over the "));
    await process.write(Buffer.from([0, 255, 128, 10]));
    await process.closeStdin();
    expect(await text).toBe("over the \0\xff\x80\n");
    expect(await process.ended).toMatchObject({ kind: "exited", exitCode: 0, stdoutBytes: 13 });
    await expect(process.write(Buffer.from("more"))).rejects.toMatchObject({ code: "gone" });
    await process.kill();
  });

  test("has a terminal that can be resized, and receives signals", async () => {
    const { streams } = await open();
    const process = await streams.openProcess(await sandbox(), { argv: ["terminal"], pty: { cols: 80, rows: 24 } });
    const output = process.output[Symbol.asyncIterator]();
    await until(output, "80x24");
    await process.resize({ cols: 132, rows: 43 });
    await process.write(Buffer.from("\n"));
    await until(output, "132x43");
    await process.signal("SIGINT");
    await until(output, "interrupted");
    await process.kill();
    process.discardOutput();
    expect(await process.ended).toMatchObject({ kind: "killed", why: "cancelled" });
  });
});

describe("a process", () => {
  test("reports what was wrong with a request", async () => {
    const { streams } = await client();
    const id = await sandbox();
    await expect(streams.openProcess("sb_aaaaaaaaaaaa", { argv: ["true"] })).rejects.toMatchObject({ code: "not_found" });
    await expect(streams.openProcess(id, { argv: ["nothing-like-it"] })).rejects.toMatchObject({ code: "not_found" });
    await expect(streams.openProcess(id, { argv: ["true"], user: "root" })).rejects.toMatchObject({ code: "denied" });
    await expect(streams.attachProcess(id, "never-started")).rejects.toMatchObject({ code: "not_found" });
    const process = await streams.openProcess(id, { argv: ["sleep", "100"] });
    await expect(process.signal("SIGNOTHING")).rejects.toMatchObject({ code: "invalid" });
    await expect(process.resize({ cols: 1, rows: 1 })).rejects.toMatchObject({ code: "invalid", hint: expect.stringContaining("pty") });
    await expect(process.write(Buffer.from("x"))).rejects.toMatchObject({ code: "invalid" });
    await process.kill();
  });

  test("slows down for a slow reader, and delivers many megabytes exactly", async () => {
    const { streams } = await client();
    const total = tries(100, 30) * 1024 * 1024;
    const process = await streams.openProcess(await sandbox(), { argv: ["count", String(total)] });
    counted.bytes = 0;
    let at = 0;
    let most = 0;
    for await (const { offset, data } of process.output) {
      expect(offset).toBe(at);
      if (!Buffer.from(data).equals(expectedAt(at, data.length))) throw new Error(`wrong bytes at ${at}`);
      at += data.length;
      most = Math.max(most, counted.bytes - at);
    }
    expect(at).toBe(total);
    expect(await process.ended).toMatchObject({ kind: "exited", stdoutBytes: total });
    // The most data in transit: the buffers of the guest, the server and the client.
    expect(most).toBeLessThan(5 * 1024 * 1024);
  });

  test("can be killed while it does not read its input", async () => {
    const { streams } = await client();
    const process = await streams.openProcess(await sandbox(), { argv: ["sleep", "1000"], stdin: "pipe" });
    const written = process.write(new Uint8Array(8 * 1024 * 1024));
    written.catch(() => {});
    await process.kill();
    process.discardOutput();
    expect(await process.ended).toMatchObject({ kind: "killed" });
    await expect(written).rejects.toMatchObject({ code: "gone" });
  });

  test("ends with its connection unless the client detached", async () => {
    const { streams } = await client();
    const id = await sandbox();
    const proxy = await cuttingProxy(server());
    try {
      const { streams: throughProxy } = await client(proxy.url);
      const lost = await throughProxy.openProcess(id, { argv: ["sleep", "1000"] });
      const detached = await streams.openProcess(id, { argv: ["sleep", "1000"], ref: "detached" });
      expect(await running(id)).toHaveLength(2);
      proxy.cut();
      detached.detach();
      lost.discardOutput();
      expect(await lost.ended).toMatchObject({ kind: "lost" });
      await vi.waitFor(async () => expect(await running(id)).toEqual(["detached"]), { timeout: 60_000 });
    } finally {
      proxy.close();
    }
  });
});

describe("a process whose connection breaks off", () => {
  test("continues, and delivers its output without loss or repetition", async () => {
    const id = await sandbox();
    const proxy = await cuttingProxy(server());
    try {
      const { streams } = await client(proxy.url);
      const total = 20 * 1024 * 1024;
      const process = await streams.openProcess(id, { argv: ["count", String(total)], detachGraceMs: 20_000 });
      let at = 0;
      let cuts = 0;
      for await (const { offset, data } of process.output) {
        expect(offset).toBe(at);
        if (!Buffer.from(data).equals(expectedAt(at, data.length))) throw new Error(`wrong bytes at ${at}`);
        at += data.length;
        if (cuts < 3 && at > (cuts + 1) * 4 * 1024 * 1024) {
          cuts += 1;
          proxy.cut();
        }
      }
      expect([at, cuts]).toEqual([total, 3]);
      expect(await process.ended).toMatchObject({ kind: "exited", exitCode: 0, stdoutBytes: total });
    } finally {
      proxy.close();
    }
  });

  test("continues on a new connection if the old one goes silent", async () => {
    const id = await sandbox();
    const proxy = await cuttingProxy(server());
    try {
      const { streams } = await client(proxy.url);
      const process = await streams.openProcess(id, { argv: ["copy"], stdin: "pipe", detachGraceMs: 60_000 }, { silenceMs: 500 });
      const output = process.output[Symbol.asyncIterator]();
      await process.write(Buffer.from("before;"));
      expect(await until(output, ";")).toBe("before;");
      proxy.silence();
      await process.write(Buffer.from("meanwhile;"));
      expect(await until(output, ";")).toBe("meanwhile;");
      await process.closeStdin();
      expect(await output.next()).toMatchObject({ done: true });
      expect(await process.ended).toMatchObject({ kind: "exited", exitCode: 0, stdoutBytes: 17 });
    } finally {
      proxy.close();
    }
  });

  test("receives its input once", async () => {
    const id = await sandbox();
    const proxy = await cuttingProxy(server());
    try {
      const { streams } = await client(proxy.url);
      const process = await streams.openProcess(id, { argv: ["copy"], stdin: "pipe", detachGraceMs: 20_000 });
      const text = textOf(process.output);
      let wanted = "";
      for (let n = 0; n < 300; n += 1) {
        const line = `line ${n}\n`;
        wanted += line;
        const written = process.write(Buffer.from(line));
        if (n % 100 === 50) proxy.cut();
        if (n % 10 === 0) await written;
      }
      await process.closeStdin();
      expect(await text).toBe(wanted);
    } finally {
      proxy.close();
    }
  });

  test("ends if no client reconnects in time", async () => {
    const id = await sandbox();
    const as = await token("run");
    const raw = rawSocket(server(), `/v1/sandboxes/${id}/process`, { as });
    await raw.send({ type: "start", argv: ["sleep", "1000"], ref: "waits", detachGraceMs: 300 });
    await raw.message("started");
    raw.ws.terminate();
    await raw.closed;
    expect(await running(id)).toEqual(["waits"]);
    await vi.waitFor(async () => expect(await running(id)).toEqual([]), { timeout: 60_000 });
  });

  test("is taken over by the newest reader, and the previous one is notified", async () => {
    const { streams } = await client();
    const id = await sandbox();
    const first = await streams.openProcess(id, { argv: ["lines"], stdin: "pipe", ref: "shared" });
    const firstOutput = first.output[Symbol.asyncIterator]();
    await until(firstOutput, "line 0");
    const second = await streams.attachProcess(id, "shared", { detachGraceMs: 0 });
    await expect(firstOutput.next()).rejects.toMatchObject({ code: "superseded" });
    expect(await first.ended).toMatchObject({ kind: "lost" });
    await second.write(Buffer.from("\n"));
    await second.closeStdin();
    expect(await textOf(second.output)).toBe("line 0\nline 1\n");
    expect(await second.ended).toMatchObject({ kind: "exited", exitCode: 7 });
  });
});

function expectedAt(offset: number, length: number): Buffer {
  const start = offset & 255;
  return block.subarray(start).length >= length
    ? block.subarray(start, start + length)
    : Buffer.concat([block, ...Array(Math.ceil(length / block.length)).fill(block)]).subarray(start, start + length);
}
