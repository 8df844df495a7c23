import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { defineAgent } from "./define-agent.ts";
import { findAgent, findAgents } from "./find-agents.ts";

describe("agents", () => {
  const names = (found: readonly { name: string }[]) => found.map((agent) => agent.name);
  const withFolder = async (use: (dir: string, put: (path: string, text: string) => Promise<void>) => Promise<void>) => {
    const dir = await mkdtemp(join(tmpdir(), "caisson-test-agents-"));
    try {
      await use(dir, async (path, text) => {
        await mkdir(dirname(join(dir, path)), { recursive: true });
        await writeFile(join(dir, path), text);
      });
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  };

  test("are found by name, nearest first, even next to a broken file", async () => {
    await withFolder(async (dir, put) => {
      await put("near/a.prompt", "---\ndescription: near\n---\nA");
      await put("far/a.prompt", "---\ndescription: far\n---\nA");
      await put("far/broken.prompt", "---\nmodle: x\n---\nB");
      await put("far/notes.md", "no agent");
      const folders = [join(dir, "near"), join(dir, "missing"), join(dir, "far")];
      const places = { ownFolder: null, namedFolders: [], folders, cwd: dir };
      const found = await findAgents(places);
      expect(names(found)).toEqual(["coder", "merger", "planner", "reviewer", "tester", "a", "a", "broken"]);
      expect(found.find((agent) => agent.name === "broken")?.file).toMatchObject({ code: "invalid" });
      expect((await findAgent("a", places)).file.frontmatter.description).toBe("near");
      expect((await findAgent("far/a.prompt", places)).file.frontmatter.description).toBe("far");
      await expect(findAgent("broken", places)).rejects.toMatchObject({ code: "invalid" });
      await expect(findAgent("missing", places)).rejects.toMatchObject({
        code: "not_found",
        hint: expect.stringContaining("coder, merger, planner, reviewer, tester, a, broken"),
      });
      await expect(findAgent("./missing.prompt", places)).rejects.toMatchObject({ code: "not_found" });
    });
  });

  test("of a folder never hide built-in agents or the user's own", async () => {
    await withFolder(async (dir, put) => {
      await put("own/mine.prompt", "---\nname: reviewer\n---\nMine");
      await put("named/x.prompt", "---\nname: helper\n---\nNamed");
      await put("work/agents/coder.prompt", "---\ndescription: x\n---\nTheirs");
      await put("work/agents/reviewer.prompt", "---\ndescription: x\n---\nTheirs");
      await put("work/agents/y.prompt", "---\nname: helper\n---\nTheirs");
      const places = {
        cwd: join(dir, "work"),
        ownFolder: join(dir, "own"),
        namedFolders: [join(dir, "named")],
        folders: [join(dir, "work", "agents")],
      };
      const theirs = (name: string) => join(dir, "work", "agents", name);
      expect(await findAgent("coder", places)).toMatchObject({ origin: "built-in", passedOver: [theirs("coder.prompt")] });
      expect(await findAgent("reviewer", places)).toMatchObject({ origin: "own", passedOver: [theirs("reviewer.prompt")] });
      // The configuration names the folder, but does not trust its files.
      expect(await findAgent("helper", places)).toMatchObject({ origin: "folder", path: join(dir, "named", "x.prompt") });
      expect(await findAgent("agents/coder.prompt", places)).toMatchObject({ origin: "folder", passedOver: [] });
      expect(await findAgent("../own/mine.prompt", places)).toMatchObject({ origin: "own" });
    });
  });

  test("are the user's own only if their real folder is the user's", async () => {
    await withFolder(async (dir, put) => {
      await put("own/mine.prompt", "---\ndescription: x\n---\nMine");
      await put("work/agents/x.prompt", "---\ndescription: x\n---\nTheirs");
      await symlink(join(dir, "own", "mine.prompt"), join(dir, "work", "agents", "linked.prompt"));
      await symlink(join(dir, "own"), join(dir, "work", "mine"));
      const places = { cwd: join(dir, "work"), ownFolder: join(dir, "own"), namedFolders: [], folders: [] };
      expect(await findAgent("agents/linked.prompt", places)).toMatchObject({ origin: "folder" });
      expect(await findAgent("mine/mine.prompt", places)).toMatchObject({ origin: "own" });
    });
  });

  test("are rejected without blocking if the file is a pipe or endless", async () => {
    await withFolder(async (dir, put) => {
      await put("agents/a.prompt", "---\ndescription: x\n---\nA");
      execFileSync("mkfifo", [join(dir, "agents", "pipe.prompt")]);
      await symlink("/dev/zero", join(dir, "agents", "zero.prompt"));
      const found = await findAgents({ cwd: dir, ownFolder: null, namedFolders: [], folders: [join(dir, "agents")] });
      expect(names(found)).toEqual(["coder", "merger", "planner", "reviewer", "tester", "a", "pipe", "zero"]);
      expect(found[6]?.file).toMatchObject({ code: "invalid", message: expect.stringContaining("not a regular file") });
      expect(found[7]?.file).toMatchObject({ code: "invalid" });
    });
  });

  test("include the built-in coder", async () => {
    const { file } = await findAgent("coder", { ownFolder: null, namedFolders: [], folders: [], cwd: "/" });
    const coder = await defineAgent(file);
    expect(coder.name).toBe("coder");
    expect(coder.system).toContain("/workspace");
    expect(coder.system).not.toContain("{{");
  });
});
