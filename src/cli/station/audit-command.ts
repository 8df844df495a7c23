import type { AuditEntry } from "../../contract/audit-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { parseCount, parseDays } from "../options/option-values.ts";
import { line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const ENTRIES_DEFAULT = 50;
const ENTRIES_PER_PAGE_MAX = 1000;

/** `caisson audit` */
export async function audit(context: CliContext, given: ParsedArguments): Promise<number> {
  const since = given.option("since");
  const limit = given.option("limit");
  const entries = await newest(context, {
    limit: limit === undefined ? ENTRIES_DEFAULT : parseCount("limit", limit),
    ...defined({
      after: since === undefined ? undefined : new Date(Date.now() - parseDays("since", since)).toISOString(),
      outcome: given.flag("failed") ? ("failed" as const) : undefined,
      action: given.option("action"),
      token: given.option("token"),
      owner: given.option("owner"),
      about: given.option("about"),
    }),
  });
  if (given.flag("json")) await context.stdout.printJson(entries);
  else if (entries.length > 0) {
    await context.stdout.print(table([["TIME", "CALLER", "ADDRESS", "ACTION", "ABOUT", "OUTCOME"], ...entries.map(row)]));
  } else await context.stderr.print(line`caisson: nothing like that was asked of the station`);
  return 0;
}

type Asked = NonNullable<Parameters<CliContext["station"]["audit"]["list"]>[0]> & { limit: number };

async function newest({ station }: CliContext, { limit, ...asked }: Asked): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for (let cursor: string | null | undefined; cursor !== null && entries.length < limit; ) {
    const pageLimit = Math.min(limit - entries.length, ENTRIES_PER_PAGE_MAX);
    const page = await station.audit.list({ ...asked, limit: pageLimit, ...defined({ cursor }) });
    entries.push(...page.entries);
    cursor = page.next;
  }
  return entries;
}

function row({ at, caller, address, action, subject, outcome, code }: AuditEntry): string[] {
  const about = Object.values(subject).join(" ");
  return [at, caller ?? "nobody", address ?? "socket", action ?? "unknown", about, outcome === "made" ? "" : (code ?? "failed")];
}
