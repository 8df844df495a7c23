import { CaissonError } from "../../../contract/error/error.ts";
import { atLine, excerpt, problemAt } from "../dockerfile/dockerfile-problem.ts";
import { expandWord } from "../dockerfile/expand-word.ts";
import type { Dockerfile, Instruction, Stage } from "../dockerfile/instruction.ts";
import { type Base, baseFiles } from "./base-files.ts";
import { type Building, type BuildRun, type Files, takeStep } from "./build-run.ts";
import { copyStep } from "./copy-step.ts";
import { ociArchitecture } from "./empty-image.ts";
import { makeFolder, runStep } from "./run-step.ts";
import { applySetting, defaultShell, emptyConfig, expand, type StageState } from "./stage-state.ts";

/** The result of a stage. */
export interface BuiltStage {
  files: Files;
  state: StageState;
}

/** Builds the wanted stage, and those that it needs, in the order in which they are needed. */
export async function* buildStages(build: BuildRun, file: Dockerfile, target: string | undefined): Building<BuiltStage> {
  const stages = createStages(build, file);
  const index = target === undefined ? file.stages.length - 1 : stages.indexOf(target, file.stages.length);
  if (index < 0) throw problemAt(1, `the file has no stage ${JSON.stringify(excerpt(target ?? ""))}`, { code: "not_found" });
  const result = yield* stages.build(index);
  const unused = Object.keys(build.request.args).filter((name) => !stages.usedArguments.has(name));
  if (unused.length > 0) yield { notice: `these build arguments are not used: ${unused.map((name) => excerpt(name)).join(", ")}` };
  return result;
}

interface Stages {
  build(index: number): Building<BuiltStage>;
  /** Finds a stage before another by name or number; -1 if no stage has it. */
  indexOf(word: string, before: number): number;
  readonly usedArguments: ReadonlySet<string>;
}

function createStages(build: BuildRun, file: Dockerfile): Stages {
  const results = new Map<number, BuiltStage>();
  const usedArguments = new Set<string>();
  const globals = globalArguments(build, file, usedArguments);
  const indexOf = (word: string, before: number) => {
    const earlier = file.stages.slice(0, before);
    const named = earlier.findIndex(({ from }) => from.name === word.toLowerCase());
    if (named >= 0) return named;
    return /^\d{1,3}$/.test(word) && Number(word) < before ? Number(word) : -1;
  };
  const stages: Stages = {
    usedArguments,
    indexOf,
    async *build(index) {
      const known = results.get(index);
      if (known !== undefined) return known;
      const stage = file.stages[index] as Stage;
      const start = yield* startOf(build, { file, stage, index, globals, stages });
      const result = yield* buildStage(build, { stage, index, start, globals, stages, usedArguments });
      results.set(index, result);
      return result;
    },
  };
  return stages;
}

/** The arguments before the first FROM, which FROM lines use, and which a stage can declare. */
function globalArguments(build: BuildRun, file: Dockerfile, used: Set<string>): Readonly<Record<string, string>> {
  const platform = `linux/${ociArchitecture()}`;
  const own = (prefix: string) => ({ [`${prefix}PLATFORM`]: platform, [`${prefix}OS`]: "linux", [`${prefix}ARCH`]: ociArchitecture() });
  let state: StageState = {
    config: emptyConfig,
    args: { ...own("TARGET"), ...own("BUILD") },
    shell: defaultShell,
    escapeMark: file.escapeMark,
  };
  for (const instruction of file.globals) state = applySetting(state, instruction, (name) => argumentOf(build, name, used));
  return state.args;
}

function argumentOf({ request }: BuildRun, name: string, used: Set<string>): string | undefined {
  used.add(name);
  return Object.hasOwn(request.args, name) ? request.args[name] : undefined;
}

interface StageContext {
  stage: Stage;
  index: number;
  globals: Readonly<Record<string, string>>;
  stages: Stages;
}

async function* startOf(
  build: BuildRun,
  { file, stage, index, globals, stages }: StageContext & { file: Dockerfile },
): Building<BuiltStage> {
  const { line, image, platform } = stage.from;
  const lookUp = (name: string) => (Object.hasOwn(globals, name) ? globals[name] : undefined);
  const word = (raw: string) => expandWord(raw, { line, escapeMark: file.escapeMark, lookUp });
  const wanted = platform === null ? "" : word(platform);
  if (wanted !== "" && !wanted.startsWith(`linux/${ociArchitecture()}`))
    throw problemAt(line, `this machine does not build for ${JSON.stringify(excerpt(wanted, 40))}`, { code: "unsupported" });
  const name = word(image);
  if (name === "") throw problemAt(line, `FROM ${excerpt(image)} is empty after its variables are replaced`);
  const at = /^\d+$/.test(name) ? -1 : stages.indexOf(name, index);
  if (at >= 0) {
    // As in Docker, the stage also has the earlier one's arguments and SHELL.
    return yield* stages.build(at);
  }
  const base: Base = yield* withLine(line, baseFiles(build, name, line));
  return { files: base.files, state: { config: base.config, args: {}, shell: defaultShell, escapeMark: file.escapeMark } };
}

async function* buildStage(
  build: BuildRun,
  context: StageContext & { start: BuiltStage; usedArguments: Set<string> },
): Building<BuiltStage> {
  const { stage, globals, usedArguments } = context;
  const argOf = (name: string) => argumentOf(build, name, usedArguments) ?? (Object.hasOwn(globals, name) ? globals[name] : undefined);
  let { files, state } = context.start;
  /** WORKDIR creates its folder; the next step does it. */
  let folder: Instruction | null = null;
  for (const instruction of stage.instructions) {
    if (build.signal?.aborted) throw new CaissonError("cancelled", "the build was interrupted");
    if (instruction.kind === "run" || instruction.kind === "copy" || instruction.kind === "add") {
      files = yield* withLine(instruction.line, changeFiles(build, { ...context, files, state, instruction }));
      // RUN creates its working folder; the target of a COPY may be another.
      if (instruction.kind === "run") folder = null;
      continue;
    }
    state = applySetting(state, instruction, argOf);
    if (instruction.kind === "workdir") folder = instruction;
  }
  if (folder !== null)
    files = yield* withLine(folder.line, makeWorkdir(build, { files, state, instruction: folder, name: nameOf(context) }));
  return { files, state };
}

/** Names the line in errors of an instruction that name none. */
async function* withLine<Result>(line: number, building: Building<Result>): Building<Result> {
  try {
    return yield* building;
  } catch (error) {
    throw atLine(error, line);
  }
}

const nameOf = ({ stage, index }: Pick<StageContext, "stage" | "index">) => stage.from.name ?? String(index);

type FileInstruction = Extract<Instruction, { kind: "run" | "copy" | "add" }>;

async function* changeFiles(
  build: BuildRun,
  options: StageContext & { files: Files; state: StageState; instruction: FileInstruction },
): Building<Files> {
  const { files, state, instruction } = options;
  const name = nameOf(options);
  if (instruction.kind === "run")
    return yield* takeStep(build, files, runStep(instruction, state, { stage: name, network: build.request.network }));
  const from = yield* sourceOf(build, options);
  return yield* takeStep(build, files, await copyStep(build, instruction, state, { stage: name, from }));
}

/** Returns the files that --from names: those of an earlier stage, or of a base; null for the context. */
async function* sourceOf(
  build: BuildRun,
  { instruction, state, index, stages }: StageContext & { instruction: FileInstruction; state: StageState },
): Building<Files | null> {
  if (instruction.kind === "run" || instruction.from === null) return null;
  const word = expand(state, instruction.from, instruction.line);
  const at = stages.indexOf(word, index);
  if (at >= 0) return (yield* stages.build(at)).files;
  if (/^\d+$/.test(word)) throw problemAt(instruction.line, `there is no stage ${excerpt(word)} before this one`);
  return (yield* baseFiles(build, word, instruction.line)).files;
}

async function* makeWorkdir(
  build: BuildRun,
  { files, state, instruction, name }: { files: Files; state: StageState; instruction: Instruction; name: string },
): Building<Files> {
  const { workdir } = state.config;
  return yield* takeStep(build, files, {
    ...{ stage: name, line: instruction.line, text: instruction.text, usesNetwork: false },
    inputs: ["workdir", workdir],
    async work(sandbox) {
      await makeFolder(sandbox, workdir);
    },
  });
}
