import { posix } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";
import { encodeTarHeader, padding, tarEnd } from "../../../sandbox/tar/tar-header.ts";
import type { BuildContext, ContextEntry, ContextSource } from "../context/build-context.ts";
import { excerpt, problemAt } from "../dockerfile/dockerfile-problem.ts";
import type { CopyInstruction, Instruction } from "../dockerfile/instruction.ts";
import { archiveOf, type LocalArchive } from "./add-archive.ts";
import { fetchStep, isRemote } from "./add-remote.ts";
import { type BuildRun, type Files, openSandbox, type Step } from "./build-run.ts";
import { copyFromFiles } from "./copy-from.ts";
import { type ExpandedCopy, type Place, placeOf } from "./copy-place.ts";
import { insideUser } from "./inside-users.ts";
import type { NewOwner } from "./rewrite-tar.ts";
import { makeFolder } from "./run-step.ts";
import { expand, insidePath, type StageState, variablesOf, wordExpander } from "./stage-state.ts";

/** How long digests of small files may keep the process from other work. */
const TURN_MS = 20;

type Copy = Instruction & CopyInstruction;

export interface CopyOptions {
  stage: string;
  /** The files that --from names; null for the context. */
  from: Files | null;
}

/** Returns the step of a COPY or ADD. Throws `invalid`, `not_found`, `unsafe`, `unsupported`. */
export async function copyStep(build: BuildRun, instruction: Copy, state: StageState, { stage, from }: CopyOptions): Promise<Step> {
  const { line, text } = instruction;
  const copy = expandedCopy(instruction, state);
  const about = { stage, line, text, usesNetwork: false };
  if (from !== null) {
    return {
      ...about,
      inputs: ["copy", from.key, copyInputs(copy)],
      async work(sandbox) {
        const source = await openSandbox(build, from, { usesNetwork: false });
        try {
          await copyFromFiles(source, sandbox, { ...copy, owner: await ownerOf(sandbox, copy) });
        } finally {
          await source.destroy();
        }
      },
    };
  }
  const remote = copy.sources.filter(isRemote);
  if (remote.length > 0) return fetchStep(build, { instruction, copy, remote, stage, env: variablesOf(state) });
  const { found, notices } = await findInContext(build, instruction, copy);
  const heredocs = instruction.heredocs.map(({ name, content, expands }) => ({
    name,
    content: expands ? expand({ ...state, escapeMark: state.escapeMark }, keepQuotes(content, state.escapeMark), line) : content,
  }));
  return {
    ...{ ...about, notices },
    inputs: [instruction.kind, copyInputs(copy), await digestsOf(build.context, found), heredocs],
    async work(sandbox) {
      const owner = await ownerOf(sandbox, copy);
      const archives = found.flatMap(({ archive }) => archive ?? []);
      const folder = copy.isFolder || archives.length > 0 || found.some(({ source }) => source.isFolder);
      const place = await placeOf(sandbox, copy.target, { isFolder: folder });
      const files = found.filter(({ archive }) => archive === null).map(({ source }) => source);
      await makeFolder(sandbox, place.folder);
      const entries = packSources(build.context, { sources: files, heredocs, place, owner, mode: copy.mode });
      await sandbox.tarIn(place.folder, entries, { user: "root", keepOwner: true });
      for (const archive of archives)
        await sandbox.tarIn(place.folder, archive.open({ owner: copy.chown === null ? undefined : owner }), {
          user: "root",
          keepOwner: true,
        });
    },
  };
}

const copyInputs = ({ sources, target, isFolder, chown, mode }: ExpandedCopy) => ({ sources, target, isFolder, chown, mode: mode ?? null });

function expandedCopy(instruction: Copy, state: StageState): ExpandedCopy {
  const { line, kind } = instruction;
  const word = wordExpander(state, line);
  const target = word(instruction.target);
  const sources = instruction.sources.map(word);
  const chmod = instruction.chmod === null ? null : word(instruction.chmod);
  if (chmod !== null && !/^[0-7]{3,4}$/.test(chmod))
    throw problemAt(line, `--chmod=${excerpt(chmod, 40)} is not supported`, {
      code: "unsupported",
      hint: "Use three or four octal digits, such as 755.",
    });
  if (target === "") throw problemAt(line, `${kind.toUpperCase()} has an empty target`);
  const isFolder = /\/\.?$/.test(target) || target === "." || sources.length + instruction.heredocs.length > 1;
  return {
    ...{ sources, isFolder, line },
    target: insidePath(target, state.config.workdir, line),
    chown: instruction.chown === null ? null : word(instruction.chown),
    mode: chmod === null ? undefined : Number.parseInt(chmod, 8) & 0o777,
  };
}

/** In a heredoc, quotes are text; only variables and escaped characters are special. */
function keepQuotes(content: string, escapeMark: string): string {
  return [...content].map((character) => (character === '"' || character === "'" ? escapeMark + character : character)).join("");
}

async function ownerOf(sandbox: OwnedSandbox, { chown, line }: ExpandedCopy): Promise<NewOwner> {
  const { uid, gid } = await insideUser(sandbox, chown, line);
  return { uid, gid };
}

interface FoundSource {
  source: ContextSource;
  /** The archive to unpack instead of copying it, for ADD. */
  archive: LocalArchive | null;
}

async function findInContext({ context, signal }: BuildRun, instruction: Copy, copy: ExpandedCopy) {
  const { sources, leftOut } = await context.find(copy.sources, { excludes: instruction.excludes, signal });
  const found: FoundSource[] = [];
  for (const source of sources) {
    const [entry] = source.entries;
    const canUnpack = instruction.kind === "add" && !source.isFolder && entry?.kind === "file";
    found.push({ source, archive: canUnpack ? await archiveOf(context, entry) : null });
  }
  if (!copy.isFolder && found.length > 1)
    throw problemAt(copy.line, `several sources need a folder as the target`, { hint: "End the target with a slash." });
  return { found, notices: leftOut.map((text) => `line ${copy.line}: ${text}`) };
}

async function digestsOf(context: BuildContext, found: readonly FoundSource[]): Promise<unknown[]> {
  const digests: unknown[] = [];
  let turnAt = performance.now();
  for (const { source, archive } of found) {
    const entries: [string, string][] = [];
    for (const entry of source.entries) {
      entries.push([posix.relative(source.path, entry.path), await context.digest(entry)]);
      if (performance.now() - turnAt < TURN_MS) continue;
      await setImmediate();
      turnAt = performance.now();
    }
    digests.push([source.isFolder ? null : posix.basename(source.path), archive !== null, entries]);
  }
  return digests;
}

async function* packSources(
  context: BuildContext,
  options: {
    sources: readonly ContextSource[];
    heredocs: readonly { name: string; content: string }[];
    place: Place;
    owner: NewOwner;
    mode: number | undefined;
  },
): AsyncGenerator<Uint8Array> {
  const { place, owner, mode } = options;
  for (const source of options.sources) {
    for (const entry of source.entries) {
      const name = source.isFolder ? posix.relative(source.path, entry.path) : (place.name ?? posix.basename(entry.path));
      yield* packEntry(context, entry, { name, owner, mode });
    }
  }
  for (const { name, content } of options.heredocs) {
    const data = Buffer.from(content);
    const header = {
      kind: "file" as const,
      name: place.name ?? name,
      mode: mode ?? 0o644,
      sizeBytes: data.length,
      modifiedMs: 0,
      linkTarget: "",
    };
    yield encodeTarHeader({ ...header, owner });
    yield data;
    yield padding(data.length);
  }
  yield tarEnd;
}

async function* packEntry(
  context: BuildContext,
  entry: ContextEntry,
  { name, owner, mode }: { name: string; owner: NewOwner; mode: number | undefined },
): AsyncGenerator<Uint8Array> {
  const { kind, modifiedMs, sizeBytes, linkTarget } = entry;
  yield encodeTarHeader({
    kind,
    name,
    modifiedMs,
    sizeBytes,
    linkTarget,
    owner,
    mode: kind === "file" && mode !== undefined ? mode : entry.mode,
  });
  if (kind !== "file") return;
  yield* context.read(entry);
  yield padding(sizeBytes);
}
