import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "../client/connect.ts";
import { socketFetch } from "../client/socket-fetch.ts";
import { CaissonError } from "../contract/error/error.ts";
import { ifErrnoSync } from "../lib/failures.ts";
import { shortSocketPath } from "../lib/short-socket-path.ts";
import type { AttackedStation } from "../suites/station-attack/station-claim.ts";
import { composeBackground } from "./server.ts";

const SECRET = "ATTACK_OPERATOR";
const SECRET_VARIABLE = "ATTACK_OPERATOR_VALUE";

const END_MS = 10_000;

export interface AttackedStationParts {
  program: readonly [string, ...string[]];
  env: Readonly<Record<string, string | undefined>>;
}

/**
 * Starts a separate station on a free port, with its own state folder, configuration and home. Disposing of it removes
 * all of that. The user's own station is not touched.
 */
export async function startAttackedStation({ program, env }: AttackedStationParts): Promise<AttackedStation & AsyncDisposable> {
  const base = await mkdtemp(join(tmpdir(), "caisson-attack-"));
  const stateDir = join(base, "state");
  const operatorValue = `operator-${randomUUID()}`;
  const secrets = { [SECRET]: { from: { env: SECRET_VARIABLE }, hosts: ["example.com"] } };
  try {
    for (const name of ["state", "home", "config", "config/caisson"]) await mkdir(join(base, name), { mode: 0o700 });
    await writeFile(join(base, "config", "caisson", "config.json"), JSON.stringify({ secrets }), { mode: 0o600 });
    const server = composeBackground({
      stateDir,
      program,
      env: { ...env, HOME: join(base, "home"), XDG_CONFIG_HOME: join(base, "config"), [SECRET_VARIABLE]: operatorValue },
    });
    const { status, socketPath, shutDown } = await server.startDetached(["up", "--port", "0", "--no-token", "--ready", "0"]);
    const { path, close } = shortSocketPath(socketPath);
    const client = connect({ url: "http://station", fetch: socketFetch(path) });
    if (status.url === null) throw new CaissonError("internal", "the station to attack has no port");
    let count = 0;
    return {
      url: status.url,
      stateDir,
      operatorSecret: SECRET,
      operatorValue,
      async token(options) {
        count += 1;
        const { id, token } = await client.tokens.create({ name: `attack-${count}`, ...options });
        return { id, token };
      },
      async revoke(id) {
        await client.tokens.revoke(id);
      },
      code: () => client.codes.create({ owner: "ada", scope: "run" }),
      tokenNames: async () => (await client.tokens.list()).map(({ name }) => name),
      askStatus: (url, token) => connect({ url, token }).status(),
      async [Symbol.asyncDispose]() {
        try {
          // After a successful attack the station may be unable to end on its own.
          await Promise.race([shutDown({ drain: false }), delay(END_MS, undefined, { ref: false }).then(() => kill(status.pid))]);
        } catch {
          kill(status.pid);
        }
        close();
        await rm(base, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await rm(base, { recursive: true, force: true });
    throw error;
  }
}

function kill(pid: number): void {
  ifErrnoSync(() => process.kill(pid, "SIGKILL"), ["ESRCH"], false);
}
