import { CaissonError } from "../../contract/error.ts";
import type { InboundConnection } from "../sandbox.ts";
import { decodeFields, shapes } from "./fields.ts";
import { encodeFrame, frameCode, frameName, protocolError } from "./frame.ts";
import { errorFromGuest } from "./guest-error.ts";
import { InboundBudget } from "./inbound-budget.ts";
import { INBOUND_MAX, type Link } from "./link.ts";
import { acceptPort } from "./port.ts";
import { openWith } from "./request.ts";

type OnConnection = (connection: InboundConnection) => void;

/** Ports inside that this connection serves: its claims, and the connections that the guest carries here because of them. */
export interface Serving {
  /** Throws `conflict`, `denied`, `busy` past what a guest listens on. */
  serve(port: number, onConnection: OnConnection): Promise<{ close(): void }>;
}

interface Claim {
  onConnection: OnConnection;
}

export function createServing(link: Link): Serving {
  /** Newest last, as the guest has them. */
  const claims = new Map<number, Claim[]>();
  /** How many connections to a port that is served no more may still come: they crossed with our giving it up. */
  const late = new Map<number, number>();
  const budget = new InboundBudget();

  const giveUp = (port: number, claim: Claim) => {
    const left = (claims.get(port) ?? []).filter((each) => each !== claim);
    if (left.length > 0) claims.set(port, left);
    else {
      claims.delete(port);
      late.set(port, INBOUND_MAX);
    }
  };

  link.onAccepted = (stream, payload) => {
    const { port, address, addressPort } = decodeFields("ACCEPTED", shapes.ACCEPTED, payload);
    const claim = claims.get(port)?.at(-1);
    if (claim === undefined) {
      const allowed = late.get(port) ?? 0;
      if (allowed === 0) throw protocolError(`ACCEPTED for port ${port}, which is not served`);
      late.set(port, allowed - 1);
      link.refuse(stream);
      return;
    }
    if (address !== "" || addressPort !== 0) throw protocolError("ACCEPTED with an address nobody asked for");
    const accepted = acceptPort(link, { port, stream, budget });
    try {
      claim.onConnection({ stream: accepted, destination: null });
    } catch (error) {
      accepted.destroy();
      process.emitWarning(`a connection to port ${port} could not be handled: ${error instanceof Error ? error.message : String(error)}`);
    }
  };

  const serve: Serving["serve"] = (port, onConnection) =>
    new Promise((resolve, reject) => {
      const claim: Claim = { onConnection };
      let isOpen = false;
      const stream = openWith(
        link,
        {
          onFrame(code, payload) {
            if (isOpen) throw protocolError(`${frameName(code)} on a claim to a port`);
            if (code === frameCode.ERROR) {
              reject(refusalOf(port, errorFromGuest(`serving port ${port}`, payload)));
              return true;
            }
            if (code !== frameCode.OK) throw protocolError(`${frameName(code)} as an answer to LISTEN`);
            isOpen = true;
            // At once: the first connection may be right behind.
            claims.set(port, [...(claims.get(port) ?? []), claim]);
            late.delete(port);
            resolve({ close });
            return false;
          },
          onLost(error) {
            isOpen = false;
            reject(error);
          },
        },
        "LISTEN",
        { port },
      );
      const close = () => {
        if (!isOpen) return;
        isOpen = false;
        giveUp(port, claim);
        link.cancel(stream, encodeFrame("CANCEL", stream));
      };
    });
  return { serve };
}

/** A port that somebody has is a conflict; `exists` is for names. */
function refusalOf(port: number, error: CaissonError): CaissonError {
  if (error.code !== "exists") return error;
  return new CaissonError("conflict", `port ${port} inside is taken by a program`, {
    hint: "End what listens on it inside, then try again.",
    cause: error,
  });
}
