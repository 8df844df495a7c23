import type { EventFor } from "../../../../src/contract/event/event-family.ts";
import { type Handlers, handle } from "../../../../src/contract/event/handlers.ts";
import type { RunEvent, runEvents } from "../../../../src/contract/run/run-event.ts";
import type { ItemType } from "./timeline.ts";
import type { NoteItem } from "./timeline-item.ts";

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;
type Note = Pick<NoteItem, "title" | "tone" | "text"> & { isQuiet?: true };

const plain = (title: string, text: string | null = null): Note => ({ title, tone: "plain", text });
const quiet = (title: string, text: string | null = null): Note => ({ ...plain(title, text), isQuiet: true });
const noteWithTone = (tone: NoteItem["tone"], title: string, text: string | null = null): Note => ({ title, tone, text });

/** Returns the note for an event; null if the timeline shows the event as another kind of item. */
export const noteOf = (event: RunEvent): Note | null => handle(notes, event, undefined) ?? null;

type NotedEvent = Exclude<EventFor<typeof runEvents, "console">, { type: ItemType }>;

const notes: Handlers<NotedEvent | EventOf<"model.requested" | "gateway.called">, void, Note> = {
  "run.created": ({ data }) => plain(`Run created for ${data.agent.name}`, data.task),
  "run.queued": ({ data: { startAt } }) => plain(startAt === null ? "Queued" : `Queued until ${startAt}`),
  "run.prioritized": ({ data }) => quiet(`Priority set to ${data.priority} by ${data.by}`),
  "run.labelled": ({ data }) => quiet(`Labels changed by ${data.by}`, labelChanges(data.changes)),
  "run.noticed": ({ data }) => plain(data.text),
  "run.claimed": ({ data }) => quiet(`Driven by ${data.owner} on ${data.host}`),
  "run.sandboxed": ({ data: { sandbox, runtime, why, files, restarted } }) => {
    if (restarted) return noteWithTone("warn", `Sandbox ${sandbox} was restarted with its files`);
    if (why !== "lost") return plain(`Sandbox ${sandbox} (${runtime})`);
    const text = files === "gone" ? "Its files are the ones that the run started with." : null;
    return noteWithTone("warn", `The sandbox was lost and replaced by ${sandbox}`, text);
  },
  "run.paused": ({ data: { why, text } }) => {
    const note = noteWithTone("warn", `Paused: ${why}`, text);
    // A separate item shows the question.
    return why === "user" || why === "outage" ? note : { ...note, isQuiet: true };
  },
  "run.continued": ({ data: { by } }) => (by === "answer" ? quiet : plain)(`Resumed by ${by}`),
  "run.stop_requested": ({ data }) => noteWithTone("warn", `${data.by} asked the run to stop`),
  "run.reopened": ({ data }) => plain(`Continued by ${data.by}`),
  "run.forked": ({ data: { from, by } }) => plain(`Forked from ${from.run} after step ${from.step} by ${by}`),
  "run.rewind_started": ({ data: { toStep, by } }) => quiet(`${by} asked to rewind to step ${toStep}`),
  "run.rewind_failed": ({ data }) => noteWithTone("bad", "The run was not rewound", data.text),
  "run.rewound": ({ data: { toStep, by, tail } }) =>
    noteWithTone("warn", `Rewound to step ${toStep} by ${by}`, `The steps above no longer count. ${tail} preserves them.`),
  "network.failed": ({ data }) => noteWithTone("warn", `${data.host}:${data.port} could not be reached`, data.text),
  "network.closed": ({ data: { host, port, sentBytes, receivedBytes } }) =>
    quiet(`Connection to ${host}:${port}`, `${sentBytes} bytes sent, ${receivedBytes} received`),
  "network.changed": ({ data: { policy, by } }) => {
    const hosts = policy.mode === "none" ? "" : policy.rules.map(({ host }) => host).join(", ");
    return plain(`Network changed by ${by}: ${policy.mode}`, hosts === "" ? null : hosts);
  },
  "secret.used": ({ data }) => quiet(`Secret ${data.secret} used for ${data.host}`),
  "secret.withheld": ({ data }) => noteWithTone("warn", `Secret ${data.secret} was withheld from ${data.host}`, data.why),
  "secret.revoked": ({ data }) => plain(`Secret ${data.secret} revoked by ${data.by}`),
  "gateway.called": ({ data: { model, error } }) => ({
    ...noteWithTone(error === null ? "plain" : "warn", `Model ${model} called from inside`, error),
    isQuiet: true,
  }),
  "port.opened": ({ data }) => plain(`Port ${data.port} is open`),
  "port.closed": ({ data }) => quiet(`Port ${data.port} was closed`),
  "step.ended": ({ data: { step, files, problem } }) => {
    if (problem !== undefined) return noteWithTone("warn", `The files after step ${step} were not stored`, problem);
    return quiet(files === 0 ? `Step ${step} ended` : `Step ${step} ended: ${files} files changed`);
  },
  "model.requested": ({ data }) => quiet(`Called ${data.model}`, `${data.contextTokens} tokens of context, attempt ${data.attempt}`),
  "model.failed": ({ data: { error, retryInMs } }) =>
    noteWithTone(
      "bad",
      retryInMs === null ? "The model failed" : `The model failed; retrying in ${Math.round(retryInMs / 1000)} s`,
      error.message,
    ),
  "loop.noticed": ({ data }) => noteWithTone("warn", `Loop detected (${data.pattern}): ${data.action}`, data.text),
  "git.committed": ({ data: { sha, subject, branch } }) =>
    quiet(`Commit ${sha.slice(0, 12)}${branch === null ? "" : ` on ${branch}`}`, subject),
  "run.drive_failed": ({ data: { text } }) => quiet("The driver failed", text),
  "mcp.connected": ({ data: { server, tools } }) => quiet(`MCP server ${server} is ready`, tools.join(", ")),
  "health.changed": ({ data: { subject, level, misses } }) => {
    const title = `The ${subject.kind} is ${level}`;
    if (level === "ok" || level === "late") return quiet(title);
    return noteWithTone(level === "unresponsive" ? "bad" : "warn", title, `${misses} missed heartbeats`);
  },
  "health.escalated": ({ data }) => noteWithTone("bad", `The ${data.subject.kind} needs a person`, data.text),
  "guardian.decided": ({ data }) => noteWithTone(data.action === "nudge" ? "warn" : "bad", `The guardian: ${data.action}`, data.text),
  "guardian.settled": ({ data }) =>
    plain(data.effect === "progress" ? "The guardian sees progress again" : "The guardian sees no effect", data.text),
  "guardian.judged": ({ data }) => quiet(`The guardian's judge: ${data.coherence ?? "no usable answer"}`, data.text),
  "sandbox.reported": ({ data }) => plain(`Reported from inside: ${data.type}`, JSON.stringify(data.data)),
  "artifact.stored": ({ data }) => plain(`File stored: ${data.name}`, `${data.bytes} bytes`),
};

function labelChanges(changes: EventOf<"run.labelled">["data"]["changes"]): string {
  return Object.entries(changes)
    .map(([key, value]) => (value === null ? `removed ${key}` : `${key}=${value}`))
    .join(", ");
}
