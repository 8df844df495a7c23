import { posix } from "node:path";
import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import { checkValue, tellProblems } from "../../../contract/error/plain-problems.ts";
import { contextPath } from "../context/context-path.ts";
import { type Dockerfile, type Instruction, plainCopy } from "../dockerfile/instruction.ts";
import { parseDockerfile, parseFile } from "../dockerfile/parse-dockerfile.ts";
import type { BuildPlan } from "../steps/build-plan.ts";
import type { BuildRun } from "../steps/build-run.ts";
import { featureInstructions } from "./features.ts";
import { parseJsonc } from "./parse-jsonc.ts";

const Word = z.string().max(131_072);
const Variables = z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,255}$/, "must be a variable name"), Word.nullable());
/** A shell command, the words of one, or several by name. */
const Command = z.union([Word, z.array(Word).max(1000), z.record(z.string().max(200), z.union([Word, z.array(Word).max(1000)]))]);

/** The parts of a devcontainer.json that a template has. */
const Devcontainer = z.looseObject({
  image: Word.optional(),
  dockerFile: Word.optional(),
  context: Word.optional(),
  build: z
    .looseObject({
      dockerfile: Word.optional(),
      context: Word.optional(),
      args: z.record(z.string().max(256), Word).optional(),
      target: z.string().max(200).optional(),
    })
    .optional(),
  features: z.record(z.string().max(1000), z.unknown()).optional(),
  containerEnv: Variables.optional(),
  remoteEnv: Variables.optional(),
  containerUser: z.string().max(256).optional(),
  remoteUser: z.string().max(256).optional(),
  onCreateCommand: Command.optional(),
  updateContentCommand: Command.optional(),
  postCreateCommand: Command.optional(),
});
type Devcontainer = z.infer<typeof Devcontainer>;

/** Keys that say nothing about a template. */
const descriptive: ReadonlySet<string> = new Set(["name", "$schema"]);
const known: ReadonlySet<string> = new Set(Object.keys(Devcontainer.shape));
const WORKSPACE = "/workspace";

/** Turns a devcontainer.json into the instructions of its last stage. Throws `invalid`, `not_found`, `unsupported`. */
export async function devcontainerFile(build: BuildRun, file: string): Promise<BuildPlan> {
  const parsed = checkValue(Devcontainer, parseJsonc(await build.context.requireText(file), file));
  if (!parsed.success) throw new CaissonError("invalid", `${file}: ${tellProblems(parsed.problems)}`);
  const config = parsed.data;
  const notices = Object.keys(config)
    .filter((key) => !known.has(key) && !descriptive.has(key))
    .map((key) => `${JSON.stringify(key.slice(0, 100))} in ${file} has no effect`);
  const folder = posix.dirname(file);
  const { base, dockerfile, args, target } = await baseOf(build, config, folder);
  const user = config.remoteUser ?? config.containerUser ?? null;
  const features = await featureInstructions(build, config.features ?? {}, { folder, user });
  const more: Instruction[] = [
    ...instructionsOf(`ENV ${envText(config.containerEnv)}`, config.containerEnv),
    ...features.instructions,
    ...instructionsOf(`ENV ${envText(config.remoteEnv)}`, config.remoteEnv),
    ...commandInstructions(config, user),
    ...(user === null ? [] : [{ kind: "user" as const, word: user, line: 0, text: `USER ${user}` }]),
  ];
  const at = stageIndex(base, target);
  const stages = base.stages.map((stage, index) => (index === at ? { ...stage, instructions: [...stage.instructions, ...more] } : stage));
  return {
    ...{ kind: "devcontainer", target: undefined, args },
    dockerfile: { ...base, stages: stages.slice(0, at + 1) },
    file: dockerfile ?? file,
    extendedBy: file,
    notices: [...notices, ...features.notices],
  };
}

interface DevcontainerBase {
  base: Dockerfile;
  /** The path of the Dockerfile; null for an image. */
  dockerfile: string | null;
  args: Record<string, string>;
  target: string | undefined;
}

async function baseOf(build: BuildRun, config: Devcontainer, folder: string): Promise<DevcontainerBase> {
  const dockerfile = config.build?.dockerfile ?? config.dockerFile;
  const args = Object.fromEntries(Object.entries(config.build?.args ?? {}));
  if (dockerfile === undefined) {
    if (config.image === undefined) throw new CaissonError("invalid", "devcontainer.json names neither an image nor a Dockerfile");
    await build.context.useIgnoreFile(null);
    return { base: fromImage(config.image), dockerfile: null, args, target: undefined };
  }
  const context = contextPath(posix.join(folder, config.build?.context ?? config.context ?? "."));
  if (context !== "" && context !== folder)
    throw new CaissonError(
      "unsupported",
      `the context ${JSON.stringify(context.slice(0, 200))} of devcontainer.json is not the project's folder`,
      {
        hint: 'Set "context" to ".." in .devcontainer, so that it is the folder that is built.',
      },
    );
  const path = contextPath(posix.join(folder, dockerfile));
  await build.context.useIgnoreFile(path);
  const base = parseFile(await build.context.requireText(path), path);
  return {
    base: context === "" ? base : withContext(base, context),
    dockerfile: path,
    args,
    target: build.request.target ?? config.build?.target,
  };
}

/** Line 0: errors name devcontainer.json alone. */
function fromImage(image: string): Dockerfile {
  const file = parseDockerfile(`FROM ${image.replace(/\s/g, "")}`);
  return { ...file, stages: file.stages.map((stage) => ({ ...stage, from: { ...stage.from, line: 0 } })) };
}

/** The default context is the folder of devcontainer.json: sources of COPY are relative to it. */
function withContext(file: Dockerfile, context: string): Dockerfile {
  const within = (instruction: Instruction): Instruction =>
    (instruction.kind === "copy" || instruction.kind === "add") && instruction.from === null
      ? {
          ...instruction,
          sources: instruction.sources.map((source) => (/^[a-z]+:\/\//i.test(source) ? source : posix.join(context, source))),
        }
      : instruction;
  return { ...file, stages: file.stages.map((stage) => ({ ...stage, instructions: stage.instructions.map(within) })) };
}

function stageIndex({ stages }: Dockerfile, target: string | undefined): number {
  if (target === undefined) return stages.length - 1;
  const at = stages.findIndex(({ from }) => from.name === target.toLowerCase());
  if (at >= 0) return at;
  throw new CaissonError("not_found", `the Dockerfile has no stage ${JSON.stringify(target.slice(0, 200))}`);
}

const envText = (variables: Devcontainer["containerEnv"]) => Object.keys(variables ?? {}).join(" ");

/** Variables of the user's machine are not known to a template; null removes a variable, which an image cannot. */
function instructionsOf(text: string, variables: Devcontainer["containerEnv"]): Instruction[] {
  const pairs = Object.entries(variables ?? {}).flatMap(([name, value]) =>
    value === null || value.includes("${localEnv:") ? [] : [[name, toDockerfileWord(value)] as const],
  );
  return pairs.length === 0 ? [] : [{ kind: "env", pairs, line: 0, text: text.slice(0, 1000) }];
}

/** `${containerEnv:NAME}` is a variable of the image; every other character is literal. */
function toDockerfileWord(value: string): string {
  return value
    .split(/\$\{containerEnv:([A-Za-z_][A-Za-z0-9_]*)\}/)
    .map((part, index) => (index % 2 === 1 ? `\${${part}}` : part.replace(/[\\$'"\s]/g, "\\$&")))
    .join("");
}

const lifecycle = ["onCreateCommand", "updateContentCommand", "postCreateCommand"] as const;

/** The commands run once, as the user, in a copy of the project. */
function commandInstructions(config: Devcontainer, user: string | null): Instruction[] {
  const commands = lifecycle.flatMap((name) => commandsOf(config[name]).map((command) => ({ name, command })));
  if (commands.length === 0) return [];
  return [
    { kind: "copy", sources: ["."], target: `${WORKSPACE}/`, ...plainCopy, chown: user, line: 0, text: `COPY . ${WORKSPACE}` },
    { kind: "workdir", word: WORKSPACE, line: 0, text: `WORKDIR ${WORKSPACE}` },
    ...(user === null ? [] : [{ kind: "user" as const, word: user, line: 0, text: `USER ${user}` }]),
    ...commands.map(
      ({ name, command }): Instruction => ({
        ...{ kind: "run", heredocs: [], network: null, mounts: [], line: 0 },
        command: typeof command === "string" ? { form: "shell", text: command } : { form: "exec", argv: command },
        text: `${name} ${typeof command === "string" ? command : command.join(" ")}`.slice(0, 1000),
      }),
    ),
  ];
}

function commandsOf(command: z.infer<typeof Command> | undefined): (string | string[])[] {
  if (command === undefined) return [];
  return typeof command === "string" || Array.isArray(command) ? [command] : Object.values(command);
}
