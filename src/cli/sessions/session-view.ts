import type { EventFor } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import type { sessionEvents } from "../../contract/session/session-event.ts";
import type { SessionDetails, SessionView, Unapplied } from "../../contract/session/session-verbs.ts";
import { showDuration } from "../../lib/quantity.ts";
import { bold, dim, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

const PATHS_SHOWN = 3;

/** Formats a session for people: its workspace, its lock, its runs and its history. */
export function sessionLines(
  session: SessionDetails,
  about: { runs: readonly { run: string; task: string; status: string }[]; unapplied: Unapplied | null },
): Line[] {
  const { scope, cleanup, commit, runtime } = session;
  const rows: [string, string][] = [
    ["workspace", sourceText(session.source)],
    ["commit", commit ?? ""],
    ["files", runtime === null ? "none yet" : `stored by ${runtime}`],
    ["not applied", filesText(about.unapplied)],
    ["lock", lockText(session.lock)],
    ["belongs to", scope === "run" ? "one run" : `a ${scope}`],
    ["kept", keptText(cleanup, ends[scope])],
    ["created", ago(session.createdAt)],
    ["last used", ago(session.lastUsedAt)],
  ];
  const runs = about.runs.map(({ run, status, task }) => [`  ${run}`, status, task.split("\n")[0] ?? ""]);
  return [
    bold(session.id),
    ...table(rows.filter(([, value]) => value !== "").map(([name, value]) => [dim(`  ${name}`), value])),
    ...(runs.length === 0 ? [] : [line``, dim("Runs, most recently changed first:"), ...table(runs)]),
    line``,
    dim("History:"),
    ...table(
      session.history.map((event) => [`  ${event.at.slice(0, 19).replace("T", " ")}`, handle(eventTexts, event, undefined) ?? event.type]),
    ),
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

const ends: Readonly<Record<SessionView["scope"], string>> = { run: "its run", session: "its last run", workflow: "its workflow" };

function keptText(cleanup: SessionView["cleanup"], whose: string): string {
  if (cleanup === "never") return "until you remove it";
  return cleanup === "always" ? `until ${whose} ends` : `until ${whose} succeeds`;
}

const ago = (at: string): string => `${showDuration(Date.now() - Date.parse(at))} ago`;

function filesText(unapplied: Unapplied | null): string {
  if (unapplied === null || unapplied.files === null) return "";
  return `${unapplied.files}${unapplied.isMinimum ? " or more" : ""} ${unapplied.files === 1 ? "file" : "files"}`;
}

const eventTexts: Handlers<EventFor<typeof sessionEvents, "terminal">, void, string> = {
  "session.created": ({ data }) => `created on ${sourceText(data.source)}`,
  "session.prepared": ({ data }) => `checked out ${data.commit.slice(0, 12)}`,
  "session.refreshed": ({ data: { before, commit, files, commits } }) => {
    const lost = files + commits === 0 ? "" : `, discarding ${files} changed files and ${commits} commits`;
    return `refreshed from ${before?.slice(0, 12) ?? "nothing"} to ${commit.slice(0, 12)}${lost}`;
  },
  "session.run_started": ({ data }) => `${data.run} started`,
  "session.run_ended": ({ data }) => `${data.run} ended: ${data.reason}`,
  "session.applied": ({ data: { paths, count, folder } }) => {
    const more = count > PATHS_SHOWN ? ", …" : "";
    return `${count} ${count === 1 ? "file" : "files"} applied to ${folder}: ${paths.slice(0, PATHS_SHOWN).join(", ")}${more}`;
  },
  "session.branched": ({ data }) => `created branch ${data.branch} in ${data.repository}`,
  "session.undone": ({ data: { run, count } }) => `undid a turn of ${run}: ${count} ${count === 1 ? "file" : "files"}`,
  "session.forked": ({ data: { from, at } }) =>
    `started with the files of ${from}${at === null ? "" : `, as they were after step ${at.step} of ${at.run}`}`,
  "session.merged": ({ data }) => `merged the changes of ${data.sessions.join(", ")} (${data.merge})`,
  "session.unlocked": ({ data }) => `removed the lock of ${data.run}${data.forced ? " by force" : ""}`,
  "session.cleanup_changed": ({ data }) => `from now on kept ${keptText(data.cleanup, "its last run")}`,
  "session.removed": ({ data: { why, unapplied = 0 } }) =>
    `removed (${why}${unapplied === 0 ? "" : `, with ${unapplied} unapplied ${unapplied === 1 ? "file" : "files"}`})`,
};
