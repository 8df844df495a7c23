import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();

/**
 * Puts the state folder on a small disk in a separate mount namespace, so nothing outside fills up. The output of each
 * command follows a line with its name.
 */
const onSmallDisk = (command: string, model: string) => `
set -e
mount -t tmpfs -o size=6m,mode=700 tmpfs "$1"
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

test("on a full or read-only disk, reads work, and other commands fail with a hint", { timeout: 120_000 }, async () => {
  const model = await cli.script({ turns: [{ say: "Done." }] });
  const script = onSmallDisk(cli.commandLine(), model);
  const { stdout } = await promisify(execFile)("unshare", ["-m", "sh", "-c", script, "sh", await cli.folder()], {
    env: cli.environment({}),
    cwd: cli.work(),
  });
  const [, make, fullPs, fullLogs, fullExec, roPs, roSessions, roExec] = stdout.split(/^== /m);
  expect(make).toMatch(/done after 1 step/);
  for (const listing of [fullPs, roPs]) expect(listing).toMatch(/coder +done +1 [\s\S]*the task/);
  expect(fullLogs).toMatch(/Done\.\ndone after 1 step/);
  expect(roSessions).toMatch(/run_\w+ +run +free/);
  expect(fullExec).toMatch(/caisson: no space left[\s\S]*hint: Free some space[\s\S]*exit 125/);
  expect(roExec).toMatch(/caisson: the file system is read-only[\s\S]*hint: [\s\S]*exit 125/);
  expect(stdout).not.toMatch(/defect/);
});

/** A station on a small disk that fills up and then has space again. */
const stationOnSmallDisk = (command: string, model: string) => `
set -e
mount -t tmpfs -o size=16m,mode=700 tmpfs "$1"
export CAISSON_HOME="$1/state"
call() { curl -sS --unix-socket "$CAISSON_HOME/station/socket" "$@"; }
begin() { call http://station/v1/runs -H "content-type: application/json" -d '{"task": "the task", "name": "'"$1"'", "model": "${model}"}'; echo; }
until_done() { for i in $(seq 200); do call "http://station/v1/runs/$1" | grep -q '"finish":"done"' && return 0; sleep 0.1; done; return 1; }
${command} up --detach --port 0 --no-token 2>/dev/null
begin first >/dev/null && until_done first
dd if=/dev/zero of="$1/fill" bs=4k 2>/dev/null || true
echo "== refused"; begin second
echo "== read"; call http://station/v1/runs/first; echo
rm "$1/fill"
echo "== again"; begin third; until_done third && echo it is done
${command} down 2>/dev/null
`;

test("a station on a full disk answers, and refuses new work until there is space", {
  timeout: 120_000,
}, async () => {
  const model = await cli.script({ turns: [{ say: "Done." }] });
  const script = stationOnSmallDisk(cli.commandLine(), model);
  const { stdout } = await promisify(execFile)("unshare", ["-m", "sh", "-c", script, "sh", await cli.folder()], {
    env: cli.environment({}),
    cwd: cli.work(),
  });
  const [, refused = "", read, again] = stdout.split(/^== /m);
  expect(JSON.parse(refused.slice("refused".length))).toMatchObject({
    status: 507,
    code: "no_space",
    hint: expect.stringMatching(/space/),
  });
  expect(read).toMatch(/"name":"first".*"finish":"done"/);
  expect(again).toMatch(/it is done/);
});
