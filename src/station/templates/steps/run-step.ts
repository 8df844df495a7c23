import { randomUUID } from "node:crypto";
import { CaissonError } from "../../../contract/error/error.ts";
import type { Ended } from "../../../contract/outcome.ts";
import type { BuildEvent } from "../../../contract/template/template-verbs.ts";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";
import { excerpt, problemAt } from "../dockerfile/dockerfile-problem.ts";
import type { Instruction } from "../dockerfile/instruction.ts";
import type { Step } from "./build-run.ts";
import { insideUser } from "./inside-users.ts";
import { argvOf, type StageState, variablesOf } from "./stage-state.ts";

type Run = Extract<Instruction, { kind: "run" }>;

const SUDO_FOLDER = "/.caisson/bin";

/** Returns the step of a RUN. Throws `unsupported` for an option that cannot be provided. */
export function runStep(instruction: Run, state: StageState, { stage, network }: { stage: string; network: unknown }): Step {
  const { line, text } = instruction;
  const isOffline = networkOf(instruction) === "none";
  const notices = mountNotices(instruction);
  const argv = argvOf(instruction.command, state.shell);
  // A heredoc that begins with #! is a separate program.
  const script = instruction.heredocs[0]?.content ?? "";
  const program = script.startsWith("#!") ? script : null;
  const { workdir } = state.config;
  const user = instruction.user ?? state.config.user;
  const env = variablesOf(state);
  return {
    ...{ stage, line, text, usesNetwork: !isOffline, notices },
    inputs: ["run", { argv, program, env, workdir, user, network: isOffline ? { mode: "none" } : network }],
    async *work(sandbox) {
      await makeFolder(sandbox, workdir);
      const file = program === null ? null : await writeProgram(sandbox, program);
      yield* runInside(sandbox, { argv: file === null ? argv : [file], env, user, cwd: workdir, line, text });
      if (file !== null) await sandbox.remove(file, { user: "root" });
    },
  };
}

/** Creates a folder, as WORKDIR does. */
export async function makeFolder(sandbox: OwnedSandbox, path: string): Promise<void> {
  try {
    await sandbox.mkdir(path, { parents: true, user: "root", mode: 0o755 });
  } catch (error) {
    if (!(error instanceof CaissonError && error.code === "exists")) throw error;
  }
}

async function writeProgram(sandbox: OwnedSandbox, text: string): Promise<string> {
  const path = `/tmp/build-${randomUUID()}`;
  await sandbox.writeFile(path, Buffer.from(text), { user: "root", mode: 0o755 });
  return path;
}

function networkOf({ network, line }: Run): "default" | "none" {
  if (network === null || network === "default") return "default";
  if (network === "none") return "none";
  throw problemAt(line, `--network=${excerpt(network, 40)} is not supported`, {
    code: "unsupported",
    hint: "Use --network=none, or leave it out: RUN has the network of the build.",
  });
}

/** A cache or tmpfs only makes a build faster or smaller; without other mounts, a command would see other files. */
function mountNotices({ mounts, line }: Run): string[] {
  return mounts.map((mount) => {
    const type =
      mount
        .split(",")
        .find((part) => part.startsWith("type="))
        ?.slice("type=".length) ?? "bind";
    if (type === "cache" || type === "tmpfs") return `line ${line}: --mount=type=${type} has no effect`;
    throw problemAt(line, `RUN --mount=type=${excerpt(type, 40)} is not supported`, {
      code: "unsupported",
      hint: type === "secret" || type === "ssh" ? "Secrets never enter a build." : "Use COPY in a separate stage.",
    });
  });
}

export interface InsideCommand {
  argv: readonly string[];
  env: Readonly<Record<string, string>>;
  user: string | null;
  cwd: string;
  line: number;
  text: string;
}

/** Runs a command to its end. Throws `invalid` if it fails. */
export async function* runInside(sandbox: OwnedSandbox, command: InsideCommand): AsyncGenerator<BuildEvent> {
  const { argv, env, line, text } = command;
  const user = await insideUser(sandbox, command.user, line);
  const { PATH, ...others } = env;
  const process = await sandbox
    .spawn({
      argv,
      cwd: command.cwd,
      user: user.uid === 0 && user.gid === 0 ? "root" : `${user.uid}:${user.gid}`,
      env: { HOME: user.home, ...others, ...(PATH !== undefined && { PATH: withSudo(PATH) }) },
    })
    .catch((error: unknown) => {
      throw error instanceof CaissonError && error.code === "not_found" ? problemAt(line, `${excerpt(text)}: ${error.message}`) : error;
    });
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  for await (const { stream, data } of process.output) {
    const output = decoders[stream].decode(data, { stream: true });
    if (output !== "") yield { output };
  }
  const ended = await process.ended;
  if (ended.kind === "exited" && ended.exitCode === 0) return;
  throw problemAt(line, `${excerpt(text)} ${howItEnded(ended)}`, {
    hint: "Its output is above. --network and --memory change what a command may use.",
  });
}

const withSudo = (path: string) => (path.split(":").includes(SUDO_FOLDER) ? path : `${SUDO_FOLDER}:${path}`);

function howItEnded(ended: Ended): string {
  switch (ended.kind) {
    case "exited":
      return `failed with exit code ${ended.exitCode}`;
    case "signaled":
      return `was ended by signal ${ended.signal}`;
    case "killed":
      return `was killed (${ended.why})`;
    default:
      return `did not finish (${ended.kind})`;
  }
}
