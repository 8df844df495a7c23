import { isIP } from "node:net";
import { CaissonError } from "../../contract/error/error.ts";
import { ignore, ignoring } from "../../lib/failures.ts";
import type { TransparentService } from "../sandbox.ts";
import { decodeFields, shapes } from "./fields.ts";
import { encodeFrame, frameCode, frameName, protocolError } from "./frame.ts";
import { errorFromGuest } from "./guest-error.ts";
import { InboundBudget } from "./inbound-budget.ts";
import { INBOUND_MAX, type Link } from "./link.ts";
import { acceptPort } from "./port.ts";
import { decodeDatagram, encodeDatagram } from "./raw.ts";
import { openAndWait } from "./request.ts";
import { ANSWER_BOUND } from "./waits.ts";

type OnConnection = TransparentService["onConnection"];
type OnDatagram = TransparentService["onDatagram"];
export interface Claim {
  close(): void;
}

/**
 * Serves ports inside: this connection's claims, and the inbound connections that the guest forwards because of them.
 */
export interface Serving {
  /** Throws `conflict`, `denied`, and `busy` if the guest listens on too many ports. */
  serve(port: number, onConnection: OnConnection): Promise<Claim>;
  /** Serves all of the ports or none. Throws the same errors, and `unsupported`. */
  serveTransparent(service: TransparentService): Promise<Claim>;
}

/** The values of field 2 of LISTEN. */
const scopes = { loopback: 0, everywhere: 1, datagrams: 2 } as const;
type Scope = keyof typeof scopes;
const DNS_PORT = 53;
/** The number of questions that may wait for an answer. The guest holds no more, and drops old ones. */
const QUESTIONS_MAX = 256;
const ANSWER_BYTES_MAX = 65_507;

interface OpenClaim {
  scope: Scope;
  onConnection: OnConnection;
}

export function createServing(link: Link): Serving {
  /** The newest claim is last, as in the guest. */
  const claims = new Map<number, OpenClaim[]>();
  /** How many connections may still arrive for a port that is no longer served, because they crossed with our close. */
  const late = new Map<number, number>();
  const budget = new InboundBudget();

  const open = (port: number, claim: OpenClaim) => {
    claims.set(port, [...(claims.get(port) ?? []), claim]);
    late.delete(port);
  };
  const giveUp = (port: number, claim: OpenClaim) => {
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
    const isTransparent = claim.scope === "everywhere";
    const isAddress = isIP(address) !== 0 && !address.includes("%");
    if (isTransparent ? !isAddress || addressPort !== port : address !== "" || addressPort !== 0)
      throw protocolError(`ACCEPTED for port ${port} with the destination ${JSON.stringify(address)} ${addressPort}`);
    const accepted = acceptPort(link, { port, stream, budget });
    try {
      claim.onConnection({ stream: accepted, destination: isTransparent ? { address, port } : null });
    } catch (error) {
      accepted.destroy();
      process.emitWarning(`a connection to port ${port} could not be handled: ${error instanceof Error ? error.message : String(error)}`);
    }
  };

  const serveConnections = (port: number, claim: OpenClaim) =>
    claimPort(link, { port, scope: claim.scope, onOpen: () => open(port, claim), onClose: () => giveUp(port, claim) });

  return {
    serve: (port, onConnection) => serveConnections(port, { scope: "loopback", onConnection }),
    async serveTransparent({ ports, onConnection, onDatagram }) {
      const pendingClaims = [
        ...[...new Set(ports)].map((port) => serveConnections(port, { scope: "everywhere", onConnection })),
        claimPort(link, { port: DNS_PORT, scope: "datagrams", onQuestion: answerer(link, onDatagram) }),
      ];
      const settled = await Promise.allSettled(pendingClaims);
      const granted = settled.filter((each) => each.status === "fulfilled").map(({ value }) => value);
      const close = () => {
        for (const claim of granted) claim.close();
      };
      const refused = settled.find((each) => each.status === "rejected");
      if (refused === undefined) return { close };
      close();
      throw refused.reason;
    },
  };
}

interface ClaimOptions {
  port: number;
  scope: Scope;
  /** Called before any later frame from the guest is handled. */
  onOpen?: () => void;
  onClose?: () => void;
  /** Absent for a claim to connections rather than datagrams. */
  onQuestion?: (stream: number, payload: Buffer) => void;
}

/** Requests a port. The request's stream is the claim to it. */
function claimPort(link: Link, { port, scope, onOpen, onClose, onQuestion }: ClaimOptions): Promise<Claim> {
  return new Promise((resolve, reject) => {
    let isOpen = false;
    const close = () => {
      if (!isOpen) return;
      isOpen = false;
      onClose?.();
      link.cancel(stream, encodeFrame("CANCEL", stream));
    };
    const handler = {
      onFrame(code: number, payload: Buffer): boolean {
        if (isOpen) {
          if (code !== frameCode.DATAGRAM || onQuestion === undefined) throw protocolError(`${frameName(code)} on a claim to a port`);
          onQuestion(stream, payload);
          return false;
        }
        wait.end();
        if (code === frameCode.ERROR) {
          reject(refusalOf(port, errorFromGuest(`serving port ${port}`, payload)));
          return true;
        }
        if (code !== frameCode.OK) throw protocolError(`${frameName(code)} as an answer to LISTEN`);
        isOpen = true;
        onOpen?.();
        resolve({ close });
        return false;
      },
      onLost(error: CaissonError) {
        isOpen = false;
        reject(error);
      },
    };
    const values = scope === "loopback" ? { port } : { port, scope: scopes[scope] };
    const what = `serving port ${port}`;
    const { stream, wait } = openAndWait(link, handler, { type: "LISTEN", values, what, bound: ANSWER_BOUND, onGivenUp: reject });
  });
}

/** Answers each question, if only with an empty answer, so the guest does not keep it. */
function answerer(link: Link, onDatagram: OnDatagram): (stream: number, payload: Buffer) => void {
  const none = Buffer.alloc(0);
  let waiting = 0;
  return (stream, payload) => {
    const { token, data } = decodeDatagram(payload);
    const answer = (bytes: Uint8Array | null) =>
      link.send(encodeDatagram(stream, token, bytes !== null && bytes.length <= ANSWER_BYTES_MAX ? bytes : none));
    if (waiting >= QUESTIONS_MAX) {
      answer(null);
      return;
    }
    const why = "a question that cannot be answered gets an empty answer";
    const result = ignoring(why, () => onDatagram(data)) ?? null;
    if (!(result instanceof Promise)) {
      answer(result);
      return;
    }
    waiting++;
    void ignore(result, why).then((bytes) => {
      waiting--;
      answer(bytes ?? null);
    });
  };
}

/** Converts `exists`, which is for names, to `conflict`: the port is taken. */
function refusalOf(port: number, error: CaissonError): CaissonError {
  if (error.code !== "exists") return error;
  return new CaissonError("conflict", `port ${port} inside is in use by a program`, {
    hint: "Stop the program that listens on it inside, then try again.",
    cause: error,
  });
}
