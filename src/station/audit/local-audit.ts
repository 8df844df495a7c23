import type { z } from "zod";
import { type AuditedCall, auditEvents, CallFailed, CallMade } from "../../contract/audit-event.ts";
import { type AuditEntry, ListAudit } from "../../contract/audit-verbs.ts";
import { CaissonError } from "../../contract/error.ts";
import { readableEvent } from "../../contract/event-family.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { Log, StoredEvent } from "../../log/log.ts";
import type { AuditVerbs } from "./verbs.ts";

const PREFIX = "audit/";
const MONTHS_KEPT = 13;
const READ_AT_ONCE = 500;
/** Looked at for one page; a question that finds little goes on with the next. */
const LOOKED_AT_MAX = 20_000;

export interface LocalAudit extends AuditVerbs {
  /** Resolves when it is on the disk. */
  made(call: AuditedCall): Promise<void>;
  failed(call: AuditedCall, code: string): Promise<void>;
  /** Months that are older than a year are given up, whole. */
  forgetOld(): Promise<void>;
}

/** In the log, a stream for each month. */
export function createLocalAudit({ log, now = Date.now }: { log: Log; now?: () => number }): LocalAudit {
  const append = async (event: z.infer<typeof CallMade> | z.infer<typeof CallFailed>) => {
    await log.append(`${PREFIX}${new Date(now()).toISOString().slice(0, 7)}`, [event]);
  };
  const months = async () =>
    (await log.streams({ prefix: PREFIX })).map(({ stream }) => stream.slice(PREFIX.length)).sort((left, right) => (left < right ? 1 : -1));
  return {
    made: (call) => append(CallMade.make(call)),
    failed: (call, code) => append(CallFailed.make({ ...call, code })),
    async forgetOld() {
      for (const month of (await months()).slice(MONTHS_KEPT)) await log.remove(`${PREFIX}${month}`);
    },
    async list(given = {}) {
      const request = parseRequest(ListAudit, given, "an audit");
      const from = request.cursor === undefined ? null : placeFrom(request.cursor);
      const entries: AuditEntry[] = [];
      let lookedAt = 0;
      for (const month of (await months()).filter((each) => isAsked(each, request) && (from === null || each <= from.month))) {
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

/** Whether anything of a month can be between the times that were asked for. */
function isAsked(month: string, { after, before }: Pick<ListAudit, "after" | "before">): boolean {
  return (after === undefined || month >= after.slice(0, 7)) && (before === undefined || month <= before.slice(0, 7));
}

function placeFrom(cursor: string): { month: string; seq: number } {
  const [, month, seq] = /^(\d{4}-\d{2})\.(\d{1,15})$/.exec(cursor) ?? [];
  if (month !== undefined && seq !== undefined) return { month, seq: Number(seq) };
  throw new CaissonError("invalid", `${JSON.stringify(cursor)} is not where a list ended`, {
    hint: "Give the `next` of an earlier answer.",
  });
}

function entryOf(month: string, stored: StoredEvent): AuditEntry | null {
  const event = readableEvent(auditEvents, stored);
  if (event === null) return null;
  const { id, at } = { id: `${month}.${stored.seq}`, at: event.at };
  return event.type === "call.made" ? { id, at, outcome: "made", code: null, ...event.data } : { id, at, outcome: "failed", ...event.data };
}

function matches(entry: AuditEntry, asked: ListAudit): boolean {
  const { outcome, action, token, owner, about, after, before } = asked;
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
