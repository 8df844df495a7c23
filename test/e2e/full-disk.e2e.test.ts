import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();

/** A state folder on a disk of its own, in a mount namespace of its own, so that nothing outside is filled; each command's words after its name. */
const onSmallDisk = (command: string, model: string) => `
set -e
mount -t tmpfs -o size=6m tmpfs "$1"
export CAISSON_HOME="$1/state"
said() { echo "== $*"; shift; ${command} "$@" 2>&1 || echo "exit $?"; }
said make run "the task" --model ${model}
dd if=/dev/zero of="$1/fill" bs=4k 2>/dev/null || true
said full ps
said full logs
said full exec -- true
rm "$1/fill"
mount -o remount,ro "$1"
said ro ps
said ro session ls
said ro exec -- true
`;

test("on a full or read-only state folder what can be read is shown, and the rest is told in words", { timeout: 120_000 }, async () => {
  const model = await cli.script({ turns: [{ say: "Done." }] });
  const script = onSmallDisk(cli.commandLine(), model);
  const { stdout } = await promisify(execFile)("unshare", ["-m", "sh", "-c", script, "sh", await cli.folder()], {
    env: cli.environment({}),
    cwd: cli.work(),
  });
  const [, make, fullPs, fullLogs, fullExec, roPs, roSessions, roExec] = stdout.split(/^== /m);
  expect(make).toMatch(/done after 1 step/);
  for (const shown of [fullPs, roPs]) expect(shown).toMatch(/coder +done +1 [\s\S]*the task/);
  expect(fullLogs).toMatch(/Done\.\ndone after 1 step/);
  expect(roSessions).toMatch(/run_\w+ +run +free/);
  expect(fullExec).toMatch(/caisson: there is no space left[\s\S]*hint: Free some space[\s\S]*exit 125/);
  expect(roExec).toMatch(/caisson: the file system is read-only[\s\S]*hint: [\s\S]*exit 125/);
  expect(stdout).not.toMatch(/defect/);
});
