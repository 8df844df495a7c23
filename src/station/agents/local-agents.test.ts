import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AgentVerbs } from "../../verbs/agents.ts";
import { createLocalAgents } from "./local-agents.ts";

describe("trust in an agent file", () => {
  let base: string;
  let path: string;
  let agents: AgentVerbs;
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), "caisson-test-agents-"));
    path = join(base, "agents", "reach.prompt");
    await mkdir(join(base, "agents"));
    await write("example.com");
    const places = { cwd: base, ownFolder: null, namedFolders: [], folders: [join(base, "agents")] };
    agents = createLocalAgents({ stateDir: join(base, "state"), places, limits: {}, defaults: {} });
  });
  afterEach(() => rm(base, { recursive: true, force: true }));
  const write = (network: string) =>
    writeFile(path, `---\nname: reach\nsandbox:\n  network: ${network}\n---\n{{role "system"}}You reach.\n`);

  test("covers only the text that was judged", async () => {
    const judged = await agents.judge(path);
    expect(judged).toMatchObject({ status: "not trusted", changed: false });
    expect(judged.rights).toContainEqual({ text: "reach example.com", change: "added" });
    await write("open");
    await expect(agents.trust(path, { digest: judged.digest as string })).rejects.toMatchObject({ code: "conflict" });
    expect(await agents.trusted()).toEqual([]);
    await write("example.com");
    await agents.trust(path, { digest: judged.digest as string });
    expect(await agents.judge(path)).toMatchObject({ status: "trusted" });
    await write("open");
    expect(await agents.judge(path)).toMatchObject({ status: "not trusted", changed: true });
    expect(await agents.trusted()).toMatchObject([{ path, state: "changed since" }]);
  });

  test("is revoked for every file below a folder", async () => {
    const { digest } = await agents.judge(path);
    await agents.trust(path, { digest: digest as string });
    expect(await agents.revoke(base)).toEqual([path]);
    expect(await agents.revoke(base)).toEqual([]);
  });
});
