import { connect, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import { CaissonError } from "../../contract/error/error.ts";
import { canonicalAddress } from "../address/addresses.ts";
import { trustedCertificates } from "../outbound/trusted-certificates.ts";
import type { Grant } from "./decide-egress.ts";
import type { Refusal } from "./denial.ts";
import type { EgressLimits } from "./egress-limits.ts";
import type { Pinned } from "./resolve.ts";

export interface DialOptions {
  pinned: Pinned;
  /** Receives each socket before it connects, to be able to end it early. */
  adopt: (socket: Socket) => void;
}

export interface Dialer {
  /**
   * Throws `unavailable` or `timeout`, with the system's code in `details.cause`. The socket stays half-open after the
   * peer ends its side.
   */
  open(options: DialOptions): Promise<Socket>;
  /** Opens TLS to the grant's host and verifies its identity. Throws like `open`. */
  openTls(options: DialOptions): Promise<TLSSocket | { refused: Refusal }>;
}

interface DialerOptions {
  upstreamCa?: readonly string[] | undefined;
  limits: Pick<EgressLimits, "connectMs" | "handshakeMs">;
}

/**
 * How long to wait before trying the next address, so that an address that drops packets does not use up the whole
 * timeout.
 */
const NEXT_ADDRESS_MS = 3000;

export function createDialer({ upstreamCa = [], limits }: DialerOptions): Dialer {
  let trusted: SecureContext | null = null;
  const open = async ({ pinned, adopt }: DialOptions) => {
    const endMs = Date.now() + limits.connectMs;
    let lastError: unknown;
    for (const [index, address] of pinned.addresses.entries()) {
      const leftMs = endMs - Date.now();
      if (leftMs <= 0) break;
      const timeoutMs = index === pinned.addresses.length - 1 ? leftMs : Math.min(leftMs, NEXT_ADDRESS_MS);
      try {
        return await openTo({ address, grant: pinned.grant, timeoutMs, adopt });
      } catch (error) {
        lastError = error;
      }
    }
    throw lastError ?? unreachable(`${pinned.grant.host.text}:${pinned.grant.port}`, failure("ETIMEDOUT"));
  };
  return {
    open,
    async openTls(options) {
      trusted ??= createSecureContext({ ca: trustedCertificates(upstreamCa), minVersion: "TLSv1.2" });
      return await verifyPeer({
        socket: await open(options),
        pinned: options.pinned,
        secureContext: trusted,
        timeoutMs: limits.handshakeMs,
      });
    },
  };
}

function openTo(options: { address: string; grant: Grant; timeoutMs: number; adopt: (socket: Socket) => void }): Promise<Socket> {
  const { address, grant, timeoutMs, adopt } = options;
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port: grant.port, allowHalfOpen: true, noDelay: true });
    adopt(socket);
    const fail = (error: Failure) => {
      clearTimeout(timer);
      socket.destroy();
      reject(unreachable(`${grant.host.text}:${grant.port}`, error));
    };
    const closed = () => fail(failure("ECONNABORTED"));
    const timer = setTimeout(() => fail(failure("ETIMEDOUT")), timeoutMs);
    socket.on("error", fail);
    socket.once("close", closed);
    socket.once("connect", () => {
      // This should be impossible, but if it ever happened, no other check would notice.
      if (canonicalAddress(socket.remoteAddress ?? "") !== address) return fail(failure("ECONNABORTED"));
      clearTimeout(timer);
      // The error listener stays: without one, an error would end the process.
      socket.off("close", closed);
      resolve(socket);
    });
  });
}

function verifyPeer(options: {
  socket: Socket;
  pinned: Pinned;
  secureContext: SecureContext;
  timeoutMs: number;
}): Promise<TLSSocket | { refused: Refusal }> {
  const { socket, pinned, secureContext, timeoutMs } = options;
  const { host, port } = pinned.grant;
  return new Promise((resolve, reject) => {
    const tls = connectTls({
      socket,
      secureContext,
      // An address has no server name to send. Node compares it with the certificate's addresses.
      ...(host.kind === "name" ? { servername: host.text } : { host: host.text }),
      ALPNProtocols: ["http/1.1"],
      rejectUnauthorized: true,
    });
    const timer = setTimeout(() => tls.destroy(failure("ETIMEDOUT")), timeoutMs);
    let error: Failure = failure("ECONNRESET");
    tls.on("error", (each) => {
      error = each;
    });
    const closed = () => {
      clearTimeout(timer);
      socket.destroy();
      // Typed as an Error, but actually a code.
      const unverified = tls.authorizationError as unknown;
      if (unverified)
        resolve({
          refused: { reason: "not_verified", why: `the certificate of ${host.text} could not be verified: ${String(unverified)}` },
        });
      else reject(unreachable(`${host.text}:${port}`, error));
    };
    tls.once("close", closed);
    tls.once("secureConnect", () => {
      clearTimeout(timer);
      tls.off("close", closed);
      resolve(tls);
    });
  });
}

type Failure = Error & { code?: string };

function failure(code: string): Failure {
  return Object.assign(new Error(code), { code });
}

function unreachable(what: string, error: Failure): CaissonError {
  const code = error.code ?? "unknown";
  const words: Record<string, string> = {
    ECONNREFUSED: "the connection was refused",
    ETIMEDOUT: "the connection timed out",
    ENETUNREACH: "there is no route to the host",
    EHOSTUNREACH: "there is no route to the host",
    ECONNRESET: "the connection was reset",
  };
  const text = words[code] ?? `the connection failed (${code})`;
  return new CaissonError(code === "ETIMEDOUT" ? "timeout" : "unavailable", `${what} cannot be reached: ${text}`, {
    details: { cause: code },
    cause: error,
  });
}
