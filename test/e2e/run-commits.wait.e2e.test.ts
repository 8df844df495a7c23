import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();

const git = "git -c user.name=a -c user.email=a@x";
const commit = (message: string) => `${git} commit -q --allow-empty -m '${message}'`;

/** Runs each list of commands in a step, and returns the commits that the run log then tells of. */
async function commitsOf(folder: string, ...steps: string[][]) {
  const bash = (command: string) => ({ tool: "bash", arguments: { command } });
  const model = await cli.script({ turns: [...steps.map((commands) => ({ calls: commands.map(bash) })), { say: "Done." }] });
  const { code, events, stderr } = await cli.run(["run", "x", "--repo", folder, "--model", model, "--runtime", "oci", "--json"]);
  expect(code, stderr).toBe(0);
  return events.flatMap(({ type, data }) =>
    type === "git.committed" ? [data as { sha: string; subject: string; branch: string | null; parents: number }] : [],
  );
}

/** Creates a folder with a repository that has two commits on main. */
async function repository(): Promise<string> {
  const folder = await cli.folder({ a: "1\n" });
  const run = (...args: string[]) => execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@x", "-C", folder, ...args]);
  run("init", "-q", "-b", "main");
  run("add", "-A");
  run("commit", "-qm", "first");
  writeFileSync(join(folder, "a"), "2\n");
  run("commit", "-qam", "second");
  return folder;
}

describe("commits made inside", () => {
  test("are events, oldest first, with their branch", async () => {
    const commits = await commitsOf(
      await repository(),
      ["true", "echo no commit > b"],
      [`${commit("third")} && ${commit("fourth")}`],
      ["git checkout -q main~1", "git checkout -q main"],
      [`git checkout -q -b feature/deep && ${commit("on a branch")} && git checkout -q main`],
      [`git checkout -q --detach && ${commit("on none")} && git rev-parse HEAD > sha`, "cat sha"],
    );
    expect(commits.map(({ subject, branch, parents }) => [subject, branch, parents])).toEqual([
      ["third", "main", 1],
      ["fourth", "main", 1],
      ["on a branch", "feature/deep", 1],
      ["on none", null, 1],
    ]);
    for (const { sha } of commits) expect(sha).toMatch(/^[0-9a-f]{40}$/);
  });

  test("are events in a new repository, amended and merged ones too", async () => {
    const commits = await commitsOf(
      await cli.folder({ a: "1\n" }),
      [`git init -q -b main && ${git} add -A && ${commit("begin")}`],
      [`${git} commit -q --amend -m begun`],
      [`git checkout -q -b side && ${commit("aside")} && git checkout -q main && ${commit("main")}`],
      [`${git} merge -q --no-ff -m merged side`],
      [`git gc -q --prune=now; ${commit("x".repeat(500))}`],
    );
    expect(commits.map(({ subject, parents }) => [subject.slice(0, 10), parents])).toEqual([
      ["begin", 0],
      ["begun", 0],
      ["main", 1],
      ["aside", 1],
      ["merged", 2],
      ["xxxxxxxxxx", 1],
    ]);
    expect(commits.at(-1)?.subject).toHaveLength(200);
  });

  test("are only data: a hostile repository is read within bounds", async () => {
    const folder = await repository();
    const bomb = 'python3 -c \'import zlib,sys; sys.stdout.buffer.write(zlib.compress(b"commit 9\\0tree x\\n\\n" + b"a" * 50_000_000))\'';
    const name = "0123456789012345678901234567890123456789";
    const commits = await commitsOf(
      folder,
      [`mkdir -p .git/objects/01 && ${bomb} > .git/objects/01/${name.slice(2)} && echo ${name} > .git/refs/heads/bomb`],
      ["rm .git/HEAD .git/refs/heads/main && mkfifo .git/HEAD .git/refs/heads/main && ln -s /dev/zero .git/refs/heads/zero"],
      ["rm .git/HEAD && ln -s /dev/zero .git/HEAD"],
      ["rm -r .git/refs/heads && ln -s /etc .git/refs/heads && touch .git/x"],
      ["rm .git/refs/heads && mkfifo .git/refs/heads && touch .git/x"],
      ["rm -rf .git && ln -s / .git"],
      [
        "rm .git && mkdir -p .git/refs/heads && seq 1 3000 | sed 's|^|.git/refs/heads/|' | xargs touch && yes | head -c 9000000 > .git/HEAD",
      ],
    );
    expect(commits).toEqual([]);
  });

  test("are shown by caisson run", async () => {
    const model = await cli.script({ turns: [{ calls: [{ tool: "bash", arguments: { command: commit("fix it") } }] }, { say: "Done." }] });
    const { text } = await cli.run(["run", "x", "--repo", await repository(), "--model", model, "--runtime", "oci"]);
    expect(text).toMatch(/commit [0-9a-f]{12} on main: fix it/);
  });
});
