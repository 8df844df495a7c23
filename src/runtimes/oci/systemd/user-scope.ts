import { CaissonError } from "../../../contract/error.ts";
import { busItself, connectDbus, type DbusConnection, type DbusEndpoint } from "./dbus-connection.ts";
import type { DbusValue } from "./dbus-value.ts";
import type { UserSystemd } from "./user-systemd.ts";

export const SCOPE_SLICE = "app.slice";
const systemd = { path: "/org/freedesktop/systemd1", interface: "org.freedesktop.systemd1.Manager" } as const;
const SYSTEMD_NAME = "org.freedesktop.systemd1";
/** All of it is one call and a move between groups; a machine under load may take its time over that. */
const SCOPE_TIMEOUT_MS = 20_000;
/** When the user's systemd ends, on a logout or a shutdown, a sandbox has this long before it is killed. */
const STOP_TIMEOUT_US = 5_000_000n;

export interface ScopeRequest {
  unit: string;
  pid: number;
  uid: number;
  description: string;
  timeoutMs?: number;
}

/**
 * Has the user's systemd make a scope with the process in it, whose control groups below are the caller's to arrange,
 * and resolves when it is there. Only systemd can do that for a process of a login session: no user may move one from
 * there. The scope goes when its last process does. Throws `unavailable` (`details.errorName` where systemd refused),
 * `timeout`.
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
  throw unreachable ?? new CaissonError("unavailable", "the user's systemd listens nowhere");
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
    // One that has failed is as gone as one that ended well.
    ["CollectMode", { signature: "s", value: "inactive-or-failed" }],
    ["TimeoutStopUSec", { signature: "t", value: STOP_TIMEOUT_US }],
  ];
}
