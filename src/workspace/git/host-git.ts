import { spawn } from "node:child_process";
import { CaissonError } from "../../contract/error/error.ts";
import { createGitProgress } from "./git-progress.ts";

const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const TIMEOUT_MS_DEFAULT = 10 * 60_000;

/**
 * A second line of defense. Git on the host works only in repositories that we created (mirrors of remotes, and one for
 * each branch) with settings that we wrote. In addition these settings keep git from running anything that a repository
 * could name. They are on the command line, which overrides every file.
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
  /** The repository (a bare folder or a `.git` folder). Git never searches for it. */
  gitDir?: string;
  input?: Buffer | string;
  env?: Readonly<Record<string, string>>;
  /** The `PATH` for git and ssh, from the composition root. */
  path: string;
  home?: string;
  timeoutMs?: number;
  outputBytesMax?: number;
  /** Defaults to /, where git finds no repository. */
  cwd?: string;
  /** The owner of the files that git creates, if root works on another user's repository. */
  user?: { uid: number; gid: number };
  signal?: AbortSignal;
  /** Called with progress reports; see `createGitProgress`. */
  onProgress?: (line: string) => void;
}

/**
 * Runs git on the host, for objects and refs only: never with a work tree that an agent wrote to. Throws `unavailable`
 * if git is missing, `internal` with git's message if it fails.
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
      // Callers that need a remote allow its transports: see git-mirror.ts.
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
  if (bytes > outputBytesMax) throw new CaissonError("too_large", `the output of git ${args[0]} exceeds ${outputBytesMax} bytes`);
  if (code !== 0)
    throw new CaissonError("internal", `git ${args[0]} failed${code === null ? " (timed out)" : ""}: ${lastLines(stderr)}`, {
      details: { exitCode: code },
    });
  return Buffer.concat(stdout);
}

function lastLines(text: string): string {
  return text.trim().split("\n").slice(-5).join(" ").slice(0, 1000);
}
