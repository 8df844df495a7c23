import { spawn } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cuttingProxy } from "../../src/api/streams/testing-streams.ts";
import { type Client, connect } from "../../src/client/connect.ts";
import { root, until, useCaisson } from "./caisson-process.ts";

const { run, home, sandboxes } = useCaisson();
let url = "";
let token = "";
beforeAll(async () => {
  await run(["up", "--detach", "--port", "0", "--no-token"]);
  url = JSON.parse((await run(["status", "--json"])).text).url;
  token = JSON.parse((await run(["token", "create", "streams", "--json"])).text).token;
});
// Runs before the station's home is removed, since it is registered later.
afterAll(() => run(["down"]));

const client = (at = url): Client => connect({ url: at, token });

/** Reads a terminal's output until it matches. */
async function see(output: AsyncIterator<{ data: Uint8Array }>, wanted: RegExp): Promise<string> {
  let text = "";
  while (!wanted.test(text)) {
    const { done, value } = await output.next();
    if (done) throw new Error(`it ended with ${JSON.stringify(text)}`);
    text += Buffer.from(value.data).toString();
  }
  return text;
}

describe("a station's streams", () => {
  test("carry a terminal's size and Ctrl-C, and lose nothing if a connection breaks", async () => {
    const proxy = await cuttingProxy({ status: { url } });
    const held = await client().streams.createHeld({ spec: {} });
    try {
      const { streams } = client(proxy.url);
      const script = `stty -echo; trap "stty size" WINCH; trap "echo caught" INT; echo up; while :; do read -t 0 && read -r line && echo "got $line"; sleep 0.1; done`;
      const shell = await streams.openProcess(held.info.id, {
        argv: ["bash", "-c", script],
        pty: { cols: 100, rows: 30 },
        detachGraceMs: 20_000,
      });
      const output = shell.output[Symbol.asyncIterator]();
      await see(output, /up/);
      await shell.resize({ cols: 90, rows: 25 });
      await see(output, /25 90/);
      await shell.write(Buffer.from("\x03"));
      await see(output, /caught/);
      for (let n = 1; n <= 3; n += 1) {
        proxy.cut();
        await shell.write(Buffer.from(`${n}\n`));
        expect(await see(output, new RegExp(`got ${n}\\r\\n`))).toBe(`got ${n}\r\n`);
      }
      await shell.kill();
      shell.discardOutput();
      expect(await shell.ended).toMatchObject({ kind: "killed" });
      await held.release();
      await until("the sandbox to be gone", () => !sandboxes().includes(held.info.id));
    } finally {
      await held.release();
      // Only now: until the release, the station would wait for a client that seems disconnected.
      proxy.close();
    }
  });

  test("add a command of `caisson exec` to the audit log, without its arguments", async () => {
    expect((await run(["exec", "--", "printf", "secret argument"])).text).toBe("secret argument");
    const entries = JSON.parse((await run(["audit", "--json", "--action", "processes"])).text);
    expect(entries[0]).toMatchObject({ action: "processes.start", caller: "user", subject: { program: "printf" } });
    expect(JSON.stringify(entries)).not.toContain("secret argument");
    const { sandbox } = entries[0].subject;
    expect((await run(["audit", "--about", sandbox])).text).toMatch(new RegExp(`processes\\.start +${sandbox} printf`));
  });

  test("remove a sandbox that is given up during creation before they acknowledge it", async () => {
    const { streams, sandboxes } = client();
    // Differs from the sandboxes that are kept ready.
    const config = { labels: { given: "up" }, tmpBytes: 64 * 1024 * 1024 };
    let givenUp = 0;
    for (let afterMs = 2; afterMs < 50; afterMs += 0.5) {
      const stop = new AbortController();
      const timer = setTimeout(() => stop.abort(), afterMs);
      const held = await streams.createHeld({ spec: config }, { signal: stop.signal }).catch((error: { code?: string }) => error.code);
      clearTimeout(timer);
      if (typeof held === "object") await held.destroy();
      else givenUp += held === "cancelled" ? 1 : 0;
      expect((await sandboxes.list({ label: ["given=up"] })).sandboxes, `given up after ${afterMs} ms`).toEqual([]);
    }
    expect(givenUp).toBeGreaterThan(0);
  });

  test("remove a sandbox when its holder ends, even by kill -9", async () => {
    const program = `
      import { connect } from ${JSON.stringify(`${root}/src/client/connect.ts`)};
      const held = await connect({ url: ${JSON.stringify(url)}, token: process.argv[1] }).streams.createHeld({ spec: {} });
      console.log(held.info.id);`;
    const holder = spawn(process.execPath, ["--input-type=module", "-e", program, token], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, CAISSON_HOME: home() },
    });
    const id = await new Promise<string>((resolve) => holder.stdout.once("data", (data) => resolve(String(data).trim())));
    expect(sandboxes()).toContain(id);
    holder.kill("SIGKILL");
    await until("the sandbox to be gone", () => !sandboxes().includes(id));
  });
});
