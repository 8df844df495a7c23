import { CaissonError } from "../../../contract/error/error.ts";
import { busItself, connectDbus, type DbusConnection, type DbusEndpoint } from "./dbus-connection.ts";
import type { DbusValue } from "./dbus-value.ts";
import type { UserSystemd } from "./user-systemd.ts";

export const SCOPE_SLICE = "app.slice";
const systemd = { path: "/org/freedesktop/systemd1", interface: "org.freedesktop.systemd1.Manager" } as const;
const SYSTEMD_NAME = "org.freedesktop.systemd1";
/** Covers one call and a move between groups, which can take long on a loaded machine. */
const SCOPE_TIMEOUT_MS = 20_000;
/** How long a sandbox may take to end before it is killed, after the user's systemd ends on a logout or a shutdown. */
const STOP_TIMEOUT_US = 5_000_000n;

export interface ScopeRequest {
  unit: string;
  pid: number;
  uid: number;
  description: string;
  timeoutMs?: number;
}

/**
 * Asks the user's systemd for a scope with the process in it, and resolves when the scope exists. The caller arranges
 * the control groups below it. Only systemd can do this for a process of a login session, because users cannot move
 * processes out of their session. The scope ends with its last process. Throws `unavailable` (with `details.errorName`
 * if systemd refused), `timeout`.
 */
export async function startScope(manager: Pick<UserSystemd, "endpoints">, request: ScopeRequest): Promise<void> {
  let unreachable: unknown;
  for (const endpoint of manager.endpoints) {
    let connection: DbusConnection;
    try {
      connection = await connectDbus({ endpoint, uid: request.uid, timeoutMs: request.timeoutMs ?? SCOPE_TIMEOUT_MS });
    } catch (error) {
      unreachable = error;
      continue;
    }
    using open = connection;
    return await askForScope(open, endpoint, request);
  }
  throw unreachable ?? new CaissonError("unavailable", "the user's systemd does not listen anywhere");
}

async function askForScope(connection: DbusConnection, endpoint: DbusEndpoint, request: ScopeRequest): Promise<void> {
  const destination = endpoint.direct ? undefined : SYSTEMD_NAME;
  if (!endpoint.direct) {
    const rule = `type='signal',sender='${SYSTEMD_NAME}',interface='${systemd.interface}',member='JobRemoved',path='${systemd.path}'`;
    await connection.call({ ...busItself, member: "AddMatch", signature: "s", body: [rule] });
  }
  const [job] = await connection.call({
    ...systemd,
    destination,
    member: "StartTransientUnit",
    signature: "ssa(sv)a(sa(sv))",
    body: [request.unit, "fail", scopeProperties(request), []],
  });
  const removed = await connection.signal(({ member, body }) => member === "JobRemoved" && body[1] === job);
  const result = removed.body[3];
  if (result !== "done") throw new CaissonError("unavailable", `systemd could not start ${request.unit}: ${String(result)}`);
}

function scopeProperties({ pid, description }: ScopeRequest): DbusValue[] {
  return [
    ["Description", { signature: "s", value: description }],
    ["Slice", { signature: "s", value: SCOPE_SLICE }],
    ["PIDs", { signature: "au", value: [pid] }],
    ["Delegate", { signature: "b", value: true }],
    // systemd then removes a failed scope like any other that has ended.
    ["CollectMode", { signature: "s", value: "inactive-or-failed" }],
    ["TimeoutStopUSec", { signature: "t", value: STOP_TIMEOUT_US }],
  ];
}
