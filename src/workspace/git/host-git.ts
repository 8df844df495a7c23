import { spawn } from "node:child_process";
import { CaissonError } from "../../contract/error.ts";
import { createGitProgress } from "./git-progress.ts";

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const TIMEOUT_MS_DEFAULT = 10 * 60_000;

/**
 * Git on the host works in repositories of our own making only (mirrors of remotes, and one made for each branch),
 * whose settings we wrote. These are a second wall: settings under which git runs nothing a repository could name, on
 * the command line, which goes over every file.
 */
const harmless = [
  ["core.hooksPath", "/dev/null"],
  ["core.fsmonitor", "false"],
  ["core.attributesFile", "/dev/null"],
  ["core.excludesFile", "/dev/null"],
  ["core.pager", "cat"],
  ["core.editor", "false"],
  ["core.sshCommand", "ssh"],
  ["core.gitProxy", "none"],
  ["core.askPass", ""],
  ["core.alternateRefsCommand", "true"],
  ["sequence.editor", "false"],
  ["diff.external", ""],
  ["credential.helper", ""],
  ["protocol.allow", "never"],
  ["protocol.ext.allow", "never"],
  ["protocol.fd.allow", "never"],
  ["gc.auto", "0"],
  ["maintenance.auto", "false"],
  ["submodule.recurse", "false"],
  ["uploadpack.packObjectsHook", ""],
  ["commit.gpgSign", "false"],
  ["tag.gpgSign", "false"],
  ["init.templateDir", ""],
  ["safe.directory", "*"],
] as const;

export interface GitOptions {
  /** The repository (a bare folder or a `.git` folder), never found by looking around. */
  gitDir?: string;
  input?: Buffer | string;
  env?: Readonly<Record<string, string>>;
  /** From the composition root: what git and ssh need of the environment. */
  path: string;
  home?: string;
  timeoutMs?: number;
  outputBytesMax?: number;
  /** Default /: git must find nothing by looking around. */
  cwd?: string;
  /** Whose the files are that it makes, for root working on somebody else's repository. */
  user?: { uid: number; gid: number };
  signal?: AbortSignal;
  /** Told how far it is, see `createGitProgress`. */
  onProgress?: (line: string) => void;
}

/**
 * Runs git on the host. Never with a work tree an agent wrote to: objects and refs only. Throws `unavailable` without
 * git, `internal` with git's words when it fails.
 */
export async function hostGit(args: readonly string[], options: GitOptions): Promise<Buffer> {
  const settings = harmless.flatMap(([key, value]) => ["-c", `${key}=${value}`]);
  const outputBytesMax = options.outputBytesMax ?? OUTPUT_BYTES_MAX;
  const where = options.gitDir === undefined ? [] : [`--git-dir=${options.gitDir}`];
  const child = spawn("git", [...settings, ...where, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    cwd: options.cwd ?? "/",
    timeout: options.timeoutMs ?? TIMEOUT_MS_DEFAULT,
    ...(options.signal ? { signal: options.signal } : {}),
    ...(options.user && process.getuid?.() === 0 ? options.user : {}),
    env: {
      PATH: options.path,
      HOME: options.home ?? "/nonexistent",
      LC_ALL: "C.UTF-8",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_TERMINAL_PROMPT: "0",
      GIT_ASKPASS: "",
      GIT_OPTIONAL_LOCKS: "0",
      GIT_NO_REPLACE_OBJECTS: "1",
      GIT_NO_LAZY_FETCH: "1",
      GIT_ATTR_NOSYSTEM: "1",
      GIT_EDITOR: "false",
      GIT_PAGER: "cat",
      // Who means a remote says which transports: see git-mirror.ts.
      GIT_ALLOW_PROTOCOL: "none",
      GIT_SSH_COMMAND: "false",
      ...options.env,
    },
  });
  const stdout: Buffer[] = [];
  let bytes = 0;
  let stderr = "";
  const progress = options.onProgress && createGitProgress(options.onProgress);
  child.stdout.on("data", (data: Buffer) => {
    bytes += data.length;
    if (bytes > outputBytesMax) child.kill("SIGKILL");
    else stdout.push(data);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(-20_000);
    progress?.(text);
  });
  child.stdin.on("error", () => undefined).end(options.input ?? "");
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      if (options.signal?.aborted) reject(new CaissonError("cancelled", "git was cancelled", { cause: error }));
      else reject(new CaissonError("unavailable", "git cannot be started", { hint: "Install git: apt-get install git.", cause: error }));
    });
    child.once("close", resolve);
  });
  if (bytes > outputBytesMax) throw new CaissonError("too_large", `git ${args[0]} wrote more than ${outputBytesMax} bytes`);
  if (code !== 0)
    throw new CaissonError("internal", `git ${args[0]} failed${code === null ? " (timed out)" : ""}: ${lastLines(stderr)}`, {
      details: { exitCode: code },
    });
  return Buffer.concat(stdout);
}

function lastLines(text: string): string {
  return text.trim().split("\n").slice(-5).join(" ").slice(0, 1000);
}
