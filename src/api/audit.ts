import type { AuditedCall } from "../contract/audit/audit-event.ts";
import { type AuditSubject, type AuditText, auditName, auditPath } from "../contract/audit/audit-text.ts";
import { CaissonError } from "../contract/error/error.ts";
import type { Caller } from "./call.ts";
import { createRates } from "./rates.ts";

/** How many denied calls of one address are recorded per minute; more would reveal nothing new. */
const REFUSALS_PER_MINUTE = 60;
const VALUE_LENGTH_MAX = 200;
const VALUES_MAX = 20;

/** The store that records calls. */
export interface AuditSink {
  recordCall(call: AuditedCall): Promise<void>;
  recordFailure(call: AuditedCall, code: string): Promise<void>;
}

/** A call, as much as is known about it. */
export interface SeenCall {
  /** The name in the route or stream tables; null for a call that is in neither. */
  action: string | null;
  /** Whether the call may change something. */
  changes: boolean;
  /** Null until the caller is admitted. */
  caller: Caller | null;
  /** Null for a call over the socket. */
  address: string | null;
  params: Readonly<Record<string, string>>;
}

export interface Audit {
  /** Records the call before it has any effect. If this throws, the call must not be made. */
  record(call: SeenCall, subject?: AuditSubject): Promise<void>;
  /** Records a failure. Never throws. */
  recordFailure(call: SeenCall, error: unknown): Promise<void>;
}

/** Records who requested what: calls that change something, and those that were denied access. */
export function createAudit({ sink, onDefect }: { sink: AuditSink; onDefect: (error: unknown) => void }): Audit {
  const refusals = createRates({ perMinute: REFUSALS_PER_MINUTE });
  return {
    async record(call, subject = {}) {
      if (call.changes) await sink.recordCall(toAuditedCall(call, subject));
    },
    async recordFailure(call, error) {
      // The call was refused early, to save writes like this one.
      if (error instanceof CaissonError && error.details?.overload === true) return;
      const code = error instanceof CaissonError ? error.code : "internal";
      const wasLetIn = call.caller !== null && code !== "denied";
      if (wasLetIn && (call.caller?.kind === "sandbox" || !call.changes || call.action === null)) return;
      if (!wasLetIn && !refusals.take(call.address ?? "").ok) return;
      await sink.recordFailure(toAuditedCall(call, {}), code).catch(onDefect);
    },
  };
}

function toAuditedCall({ action, caller, address, params }: SeenCall, more: AuditSubject): AuditedCall {
  const ofPath = Object.entries(params).map(([key, value]) => [key, action === null ? auditPath(value) : auditName(value)] as const);
  const named = [...ofPath, ...Object.entries(more)].filter((entry): entry is [string, AuditText] => entry[1] !== undefined);
  const subject = Object.fromEntries(named.slice(0, VALUES_MAX).map(([key, value]) => [key, value.slice(0, VALUE_LENGTH_MAX)]));
  if (caller === null) return { action, caller: null, token: null, owner: null, address, subject };
  if (caller.kind === "socket") return { action, caller: "user", token: null, owner: null, address, subject };
  if (caller.kind === "sandbox") return { action, caller: `sandbox ${caller.sandbox}`, token: null, owner: null, address, subject };
  if (caller.kind === "code") {
    const { name, owner } = caller.pending.view;
    return { action, caller: `code for ${name}`, token: null, owner, address, subject };
  }
  const { id, name, owner } = caller.token;
  return { action, caller: `token ${name}`, token: id, owner, address, subject };
}
