import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

export interface Terminal extends AsyncDisposable {
  /** Types characters literally. A line break is the Enter key. */
  type(text: string): Promise<void>;
  /** Presses keys by tmux's names: `Enter`, `Up`, `Tab`, `C-c`, `M-Enter`. */
  press(...keys: string[]): Promise<void>;
  /** Pastes as a terminal does, with marks around the text for a program that requested them. */
  paste(text: string): Promise<void>;
  /** Returns the text on the screen without colors, trailing spaces or trailing empty rows. */
  screen(): Promise<string>;
  /** Returns the same, after everything that has scrolled off the top. */
  history(): Promise<string>;
  /** Returns the position of the cursor, counted from 0. */
  cursor(): Promise<{ column: number; row: number }>;
  resize(cols: number, rows: number): Promise<void>;
  /** Resolves with the text when the history matches. Throws with the history after a timeout. */
  see(pattern: RegExp | ((text: string) => boolean)): Promise<string>;
  /** Does the same for the visible screen only. */
  seeOnScreen(pattern: RegExp | ((text: string) => boolean)): Promise<string>;
}

export interface TerminalOptions {
  cwd: string;
  env: NodeJS.ProcessEnv;
  cols?: number;
  rows?: number;
  /** The program and its arguments. A shell by default. */
  argv?: readonly string[];
}

/** Bounds hangs. */
const SEE_MS_MAX = 30_000;
const LOOK_MS = 25;
const HISTORY_ROWS = 2000;
/** The time for programs to end with their terminal. */
const END_MS_MAX = 10_000;

/** Starts a real terminal in a separate tmux. Disposing of it ends everything that was started in it. */
export async function startTerminal(options: TerminalOptions): Promise<Terminal> {
  const socket = `caisson-test-${randomUUID().slice(0, 8)}`;
  // With `TMUX`, ours would become a client of a tmux that the tests may run in.
  const { TMUX: _, TMUX_PANE: _pane, ...inherited } = options.env;
  const env = { ...inherited, TERM: "xterm", PS1: "$ ", LC_ALL: "C.UTF-8" };
  const tmux = async (...argv: string[]): Promise<string> => {
    const run = promisify(execFile)("tmux", ["-L", socket, "-f", "/dev/null", ...argv], { encoding: "utf8", cwd: options.cwd, env });
    return (await run).stdout;
  };
  const { cols = 100, rows = 30, argv = ["sh"] } = options;
  const size = ["-x", String(cols), "-y", String(rows)];
  const started = await tmux("new-session", "-d", "-P", "-F", "#{pane_pid} #{socket_path}", ...size, "--", ...argv);
  const [leader = "", socketPath = ""] = started.trim().split(" ");
  const capture = async (...from: string[]) => (await tmux("capture-pane", "-p", ...from)).replace(/\s+$/, "\n");
  const screen = () => capture();
  const history = () => capture("-S", `-${HISTORY_ROWS}`);
  // Before its first prompt, a shell echoes input above the prompt, and then again or not at all.
  if (options.argv === undefined) await untilSeen(/^[$#]/m, screen);
  return {
    screen,
    history,
    type: async (text) => void (await tmux("send-keys", "-l", "--", text)),
    press: async (...keys) => void (await tmux("send-keys", "--", ...keys)),
    async paste(text) {
      await tmux("set-buffer", "--", text);
      await tmux("paste-buffer", "-p", "-d");
    },
    async cursor() {
      const [column, row] = (await tmux("display-message", "-p", "#{cursor_x} #{cursor_y}")).split(" ").map(Number);
      return { column: column ?? 0, row: row ?? 0 };
    },
    resize: async (newCols, newRows) => void (await tmux("resize-window", "-x", String(newCols), "-y", String(newRows))),
    see: (pattern) => untilSeen(pattern, history),
    seeOnScreen: (pattern) => untilSeen(pattern, screen),
    async [Symbol.asyncDispose]() {
      await tmux("kill-server");
      await rm(socketPath, { force: true });
      await untilGone(Number(leader));
    },
  };
}

/** Polls, because there is no event for what another program draws. */
async function untilSeen(pattern: RegExp | ((text: string) => boolean), look: () => Promise<string>): Promise<string> {
  const matches = pattern instanceof RegExp ? (text: string) => pattern.test(text) : pattern;
  for (const deadline = Date.now() + SEE_MS_MAX; ; await sleep(LOOK_MS)) {
    const text = await look();
    if (matches(text)) return text;
    if (Date.now() > deadline) throw new Error(`waited ${SEE_MS_MAX} ms in vain for ${pattern} on the screen:\n${text}`);
  }
}

/**
 * Waits for the programs in a terminal's session to end. Processes in other sessions are up to the programs that
 * started them.
 */
async function untilGone(leader: number): Promise<void> {
  const deadline = Date.now() + END_MS_MAX;
  for (let left = processesOf(leader); left.length > 0; left = processesOf(leader)) {
    if (Date.now() > deadline) {
      for (const pid of left) process.kill(pid, "SIGKILL");
      throw new Error(`these did not end with their terminal, and were killed: ${left.join(", ")}`);
    }
    await sleep(LOOK_MS);
  }
}

function processesOf(session: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const [state, , , sid] = readFileSync(`/proc/${pid}/stat`, "latin1")
          .replace(/^.*\) /s, "")
          .split(" ");
        return state !== "Z" && Number(sid) === session;
      } catch {
        // The process has just ended.
        return false;
      }
    });
}
