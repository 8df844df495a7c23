import { CaissonError } from "../../contract/error/error.ts";
import type { DiffPiece } from "../../contract/session/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { textOrBase64 } from "../../lib/text-or-base64.ts";
import { type Call, type Handlers, nothing, type SentEvent } from "../call.ts";
import { withEventIds } from "../event-ids.ts";
import { sequenceOf } from "../last-event-id.ts";
import { startStream } from "../start-stream.ts";

type Name =
  | "sessions.patch"
  | "sandboxes.create"
  | `inside.${"report" | "takeMessages" | "beat" | "putArtifact" | "events" | "readArtifact"}`
  | "networks.revoke"
  | `ports.${"list" | "watch"}`
  | `uploads.${"put" | "list"}`
  | "webhooks.create"
  | "merges.start"
  | "bests.start"
  | `${"merges" | "bests" | "workflows"}.list`;

/** The handlers of verbs whose arguments do not follow the rule, except those of runs. */
export const unusualHandlers: Handlers<Name> = {
  async "sessions.patch"({ station, params, query, wants, signal }) {
    // Waits for the first piece, to fail before the stream starts if the session does not exist.
    const pieces = await startStream(station.sessions.patch(params.session, { signal, ...defined(query) }));
    return wants === "events" ? { events: piecesOf(pieces) } : { bytes: patchOf(pieces) };
  },
  async "sandboxes.create"({ station, body, signal }) {
    const { spec: config, ...rest } = body;
    await using held = await station.sandboxes.create({ ...rest, spec: { ...config, keep: true } }, { signal });
    return { json: held.info };
  },
  "inside.report": async (call) => ({ json: await call.station.inside.report(sandboxOf(call), call.body) }),
  "inside.takeMessages": async (call) => ({ json: { messages: await call.station.inside.takeMessages(sandboxOf(call)) } }),
  "inside.beat": async (call) => ({ json: { control: await call.station.inside.beat(sandboxOf(call)) } }),
  "inside.putArtifact": async (call) => ({
    json: await call.station.inside.putArtifact(sandboxOf(call), call.params.artifact, call.body),
  }),
  async "inside.events"({ station, params, query, wants, lastEventId, signal }) {
    if (wants === "json") {
      return {
        json: { events: await station.inside.events(params.sandbox, { limit: query.limit, ...defined({ fromSeq: query.fromSeq }) }) },
      };
    }
    const fromSeq = lastEventId === null ? query.fromSeq : sequenceOf(lastEventId) + 1;
    // Fails before the stream starts if the sandbox does not exist.
    await station.inside.events(params.sandbox, { limit: 1 });
    return { events: withEventIds(station.inside.follow(params.sandbox, { signal, ...defined({ fromSeq }) })) };
  },
  "inside.readArtifact": async ({ station, params }) => ({ bytes: await station.inside.readArtifact(params.thing, params.artifact) }),
  async "networks.revoke"({ station, params, by }) {
    await station.networks.revoke(params.sandbox, { secret: params.secret, by });
    return nothing;
  },
  async "ports.list"({ station, params, query, signal }) {
    if (query.all !== true) return { json: { ports: await station.networks.ports(params.sandbox) } };
    await using held = await station.sandboxes.hold(params.sandbox, { signal });
    return { json: { ports: await held.listeners() } };
  },
  async "ports.watch"({ station, params, signal }) {
    // Fails before the stream starts if the sandbox does not exist.
    await station.networks.ports(params.sandbox);
    return { events: byType(station.networks.watchPorts(params.sandbox, { signal })) };
  },
  "uploads.put": async ({ station, query, body, owner, signal }) => ({
    json: await station.uploads.put(body, { owner, signal, ...defined(query) }),
  }),
  // A client that looks up a digest wants to use the upload, and may only use its own.
  "uploads.list": async ({ station, query, owner }) => ({
    json: { uploads: await station.uploads.list(query.digest === undefined ? {} : { digest: query.digest, owner }) },
  }),
  "webhooks.create": async ({ station, body }) => ({ json: await station.webhooks.create(body) }),
  "merges.start": async ({ station, body }) => ({ json: await station.merges.start(body) }),
  "bests.start": async ({ station, body }) => ({ json: await station.bests.start(body) }),
  "bests.list": async ({ station, query }) => ({ json: await station.bests.list(defined(query)) }),
  "merges.list": async ({ station, query }) => ({ json: await station.merges.list(defined(query)) }),
  async "workflows.list"({ station, query }) {
    const { parent, ...rest } = query;
    return {
      json: await station.workflows.list({ ...defined(rest), ...(parent !== undefined && { parent: parent === "none" ? null : parent }) }),
    };
  },
};

/** Yields only what `git apply` accepts. The diff lists what was left out. */
async function* patchOf(pieces: AsyncIterable<DiffPiece>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) if (piece.kind === "patch") yield piece.bytes;
}

async function* piecesOf(pieces: AsyncIterable<DiffPiece>) {
  for await (const piece of pieces) {
    yield { type: piece.kind, data: piece.kind === "patch" ? { kind: piece.kind, ...textOrBase64(piece.bytes) } : piece };
  }
}

/** Returns the sandbox that owns the caller's token: calls from inside cannot name another. */
function sandboxOf({ sandbox }: Pick<Call<"inside.beat">, "sandbox">): string {
  if (sandbox !== null) return sandbox;
  throw new CaissonError("denied", "this call requires a sandbox's own token", {
    hint: "Create the sandbox with stationAccess. Programs inside find the token in CAISSON_SANDBOX_TOKEN.",
  });
}

async function* byType<Event extends { type: string }>(events: AsyncIterable<Event>): AsyncGenerator<SentEvent<Event>> {
  for await (const event of events) yield { type: event.type, data: event };
}
