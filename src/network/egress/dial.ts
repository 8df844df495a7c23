import { connect, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import { CaissonError } from "../../contract/error.ts";
import { canonicalAddress } from "../address/addresses.ts";
import { trustedCertificates } from "../outbound/trusted-certificates.ts";
import type { Grant } from "./decide-egress.ts";
import type { Refusal } from "./denial.ts";
import type { EgressLimits } from "./egress-limits.ts";
import type { Pinned } from "./resolve.ts";

export interface DialOptions {
  pinned: Pinned;
  /** Is given each socket before it is connected, to end it early. */
  adopt: (socket: Socket) => void;
}

export interface Dialer {
  /**
   * Throws `unavailable` or `timeout`, with the system's code in `details.cause`. The socket is half-open when the
   * other side ends.
   */
  open(options: DialOptions): Promise<Socket>;
  /** Speaks TLS to the host of the grant, and has verified that it is that host. Throws as `open`. */
  openTls(options: DialOptions): Promise<TLSSocket | { refused: Refusal }>;
}

interface DialerOptions {
  upstreamCa?: readonly string[] | undefined;
  limits: Pick<EgressLimits, "connectMs" | "handshakeMs">;
}

/** The next address is tried after this, so that one that swallows packets does not use up the whole time. */
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
      return await verified({ socket: await open(options), pinned: options.pinned, secureContext: trusted, timeoutMs: limits.handshakeMs });
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
      // It cannot be another one; if it ever were, nothing else would notice.
      if (canonicalAddress(socket.remoteAddress ?? "") !== address) return fail(failure("ECONNABORTED"));
      clearTimeout(timer);
      // The listener for errors stays: it does nothing any more, but without one an error would end the process.
      socket.off("close", closed);
      resolve(socket);
    });
  });
}

function verified(options: {
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
      // For an address there is no name to send; it is compared with the certificate's addresses.
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
      // Typed as an Error, but it is a code.
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
    ETIMEDOUT: "there was no answer in time",
    ENETUNREACH: "there is no route to it",
    EHOSTUNREACH: "there is no route to it",
    ECONNRESET: "the connection was reset",
  };
  const text = words[code] ?? `the connection failed (${code})`;
  return new CaissonError(code === "ETIMEDOUT" ? "timeout" : "unavailable", `${what} cannot be reached: ${text}`, {
    details: { cause: code },
    cause: error,
  });
}
