import type { RunEvent } from "../../../../src/contract/run-event.ts";
import type { NoteItem } from "./timeline-item.ts";

type Note = Pick<NoteItem, "title" | "tone" | "text"> & { isQuiet?: true };

const plain = (title: string, text: string | null = null): Note => ({ title, tone: "plain", text });
const quiet = (title: string, text: string | null = null): Note => ({ ...plain(title, text), isQuiet: true });
const toned = (tone: NoteItem["tone"], title: string, text: string | null = null): Note => ({ title, tone, text });

/**
 * What is told of an event in a line; null for one that is part of something else. The events are shared out among the
 * three functions below, so each has a `default` for those of the others, and for what the timeline shows as an item.
 */
export function noteOf(event: RunEvent): Note | null {
  return lifecycleNote(event) ?? networkNote(event) ?? otherNote(event);
}

function lifecycleNote(event: RunEvent): Note | null {
  switch (event.type) {
    case "run.created":
      return plain(`Run created for ${event.data.agent.name}`, event.data.task);
    case "run.queued":
      return plain(event.data.startAt === null ? "Waits in the queue" : `Waits in the queue until ${event.data.startAt}`);
    case "run.prioritized":
      return quiet(`Priority ${event.data.priority}, by ${event.data.by}`);
    case "run.labelled":
      return quiet(`Labels changed by ${event.data.by}`, labelChanges(event.data.changes));
    case "run.noticed":
      return plain(event.data.text);
    case "run.claimed":
      return quiet(`Driven by ${event.data.owner} on ${event.data.host}`);
    case "run.sandboxed": {
      const { sandbox, runtime, why, files, restarted } = event.data;
      if (restarted) return toned("warn", `Sandbox ${sandbox} was restarted on its files`);
      if (why !== "lost") return plain(`Sandbox ${sandbox} (${runtime})`);
      return toned(
        "warn",
        `The sandbox was lost; another one: ${sandbox}`,
        files === "gone" ? "Its files are those that the run began with." : null,
      );
    }
    case "run.paused": {
      const { why, text } = event.data;
      // What it waits for is asked in an item of its own.
      return { ...toned("warn", `Paused: ${why}`, text), ...(why !== "user" && why !== "outage" && { isQuiet: true }) };
    }
    case "run.continued":
      return { ...plain(`Resumed by ${event.data.by}`), ...(event.data.by === "answer" && { isQuiet: true }) };
    case "run.stop_requested":
      return toned("warn", `${event.data.by} asked it to stop`);
    case "run.reopened":
      return plain(`Continued by ${event.data.by}`);
    default:
      return null;
  }
}

function labelChanges(changes: Extract<RunEvent, { type: "run.labelled" }>["data"]["changes"]): string {
  return Object.entries(changes)
    .map(([key, value]) => (value === null ? `without ${key}` : `${key}=${value}`))
    .join(", ");
}

function networkNote(event: RunEvent): Note | null {
  switch (event.type) {
    case "network.failed":
      return toned("warn", `${event.data.host}:${event.data.port} could not be reached`, event.data.text);
    case "network.closed":
      return quiet(
        `Connection to ${event.data.host}:${event.data.port}`,
        `${event.data.sentBytes} bytes sent, ${event.data.receivedBytes} received`,
      );
    case "network.changed": {
      const { policy, by } = event.data;
      const hosts = policy.mode === "none" ? "" : policy.rules.map(({ host }) => host).join(", ");
      return plain(`Network changed by ${by}: ${policy.mode}`, hosts === "" ? null : hosts);
    }
    case "secret.used":
      return quiet(`Secret ${event.data.secret} used for ${event.data.host}`);
    case "secret.withheld":
      return toned("warn", `Secret ${event.data.secret} was not given to ${event.data.host}`, event.data.why);
    case "secret.revoked":
      return plain(`Secret ${event.data.secret} revoked by ${event.data.by}`);
    case "gateway.called":
      return {
        ...toned(event.data.error === null ? "plain" : "warn", `Model ${event.data.model} called from inside`, event.data.error),
        isQuiet: true,
      };
    case "port.opened":
      return plain(`Port ${event.data.port} is open`);
    case "port.closed":
      return quiet(`Port ${event.data.port} was closed`);
    default:
      return null;
  }
}

function otherNote(event: RunEvent): Note | null {
  switch (event.type) {
    case "model.requested":
      return quiet(`Asked ${event.data.model}`, `${event.data.contextTokens} tokens of context, attempt ${event.data.attempt}`);
    case "model.failed": {
      const { error, retryInMs } = event.data;
      return toned(
        "bad",
        retryInMs === null ? "The model failed" : `The model failed; again in ${Math.round(retryInMs / 1000)} s`,
        error.message,
      );
    }
    case "loop.noticed":
      return toned("warn", `Goes round in circles (${event.data.pattern}): ${event.data.action}`, event.data.text);
    case "health.changed": {
      const { subject, level, misses } = event.data;
      if (level === "ok" || level === "late") return quiet(`The ${subject.kind} is ${level}`);
      return toned(level === "unresponsive" ? "bad" : "warn", `The ${subject.kind} is ${level}`, `${misses} signs of life are missing`);
    }
    case "health.escalated":
      return toned("bad", `The ${event.data.subject.kind} needs a person`, event.data.text);
    case "guardian.decided":
      return toned(event.data.action === "nudge" ? "warn" : "bad", `The guardian: ${event.data.action}`, event.data.text);
    case "guardian.settled":
      return plain(event.data.effect === "progress" ? "The guardian sees progress again" : "The guardian sees no effect", event.data.text);
    case "guardian.judged":
      return quiet(`The guardian's judge: ${event.data.coherence ?? "no usable answer"}`, event.data.text);
    case "sandbox.reported":
      return plain(`Told from inside: ${event.data.type}`, JSON.stringify(event.data.data));
    case "artifact.stored":
      return plain(`File left: ${event.data.name}`, `${event.data.bytes} bytes`);
    default:
      return null;
  }
}
