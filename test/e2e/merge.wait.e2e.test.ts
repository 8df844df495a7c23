import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const ok = async (argv: readonly string[], cwd: string) => {
  const result = await cli.run(argv, { cwd });
  expect(result.code, result.stderr + result.text).toBe(0);
  return result;
};
/** A scripted model that runs these commands and finishes. */
const commands = (...lines: string[]) => ({
  turns: [...lines.map((command) => ({ calls: [{ tool: "bash", arguments: { command } }] })), { say: "Done." }],
});
async function work(command: string, argv: readonly string[], cwd: string): Promise<string> {
  const model = await cli.script(commands(command));
  const { text } = await ok(["run", "do it", "--model", model, "--runtime", "oci", ...argv], cwd);
  return /run_[a-z0-9]+/.exec(text)?.[0] ?? "";
}
const sessions = async (cwd: string) =>
  (JSON.parse((await ok(["session", "ls", "--json"], cwd)).text) as { id: string }[]).map(({ id }) => id).sort();
const read = (folder: string, name: string) => readFileSync(join(folder, name), "utf8");
const lines = (...all: string[]) => `${all.join("\n")}\n`;

/**
 * Creates three sessions of one folder. The second and the third change the same line, and the first changes others.
 */
async function threeSessions([one, two, three]: readonly [string, string, string]): Promise<string> {
  const folder = await cli.folder({
    "a.txt": lines("1", "2", "3", "4", "5", "6", "7", "8", "9"),
    "old.txt": lines("x", "y", "z"),
    "gone.txt": "go\n",
  });
  await work(
    "sed -i 's/^9$/nine/' a.txt; git mv old.txt new.txt 2>/dev/null || mv old.txt new.txt; chmod +x new.txt; printf 'a\\000b' > bin",
    ["--session", one],
    folder,
  );
  await work("sed -i 's/^1$/ONE/; s/^5$/five of two/' a.txt; rm gone.txt; sed -i 's/y/why/' old.txt", ["--session", two], folder);
  await work("sed -i 's/^5$/five of three/' a.txt; mkdir d; ln -s ../a.txt d/link; echo 3 > \"d/new\nline\"", ["--session", three], folder);
  return folder;
}

test("the merger resolves a conflict between two of three runs into a session", async () => {
  const folder = await threeSessions(["one", "two", "three"]);
  const resolve = [
    "ls .caisson-merge; cat a.txt",
    "awk '/^<<<<<<< /{skip=1} !skip{print} /^>>>>>>> /{skip=0; print \"five of both\"}' a.txt > /tmp/a && cat /tmp/a > a.txt",
  ];
  const model = await cli.script(commands(...resolve));
  const done = await ok(["merge", "one", "two", "three", "--conflicts", "agent", "--model", model, "--name", "all"], folder);
  expect(done.stderr).toMatch(/order: one, (two, three|three, two); 1 of the pairs conflict/);
  expect(done.stderr).toMatch(/conflicts in 1 file\n.*resolves it in[\s\S]*resolved\n/);
  expect(done.text).toContain("Merged into all\n");
  expect(await sessions(folder)).toEqual(["all", "one", "three", "two"]);
  const { files } = JSON.parse((await ok(["diff", "all", "--stat", "--json"], folder)).text) as { files: { path: string; kind: string }[] };
  expect(files.map(({ kind, path }) => `${kind} ${path}`)).toContain("added d/new\nline");
  await ok(["apply", "all"], folder);
  expect(read(folder, "a.txt")).toBe(lines("ONE", "2", "3", "4", "five of both", "6", "7", "8", "nine"));
  expect(read(folder, "new.txt")).toBe(lines("x", "why", "z"));
  expect(existsSync(join(folder, "old.txt"))).toBe(false);
  expect(existsSync(join(folder, "gone.txt"))).toBe(false);
  expect(execFileSync("stat", ["-c", "%a", join(folder, "new.txt")], { encoding: "utf8" })).toBe("755\n");
  expect(readFileSync(join(folder, "bin")).toString("hex")).toBe("610062");
  expect(execFileSync("readlink", [join(folder, "d", "link")], { encoding: "utf8" })).toBe("../a.txt\n");
  expect(readdirSync(folder)).not.toContain(".caisson-merge");
  expect((await ok(["session", "info", "all"], folder)).text).toContain("merged the changes of one,");
});

test("an invalid resolution is rejected three times, then a person picks a side", async () => {
  const folder = await threeSessions(["first", "second", "third"]);
  const model = await cli.script(commands("echo more >> new.txt"));
  const first = await cli.run(["merge", "second", "third", "--conflicts", "agent", "--model", model, "--name", "both"], { cwd: folder });
  expect([first.code, first.stderr]).toEqual([2, expect.stringContaining("not resolved: Files that are not in conflict were changed")]);
  expect(first.stderr.match(/not resolved/g)).toHaveLength(3);
  const [, id = ""] = /(mrg_[a-z2-7]{12})/.exec(first.text) ?? [];
  const wrong = await cli.run(["merge", "resume", id, "--take", "b.txt=theirs"], { cwd: folder });
  expect([wrong.code, wrong.stderr]).toEqual([125, expect.stringContaining('"b.txt" is not in conflict')]);
  const still = await cli.run(["merge", "resume", id], { cwd: folder });
  expect([still.code, still.stderr]).toEqual([2, expect.stringContaining('Conflict markers are left in "a.txt"')]);
  expect((await ok(["merge", "show", id], folder)).text).toContain("changed by both");
  const last = await cli.run(["merge", "resume", id, "--take", "a.txt=merged"], { cwd: folder });
  // Taking a whole side would lose what the other side changed elsewhere in the file.
  expect([last.code, last.text + last.stderr]).toEqual([0, expect.stringContaining("Merged into both")]);
  expect(await sessions(folder)).toEqual(expect.arrayContaining(["both", "first", "second", "third"]));
  expect((await sessions(folder)).filter((id) => id.startsWith("ses_"))).toEqual([]);
});

test("a merge that waits for a person can be paused, resumed, and removed once done", async () => {
  const folder = await cli.folder({ "a.txt": lines("1", "2", "3") });
  for (const [session, word] of Object.entries({ mine: "mine", yours: "yours" }))
    await work(`sed -i 's/^2$/${word}/' a.txt`, ["--session", session], folder);
  const mergeResult = await cli.run(["merge", "mine", "yours", "--name", "ours"], { cwd: folder });
  expect([mergeResult.code, mergeResult.stderr]).toEqual([2, expect.any(String)]);
  const [, id = ""] = /(mrg_[a-z2-7]{12})/.exec(mergeResult.text) ?? [];
  const showMerge = async () => JSON.parse((await ok(["merge", "show", id, "--json"], folder)).text) as { status: string; seq: number };
  await ok(["merge", "pause", id], folder);
  const paused = await showMerge();
  expect(paused).toMatchObject({ status: "paused" });
  const early = await cli.run(["merge", "rm", id], { cwd: folder });
  expect([early.code, early.stderr]).toEqual([125, expect.stringMatching(/has not ended[\s\S]*caisson merge cancel/)]);
  expect(await showMerge()).toEqual(paused);
  const again = await cli.run(["merge", "resume", id], { cwd: folder });
  expect([again.code, again.stderr]).toEqual([2, expect.not.stringContaining("not resolved")]);
  const done = await ok(["merge", "resume", id, "--take", "a.txt=theirs"], folder);
  expect(done.text).toContain("Merged into ours\n");
  expect((await ok(["merge", "rm", id], folder)).text).toBe(`${id}\n`);
  expect((await ok(["merge", "ls", "--json"], folder)).text).not.toContain(id);
  const removal = await cli.run(["merge", "rm", id], { cwd: folder });
  expect([removal.code, removal.stderr]).toEqual([125, expect.stringContaining(`there is no merge ${id}`)]);
  // The result is an ordinary session, and remains.
  expect((await ok(["diff", "ours"], folder)).text).toContain("yours");
});
