import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { expectNothingLeftAfterEach, launcher, until, useCaisson } from "./caisson-process.ts";

const { sandboxes, home, base } = useCaisson();
expectNothingLeftAfterEach(sandboxes);

/** A real terminal, by tmux, with a shell in it that we type into. */
async function withTerminal(
  use: (terminal: { type: (text: string) => void; screen: () => string; resize: (cols: number, rows: number) => void }) => Promise<void>,
) {
  const socket = `caisson-test-${randomUUID().slice(0, 8)}`;
  const tmux = (...argv: string[]) =>
    execFileSync("tmux", ["-L", socket, "-f", "/dev/null", ...argv], {
      encoding: "utf8",
      cwd: base(),
      env: { ...process.env, CAISSON_HOME: home(), TERM: "xterm", PS1: "$ " },
    });
  tmux("new-session", "-d", "-x", "100", "-y", "30", "sh");
  try {
    await use({
      type: (text) => void tmux("send-keys", "-l", text),
      screen: () => tmux("capture-pane", "-p", "-S", "-200"),
      resize: (cols, rows) => void tmux("resize-window", "-x", String(cols), "-y", String(rows)),
    });
  } finally {
    tmux("kill-server");
  }
}

describe("a terminal", () => {
  test("exec --tty gives one, of our size, and follows when ours changes", async () => {
    await withTerminal(async ({ type, screen, resize }) => {
      type(
        `${launcher} exec --tty -- sh -c 'test -t 0 && echo is-a-tty; stty size; trap "stty size; exit" WINCH; while :; do sleep 0.05; done'\n`,
      );
      await until("the first size", () => /is-a-tty\n30 100/.test(screen()), 30_000);
      resize(90, 25);
      await until("the second size", () => /25 90/.test(screen()), 30_000);
      await until("the end", () => sandboxes().length === 0);
    });
  });

  test("Ctrl-C goes inside, and the terminal is as it was afterwards", async () => {
    await withTerminal(async ({ type, screen }) => {
      type(
        `stty -a > before; ${launcher} exec --tty -- sh -c 'trap "echo caught; exit 5" INT; echo up; while :; do sleep 0.05; done'; echo code=$?; stty -a > after; cmp before after && echo same\n`,
      );
      await until("the command is up", () => /^up/m.test(screen()), 30_000);
      type("\x03");
      await until("its end", () => /caught[\s\S]*code=5[\s\S]*same/.test(screen()), 30_000);
    });
  });

  test("Ctrl-C without --tty ends the command: 130", async () => {
    await withTerminal(async ({ type, screen }) => {
      type(`${launcher} exec -- sh -c 'echo up; sleep 300'; echo code=$?\n`);
      await until("the command is up", () => /^up/m.test(screen()), 30_000);
      type("\x03");
      await until("its end", () => /code=130/.test(screen()), 30_000);
    });
  });

  test("what is typed is passed on with -i or -t only: a program that reads its input to the end does not wait for ever", async () => {
    await withTerminal(async ({ type, screen }) => {
      type(`${launcher} exec -- sh -c 'cat; echo read-all'; echo code=$?\n`);
      await until("its end", () => /^read-all\ncode=0/m.test(screen()), 30_000);
      type(`${launcher} exec -i -- sh -c 'echo up; read line; echo "got $line"; test -t 0 || echo no-tty'; echo second=$?\n`);
      await until("the second command is up", () => /^up/m.test(screen()), 30_000);
      type("words\n");
      await until("what was typed", () => /got words\nno-tty\nsecond=0/.test(screen()), 30_000);
      type(`${launcher} exec -it -- sh -c 'test -t 0 && echo is-a-tty'\n`);
      await until("a terminal", () => /^is-a-tty/m.test(screen()), 30_000);
      await until("the end", () => sandboxes().length === 0);
    });
  });

  test("shell is one to work in", async () => {
    await withTerminal(async ({ type, screen }) => {
      type(`${launcher} shell\n`);
      await until(
        "a prompt",
        () =>
          sandboxes().length === 1 &&
          screen()
            .split("\n")
            .filter((line) => /[$#] *$/.test(line)).length > 0,
        30_000,
      );
      type("echo $((6*7)) $(id -u)\n");
      await until("an answer", () => /42 1000/.test(screen()), 30_000);
      type("exit 9\n");
      await until("the end", () => sandboxes().length === 0, 30_000);
      type("echo code=$?\n");
      await until("the exit code", () => /code=9/.test(screen()), 30_000);
    });
  });

  test("a terminal that goes away takes the command and the sandbox with it", async () => {
    const child = spawn("script", ["-qec", `${launcher} exec --tty -- sh -c 'echo up; sleep 300'`, "/dev/null"], {
      cwd: base(),
      env: { ...process.env, CAISSON_HOME: home() },
      stdio: ["pipe", "pipe", "ignore"],
    });
    await new Promise((resolve) => child.stdout.on("data", (chunk: Buffer) => chunk.includes("up") && resolve(null)));
    expect(sandboxes().length).toBe(1);
    child.kill("SIGKILL");
    await until("the sandbox's end", () => sandboxes().length === 0);
  });
});
