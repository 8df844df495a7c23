import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import type { ShipView } from "../../src/contract/ship/ship-verbs.ts";
import { useRunsCli } from "../support/runs-cli.ts";

/**
 * Tests real forges, which need a token and a repository. Creates, merges and removes a branch there. Skipped, with the
 * reason, if the environment has none.
 */
const forges = [
  {
    forge: "github",
    token: process.env.GITHUB_TOKEN,
    remote: process.env.CAISSON_LIVE_GITHUB_REPOSITORY,
    needs: "GITHUB_TOKEN and CAISSON_LIVE_GITHUB_REPOSITORY (https://github.com/OWNER/NAME)",
  },
  {
    forge: "gitea",
    token: process.env.GITEA_TOKEN,
    remote: process.env.CAISSON_LIVE_GITEA_REPOSITORY,
    needs: "GITEA_TOKEN and CAISSON_LIVE_GITEA_REPOSITORY (https://HOST/OWNER/NAME)",
  },
] as const;

describe.each(forges)("a live $forge", ({ forge, token = "", remote = "", needs }) => {
  if (token === "" || remote === "") {
    test.skip(`is skipped: the environment has no ${needs}`, () => undefined);
    return;
  }
  const cli = useRunsCli();
  test("gets a pull request and merges it, and its branch is removed", { timeout: 900_000 }, async () => {
    const { hostname, port } = new URL(remote);
    const hosts = hostname === "github.com" ? "github.com,api.github.com" : `${hostname}${port === "" ? "" : `;ports=${port}`}`;
    execFileSync("sh", ["-c", `${cli.commandLine()} secret set 'LIVE_TOKEN@${hosts}'`], {
      cwd: cli.work(),
      env: cli.environment({}),
      input: token,
      stdio: ["pipe", "pipe", "pipe"],
    });
    const ok = async (argv: readonly string[]) => {
      const { code, text, stderr } = await cli.run(argv);
      expect(code, stderr + text).toBe(0);
      return text;
    };
    const mark = `caisson-live-${Date.now().toString(36)}`;
    const model = await cli.script({
      about: "a scripted model that leaves a mark",
      turns: [{ calls: [{ tool: "bash", arguments: { command: `echo ${mark} > caisson-live.txt` } }] }, { say: "Done." }],
    });
    const output = await ok(["run", `Leave the mark ${mark}`, "--model", model, "--runtime", "oci", "--repo", remote]);
    const run = /run_[a-z2-7]{12}/.exec(output)?.[0] ?? "";
    const to = ["--to", remote, "--forge", forge, "--token", "LIVE_TOKEN", "--kind", "test", "--without-tests", "a live test of shipping"];
    const opened = JSON.parse(await ok(["ship", run, ...to, "--json"])) as ShipView;
    expect(opened).toMatchObject({
      status: "open",
      branch: expect.stringMatching(/^test\/leave-the-mark/),
      request: { url: expect.any(String) },
    });
    const merged = JSON.parse(await ok(["ship", "merge", opened.id, "--json"])) as ShipView;
    expect(merged).toMatchObject({ status: "merged", merged: expect.stringMatching(/^[0-9a-f]{40,64}$/) });
    // A clone of the target branch now contains the mark.
    const turns = [{ calls: [{ tool: "read", arguments: { path: "caisson-live.txt" } }] }, { say: "Seen.", expect: { news: [mark] } }];
    await ok(["run", "Look", "--model", await cli.script({ turns }), "--runtime", "oci", "--repo", remote]);
  });
});
