import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useCertificate } from "../../src/api/testing-certificate.ts";
import { encodeTarHeader, type TarHeader, tarEnd } from "../../src/sandbox/tar/tar-header.ts";
import type { FileSide } from "../../src/workspace/change.ts";
import { packChanges } from "../../src/workspace/changes-archive.ts";
import { EVIL, type LyingStation, startLyingStation, withBehind } from "../support/lying-station.ts";
import { useCaisson } from "./caisson-process.ts";

const { run, base } = useCaisson();
let [url, token, runId, sandbox, workflow] = ["", "", "", "", ""];
const work = () => join(base(), "work");

beforeAll(async () => {
  await mkdir(work(), { recursive: true });
  await writeFile(join(work(), "a.txt"), "old\n");
  ({ url, token } = JSON.parse((await run(["up", "--detach", "--port", "0", "--json"])).text));
  const ok = async (args: readonly string[]) => {
    const finished = await run(args, { cwd: work() });
    expect(finished.code, `${args.join(" ")}: ${finished.stderr}`).toBe(0);
    return finished.text.trim();
  };
  runId = await ok(["run", "--detach", "--model", "scripted:demo", "--name", "work", "say so"]);
  sandbox = await ok(["sandbox", "create", "--name", "box", "--no-workspace"]);
  await ok(["webhook", "create", "hook", "https://example.com/x"]);
  await ok(["sandbox", "snapshot", "box"]);
  const definition = join(base(), "flow.yaml");
  await writeFile(definition, "name: flow\nsteps: [{ name: a, kind: set, data: { x: 1 } }]\n");
  workflow = await ok(["workflow", "run", "--detach", definition]);
});
// Runs before the station's home is removed, since it is registered later.
afterAll(() => run(["down"]));

/** Fields that a client needs unchanged to understand a response. */
const structural =
  /^(?:id|run|session|sandbox|status|state|kind|type|code|phase|finish|scope|next|protocol|url|.*At|at|etag|digest|runtime|mode|level)$/;

const commands = (): readonly (readonly string[])[] => [
  ["status"],
  ["ps", "--all"],
  ["ps", "--all", "--json"],
  ["queue"],
  ["inbox"],
  ["health"],
  ["incident", "ls"],
  ["guardian", "status"],
  ["guardian", "log"],
  ["guardian", "explain", runId],
  ["logs", runId],
  ["logs", "nothing-of-this-name"],
  ["diff", runId],
  ["apply", runId],
  ["branch", runId],
  ["undo", runId],
  ["stop", runId],
  ["send", runId, "hello"],
  ["label", runId, "a=b"],
  ["session", "ls"],
  ["session", "info", runId],
  ["session", "rm", "nothing-of-this-name"],
  ["sandbox", "ls"],
  ["sandbox", "ls", "--json"],
  ["sandbox", "stats", sandbox],
  ["sandbox", "rm", "nothing-of-this-name"],
  ["stats"],
  ["net", "show", sandbox],
  ["net", "log", sandbox],
  ["ports", sandbox],
  ["artifacts", runId],
  ["snapshot", "ls"],
  ["image", "ls"],
  ["model", "ls"],
  ["df"],
  ["doctor"],
  ["secret", "ls"],
  ["token", "ls"],
  ["token", "create", "fresh"],
  ["token", "rotate", "fresh"],
  ["webhook", "ls"],
  ["webhook", "deliveries", "hook"],
  ["workflow", "ls"],
  ["workflow", "show", workflow],
  ["spec", "ls"],
  ["spec", "show", "nothing-of-this-name"],
  ["ship", "ls"],
  ["merge", "ls"],
  ["audit"],
  ["console"],
  ["run", "--detach", "--model", "scripted:demo", "say so"],
  ["exec", "--sandbox", sandbox, "--", "true"],
];

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a terminal obeys.
const obeyed = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]/;

const elsewhere = (station: LyingStation) => ({ CAISSON_URL: station.url, CAISSON_TOKEN: token });

describe.each<[string, (key: string) => boolean]>([
  ["text", (key) => !structural.test(key)],
  ["every string", () => true],
])("a station that puts control characters into %s", (_what, isChosen) => {
  test("never gets them to the terminal, and breaks no command", async () => {
    await using lying = await startLyingStation(url, { change: (value) => withBehind(value, EVIL, isChosen) });
    const raw: string[] = [];
    const broken: string[] = [];
    let visible = 0;
    const tryCommand = async (args: readonly string[]) => {
      const { text, stderr, code } = await run(args, { cwd: work(), env: elsewhere(lying) });
      // A patch in a pipe is for programs, so it is exact.
      if (args[0] === "diff" ? obeyed.test(stderr) : obeyed.test(text) || obeyed.test(stderr))
        raw.push(`${args.join(" ")}: ${JSON.stringify(text + stderr).slice(0, 300)}`);
      if (/defect in Caisson|\n\s+at /.test(stderr) || code === null) broken.push(`${args.join(" ")}: ${stderr.slice(0, 400)}`);
      if (/unknown option|Usage: /.test(stderr)) broken.push(`${args.join(" ")} is not a command: ${stderr}`);
      if (/red|taken/.test(text + stderr)) visible += 1;
    };
    // Three at a time, since commands mostly wait.
    const left = [...commands()];
    const worker = async () => {
      for (let args = left.shift(); args !== undefined; args = left.shift()) await tryCommand(args);
    };
    await Promise.all([worker(), worker(), worker()]);
    expect(raw).toEqual([]);
    expect(broken).toEqual([]);
    // The text was shown, with its control characters escaped.
    expect(visible).toBeGreaterThan(10);
  });
});

test("a remote station that claims to be local gets folders uploaded", async () => {
  const own = await (await fetch(`${url}/v1/status`, { headers: { authorization: `Bearer ${token}` } })).json();
  await using lying = await startLyingStation(url, { change: (value) => value, instead: (path) => (path === "/v1/status" ? own : null) });
  const { stderr } = await run(["run", "--detach", "--model", "scripted:demo", "say so"], { cwd: work(), env: elsewhere(lying) });
  const posts = lying.heard.filter(({ method }) => method === "POST");
  expect([posts.at(-1)?.path, stderr]).toEqual(["/v1/runs", ""]);
  expect(JSON.parse(posts.at(-1)?.body ?? "").source.kind).toBe("upload");
});

describe("a station that sends files for outside the folder", () => {
  /** Lists everything around the folder that the command may write to. */
  const around = async () => (await readdir(outer(), { recursive: true })).sort();
  const outer = () => join(base(), "around");
  const inner = () => join(outer(), "folder");
  beforeEach(async () => {
    await mkdir(inner(), { recursive: true });
    await writeFile(join(outer(), "mine.txt"), "mine\n");
    await writeFile(join(inner(), "a.txt"), "old\n");
  });

  const file = (content: string): FileSide => ({ kind: "file", mode: 0o644, content: Buffer.from(content) });
  const link = (target: string): FileSide => ({ kind: "link", mode: 0o777, content: Buffer.from(target) });
  const cases: Readonly<Record<string, Readonly<Record<string, FileSide>>>> = {
    "a path upward": { "../mine.txt": file("theirs\n") },
    "a path upward from below": { "b/../../mine.txt": file("theirs\n") },
    "an absolute path": { "/tmp/caisson-theirs.txt": file("theirs\n") },
    "a NUL": { "a\0b": file("theirs\n") },
    "a link out": { l: link("../mine.txt") },
    "a file through a link out": { l: link(".."), "l/mine.txt": file("theirs\n") },
    "a hook of git": { ".git/hooks/pre-commit": file("#!/bin/sh\n") },
  };

  test.each(Object.entries(cases))("writes nothing with apply: %s", async (_what, files) => {
    const changes = Object.entries(files).map(([path, after]) => ({ path, from: null, before: null, after }));
    const parts: Uint8Array[] = [];
    const described = { id: runId, kind: "session" as const, source: { kind: "empty" as const }, commit: null };
    const options = { base: false, applied: new Map<string, string>() };
    for await (const part of packChanges(described, { changes: changes as never, leftOut: [], ignored: 0 }, options)) parts.push(part);
    const instead = (path: string) => (path.includes("/changes") ? Buffer.concat(parts) : null);
    await using lying = await startLyingStation(url, { change: (value) => value, instead });
    const before = await around();
    const { code, stderr } = await run(["apply", runId, "--to", inner(), "--force"], { cwd: inner(), env: elsewhere(lying) });
    expect(lying.heard.some(({ path }) => path.includes("/changes"))).toBe(true);
    expect([code, stderr]).not.toEqual([0, ""]);
    expect(stderr).not.toMatch(/defect in Caisson|\n\s+at /);
    expect([await around(), await readFile(join(outer(), "mine.txt"), "utf8")]).toEqual([before, "mine\n"]);
    expect(existsSync("/tmp/caisson-theirs.txt")).toBe(false);
  });

  const header = { mode: 0o644, sizeBytes: 0, modifiedMs: 0, linkTarget: "" };
  const archives: Readonly<Record<string, readonly TarHeader[]>> = {
    "a path upward": [{ ...header, kind: "file", name: "../theirs.txt" }],
    "an absolute path": [{ ...header, kind: "file", name: "/tmp/caisson-theirs.txt" }],
    "a file through a link out": [
      { ...header, kind: "link", name: "l", linkTarget: ".." },
      { ...header, kind: "file", name: "l/theirs.txt" },
    ],
    "a hard link out": [{ ...header, kind: "hardLink", name: "theirs.txt", linkTarget: "../mine.txt" }],
  };

  test.each(Object.entries(archives))("writes nothing outside the folder with cp: %s", async (_what, entries) => {
    const archive = Buffer.concat([...entries.map(encodeTarHeader), tarEnd]);
    const instead = (path: string) => (path.includes("/files/archive") ? archive : null);
    await using lying = await startLyingStation(url, { change: (value) => value, instead });
    const { stderr } = await run(["cp", `${sandbox}:/tmp`, join(inner(), "out")], { cwd: inner(), env: elsewhere(lying) });
    expect(
      lying.heard.some(({ path }) => path.includes("/files/archive")),
      stderr,
    ).toBe(true);
    expect(stderr).not.toMatch(/defect in Caisson|\n\s+at /);
    expect((await around()).filter((path) => !path.startsWith("folder/out"))).toEqual(["folder", "folder/a.txt", "mine.txt"]);
    expect(existsSync(join(inner(), "out", "theirs.txt"))).toBe(false);
    expect(existsSync("/tmp/caisson-theirs.txt")).toBe(false);
    await rm(join(inner(), "out"), { recursive: true, force: true });
  });
});

describe("a station with an untrusted certificate", () => {
  const { files, ca, folder } = useCertificate();
  let server: Server;
  let requests = 0;
  beforeAll(async () => {
    const [cert, key] = [await readFile(files().certPath), await readFile(files().keyPath)];
    server = createServer({ cert, key }, (_request, response) => {
      requests += 1;
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));
  const at = (name = "127.0.0.1", scheme = "https") => `${scheme}://${name}:${(server.address() as AddressInfo).port}`;

  test.each([
    ["of an unknown authority", {}, "127.0.0.1", /is not trusted: its authority is unknown/],
    ["for another name", { trusted: true }, "localhost", /is not trusted: it is for another host name/],
  ])(
    "gets no request, and the error names the fix: a certificate %s",
    async (_what, { trusted = false }: { trusted?: boolean }, name, words) => {
      const caFile = join(folder(), "ca.pem");
      await writeFile(caFile, ca());
      const env = { CAISSON_URL: at(name), CAISSON_TOKEN: token, ...(trusted && { CAISSON_CA_FILE: caFile }) };
      for (const args of [["ps"], ["run", "--detach", "x"], ["exec", "--", "true"]]) {
        const { code, stderr } = await run(args, { cwd: work(), env });
        expect([args, code, stderr]).toEqual([args, 125, expect.stringMatching(words)]);
        expect(stderr).toMatch(/hint: Nothing was sent.*--ca-file/);
        expect(stderr).not.toMatch(/\n\s+at /);
      }
      expect(requests).toBe(0);
    },
  );

  test("is distinguished from a station without TLS", async () => {
    const { stderr } = await run(["ps"], { env: { CAISSON_URL: url.replace("http:", "https:"), CAISSON_TOKEN: token } });
    expect(stderr).toMatch(/does not speak TLS\nhint: Nothing was sent/);
  });
});
