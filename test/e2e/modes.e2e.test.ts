import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { useCaisson } from "./caisson-process.ts";

/** What `caisson status` prints for each mode. */
const commandsByMode = { none: "here", socket: "socket", http: "elsewhere" } as const;

// `npm run test:modes` runs all tests of the command line in each mode.
describe.each(["none", "socket", "http"] as const)("the command line, station: %s", (mode) => {
  const { run, sandboxes, base } = useCaisson({ mode });
  let project = "";
  beforeAll(async () => {
    project = join(base(), "project");
    await mkdir(project, { recursive: true });
    await writeFile(join(project, "data.txt"), "from outside\n");
  });
  const ok = async (argv: readonly string[], input = "") => {
    const done = await run(argv, { cwd: project, input });
    expect(done.code, `${argv.join(" ")}: ${done.stderr}`).toBe(0);
    return done.text;
  };

  test("works in the configured mode", async () => {
    expect(JSON.parse((await run(["status", "--json"])).text)).toMatchObject({ commands: commandsByMode[mode] });
  });

  test("exec passes input, output and the exit code, and leaves the folder unchanged", async () => {
    const script = "cat data.txt -; echo err >&2; echo x > made; exit 3";
    const done = await run(["exec", "--", "sh", "-c", script], { cwd: project, input: "typed\n" });
    expect(done).toMatchObject({ code: 3, text: "from outside\ntyped\n" });
    expect(done.stderr).toBe("err\ncaisson: 1 file changed inside and was discarded; use -w .:rw to keep it\n");
    expect(sandboxes()).toEqual([]);
  });

  test("a kept sandbox supports exec, cp, ls and rm", async () => {
    const id = (await ok(["sandbox", "create", "--no-workspace", "--name", "stays"])).trim();
    await ok(["cp", "data.txt", "stays:/workspace/"]);
    expect(await ok(["exec", "--sandbox", "stays", "--", "sh", "-c", "tr a-z A-Z <data.txt | tee up.txt"])).toBe("FROM OUTSIDE\n");
    await ok(["cp", `${id}:/workspace/up.txt`, join(base(), "back.txt")]);
    expect(await readFile(join(base(), "back.txt"), "utf8")).toBe("FROM OUTSIDE\n");
    expect(await ok(["sandbox", "ls"])).toContain(id);
    await ok(["rm", id, "--yes"]);
    expect(sandboxes()).toEqual([]);
  });

  test("a run has a log and changes, which apply to the folder", async () => {
    const model = join(base(), "model.json");
    const calls = [{ tool: "bash", arguments: { command: "echo changed > data.txt; echo new > new.txt" } }];
    await writeFile(model, JSON.stringify({ turns: [{ calls }, { say: "It is done." }] }));
    expect(await ok(["run", "--model", `scripted:${model}`, "--name", "task", "change it"])).toContain("It is done.");
    expect(await ok(["ps", "--all"])).toMatch(/task .*done/);
    expect(await ok(["logs", "task"])).toContain("It is done.");
    expect(await ok(["diff", "task"])).toContain("-from outside\n+changed\n");
    expect(await readFile(join(project, "data.txt"), "utf8")).toBe("from outside\n");
    await ok(["apply", "task"]);
    expect(await readFile(join(project, "data.txt"), "utf8")).toBe("changed\n");
    expect(await readFile(join(project, "new.txt"), "utf8")).toBe("new\n");
  });

  test("an error comes with a hint", async () => {
    const done = await run(["exec", "--sandbox", "../../etc", "--", "true"]);
    expect(done).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(/"\.\.\/\.\.\/etc" is not a sandbox id or name\nhint: .*sandbox ls/),
    });
  });
});
