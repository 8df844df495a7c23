import { CaissonError } from "../../contract/error.ts";
import { defined } from "../../lib/defined.ts";
import { type Call, type Handlers, nothing } from "../call.ts";
import { sequenceOf } from "../last-event-id.ts";
import { numbered } from "../numbered-events.ts";

export const insideHandlers: Handlers<Extract<keyof Handlers, `inside.${string}`>> = {
  "inside.report": async (call) => ({ json: await call.station.inside.report(sandboxOf(call), call.body) }),
  "inside.takeMessages": async (call) => ({ json: { messages: await call.station.inside.takeMessages(sandboxOf(call)) } }),
  "inside.beat": async (call) => ({ json: { control: await call.station.inside.beat(sandboxOf(call)) } }),
  "inside.putArtifact": async (call) => ({
    json: await call.station.inside.putArtifact(sandboxOf(call), call.params.artifact, call.body),
  }),
  "inside.view": async ({ station, params }) => ({ json: await station.inside.view(params.sandbox) }),
  async "inside.tell"({ station, params, body, by }) {
    await station.inside.tell(params.sandbox, body, { by });
    return nothing;
  },
  async "inside.events"({ station, params, query, wants, lastEventId, signal }) {
    if (wants === "json") {
      return {
        json: { events: await station.inside.events(params.sandbox, { limit: query.limit, ...defined({ fromSeq: query.fromSeq }) }) },
      };
    }
    const fromSeq = lastEventId === null ? query.fromSeq : sequenceOf(lastEventId) + 1;
    // A sandbox that does not exist is no stream.
    await station.inside.events(params.sandbox, { limit: 1 });
    return { events: numbered(station.inside.follow(params.sandbox, { signal, ...defined({ fromSeq }) })) };
  },
  "inside.artifacts": async ({ station, params }) => ({ json: { artifacts: await station.inside.artifacts(params.thing) } }),
  "inside.readArtifact": async ({ station, params }) => ({ bytes: await station.inside.readArtifact(params.thing, params.artifact) }),
};

/** The one that the token is of: no call names another. */
function sandboxOf({ sandbox }: Pick<Call<"inside.beat">, "sandbox">): string {
  if (sandbox !== null) return sandbox;
  throw new CaissonError("denied", "this is for the programs in a sandbox, with the sandbox's own token", {
    hint: "Make the sandbox with stationAccess; CAISSON_SANDBOX_TOKEN is its token, inside.",
  });
}
