import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until, useCaisson } from "./caisson-process.ts";

/** A station (there), and a user (here) with another state folder. */
const { run: runThere, start: startThere, home: there, base } = useCaisson();
const here = () => join(base(), "..", "here");
const environment = () => ({ CAISSON_HOME: join(here(), "state"), XDG_CONFIG_HOME: join(here(), "config"), HOME: here() });
const run = (argv: readonly string[], options: { cwd?: string; input?: string } = {}) =>
  runThere(argv, { cwd: project(), ...options, env: environment() });
const start = (argv: readonly string[], cwd = project()) => startThere(argv, { cwd, env: environment() });
const project = () => join(here(), "project");
const uploads = () => (existsSync(join(there(), "uploads")) ? readdirSync(join(there(), "uploads")) : []);
const git = (...args: string[]) =>
  execFileSync("git", ["-C", project(), "-c", "user.name=Me", "-c", "user.email=me@example.org", ...args], { encoding: "utf8" }).trim();
const text = (path: string) => readFileSync(join(project(), path), "utf8");

beforeAll(async () => {
  mkdirSync(project(), { recursive: true });
  writeFileSync(join(project(), "a.txt"), "old\n");
  writeFileSync(join(project(), ".env"), "KEY=secret\n");
  git("init", "-q", "-b", "main");
  git("add", "a.txt");
  git("commit", "-qm", "first");
  const { url, token } = JSON.parse((await runThere(["up", "--detach", "--port", "0", "--json"])).text);
  const login = await run(["login", url, "--name", "there", "--token-stdin"], { input: `${token}\n` });
  expect([login.code, login.stderr]).toEqual([0, expect.stringContaining("commands now work with the station at")]);
});
// Runs before the station's home is removed, since it is registered later.
afterAll(() => runThere(["down"]));

describe("a remote station and a local folder", () => {
  test("contexts name the station, and never print its token", async () => {
    expect((await run(["context", "ls"])).text).toMatch(/there \* +http:\/\/127\.0\.0\.1:\d+ +yes/);
    const file = readFileSync(join(here(), "config", "caisson", "contexts.json"), "utf8");
    const { token } = JSON.parse(file).contexts.there;
    expect(token).not.toBe("");
    expect((await run(["context", "show", "--json"])).text).not.toContain(token);
    const wrong = await run(["login", "http://127.0.0.1:1", "--token-stdin"], { input: "nonsense\n" });
    expect([wrong.code, wrong.stderr]).toEqual([125, expect.stringContaining("cannot be reached")]);
    expect((await run(["login", "http://station.example.org", "--token-stdin"], { input: "x\n" })).stderr).toContain("unencrypted");
  });

  test("the agent works remotely; diff, apply and branch are local, with every guard", async () => {
    const model = join(base(), "model.json");
    const bash = (command: string) => ({ tool: "bash", arguments: { command } });
    const calls = [bash("echo new > a.txt; echo more > b.txt; ls -A > seen; mkdir -p .vscode; echo '{}' > .vscode/tasks.json")];
    writeFileSync(model, JSON.stringify({ turns: [{ calls }, { say: "Done." }] }));
    const ran = await run(["run", "--model", `scripted:${model}`, "do it"]);
    expect([ran.code, text("a.txt")], ran.stderr + ran.text).toEqual([0, "old\n"]);
    expect(ran.stderr).toContain("1 file that looks like a credential is not sent");
    const diff = await run(["diff"]);
    expect(diff.text).toContain("-old\n+new\n");
    expect(diff.text).not.toContain(".env\n");
    // The station names the folder. Anywhere else, the client does not trust it.
    const fromOutside = await run(["apply", JSON.parse((await run(["ps", "--all", "--json"])).text)[0].run], { cwd: here() });
    expect([fromOutside.code, fromOutside.stderr]).toEqual([125, expect.stringMatching(/not the current folder[\s\S]*hint: .*--to /)]);
    expect(text("a.txt")).toBe("old\n");
    // The user changes a file while the run's changes are pending.
    writeFileSync(join(project(), "a.txt"), "mine\n");
    const held = await run(["apply"]);
    expect([held.code, held.stderr, text("a.txt")]).toEqual([125, expect.stringContaining("you changed a.txt"), "mine\n"]);
    const branched = await run(["branch", "--name", "work"]);
    expect(branched.code, branched.stderr).toBe(0);
    expect(git("show", "work:b.txt")).toBe("more");
    const applied = await run(["apply", "--force"]);
    expect([applied.code, text("a.txt"), text("b.txt")], applied.stderr).toEqual([0, "new\n", "more\n"]);
    expect(existsSync(join(project(), ".vscode"))).toBe(false);
    expect(text("seen").split("\n").filter(Boolean).sort()).toEqual([".git", "a.txt", "b.txt", "seen"]);
    expect((await run(["diff", "--stat"])).text).toContain(".vscode/tasks.json");
  });

  test("a command sees the folder, and its changes are dropped or applied locally", async () => {
    const seen = await run(["exec", "--", "sh", "-c", "cat a.txt; echo x > dropped; test ! -e .env"]);
    expect([seen.code, seen.text, existsSync(join(project(), "dropped"))]).toEqual([0, text("a.txt"), false]);
    expect(seen.stderr).toContain("1 file changed there and was discarded");
    const refused = await run(["exec", "-w", ".:rw", "--", "true"]);
    expect([refused.code, refused.stderr]).toEqual([125, expect.stringContaining("cannot be mounted read-write")]);
    const keepResult = await run(["exec", "--keep", "--name", "box", "--", "sh", "-c", "echo brought > brought.txt"]);
    expect(keepResult.code, keepResult.stderr).toBe(0);
    expect((await run(["diff", "box", "--stat"])).text).toContain("brought.txt");
    const applied = await run(["apply", "box", "brought.txt"]);
    expect([applied.code, text("brought.txt")], applied.stderr).toEqual([0, "brought\n"]);
    // `cp` copies by sandbox name, in both directions.
    writeFileSync(join(here(), "given.txt"), "given\n");
    expect((await run(["cp", join(here(), "given.txt"), "box:/workspace/"])).code).toBe(0);
    expect((await run(["cp", "box:/workspace/given.txt", join(here(), "back.txt")])).code).toBe(0);
    expect(readFileSync(join(here(), "back.txt"), "utf8")).toBe("given\n");
    expect((await run(["rm", "--yes", "box"])).code).toBe(0);
  });

  test("a port inside is forwarded to this machine", async () => {
    const serve = "import http.server as h; h.HTTPServer(('127.0.0.1', 8000), h.SimpleHTTPRequestHandler).serve_forever()";
    const web = await run(["exec", "-d", "--name", "web", "--", "python3", "-c", serve]);
    expect(web.code, web.stderr).toBe(0);
    await until("something listens inside", async () => (await run(["ports", "web"])).text.includes("8000"));
    const forward = start(["forward", "web", "8000", "--json"]);
    try {
      const [line] = await once(forward.child.stdout as NodeJS.ReadableStream, "data");
      const { listenPort } = JSON.parse(String(line));
      expect(await (await fetch(`http://127.0.0.1:${listenPort}/a.txt`)).text()).toBe(text("a.txt"));
    } finally {
      forward.child.kill("SIGTERM");
      await forward.finished;
      await run(["rm", "--yes", "web"]);
    }
  });

  test("a client killed during an upload leaves nothing behind on the station", async () => {
    const large = join(here(), "large");
    mkdirSync(large);
    writeFileSync(join(large, "zeros"), "");
    truncateSync(join(large, "zeros"), 700 * 1024 ** 2);
    const isPart = (name: string) => name.startsWith(".part-");
    const before = uploads();
    const sending = start(["exec", "-w", large, "--", "true"], large);
    await until("it is being sent", () => uploads().some(isPart));
    sending.child.kill("SIGKILL");
    await sending.finished;
    await until("nothing of it is there", () => !uploads().some(isPart));
    expect(uploads().sort()).toEqual(before.sort());
    // A killed station does leave the partial upload, and the next one removes it.
    const again = start(["exec", "-w", large, "--", "true"], large);
    await until("it is being sent again", () => uploads().some(isPart));
    const { pid, url } = JSON.parse((await runThere(["status", "--json"])).text);
    process.kill(pid, "SIGKILL");
    expect((await again.finished).code).toBe(125);
    expect(uploads().some(isPart)).toBe(true);
    await runThere(["up", "--detach", "--no-token", "--port", new URL(url).port]);
    await until("the next one has removed it", () => !uploads().some(isPart));
  });
});
