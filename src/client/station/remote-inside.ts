import { CaissonError } from "../../contract/error.ts";
import type { InsideVerbs } from "../../station/inside/verbs.ts";
import type { Client } from "../connect.ts";
import { bytesOf } from "./byte-streams.ts";

/** For a sandbox's owner. What programs inside do, they do with the sandbox's own token, which says which it is. */
export function remoteInside({ inside }: Pick<Client, "inside">): InsideVerbs {
  const fromInside = async (): Promise<never> => {
    throw new CaissonError("denied", "only programs in a sandbox may do this, with its own token");
  };
  return {
    report: fromInside,
    takeMessages: fromInside,
    beat: fromInside,
    putArtifact: fromInside,
    view: (sandbox) => inside.view(sandbox),
    tell: (sandbox, request) => inside.tell(sandbox, request),
    events: (sandbox, options) => inside.events(sandbox, options),
    follow: (sandbox, options) => inside.follow(sandbox, options),
    artifacts: (thing) => inside.artifacts(thing),
    readArtifact: async (thing, name) => bytesOf(await inside.readArtifact(thing, name), { what: "reading", signal: undefined }),
  };
}
