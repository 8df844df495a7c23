import type { SessionEvent } from "../../contract/session-event.ts";
import type { SessionDetails, SessionView, Unapplied } from "../../contract/session-verbs.ts";
import { showDuration } from "../../lib/quantity.ts";
import { unreachable } from "../../lib/unreachable.ts";
import { bold, dim, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const PATHS_SHOWN = 3;

/** A session for people: where it works, who works in it, its runs, and what happened in it. */
export function sessionLines(
  session: SessionDetails,
  about: { runs: readonly { run: string; task: string; status: string }[]; unapplied: Unapplied | null },
): Line[] {
  const { scope, cleanup, commit, runtime } = session;
  const rows: [string, string][] = [
    ["workspace", sourceText(session.source)],
    ["commit", commit ?? ""],
    ["files", runtime === null ? "none yet" : `kept by ${runtime}`],
    ["not applied", filesText(about.unapplied)],
    ["lock", lockText(session.lock)],
    ["belongs to", scope === "run" ? "one run" : `a ${scope}`],
    ["goes", cleanup === "never" ? "when it is removed" : cleanup === "always" ? "with its run" : "with its run, if that is done"],
    ["made", ago(session.createdAt)],
    ["used", ago(session.lastUsedAt)],
  ];
  const runs = about.runs.map(({ run, status, task }) => [`  ${run}`, status, task.split("\n")[0] ?? ""]);
  return [
    bold(session.id),
    ...table(rows.filter(([, value]) => value !== "").map(([name, value]) => [dim(`  ${name}`), value])),
    ...(runs.length === 0 ? [] : [line``, dim("Runs, the last changed first:"), ...table(runs)]),
    line``,
    dim("What happened:"),
    ...table(session.history.map((event) => [`  ${event.at.slice(0, 19).replace("T", " ")}`, eventText(event)])),
  ];
}

export function lockText(lock: SessionView["lock"]): string {
  if (lock === null) return "free";
  return lock.stale ? "stale lock" : `in use by ${lock.owner.run}`;
}

export function sourceText(source: SessionView["source"]): string {
  if (source.kind === "folder") return source.path;
  if (source.kind === "upload") return `${source.origin.host}:${source.origin.folder}`;
  return source.kind === "git" ? source.url : "empty";
}

const ago = (at: string): string => `${showDuration(Date.now() - Date.parse(at))} ago`;

function filesText(unapplied: Unapplied | null): string {
  if (unapplied === null || unapplied.files === null) return "";
  return `${unapplied.files}${unapplied.isMinimum ? " or more" : ""} ${unapplied.files === 1 ? "file" : "files"}`;
}

function eventText(event: SessionEvent): string {
  switch (event.type) {
    case "session.created":
      return `made on ${sourceText(event.data.source)}`;
    case "session.prepared":
      return `checked out at ${event.data.commit.slice(0, 12)}`;
    case "session.run_started":
      return `${event.data.run} began`;
    case "session.run_ended":
      return `${event.data.run} ended: ${event.data.reason}`;
    case "session.applied": {
      const { paths, count, folder } = event.data;
      const more = count > PATHS_SHOWN ? ", …" : "";
      return `${count} ${count === 1 ? "file" : "files"} applied to ${folder}: ${paths.slice(0, PATHS_SHOWN).join(", ")}${more}`;
    }
    case "session.branched":
      return `branch ${event.data.branch} made in ${event.data.repository}`;
    case "session.undone":
      return `a turn of ${event.data.run} taken back: ${event.data.count} ${event.data.count === 1 ? "file" : "files"}`;
    case "session.forked": {
      const { from, at } = event.data;
      return `began with the files of ${from}${at === null ? "" : `, as they were after step ${at.step} of ${at.run}`}`;
    }
    case "session.merged":
      return `has what ${event.data.sessions.join(", ")} changed, by ${event.data.merge}`;
    case "session.unlocked":
      return `lock of ${event.data.run} taken away${event.data.forced ? " by force" : ""}`;
    case "session.removed":
      return `removed (${event.data.why})`;
    default:
      return unreachable(event);
  }
}
