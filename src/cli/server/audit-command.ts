import type { AuditEntry } from "../../contract/audit/audit-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseCount, parseDays } from "../options/option-values.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const ENTRIES_DEFAULT = 50;
const ENTRIES_PER_PAGE_MAX = 1000;

/** `caisson audit` */
export async function audit(context: CliContext, args: ParsedArguments): Promise<number> {
  const since = args.option("since");
  const limit = args.option("limit");
  const entries = await newest(context, {
    limit: limit === undefined ? ENTRIES_DEFAULT : parseCount("limit", limit),
    ...defined({
      after: since === undefined ? undefined : new Date(Date.now() - parseDays("since", since)).toISOString(),
      outcome: args.flag("failed") ? ("failed" as const) : undefined,
      action: args.option("action"),
      token: args.option("token"),
      owner: args.option("owner"),
      about: args.option("about"),
    }),
  });
  if (args.flag("json")) await context.stdout.printJson(entries);
  else if (entries.length > 0) {
    await context.stdout.print(table([["TIME", "CALLER", "ADDRESS", "ACTION", "ABOUT", "OUTCOME"], ...entries.map(row)]));
  } else await context.stderr.print(line`caisson: no matching requests`);
  return 0;
}

type AuditQuery = NonNullable<Parameters<CliContext["station"]["audit"]["list"]>[0]> & { limit: number };

async function newest({ station }: CliContext, { limit, ...filter }: AuditQuery): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for (let cursor: string | null | undefined; cursor !== null && entries.length < limit; ) {
    const pageLimit = Math.min(limit - entries.length, ENTRIES_PER_PAGE_MAX);
    const page = await station.audit.list({ ...filter, limit: pageLimit, ...defined({ cursor }) });
    entries.push(...page.entries);
    cursor = page.next;
  }
  return entries;
}

function row({ at, caller, address, action, subject, outcome, code }: AuditEntry): string[] {
  const about = Object.values(subject).join(" ");
  return [at, caller ?? "anonymous", address ?? "socket", action ?? "unknown", about, outcome === "made" ? "" : (code ?? "failed")];
}
