import type { BodyFraming } from "./body.ts";
import type { RequestHead } from "./head.ts";
import type { ConnectionWishes } from "./hop-by-hop.ts";

/** A request as it came in. */
export interface IncomingRequest {
  head: RequestHead;
  framing: BodyFraming;
  wishes: ConnectionWishes;
  startedMs: number;
}
