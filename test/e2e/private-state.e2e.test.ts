import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();

const shell = async (script: string, { unshared = false } = {}) => {
  const argv = ["sh", "-c", script, "sh", await cli.folder()];
  const [program = "", ...rest] = unshared ? ["unshare", "-m", ...argv] : argv;
  return (await promisify(execFile)(program, rest, { env: cli.environment({}), cwd: cli.work() })).stdout;
};

/** Runs a station and a command in a state folder that every user may read, then lists the mode of each file. */
const inOpenFolder = (command: string) => `
umask 022
mkdir -m 755 "$1/state"
export CAISSON_HOME="$1/state"
: > "$1/state/log.db"
${command} up --detach --port 0 --no-token >/dev/null 2>&1
curl -sS --unix-socket "$CAISSON_HOME/station/socket" -H "content-type: application/json" -H "idempotency-key: k" http://station/v1/webhooks \
  -d '{"name": "hook", "url": "https://hooks.example.test/"}' >/dev/null
${command} token create one >/dev/null
stat -c "%a %F" "$1/state"
find "$1/state" -path "*/templates" -prune -o -type f \\( -name "*.db*" -o -name "*lock" \\) -printf "%m %P\\n"
${command} down >/dev/null 2>&1
`;

test("the state folder and its databases are private, whatever the umask", async () => {
  const [folder, ...files] = (await shell(inOpenFolder(cli.commandLine()))).trim().split("\n");
  expect(folder).toBe("700 directory");
  const names = files.map((line) => line.replace(/^\d+ /, ""));
  expect(names).toEqual(
    expect.arrayContaining(["log.db", "log.db-wal", "log.db-shm", "webhooks.db", "station/answers.db", "station/lock"]),
  );
  expect(files.filter((line) => !line.startsWith("600 "))).toEqual([]);
});

const refusedFolders = (command: string) => `
mkdir -m 755 "$1/foreign"; chown 12345 "$1/foreign"
mkdir -m 1777 "$1/shared"; : > "$1/shared/something"
for each in foreign shared; do CAISSON_HOME="$1/$each" ${command} ps 2>&1 || echo "exit $?"; stat -c "%a" "$1/$each"; done
`;

test("refuses a state folder that others can access and that it may not restrict", async () => {
  const output = await shell(refusedFolders(cli.commandLine()));
  expect(output.match(/other users of this machine have access[\s\S]*?hint: .*chmod 700[\s\S]*?exit 125/g)).toHaveLength(2);
  expect(output).toMatch(/^755$/m);
  expect(output).toMatch(/^1777$/m);
});

const readOnlyHome = (command: string) => `
mount -t tmpfs tmpfs "$1"
mount -o remount,ro "$1"
unset CAISSON_HOME XDG_CONFIG_HOME XDG_STATE_HOME
export HOME="$1"
${command} ps 2>&1 || echo "exit $?"
`;

test("reports a home on a read-only file system, with a hint", async () => {
  const output = await shell(readOnlyHome(cli.commandLine()), { unshared: true });
  expect(output).toMatch(/the file system is read-only[\s\S]*hint: Set CAISSON_HOME[\s\S]*exit 125/);
  expect(output).not.toMatch(/defect/);
});
