import type { AuditedCall } from "../contract/audit-event.ts";
import { type AuditSubject, type AuditText, auditName, auditPath } from "../contract/audit-text.ts";
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
  /** As the tables of routes and of streams name it; null for one that is in neither. */
  action: string | null;
  /** Whether it may change something. */
  changes: boolean;
  /** Null before it was let in. */
  caller: Caller | null;
  /** Null by the socket. */
  address: string | null;
  params: Readonly<Record<string, string>>;
}

export interface Audit {
  /** Before the call has any effect. Throws what keeps it from being put down: then it must not have one. */
  made(call: SeenCall, subject?: AuditSubject): Promise<void>;
  /** Never throws. */
  failed(call: SeenCall, error: unknown): Promise<void>;
}

/** Puts down who asked for what: calls that change something, and those that were not let in. */
export function createAudit({ sink, onDefect }: { sink: AuditSink; onDefect: (error: unknown) => void }): Audit {
  const refusals = createRates({ perMinute: REFUSALS_PER_MINUTE });
  return {
    async made(call, subject = {}) {
      if (call.changes) await sink.made(audited(call, subject));
    },
    async failed(call, error) {
      // It was refused before it was made, to save writes like this one.
      if (error instanceof CaissonError && error.details?.overload === true) return;
      const code = error instanceof CaissonError ? error.code : "internal";
      const wasLetIn = call.caller !== null && code !== "denied";
      if (wasLetIn && (call.caller?.kind === "sandbox" || !call.changes || call.action === null)) return;
      if (!wasLetIn && !refusals.take(call.address ?? "").ok) return;
      await sink.failed(audited(call, {}), code).catch(onDefect);
    },
  };
}

function audited({ action, caller, address, params }: SeenCall, more: AuditSubject): AuditedCall {
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
