import { existsSync, lstatSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeForgeRepository } from "../support/forge-repository.ts";
import { startGitServer } from "../support/git-server.ts";
import { useRunsCli } from "../support/runs-cli.ts";

/**
 * Merges of files that agents wrote to attack the merge, and of cases that git handles specially, in real sandboxes.
 */
const cli = useRunsCli();
const lines = (...all: string[]) => `${all.join("\n")}\n`;
const nine = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
const ok = async (argv: readonly string[], cwd: string) => {
  const { code, text, stderr } = await cli.run(argv, { cwd });
  expect(code, `${argv.join(" ")}: ${stderr}${text}`).toBe(0);
  return text;
};
/** Runs one command in a session, with a scripted model. */
async function session(name: string, command: string, { cwd, repo = [] }: { cwd: string; repo?: readonly string[] }): Promise<void> {
  const model = await cli.script({ turns: [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "Done." }] });
  await ok(["run", "do it", "--model", model, "--runtime", "oci", "--session", name, ...repo], cwd);
}
const read = (folder: string, name: string) => readFileSync(join(folder, name), "utf8");

test("sessions of a git source merge without running what agents configured in git", {
  timeout: 600_000,
}, async () => {
  const folder = await cli.folder();
  const repository = makeForgeRepository(folder, "project", {
    "a.txt": lines(...nine),
    "b.txt": lines(...nine),
    ".gitattributes": "*.md text\n",
  });
  await using server = await startGitServer(folder);
  const repo = ["--repo", `${server.url}/${repository.path.slice(folder.length + 1)}`];
  const cwd = cli.work();
  // Any of these that took effect would leave its mark in the files.
  const evil = [
    "printf '* merge=evil filter=evil diff=evil ident text eol=crlf working-tree-encoding=UTF-16 conflict-marker-size=3\\n' > .gitattributes",
    "git config merge.evil.driver 'echo EVIL > %A' ; git config filter.evil.smudge 'echo EVIL; cat'; git config filter.evil.clean 'echo EVIL; cat'",
    "git config diff.evil.textconv 'echo EVIL'; git config core.fsmonitor 'echo EVIL >> /workspace/ran'; git config core.hooksPath .git/evil",
    "mkdir -p .git/evil .git/hooks; for h in post-checkout post-merge pre-commit post-index-change; do printf '#!/bin/sh\\necho EVIL >> /workspace/ran\\n' | tee .git/evil/$h > .git/hooks/$h; chmod +x .git/evil/$h .git/hooks/$h; done",
    "git config --global merge.evil.driver 'echo EVIL > %A'; printf '* merge=evil\\n' > .git/info/attributes",
  ];
  await session("evil", [...evil, "sed -i 's/^1$/one of evil/' a.txt"].join("; "), { cwd, repo });
  await session("fine", "sed -i 's/^9$/nine of fine/' a.txt; echo '$Id$' > ident.txt", { cwd, repo });
  await session("nested", "git init -q sub; echo 'x' > sub/file; git init -q --bare bare; sed -i 's/^5$/five/' b.txt", { cwd, repo });
  const text = await ok(["merge", "evil", "fine", "nested", "--name", "all"], cwd);
  expect(text).toContain("Merged into all");
  const patch = await ok(["diff", "all"], cwd);
  expect(patch).toContain("+one of evil");
  expect(patch).toContain("+nine of fine");
  expect(patch).toContain("+five");
  // The text is unchanged: nothing is substituted, and no line ending is converted.
  expect(patch).toContain("+$Id$");
  expect(patch.replace(/^[+-].*gitattributes[\s\S]*?(?=^diff)/m, "")).not.toMatch(/EVIL|\r/);
  const { files } = JSON.parse(await ok(["diff", "all", "--stat", "--json"], cwd)) as { files: { path: string }[] };
  const paths = files.map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(["a.txt", "b.txt", "ident.txt"]));
  expect(paths.filter((path) => path === "ran" || path.split("/").includes(".git"))).toEqual([]);
  // None of this ran in git on this machine.
  expect(existsSync(join(cwd, "ran"))).toBe(false);
});

test("binary, link, mode and removal conflicts are reported and resolved as chosen", {
  timeout: 600_000,
}, async () => {
  const folder = await cli.folder({
    "image.bin": "a\0b\n",
    "removed.txt": lines(...nine),
    "renamed.txt": lines(...nine, "x", "y", "z"),
    "run.sh": "echo one\n",
    "link.txt": "a file\n",
    "both.txt": lines(...nine),
  });
  await session(
    "left",
    "printf 'a\\000left\\n' > image.bin; rm removed.txt; mv renamed.txt moved.txt; chmod +x run.sh; rm link.txt; ln -s left link.txt; sed -i 's/^1$/left/' both.txt",
    { cwd: folder },
  );
  await session(
    "right",
    "printf 'a\\000right\\n' > image.bin; sed -i 's/^5$/five/' removed.txt; sed -i 's/^5$/five/' renamed.txt; echo 'echo two' > run.sh; rm link.txt; ln -s right link.txt; sed -i 's/^9$/right/' both.txt",
    { cwd: folder },
  );
  const first = await cli.run(["merge", "left", "right", "--name", "both"], { cwd: folder });
  expect([first.code, first.stderr]).toEqual([2, expect.any(String)]);
  const [id = ""] = /mrg_[a-z2-7]{12}/.exec(first.text + first.stderr) ?? [];
  const { conflict } = JSON.parse(await ok(["merge", "show", id, "--json"], folder)) as {
    conflict: { files: { path: string; kind: string }[]; session: string };
  };
  expect(conflict.files.map(({ path }) => path).sort()).toEqual(["image.bin", "link.txt", "removed.txt"]);
  const take = ["image.bin=theirs", "link.txt=merged", "removed.txt=merged"].flatMap((each) => ["--take", each]);
  expect(await ok(["merge", "resume", id, ...take], folder)).toContain("Merged into both");
  await ok(["apply", "both"], folder);
  expect(readFileSync(join(folder, "image.bin")).toString("latin1")).toBe("a\0right\n");
  expect(existsSync(join(folder, "removed.txt"))).toBe(false);
  expect(read(folder, "moved.txt")).toBe(lines(...nine.map((each) => (each === "5" ? "five" : each)), "x", "y", "z"));
  expect(existsSync(join(folder, "renamed.txt"))).toBe(false);
  expect([lstatSync(join(folder, "run.sh")).mode & 0o777, read(folder, "run.sh")]).toEqual([0o755, "echo two\n"]);
  expect(readlinkSync(join(folder, "link.txt"))).toBe("left");
  expect(read(folder, "both.txt")).toBe(lines("left", ...nine.slice(1, 8), "right"));
});

test("the result of a merge can be merged again", { timeout: 600_000 }, async () => {
  const folder = await cli.folder({ "a.txt": lines(...nine) });
  for (const each of ["1", "5", "9"])
    await session(`s${each}`, `sed -i 's/^${each}$/of ${each}/' a.txt; echo ${each} > new-${each}`, { cwd: folder });
  await ok(["merge", "s1", "s5", "--name", "round"], folder);
  await ok(["merge", "round", "s9", "--name", "whole"], folder);
  await ok(["apply", "whole"], folder);
  expect(read(folder, "a.txt")).toBe(lines("of 1", "2", "3", "4", "of 5", "6", "7", "8", "of 9"));
  expect(["1", "5", "9"].map((each) => read(folder, `new-${each}`))).toEqual(["1\n", "5\n", "9\n"]);
});
