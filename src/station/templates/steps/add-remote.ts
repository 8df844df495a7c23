import { createHash } from "node:crypto";
import { posix } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";
import { excerpt, problemAt } from "../dockerfile/dockerfile-problem.ts";
import type { CopyInstruction, Instruction } from "../dockerfile/instruction.ts";
import type { BuildRun, Step } from "./build-run.ts";
import { type ExpandedCopy, placeOf } from "./copy-place.ts";
import { insideUser } from "./inside-users.ts";
import { rewriteTar } from "./rewrite-tar.ts";
import { makeFolder, runInside } from "./run-step.ts";

export const isRemote = (source: string) => /^(?:[a-z][a-z0-9+.-]*:\/\/|git@)/i.test(source);

interface FetchOptions {
  instruction: Instruction & CopyInstruction;
  copy: ExpandedCopy;
  remote: readonly string[];
  stage: string;
  env: Readonly<Record<string, string>>;
}

/**
 * Returns the step of an ADD from the web. A program inside fetches it, so the build's network policy decides. Throws
 * `unsupported` if the build has no network, for repositories, and for a copy of several sources.
 */
export function fetchStep(build: BuildRun, { instruction, copy, remote, stage, env }: FetchOptions): Step {
  const { line, text } = instruction;
  const [url = ""] = remote;
  refuseUnfetchable(build, { instruction, copy, url });
  const { network } = build.request;
  return {
    ...{ stage, line, text, usesNetwork: true },
    inputs: ["fetch", url, copy.target, copy.isFolder, copy.chown, copy.mode ?? null, instruction.checksum, network],
    async *work(sandbox) {
      const place = await placeOf(sandbox, copy.target, { isFolder: copy.isFolder });
      const name = place.name ?? nameOf(url, line);
      const path = posix.join(place.folder, name);
      await makeFolder(sandbox, place.folder);
      const fetcher = await fetcherIn(sandbox, line);
      yield* runInside(sandbox, { argv: [...fetcher, path, url], env, user: null, cwd: "/", line, text });
      await checkSum(sandbox, path, { expected: instruction.checksum, line });
      const owner = await insideUser(sandbox, copy.chown, line);
      await setOwner(sandbox, { path, mode: copy.mode ?? 0o600, owner });
    },
  };
}

function refuseUnfetchable(
  build: BuildRun,
  { instruction, copy, url }: { instruction: Instruction & CopyInstruction; copy: ExpandedCopy; url: string },
): void {
  const { line, kind } = instruction;
  const refuse = (why: string, hint: string) => problemAt(line, `${excerpt(url)} ${why}`, { code: "unsupported", hint });
  if (kind === "copy") throw problemAt(line, `COPY does not fetch ${excerpt(url)}`, { hint: "Use ADD." });
  if (!/^https?:\/\//i.test(url) || /\.git(?:#|$)/.test(url))
    throw refuse("is a repository, which ADD does not fetch", "Clone it with RUN git clone.");
  if (build.request.network.mode === "none")
    throw refuse("is not fetched: the build has no network", "Allow its host with --network HOST.");
  if (copy.sources.length > 1) throw refuse("cannot be added together with other sources", "Use one ADD for each.");
}

function nameOf(url: string, line: number): string {
  const name = posix.basename(new URL(url).pathname);
  if (name === "" || name === "." || name === "..")
    throw problemAt(line, `${excerpt(url)} names no file`, { hint: "End the target with a file's name." });
  return decodeURIComponent(name).replaceAll("/", "_").slice(0, 255);
}

/** The program and its options up to the file to write. */
async function fetcherIn(sandbox: OwnedSandbox, line: number): Promise<string[]> {
  const programs = [
    ["curl", "-fsSL", "--proto", "=http,https", "-o"],
    ["wget", "-q", "-O"],
  ];
  for (const [program = "", ...options] of programs) {
    for (const folder of ["/usr/bin", "/bin", "/usr/local/bin"]) {
      if (await exists(sandbox, `${folder}/${program}`)) return [`${folder}/${program}`, ...options];
    }
  }
  throw problemAt(line, "ADD needs curl or wget inside to fetch a URL", {
    code: "unsupported",
    hint: "Install one with RUN, or download the file to the context.",
  });
}

async function exists(sandbox: OwnedSandbox, path: string): Promise<boolean> {
  try {
    return (await sandbox.stat(path, { user: "root" })).kind === "file";
  } catch (error) {
    if (error instanceof CaissonError && error.code === "not_found") return false;
    throw error;
  }
}

async function checkSum(sandbox: OwnedSandbox, path: string, { expected, line }: { expected: string | null; line: number }): Promise<void> {
  if (expected === null) return;
  const hash = createHash("sha256");
  for await (const piece of await sandbox.readFile(path, { user: "root" })) hash.update(piece);
  if (`sha256:${hash.digest("hex")}` !== expected.toLowerCase()) throw problemAt(line, `the download does not match ${excerpt(expected)}`);
}

/** Gives the file its owner and mode without a program inside: as an archive of one entry. */
async function setOwner(
  sandbox: OwnedSandbox,
  { path, mode, owner }: { path: string; mode: number; owner: { uid: number; gid: number } },
): Promise<void> {
  const archive = await sandbox.tarOut(path, { user: "root" });
  const rewritten = rewriteTar(archive, { owner, mode, bytesMax: Number.MAX_SAFE_INTEGER, entriesMax: 1 });
  // Unpacked under another name first: replacing a file while it is read would lose it.
  const folder = `${posix.dirname(path).replace(/\/$/, "")}/.caisson-add`;
  await sandbox.tarIn(folder, rewritten, { user: "root", keepOwner: true });
  await sandbox.move(`${folder}/${posix.basename(path)}`, path, { user: "root", replace: true });
  await sandbox.remove(folder, { user: "root", recursive: true });
}
