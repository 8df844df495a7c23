import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join, parse } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { startupFiles } from "../../scripts/startup-files.ts";
import { type Finished, launcher, root, useCaisson } from "./caisson-process.ts";

const { run, base, home } = useCaisson();

/** The large files that an `exec` without a station loads. */
const ofExec = startupFiles.flatMap(({ name, large, exec }) => (large && (exec === "always" || exec === "here") ? [name] : []));
const inFolder = startupFiles.flatMap(({ name, exec }) => (exec === "in a folder" ? [name] : []));
/** The large files that an `exec` through a station loads as well. */
const ofBothWays = startupFiles.flatMap(({ name, large, exec }) => (large && exec === "always" ? [name] : []));

interface LoadOptions {
  env?: Record<string, string>;
  expected?: Partial<Finished>;
}

describe("the launcher", () => {
  test("works through links, from any folder", () => {
    const link = join(base(), "link-to-caisson");
    symlinkSync(launcher, link);
    const second = join(base(), "second");
    symlinkSync("link-to-caisson", second);
    expect(execFileSync(second, ["--version"], { cwd: "/", encoding: "utf8" })).toMatch(/^caisson \d+\.\d+\.\d+\n$/);
    for (const word of ["-V", "-v", "version"]) expect(execFileSync(second, [word], { encoding: "utf8" })).toMatch(/^caisson \d/);
    expect(execFileSync("sh", ["caisson", "--version"], { cwd: root, encoding: "utf8" })).toMatch(/^caisson /);
  });

  test("passes none of its variables to sandboxes or programs", async () => {
    expect((await run(["exec", "--", "env"])).text).not.toContain("NODE_COMPILE_CACHE");
  });

  /** Runs a command, and returns the names of the large files of the bundle that it loads. */
  async function largeFilesOf(argv: readonly string[], { env = {}, expected = {} }: LoadOptions = {}): Promise<string[]> {
    const hook = join(base(), "note-files.mjs");
    const list = join(base(), `files ${argv.join(" ").replaceAll("/", " ")}`);
    writeFileSync(
      hook,
      `import { appendFileSync } from "node:fs";
       import { registerHooks } from "node:module";
       registerHooks({ load(url, context, next) { appendFileSync(${JSON.stringify(list)}, url + "\\n"); return next(url, context); } });`,
    );
    expect(await run(argv, { env: { ...env, NODE_OPTIONS: `--import=file://${hook}` } })).toMatchObject({ code: 0, ...expected });
    const files = readFileSync(list, "utf8")
      .split("\n")
      .filter((url) => url.startsWith("file:"))
      .map((url) => fileURLToPath(url));
    // Small files only lead from a name to one of these. A module counts with the script beside it, which `kept-script` runs.
    const bytes = (file: string) => statSync(file).size + (statSync(file.replace(/\.mjs$/, ".js"), { throwIfNoEntry: false })?.size ?? 0);
    return files
      .filter((file) => file !== hook && bytes(file) > 4_096)
      .flatMap((file) => (parse(file).name === "kept-script" ? [] : [parse(file).name]));
  }

  test.each([
    { place: "without a folder", argv: ["--no-workspace", "--", "true"], files: ofExec, expected: { stderr: "" } },
    { place: "in a folder", argv: ["--", "touch", "file"], files: [...ofExec, ...inFolder], expected: {} },
  ])("loads only the files of the start-up list for `exec` $place", async ({ argv, files, expected }) => {
    expect((await largeFilesOf(["exec", ...argv], { expected })).sort()).toEqual(files.toSorted());
  });

  test("loads no schemas for most lists of a station, and nothing that does its work", async () => {
    const env = { CAISSON_HOME: join(base(), "home-lists") };
    expect(await run(["up", "--detach", "--port", "0", "--no-token"], { env })).toMatchObject({ code: 0 });
    try {
      for (const argv of [["sandbox", "ls"], ["snapshot", "ls"], ["stats"], ["webhook", "ls"], ["inbox"], ["df"]])
        expect([argv, await largeFilesOf(argv, { env })]).toEqual([argv, expect.not.arrayContaining(["contract"])]);
      for (const argv of [["ps"], ["session", "ls"], ["ship", "ls"]])
        expect([argv, await largeFilesOf(argv, { env })]).toEqual([argv, expect.not.arrayContaining(["local-station"])]);
    } finally {
      await run(["down"], { env });
    }
  });

  test("does not load Node's fetch and HTTP for `exec` through a station", async () => {
    const hook = join(base(), "note-modules.mjs");
    const list = join(base(), "modules");
    writeFileSync(
      hook,
      `import { writeFileSync } from "node:fs";
       process.on("exit", () => writeFileSync(${JSON.stringify(list)}, process.moduleLoadList.join("\\n")));`,
    );
    const env = { CAISSON_HOME: join(base(), "home-station") };
    expect(await run(["up", "--detach", "--port", "0", "--no-token"], { env })).toMatchObject({ code: 0 });
    try {
      const cwd = join(base(), "project");
      mkdirSync(cwd);
      const options = { cwd, env: { ...env, NODE_OPTIONS: `--import=file://${hook}` } };
      // In a folder, because `exec` then also requests the changes there.
      expect(await run(["exec", "--", "true"], options)).toMatchObject({ code: 0 });
    } finally {
      await run(["down"], { env });
    }
    const modules = readFileSync(list, "utf8").split("\n");
    expect(modules).toContain("NativeModule net");
    expect(modules.filter((name) => /^NativeModule (?:_?http|https|zlib|crypto|internal\/deps\/undici)/.test(name))).toEqual([]);
  });

  describe("the compile cache of `exec`", () => {
    const bundle = () => join(root, "build", `cli-${readFileSync(join(root, "build", "setup-stamp"), "utf8").trim()}`, "caisson.mjs");
    const exec = (cache: string, stateDir: string) => {
      const env = { ...process.env, CAISSON_HOME: stateDir, NODE_COMPILE_CACHE: cache };
      const output = execFileSync(process.execPath, [bundle(), "exec", "--no-workspace", "--", "echo", "hi"], { env, encoding: "utf8" });
      expect(output).toBe("hi\n");
    };
    /** Returns each stored file with its inode. A new inode means that the file was written again. */
    const keptIn = (cache: string) => {
      const folder = join(cache, `scripts-${process.version}-${process.arch}`);
      const files = readdirSync(folder).map((name): [string, number] => [
        name.replace(/-[0-9a-f]+$/, ""),
        statSync(join(folder, name)).ino,
      ]);
      return Object.fromEntries(files);
    };

    test("is used the next time", () => {
      const cache = join(base(), "compile-cache");
      exec(cache, home());
      const first = keptIn(cache);
      expect(Object.keys(first).sort()).toEqual(ofExec.map((name) => `exec-${name}`).sort());
      exec(cache, home());
      expect(keptIn(cache)).toEqual(first);
    });

    test("also covers `exec` through a station", async () => {
      const cache = join(base(), "compile-cache-of-both");
      exec(cache, home());
      const alone = keptIn(cache);
      const stateDir = join(base(), "home-station");
      expect(await run(["up", "--detach", "--port", "0", "--no-token"], { env: { CAISSON_HOME: stateDir } })).toMatchObject({ code: 0 });
      try {
        exec(cache, stateDir);
        const both = keptIn(cache);
        const keptAnew = Object.keys(both).filter((name) => name in alone && both[name] !== alone[name]);
        expect(keptAnew).toEqual(expect.arrayContaining(ofBothWays.map((name) => `exec-${name}`)));
        exec(cache, stateDir);
        exec(cache, home());
        expect(keptIn(cache)).toEqual(both);
      } finally {
        await run(["down"], { env: { CAISSON_HOME: stateDir } });
      }
    });
  });

  test("works when many processes start at once", async () => {
    const results = await Promise.all(Array.from({ length: 6 }, () => run(["exec", "--", "echo", "hi"])));
    expect(results.map((result) => [result.code, result.text])).toEqual(results.map(() => [0, "hi\n"]));
  });

  test("runs setup only once", () => {
    const setUp = (...options: string[]) => execFileSync(join(root, "scripts", "setup"), options, { encoding: "utf8" });
    expect(setUp()).toContain("building");
    expect(setUp("--quick")).toBe("");
  });
});

describe("the command line", () => {
  test("has --help for every command", async () => {
    const overview = (await run(["--help"])).text;
    const names = [...overview.matchAll(/^ {2}((?:\w+)(?: \w+)?) {2,}/gm)].map((match) => (match[1] as string).split(" "));
    expect(names.length).toBeGreaterThan(12);
    for (const name of names) {
      const help = await run([...name, "--help"]);
      expect(help.code).toBe(0);
      expect(help.text).toMatch(new RegExp(`^Usage: caisson ${name.join(" ")}[\\s\\S]*Options:[\\s\\S]*Examples:`));
    }
  });

  test("prints the effective configuration and its sources", async () => {
    const result = await run(["config"], { env: { CAISSON_RUNTIME: "docker" } });
    expect(result.text).toMatch(/runtime +docker +CAISSON_RUNTIME/);
    expect(result.text).toContain(home());
    expect(JSON.parse((await run(["config", "--json"])).text)).toMatchObject({ runtime: "auto", stateDir: home() });
  });

  test.each(["bash", "zsh", "fish"])("prints completions for %s", async (shell) => {
    const { text, code } = await run(["completion", shell]);
    expect(code).toBe(0);
    expect(text).toContain("caisson");
    if (shell !== "fish") expect(spawnSync("bash", ["-n"], { input: text }).status).toBe(0);
  });
});
