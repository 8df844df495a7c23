import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { totalmem } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { root, useCaisson } from "./caisson-process.ts";

const { run, start, home, base, sandboxes } = useCaisson();
const socket = () => join(home(), "station", "socket");
const statusOf = async () => JSON.parse((await run(["status", "--json"])).text);
// Runs before the station's home is removed, since it is registered later.
afterAll(() => run(["down"]));

/** Resolves with the first line of a stream. */
function firstLine(stream: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    stream.on("data", (data) => {
      text += data;
      if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
    });
  });
}

describe("webhooks", () => {
  test("report the end of a run, and the audit log has the request", async () => {
    const deliveries: { type: string; subject: string }[] = [];
    const receiver = createHttpServer((request, response) => {
      let body = "";
      request.on("data", (data) => {
        body += data;
      });
      request.on("end", () => {
        deliveries.push(JSON.parse(body));
        response.writeHead(204).end();
      });
    });
    receiver.listen(0, "127.0.0.1");
    await once(receiver, "listening");
    const model = join(base(), "told.yaml");
    writeFileSync(model, "turns: [{ say: Done. }]\n");
    await run(["up", "--detach", "--port", "0", "--no-token"]);
    try {
      const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
      expect((await run(["webhook", "create", "ends", url])).stderr).toContain("does not use https");
      const result = await run(["webhook", "create", "ends", url, "--event", "run.ended", "--allow-private", "--json"]);
      expect(JSON.parse(result.text)).toMatchObject({ name: "ends", secret: expect.stringMatching(/^whsec_/) });
      const body = JSON.stringify({ task: "Say so.", model: `scripted:${model}` });
      const started = JSON.parse((await curl(["-d", body, "-H", "content-type: application/json", "http://station/v1/runs"])).stdout);
      await expect.poll(() => deliveries).toMatchObject([{ type: "caisson.run.ended", subject: started.run }]);
      expect(JSON.parse((await run(["webhook", "deliveries", "ends", "--json"])).text)).toMatchObject([
        { state: "delivered", run: started.run },
      ]);
      expect((await run(["audit", "--action", "runs"])).text).toMatch(/user +socket +runs\.start/);
    } finally {
      await run(["webhook", "rm", "ends"]);
      await run(["down"]);
      receiver.close();
    }
  });
});

describe("caisson up", () => {
  test("runs until it is asked to end, once per state folder", async () => {
    const { child, finished } = start(["up", "--port", "0", "--json"]);
    const { url, pid, token } = JSON.parse(await firstLine(child.stdout as NodeJS.ReadableStream));
    expect(token).toMatch(/^tok_/);
    expect((await fetch(`${url}/v1/sandboxes`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
    const second = await run(["up", "--port", "0"]);
    expect([second.code, second.stderr]).toEqual([125, expect.stringContaining(`already running on this state folder, as process ${pid}`)]);
    expect(await statusOf()).toMatchObject({ running: true, pid, url });
    child.kill("SIGTERM");
    expect(await finished).toMatchObject({ code: 0 });
    expect(existsSync(socket())).toBe(false);
    expect((await run(["status"])).code).toBe(1);
  });

  test("restarts after kill -9 with its sandboxes, and without a new first token", async () => {
    const first = JSON.parse((await run(["up", "--detach", "--port", "0", "--json"])).text);
    expect(first.token).toBeUndefined();
    const sandbox = JSON.parse((await curl(["-X", "POST", "http://station/v1/sandboxes"])).stdout);
    process.kill(first.pid, "SIGKILL");
    expect(existsSync(socket())).toBe(true);
    const second = JSON.parse((await run(["up", "--detach", "--port", "0", "--json"])).text);
    expect(second.pid).not.toBe(first.pid);
    const exec = [
      "-d",
      '{"argv":["echo","still here"]}',
      "-H",
      "content-type: application/json",
      `http://station/v1/sandboxes/${sandbox.id}/exec`,
    ];
    expect(JSON.parse((await curl(exec)).stdout)).toMatchObject({ stdout: { text: "still here\n" } });
    await curl(["-X", "DELETE", `http://station/v1/sandboxes/${sandbox.id}`]);
    expect(sandboxes()).not.toContain(sandbox.id);
    expect((await run(["down"])).stderr).toContain(`station ${second.pid} has stopped`);
    // The sandboxes that this station and the killed one kept ready are removed, too.
    expect(sandboxes()).toEqual([]);
    expect((await run(["down"])).stderr).toContain("no station is running");
  });

  test("keeps sandboxes ready only for the usual OCI runtime, and removes them", async () => {
    const model = join(base(), "other.yaml");
    writeFileSync(model, "turns: [{ say: Done. }]\n");
    const own = { CAISSON_HOME: join(base(), "home-other") };
    const folders = () => readdirSync(join(own.CAISSON_HOME, "sandboxes"));
    const { url, token } = JSON.parse((await run(["up", "--detach", "--port", "0", "--ready", "1", "--json"], { env: own })).text);
    try {
      const env = { ...own, CAISSON_URL: url, CAISSON_TOKEN: token };
      const command = ["run", "Say so.", "--model", `scripted:${model}`, "--no-workspace", "--runtime", "oci"];
      for (const runtime of ["crun", "runc"]) {
        const { code, stderr } = await run([...command, "--oci-runtime", runtime], { env });
        expect(code, stderr).toBe(0);
      }
      // The one ready sandbox has the usual runtime. Others would be created while this command runs.
      expect((await run(["exec", "--no-workspace", "--", "sleep", "1"], { env })).code).toBe(0);
      await expect.poll(folders).toHaveLength(1);
    } finally {
      await run(["down"], { env: own });
    }
    expect(folders()).toEqual([]);
  });

  test("never lists what a killed command left, however recent", async () => {
    await run(["up", "--detach", "--port", "0", "--no-token"]);
    try {
      const listed = async () => {
        const { sandboxes } = JSON.parse((await curl(["http://station/v1/sandboxes"])).stdout);
        return (sandboxes as { id: string; workspace: { kind: string } }[]).filter(({ workspace }) => workspace.kind === "folder");
      };
      // Only sandboxes with a folder count, because the station also creates one to probe whether sandboxes start.
      const { child, finished } = start(["exec", "--no-station", "--", "sh", "-c", "echo there; sleep 60"], { cwd: base() });
      await firstLine(child.stdout as NodeJS.ReadableStream);
      expect(await listed()).toHaveLength(1);
      child.kill("SIGKILL");
      await finished;
      expect(await listed()).toEqual([]);
    } finally {
      await run(["down"]);
    }
  });

  test("does not exceed its limits on sandboxes and memory because of ready ones", async () => {
    const env = { CAISSON_HOME: join(base(), "home-bounds") };
    mkdirSync(env.CAISSON_HOME, { mode: 0o700 });
    const memoryReserveBytes = totalmem() - 2 ** 30;
    const station = { sandboxesMax: 3, sandboxesPerOwnerMax: 3, memoryReserveBytes };
    writeFileSync(join(env.CAISSON_HOME, "config.json"), JSON.stringify({ station }));
    const create = (...options: string[]) => run(["sandbox", "create", "--no-workspace", ...options], { env });
    expect(await run(["up", "--detach", "--port", "0", "--no-token", "--ready", "2"], { env })).toMatchObject({ code: 0 });
    try {
      expect(await create("--memory", "768m")).toMatchObject({ code: 0, stderr: "" });
      expect(await create("--memory", "512m")).toMatchObject({
        code: 125,
        stderr: expect.stringContaining("of memory for sandboxes"),
      });
      for (let count = 1; count < 3; count++) expect(await create("--memory", "64m")).toMatchObject({ code: 0 });
      expect(await create("--memory", "64m")).toMatchObject({
        code: 125,
        stderr: expect.stringContaining("the limit of 3 sandboxes is reached"),
      });
    } finally {
      await run(["sandbox", "rm", "--all", "--yes"], { env });
      await run(["down"], { env });
    }
  });

  test("explains why it cannot listen, even with --detach", async () => {
    for (const [args, reason] of [
      [["--listen-host", "0.0.0.0"], "would expose tokens"],
      [["--listen-host", "example.org"], "is not an IP address"],
      [["--port", "70000"], "is not a port"],
    ] as const) {
      for (const detach of [[], ["--detach"]]) {
        const refused = await run(["up", ...args, ...detach]);
        expect([refused.code, refused.stderr]).toEqual([125, expect.stringContaining(reason)]);
      }
    }
    const { port, server: otherServer } = await takenPort();
    expect((await run(["up", "--detach", "--port", String(port)])).stderr).toContain(`port ${port} on 127.0.0.1 is in use`);
    otherServer.close();
    expect(await statusOf()).toEqual({ running: false, commands: "here" });
  });
});

describe("the station guide", () => {
  test("has commands and a Python example that do what the page says", async () => {
    const page = readFileSync(join(root, "docs/guides/station.md"), "utf8");
    const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map((match) => match[1] ?? "");
    writeFileSync(join(base(), "model.yaml"), "turns: [{ say: Hello. }]\n");
    const { port, server: until } = await takenPort();
    until.close();
    const example = `TOKEN="$TOKEN" python3 ${join(root, "examples/station.py")} "$URL"\n`;
    const shell = ["set -eu", ...blocks.slice(0, -1).map((block) => `${block}\necho`), example, ...blocks.slice(-1)].join("\n");
    const { stdout, stderr, status } = spawnSync("bash", ["-c", shell], {
      cwd: base(),
      encoding: "utf8",
      env: { ...process.env, PATH: `${root}:${process.env.PATH}`, CAISSON_HOME: home(), PORT: String(port) },
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining("has stopped") });
    for (const excerpt of [
      `address   http://127.0.0.1:${port}\n`,
      '"name":"guide"',
      '{"bytes":13}',
      '"stdout":{"encoding":"utf8","text":"42\\n"}',
      '"encoding":"utf8","text":"one\\n',
      "\nprint(6 * 7)\n",
      "event: run.ended",
      '"code":"not_found"',
      "sorted: ['apple', 'pear']",
      "exit code: 3",
      "refused: denied",
    ]) {
      expect(stdout).toContain(excerpt);
    }
    expect(sandboxes()).toEqual([]);
  });
});

async function takenPort(): Promise<{ port: number; server: Server }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, server };
}

/** Uses the socket, as the guide does. */
async function curl(args: readonly string[]): Promise<{ stdout: string }> {
  const { stdout, stderr, status } = spawnSync("curl", ["-fsS", "--unix-socket", socket(), ...args], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return { stdout };
}
