import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Change, FileSide } from "../change.ts";
import { commitToBranch } from "./branch.ts";

let base = "";
let folder = "";
let canary = "";
let evil = "";
const path = process.env.PATH ?? "";
const env = {
  PATH: path,
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "u",
  GIT_AUTHOR_EMAIL: "u@x",
  GIT_COMMITTER_NAME: "u",
  GIT_COMMITTER_EMAIL: "u@x",
};
const git = (...args: string[]) => execFileSync("git", ["-C", folder, ...args], { encoding: "utf8", env, stdio: "pipe" }).trim();
const side = (text: string): FileSide => ({ kind: "file", mode: 0o644, content: Buffer.from(text) });
const changes: Change[] = [
  { path: "a", from: null, before: side("one\n"), after: side("two\n"), changedOutside: false },
  { path: "n.x", from: null, before: null, after: side("x"), changedOutside: false },
  { path: "moved", from: "d/b", before: side("two\n"), after: side("two\n"), changedOutside: false },
];
let branches = 0;
const branch = () =>
  commitToBranch(changes, {
    folder,
    name: `caisson/${branches++}`,
    message: "m",
    author: { name: "A", email: "a@x" },
    git: { path },
    locks: { stateDir: join(base, "state") },
  });

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  folder = join(base, "repo");
  canary = join(base, "canary");
  evil = join(base, "evil.sh");
  mkdirSync(join(folder, "d"), { recursive: true });
  git("init", "-q", "-b", "main");
  writeFileSync(join(folder, "a"), "one\n");
  writeFileSync(join(folder, "d/b"), "two\n");
  git("add", ".");
  git("commit", "-qm", "first");
  writeFileSync(join(folder, ".gitattributes"), "* filter=x diff=x merge=x\n");
  writeFileSync(evil, `#!/bin/sh\ntouch ${canary}\nexit 1\n`);
  chmodSync(evil, 0o755);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

/** Every git setting that names a program, or a place to load one from. EVIL is the program, BASE the folder around. */
const settings: readonly (readonly [key: string, value: string])[] = [
  ["core.fsmonitor", "EVIL"],
  ["core.hooksPath", "BASE/hooks"],
  ["core.sshCommand", "EVIL"],
  ["core.gitProxy", "EVIL"],
  ["core.editor", "EVIL"],
  ["core.pager", "EVIL"],
  ["core.askPass", "EVIL"],
  ["core.alternateRefsCommand", "EVIL"],
  ["core.attributesFile", "BASE/attributes"],
  ["core.excludesFile", "BASE/fifo"],
  ["core.worktree", "BASE"],
  ["core.virtualFilesystem", "EVIL"],
  ["diff.external", "EVIL"],
  ["diff.x.command", "EVIL"],
  ["diff.x.textconv", "EVIL"],
  ["merge.x.driver", "EVIL"],
  ["merge.tool", "EVIL"],
  ["mergetool.x.cmd", "EVIL"],
  ["difftool.x.cmd", "EVIL"],
  ["filter.x.clean", "EVIL"],
  ["filter.x.smudge", "EVIL"],
  ["filter.x.process", "EVIL"],
  ["filter.x.required", "true"],
  ["gpg.program", "EVIL"],
  ["gpg.format", "ssh"],
  ["gpg.ssh.program", "EVIL"],
  ["gpg.ssh.defaultKeyCommand", "EVIL"],
  ["gpg.x509.program", "EVIL"],
  ["gpg.minTrustLevel", "ultimate"],
  ["commit.gpgSign", "true"],
  ["tag.gpgSign", "true"],
  ["user.signingKey", "x"],
  ["credential.helper", "!EVIL"],
  ["credential.https://x.test.helper", "!EVIL"],
  ["remote.origin.url", "."],
  ["remote.origin.uploadpack", "EVIL"],
  ["remote.origin.receivepack", "EVIL"],
  ["remote.origin.vcs", "x"],
  ["remote.origin.proxy", "http://127.0.0.1:9"],
  ["remote.origin.promisor", "true"],
  ["remote.origin.partialCloneFilter", "tree:0"],
  ["extensions.partialClone", "origin"],
  ["extensions.worktreeConfig", "true"],
  ["uploadpack.packObjectsHook", "EVIL"],
  ["url.ext::EVIL.insteadOf", "https://"],
  ["url.ext::EVIL.pushInsteadOf", "https://"],
  ["protocol.allow", "always"],
  ["protocol.ext.allow", "always"],
  ["alias.read-tree", "!EVIL"],
  ["alias.hash-object", "!EVIL"],
  ["alias.rev-parse", "!EVIL"],
  ["include.path", "BASE/included"],
  ["includeIf.gitdir:/.path", "BASE/included"],
  ["sequence.editor", "EVIL"],
  ["trailer.x.command", "EVIL"],
  ["trailer.x.cmd", "EVIL"],
  ["submodule.x.update", "!EVIL"],
  ["submodule.recurse", "true"],
  ["interactive.diffFilter", "EVIL"],
  ["pager.rev-parse", "EVIL"],
  ["pager.read-tree", "EVIL"],
  ["man.x.cmd", "EVIL"],
  ["man.viewer", "x"],
  ["browser.x.cmd", "EVIL"],
  ["web.browser", "x"],
  ["instaweb.httpd", "EVIL"],
  ["sendemail.smtpServer", "EVIL"],
  ["gc.auto", "1"],
  ["maintenance.auto", "true"],
  ["index.sparse", "true"],
  ["init.templateDir", "BASE/template"],
  ["guitool.x.cmd", "EVIL"],
];
const hooks = [
  "reference-transaction",
  "post-index-change",
  "pre-commit",
  "commit-msg",
  "prepare-commit-msg",
  "post-commit",
  "update",
  "pre-receive",
  "post-receive",
  "post-checkout",
  "post-rewrite",
  "pre-auto-gc",
  "fsmonitor-watchman",
  "proc-receive",
  "post-update",
  "pre-push",
];

const filled = (text: string) => text.replaceAll("EVIL", evil).replaceAll("BASE", base);

/** Formats a setting for git's configuration file: `[section "sub.section"] name = "value"`. */
function configText([key, value]: readonly [string, string]): string {
  const [, section, subsection, name] = /^([^.]+)(?:\.(.*))?\.([^.]+)$/s.exec(filled(key)) ?? [];
  const quoted = (text: string) => `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
  return `[${section}${subsection === undefined ? "" : ` ${quoted(subsection)}`}]\n\t${name} = ${quoted(filled(value))}\n`;
}

function plantHooks(): void {
  for (const dir of [join(base, "hooks"), join(folder, ".git/hooks")]) {
    mkdirSync(dir, { recursive: true });
    for (const hook of hooks) {
      writeFileSync(join(dir, hook), `#!/bin/sh\nexec ${evil}\n`);
      chmodSync(join(dir, hook), 0o755);
    }
  }
  writeFileSync(join(base, "included"), `[core]\n\tfsmonitor = ${evil}\n\thooksPath = ${join(base, "hooks")}\n`);
  writeFileSync(join(base, "attributes"), "* filter=x diff=x merge=x\n");
  execFileSync("mkfifo", [join(base, "fifo")]);
}

describe("git on the host", () => {
  test("runs no program that a repository's settings name, alone or together", { timeout: 300_000 }, async () => {
    plantHooks();
    const config = join(folder, ".git/config");
    const plain = readFileSync(config, "utf8");
    // One setting may keep git from reading another, so neighbors in the list above are never tried together.
    const APART = 8;
    for (let first = 0; first < APART; first++) {
      const some = settings.filter((_, at) => at % APART === first);
      writeFileSync(config, plain + some.map(configText).join(""));
      const listed = execFileSync("git", ["config", "--file", config, "--list", "--no-includes"], { encoding: "utf8", env }).toLowerCase();
      for (const [key, value] of some) expect(listed).toContain(`${filled(key)}=${filled(value)}\n`.toLowerCase());
      await branch();
      expect(existsSync(canary), some.join()).toBe(false);
    }
    writeFileSync(config, plain + settings.map(configText).join(""));
    await branch();
    expect(existsSync(canary)).toBe(false);
    // Shows that the trap works: an ordinary git command runs the program.
    writeFileSync(config, plain);
    execFileSync("git", ["config", "--file", config, "core.fsmonitor", evil], { env });
    git("status");
    expect(existsSync(canary)).toBe(true);
  });

  test("fetches nothing for a repository with missing objects, whatever its remotes", async () => {
    for (const [key, value] of settings.filter(([name]) => /^(remote|extensions)/.test(name) && !/vcs|worktree/.test(name)))
      git("config", filled(key), filled(value));
    const tree = git("rev-parse", "HEAD:d");
    rmSync(join(folder, ".git/objects", tree.slice(0, 2), tree.slice(2)));
    await expect(branch()).rejects.toMatchObject({ code: expect.stringMatching(/not_found|internal/) });
    expect(existsSync(canary)).toBe(false);
    // Without our own repository in between, git fetches.
    expect(() => git("read-tree", "HEAD")).toThrow();
    expect(existsSync(canary)).toBe(true);
    expect(readdirSync(join(folder, ".git/refs/heads"))).toEqual(["main"]);
  });
});
