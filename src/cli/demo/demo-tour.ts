import type { Ended } from "../../contract/outcome.ts";
import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import type { SandboxTools } from "../../verbs/sandbox-tools.ts";

export interface DemoFolder {
  root: string;
  workspace: string;
  /** A file next to the workspace that every user of the host can read. */
  secret: string;
  unchanged(): Promise<boolean>;
}

export interface DemoResult {
  stdout: string;
  stderr: string;
  exitCode: number | null;
  /** `exited 0`, `timed out`, `killed for memory` … */
  ended: string;
}

/** A stop of the tour: a claim, the command that shows it, and the check whether it held. */
export interface Stop {
  claim: string;
  /** Runs outside the sandbox before the command. */
  before?: () => Promise<unknown>;
  shown: string;
  argv: readonly string[];
  timeoutMs?: number;
  holds: (result: DemoResult) => boolean | Promise<boolean>;
}

const OUTPUT_SHOWN_MAX = 64 * 1024;
/**
 * A generous timeout, because no claim is about speed: on an emulated processor it takes half a minute to fill some
 * memory.
 */
const HANGS_AFTER_MS = 5 * 60_000;

export function tour(options: { sandbox: HeldSandbox; run: RunQuietly; folder: DemoFolder; home: string }): Stop[] {
  const { sandbox, run, folder, home } = options;
  const shell = (line: string): Pick<Stop, "shown" | "argv"> => ({ shown: line, argv: ["sh", "-c", line] });
  const stops: Stop[] = [
    {
      claim: "it is an ordinary user, even if you are root",
      ...shell("id"),
      holds: ({ stdout, exitCode }) => exitCode === 0 && !stdout.includes("uid=0("),
    },
    { claim: "your passwords are not visible", ...shell("cat /etc/shadow"), holds: ({ exitCode }) => exitCode !== 0 },
    {
      claim: "nor are your keys, your settings or your history",
      ...shell(`ls -d ${["/.ssh", "/.config", "/.bashrc", "/.bash_history"].map((name) => `${home}${name}`).join(" ")}`),
      holds: ({ stdout, exitCode }) => stdout === "" && exitCode !== 0,
    },
    {
      claim: "nor is any file next to the workspace",
      ...shell(`cat ${folder.secret}`),
      holds: ({ stdout }) => !stdout.includes("secret\n"),
    },
    {
      claim: "it sees only its own processes",
      ...shell("ls /proc | grep -c '^[0-9]'"),
      holds: ({ stdout }) => Number(stdout) > 0 && Number(stdout) < 10,
    },
    {
      claim: "it has no network except loopback",
      ...shell("cat /proc/net/dev | tail -n +3"),
      holds: ({ stdout }) => stdout.split("\n").filter((line) => line.trim() !== "" && !line.trim().startsWith("lo:")).length === 0,
    },
    {
      claim: "it can change the files, and yours stay unchanged",
      ...shell("cat notes.txt; echo changed > notes.txt; touch new; ls"),
      holds: async ({ stdout }) => stdout.includes("written outside") && (await folder.unchanged()),
    },
    {
      claim: "a command that runs too long is stopped, and you learn why",
      ...shell("sleep 60"),
      timeoutMs: 300,
      holds: ({ ended }) => ended === "timed out",
    },
  ];
  if (sandbox.info.limits.memoryBytes !== null) {
    stops.push({
      claim: "a command that takes too much memory is killed, and nothing else is",
      ...shell("tail /dev/zero"),
      holds: async ({ ended, exitCode }) => (ended.includes("memory") || exitCode === 137) && (await run(["/bin/true"])).exitCode === 0,
    });
  }
  return stops;
}

/** Runs a command until it ends and returns the start of its output. */
export type RunQuietly = (argv: readonly string[], timeoutMs?: number) => Promise<DemoResult>;

export function quietly({ runCommand }: SandboxTools, sandbox: HeldSandbox): RunQuietly {
  return async (argv, timeoutMs = HANGS_AFTER_MS) => {
    const { ended, stdout, stderr } = await runCommand(sandbox, { argv, timeoutMs, collectBytesMax: OUTPUT_SHOWN_MAX });
    return { stdout, stderr, exitCode: ended.kind === "exited" ? ended.exitCode : null, ended: describeEnd(ended) };
  };
}

function describeEnd(ended: Ended): string {
  switch (ended.kind) {
    case "exited":
      return `exited ${ended.exitCode}`;
    case "timedOut":
      return "timed out";
    case "killed":
      return `killed for ${ended.why}`;
    default:
      return ended.kind;
  }
}
