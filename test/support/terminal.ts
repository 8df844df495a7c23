import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";

export interface Terminal {
  type(text: string): void;
  /** What is and was on the screen, without colours. */
  screen(): string;
  resize(cols: number, rows: number): void;
}

/** A real terminal, by tmux, with a shell in it that we type into. */
export async function withTerminal(
  options: { cwd: string; env: NodeJS.ProcessEnv; cols?: number; rows?: number },
  use: (terminal: Terminal) => Promise<void>,
): Promise<void> {
  const socket = `caisson-test-${randomUUID().slice(0, 8)}`;
  const env = { ...options.env, TERM: "xterm", PS1: "$ " };
  const tmux = (...argv: string[]) =>
    execFileSync("tmux", ["-L", socket, "-f", "/dev/null", ...argv], { encoding: "utf8", cwd: options.cwd, env });
  tmux("new-session", "-d", "-x", String(options.cols ?? 100), "-y", String(options.rows ?? 30), "sh");
  try {
    await use({
      type: (text) => void tmux("send-keys", "-l", text),
      screen: () => tmux("capture-pane", "-p", "-S", "-500"),
      resize: (cols, rows) => void tmux("resize-window", "-x", String(cols), "-y", String(rows)),
    });
  } finally {
    tmux("kill-server");
  }
}
