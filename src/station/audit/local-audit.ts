import type { z } from "zod";
import { type AuditedCall, auditEvents, CallFailed, CallMade } from "../../contract/audit/audit-event.ts";
import { type AuditEntry, ListAudit } from "../../contract/audit/audit-verbs.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { readableEvent } from "../../contract/event/event-family.ts";
import type { Log, StoredEvent } from "../../log/log.ts";
import type { AuditVerbs } from "../../verbs/audit.ts";

const PREFIX = "audit/";
const MONTHS_KEPT = 13;
const READ_AT_ONCE = 500;
/** Entries read for one page. If too few of them match, the page is short, and its cursor continues the search. */
const LOOKED_AT_MAX = 20_000;

export interface LocalAudit extends AuditVerbs {
  /** Resolves when the call is on disk. */
  recordCall(call: AuditedCall): Promise<void>;
  recordFailure(call: AuditedCall, code: string): Promise<void>;
  /** Removes months that are more than a year old. */
  forgetOld(): Promise<void>;
}

/** Stores the audit log in the event log, with one stream per month. */
export function createLocalAudit({ log, now = Date.now }: { log: Log; now?: () => number }): LocalAudit {
  const append = async (event: z.infer<typeof CallMade> | z.infer<typeof CallFailed>) => {
    await log.append(`${PREFIX}${new Date(now()).toISOString().slice(0, 7)}`, [event]);
  };
  const months = async () =>
    (await log.streams({ prefix: PREFIX })).map(({ stream }) => stream.slice(PREFIX.length)).sort((left, right) => (left < right ? 1 : -1));
  return {
    recordCall: (call) => append(CallMade.make(call)),
    recordFailure: (call, code) => append(CallFailed.make({ ...call, code })),
    async forgetOld() {
      for (const month of (await months()).slice(MONTHS_KEPT)) await log.remove(`${PREFIX}${month}`);
    },
    async list(query = {}) {
      const request = parseRequest(ListAudit, query, "an audit");
      const from = request.cursor === undefined ? null : placeFrom(request.cursor);
      const entries: AuditEntry[] = [];
      let lookedAt = 0;
      for (const month of (await months()).filter((each) => isInRange(each, request) && (from === null || each <= from.month))) {
        let end = from?.month === month ? from.seq : await log.lastSeq(`${PREFIX}${month}`);
        while (end > 0) {
          const start = Math.max(1, end - READ_AT_ONCE + 1);
          const events = await log.read(`${PREFIX}${month}`, { fromSeq: start, limit: end - start + 1 });
          for (const stored of events.reverse()) {
            lookedAt += 1;
            end = stored.seq - 1;
            const entry = entryOf(month, stored);
            if (entry !== null && matches(entry, request)) entries.push(entry);
            if (entries.length === request.limit || lookedAt === LOOKED_AT_MAX) return { entries, next: `${month}.${end}` };
          }
          end = Math.min(end, start - 1);
        }
      }
      return { entries, next: null };
    },
  };
}

/** Returns whether a month can have entries in the requested time range. */
function isInRange(month: string, { after, before }: Pick<ListAudit, "after" | "before">): boolean {
  return (after === undefined || month >= after.slice(0, 7)) && (before === undefined || month <= before.slice(0, 7));
}

function placeFrom(cursor: string): { month: string; seq: number } {
  const [, month, seq] = /^(\d{4}-\d{2})\.(\d{1,15})$/.exec(cursor) ?? [];
  if (month !== undefined && seq !== undefined) return { month, seq: Number(seq) };
  throw new CaissonError("invalid", `${JSON.stringify(cursor)} is not a cursor of the audit log`, {
    hint: "Pass the `next` of an earlier page.",
  });
}

function entryOf(month: string, stored: StoredEvent): AuditEntry | null {
  const event = readableEvent(auditEvents, stored);
  if (event === null) return null;
  const { id, at } = { id: `${month}.${stored.seq}`, at: event.at };
  return event.type === "call.made" ? { id, at, outcome: "made", code: null, ...event.data } : { id, at, outcome: "failed", ...event.data };
}

function matches(entry: AuditEntry, query: ListAudit): boolean {
  const { outcome, action, token, owner, about, after, before } = query;
  return (
    (outcome === undefined || entry.outcome === outcome) &&
    (action === undefined || entry.action === action || entry.action?.startsWith(`${action}.`) === true) &&
    (token === undefined || entry.token === token || entry.caller === `token ${token}`) &&
    (owner === undefined || entry.owner === owner) &&
    (about === undefined || Object.values(entry.subject).includes(about)) &&
    (after === undefined || entry.at >= after) &&
    (before === undefined || entry.at < before)
  );
}
