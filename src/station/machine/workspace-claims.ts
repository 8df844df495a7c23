import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { ABSENT, ifErrno } from "../../lib/failures.ts";
import type { AttackContext, Canary } from "../../suites/attack/attack-context.ts";
import { type Claim, defineClaim } from "../../suites/attack/claim.ts";
import { applyChanges } from "../../workspace/apply.ts";
import type { Change, FileSide } from "../../workspace/change.ts";
import { commitToBranch } from "../../workspace/git/branch.ts";

interface Tried {
  /** The outcome of each attempt: `applied`, `left out`, or the code of its refusal. */
  answers: Record<string, string>;
  /** Files that were left or changed where that must not happen. */
  left: string[];
}

interface Place {
  base: string;
  folder: string;
  canary: Canary;
  apply(changes: readonly Change[]): Promise<string>;
}

const side = (text: string): FileSide => ({ kind: "file", mode: 0o755, content: Buffer.from(text) });
const link = (target: string): FileSide => ({ kind: "link", mode: 0o777, content: Buffer.from(target) });
const addition = (path: string, after: FileSide): Change => ({ path, from: null, before: null, after, changedOutside: false });

const judgeLeft = ({ answers, left }: Tried): string[] => [
  ...(Object.keys(answers).length === 0 ? ["nothing was tried"] : []),
  ...left.map((name) => `the host left or changed ${name}`),
];
const judgeRefused = (seen: Tried): string[] => [
  ...judgeLeft(seen),
  ...Object.entries(seen.answers).flatMap(([what, answer]) => (answer === "applied" ? [`${what} was applied`] : [])),
];
const describe = ({ answers }: Tried) =>
  Object.entries(answers)
    .map(([what, answer]) => `${what}: ${answer}`)
    .join(", ");

/** Claims about apply, diff and branch on the host with a hostile tree: the folder, or the agent's changes to it. */
export function workspaceClaims(options: { path: string }): Claim[] {
  return [
    defineClaim<Tried>({
      id: "H40",
      title: "A journal that came with a folder is ignored",
      group: "host trust",
      tried: "Put journals of an interrupted apply into a folder, with a link to a host folder in their paths, and applied a change.",
      observe: (context) => withPlace(context, observeJournal),
      judge: (seen) => [...judgeLeft(seen), ...(seen.answers.change === "applied" ? [] : ["the change itself was not applied"])],
      describe,
    }),
    defineClaim<Tried>({
      id: "H41",
      title: "A link that leads outside through another link is not applied",
      group: "host trust",
      tried: "Applied links that only together lead outside, at once and one after the other.",
      observe: (context) => withPlace(context, observeLinks),
      judge: judgeRefused,
      describe,
    }),
    defineClaim<Tried>({
      id: "H42",
      title: "A git repository cannot be planted, even in several steps",
      group: "host trust",
      tried: "Applied the parts of a repository whose settings run a program, one after the other.",
      observe: (context) => withPlace(context, observeRepository),
      judge: judgeLeft,
      describe,
    }),
    defineClaim<Tried>({
      id: "H43",
      title: "Git on the host runs no program that a repository names",
      group: "host trust",
      tried:
        "Created a branch in a repository whose settings, hooks, filters and remote name programs, with and without an object that would have to be fetched.",
      observe: (context) => withPlace(context, (place) => observeGit(place, options.path)),
      judge: judgeLeft,
      describe,
    }),
  ];
}

async function observeJournal({ folder, canary, apply }: Place): Promise<Tried> {
  await symlink(canary.folder, join(folder, "lnk"));
  for (const staging of [".caisson-apply", `.caisson-apply-${"0".repeat(32)}`]) {
    const operations = [
      { kind: "keep", path: "lnk/secret", kept: "old-0", replaced: false },
      { kind: "put", path: "lnk/secret", fresh: "new-0", replaces: false },
      { kind: "rmdir", path: "lnk/made", mode: 0o777, uid: 0, gid: 0 },
    ];
    await put(join(folder, staging, "old-0"), "evil");
    await put(join(folder, staging, "journal.json"), JSON.stringify(staging.length > 20 ? { staging, inode: 0, operations } : operations));
    await put(join(folder, staging, "apply.json"), JSON.stringify({ staging, folder }));
  }
  return { answers: { change: await apply([addition("a", side("x"))]) }, left: await canary.touched() };
}

async function observeLinks({ folder, canary, apply }: Place): Promise<Tried> {
  const up = addition("a/b/c/l", link("../../.."));
  const out = addition("m", link("a/b/c/l/../../../../../../etc/hostname"));
  const answers: Record<string, string> = { "both at once": await apply([up, out]) };
  await apply([up]);
  answers["the second alone"] = await apply([out]);
  await symlink(canary.folder, join(folder, "mine"));
  answers["through the user's own link"] = await apply([addition("n", link("mine/secret"))]);
  const leaked = await Promise.all(["m", "n"].map((name) => ifErrno(readFile(join(folder, name), "utf8"), ABSENT, null)));
  return {
    answers,
    left: [
      ...(await canary.touched()),
      ...leaked.flatMap((text, index) => (text === null ? [] : [`a link to the outside: ${["m", "n"][index]}`])),
    ],
  };
}

async function observeRepository({ base, folder, apply }: Place): Promise<Tried> {
  const parts = {
    HEAD: "ref: refs/heads/main\n",
    config: `[core]\n\tfsmonitor = ${join(base, "evil")}\n\tworktree = ..\n`,
    "objects/k": "k",
    "refs/k": "k",
  };
  const answers: Record<string, string> = {};
  for (const [path, text] of Object.entries(parts)) answers[path] = await apply([addition(`sub/${path}`, side(text))]);
  const names = await readdir(join(folder, "sub"));
  return { answers, left: ["HEAD", "objects", "refs"].every((name) => names.includes(name)) ? ["a repository in sub"] : [] };
}

async function observeGit({ folder, canary }: Place, path: string): Promise<Tried> {
  const evil = join(folder, "..", "evil");
  await writeFile(evil, `#!/bin/sh\ntouch ${join(canary.folder, "ran")}\nexit 1\n`);
  await chmod(evil, 0o755);
  const settings = `[core]\n\tfsmonitor = ${evil}\n\thooksPath = hooks\n\tsshCommand = ${evil}\n[filter "x"]\n\tclean = ${evil}\n\tprocess = ${evil}\n[diff]\n\texternal = ${evil}\n[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\turl = .\n\tpromisor = true\n\tuploadpack = ${evil}\n[include]\n\tpath = ../../included\n`;
  const missing = "1".repeat(40);
  const answers: Record<string, string> = {};
  for (const [what, head] of [
    ["with nothing missing", "ref: refs/heads/main\n"],
    ["with a commit to fetch", `${missing}\n`],
  ] as const) {
    for (const dir of ["objects", "refs/heads", "hooks"]) await mkdir(join(folder, ".git", dir), { recursive: true });
    await put(join(folder, ".git/HEAD"), head);
    await put(join(folder, ".git/config"), settings);
    await put(join(folder, ".git/hooks/reference-transaction"), `#!/bin/sh\nexec ${evil}\n`);
    await chmod(join(folder, ".git/hooks/reference-transaction"), 0o755);
    const author = { name: "a", email: "a@example.com" };
    const branch = commitToBranch([addition("n", side("x"))], {
      folder,
      name: what.replaceAll(" ", "-"),
      message: "m",
      author,
      git: { path },
      locks: { stateDir: join(folder, "..", "state") },
    });
    answers[what] = await outcomeOf(branch);
  }
  return { answers, left: await canary.touched() };
}

async function withPlace(context: AttackContext, work: (place: Place) => Promise<Tried>): Promise<Tried> {
  const base = await mkdtemp(join(tmpdir(), "caisson-test-"));
  const folder = join(base, "folder");
  try {
    await mkdir(folder);
    const apply = (changes: readonly Change[]) => outcomeOf(applyChanges(changes, { folder, stateDir: join(base, "state") }));
    return await work({ base, folder, canary: await context.canary(), apply });
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}

/** Returns the outcome of an attempt. A `CaissonError` is a refusal; any other error is a defect of ours. */
async function outcomeOf(work: Promise<{ applied?: string[]; skipped: unknown[] }>): Promise<string> {
  try {
    return (await work).applied?.length === 0 ? "left out" : "applied";
  } catch (error) {
    if (error instanceof CaissonError) return error.code;
    throw error;
  }
}

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}
