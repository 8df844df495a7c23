import { spawn } from "node:child_process";
import { describe, expect, test } from "vitest";
import { startTerminal, type Terminal } from "../support/tmux.ts";
import { expectNothingLeftAfterEach, launcher, until, useCaisson } from "./caisson-process.ts";

const { sandboxes, environment, base } = useCaisson();
expectNothingLeftAfterEach(sandboxes);

const inTerminal = (): Promise<Terminal> => startTerminal({ cwd: base(), env: environment() });

describe("a terminal", () => {
  test("has the outer terminal's size with exec --tty, and follows its changes", async () => {
    await using terminal = await inTerminal();
    const { type, resize, see } = terminal;
    await type(
      `${launcher} exec --tty -- sh -c 'test -t 0 && echo is-a-tty; stty size; trap "stty size; exit" WINCH; while :; do sleep 0.05; done'\n`,
    );
    await see(/is-a-tty\n30 100/);
    await resize(90, 25);
    await see(/25 90/);
    await until("the end", () => sandboxes().length === 0);
  });

  test("passes Ctrl-C inside, and is restored afterwards", async () => {
    await using terminal = await inTerminal();
    const { type, see } = terminal;
    await type(
      `stty -a > before; ${launcher} exec --tty -- sh -c 'trap "echo caught; exit 5" INT; echo up; while :; do sleep 0.05; done'; echo code=$?; stty -a > after; cmp before after && echo same\n`,
    );
    await see(/^up$/m);
    await type("\x03");
    await see(/caught[\s\S]*code=5[\s\S]*same/);
  });

  test("ends the command with 130 on Ctrl-C without --tty", async () => {
    await using terminal = await inTerminal();
    const { type, see } = terminal;
    await type(`${launcher} exec -- sh -c 'echo up; sleep 300'; echo code=$?\n`);
    await see(/^up$/m);
    await type("\x03");
    await see(/code=130/);
  });

  test("passes input only with -i or -t, so a program that reads it all does not hang", async () => {
    await using terminal = await inTerminal();
    const { type, see } = terminal;
    await type(`${launcher} exec -- sh -c 'cat; echo read-all'; echo code=$?\n`);
    await see(/^read-all\ncode=0/m);
    await type(`${launcher} exec -i -- sh -c 'echo up; read line; echo "got $line"; test -t 0 || echo no-tty'; echo second=$?\n`);
    await see(/^up$/m);
    await type("words\n");
    await see(/got words\nno-tty\nsecond=0/);
    await type(`${launcher} exec -it -- sh -c 'test -t 0 && echo is-a-tty'\n`);
    await see(/^is-a-tty/m);
    await until("the end", () => sandboxes().length === 0);
  });

  test("works interactively with `caisson shell`", async () => {
    await using terminal = await inTerminal();
    const { type, see } = terminal;
    await type(`${launcher} shell\n`);
    await see((text) => sandboxes().length === 1 && /[$#] *$/m.test(text));
    await type("echo $((6*7)) $(id -u)\n");
    await see(/42 1000/);
    await type("exit 9\n");
    await until("the end", () => sandboxes().length === 0);
    await type("echo code=$?\n");
    await see(/code=9/);
  });

  test("ends the command and its sandbox when it closes", async () => {
    const child = spawn("script", ["-qec", `${launcher} exec --tty -- sh -c 'echo up; sleep 300'`, "/dev/null"], {
      cwd: base(),
      env: environment(),
      stdio: ["pipe", "pipe", "ignore"],
    });
    await new Promise((resolve) => child.stdout.on("data", (chunk: Buffer) => chunk.includes("up") && resolve(null)));
    expect(sandboxes().length).toBe(1);
    child.kill("SIGKILL");
    await until("the sandbox's end", () => sandboxes().length === 0);
  });
});
