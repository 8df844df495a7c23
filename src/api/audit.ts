import type { RouteName } from "../contract/api/paths.ts";
import type { Route } from "../contract/api/route.ts";
import type { AuditedCall } from "../contract/audit-event.ts";
import { CaissonError } from "../contract/error.ts";
import type { Caller } from "./call.ts";
import { createRates } from "./rates.ts";

/** Of one address, calls that were not let in and are put down; of what comes beyond them nothing new is learned. */
const REFUSALS_PER_MINUTE = 60;
const VALUE_LENGTH_MAX = 200;
const VALUES_MAX = 20;

/** Where calls are put down. */
export interface AuditSink {
  made(call: AuditedCall): Promise<void>;
  failed(call: AuditedCall, code: string): Promise<void>;
}

/** A call as far as it is known. */
export interface SeenCall {
  /** Null for one that is not in the table of routes. */
  name: RouteName | null;
  method: string;
  /** Null before it was let in. */
  caller: Caller | null;
  /** Null by the socket. */
  address: string | null;
  params: Readonly<Record<string, string>>;
}

export interface Audit {
  /** Before the call has any effect. Throws what keeps it from being put down: then it must not have one. */
  made(call: SeenCall, options: { route: Route; body: unknown }): Promise<void>;
  /** Never throws. */
  failed(call: SeenCall, error: unknown): Promise<void>;
}

/** Puts down who asked for what: calls that change something, and those that were not let in. */
export function createAudit({ sink, onDefect }: { sink: AuditSink; onDefect: (error: unknown) => void }): Audit {
  const refusals = createRates({ perMinute: REFUSALS_PER_MINUTE });
  return {
    async made(call, { route, body }) {
      // What is said from inside is in the log of the sandbox, or of its run.
      if (call.method === "GET" || route.scope === "sandbox") return;
      await sink.made(audited(call, route.audited?.(body as never) ?? {}));
    },
    async failed(call, error) {
      const code = error instanceof CaissonError ? error.code : "internal";
      const wasLetIn = call.caller !== null && code !== "denied";
      if (wasLetIn && (call.caller?.kind === "sandbox" || call.method === "GET" || call.name === null)) return;
      if (!wasLetIn && !refusals.take(call.address ?? "").ok) return;
      await sink.failed(audited(call, {}), code).catch(onDefect);
    },
  };
}

function audited({ name, caller, address, params }: SeenCall, more: Readonly<Record<string, string | undefined>>): AuditedCall {
  const named = Object.entries({ ...params, ...more }).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const subject = Object.fromEntries(named.slice(0, VALUES_MAX).map(([key, value]) => [key, value.slice(0, VALUE_LENGTH_MAX)]));
  if (caller === null) return { action: name, caller: null, token: null, owner: null, address, subject };
  if (caller.kind === "socket") return { action: name, caller: "user", token: null, owner: null, address, subject };
  if (caller.kind === "sandbox") return { action: name, caller: `sandbox ${caller.sandbox}`, token: null, owner: null, address, subject };
  const { id, name: tokenName, owner } = caller.token;
  return { action: name, caller: `token ${tokenName}`, token: id, owner, address, subject };
}
