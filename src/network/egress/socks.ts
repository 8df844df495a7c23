import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import { parseTargetHost, type TargetHost } from "../address/target-host.ts";
import { isDenial, isFailure, type Refusal } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import { nextBytes } from "./first-bytes.ts";
import { carryTunnel, openTunnel } from "./tunnel.ts";

const VERSION = 5;
const NO_AUTHENTICATION = 0;
const NOTHING_ACCEPTABLE = 0xff;
const COMMAND_CONNECT = 1;
const ADDRESS_IPV4 = 1;
const ADDRESS_NAME = 3;
const ADDRESS_IPV6 = 4;

const reply = {
  done: 0,
  failure: 1,
  notAllowed: 2,
  noRoute: 3,
  hostUnreachable: 4,
  refused: 5,
  timedOut: 6,
  commandNotSupported: 7,
  addressNotSupported: 8,
} as const;

/**
 * Serves a SOCKS5 client (RFC 1928) without authentication, CONNECT only. Resolves when the connection has ended; never
 * rejects.
 */
export async function serveSocks(context: EgressContext, { client, first }: { client: Duplex; first: Buffer }): Promise<void> {
  const reader = createReader(client, first, context.limits.firstBytesMs);
  const methods = await readMethods(reader);
  if (methods === null) return void client.destroy();
  if (!methods.includes(NO_AUTHENTICATION)) return void client.end(Buffer.from([VERSION, NOTHING_ACCEPTABLE]));
  client.write(Buffer.from([VERSION, NO_AUTHENTICATION]));
  const request = await readRequest(reader);
  if (request === null) return void client.destroy();
  if (typeof request === "number") return end(client, request);
  if (request.host === null) {
    context.deny(
      { host: "", port: request.port, via: "socks", method: null, path: null },
      { reason: "bad_request", why: "the target is not a valid host" },
    );
    return end(client, reply.addressNotSupported);
  }
  try {
    const tunnel = await openTunnel(context, { host: request.host, port: request.port, via: "socks", client });
    if (isDenial(tunnel)) return end(client, replyForDenial(tunnel.reason));
    client.write(replyBytes(reply.done));
    await carryTunnel(context, { ...tunnel, client, first: reader.rest(), via: "socks" });
  } catch (error) {
    end(client, replyForFailure(error));
  }
}

function end(client: Duplex, code: number): void {
  client.end(replyBytes(code));
}

/** Hides the address that we connect from. */
function replyBytes(code: number): Buffer {
  return Buffer.from([VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]);
}

function replyForDenial(reason: Refusal["reason"]): number {
  if (isFailure(reason)) return reply.hostUnreachable;
  return reason === "too_many" ? reply.failure : reply.notAllowed;
}

function replyForFailure(error: unknown): number {
  const cause = error instanceof CaissonError ? error.details?.cause : undefined;
  if (cause === "ECONNREFUSED") return reply.refused;
  if (cause === "ENETUNREACH") return reply.noRoute;
  if (cause === "EHOSTUNREACH") return reply.hostUnreachable;
  return cause === "ETIMEDOUT" ? reply.timedOut : reply.failure;
}

async function readMethods(reader: Reader): Promise<Buffer | null> {
  const head = await reader.take(2);
  if (head === null || head[0] !== VERSION) return null;
  return await reader.take(head[1] ?? 0);
}

/** Returns a reply code for a request that we understand but cannot serve, and null for a malformed one. */
async function readRequest(reader: Reader): Promise<{ host: TargetHost | null; port: number } | number | null> {
  const head = await reader.take(4);
  if (head === null || head[0] !== VERSION) return null;
  const [, command, , addressType] = head;
  if (addressType !== ADDRESS_IPV4 && addressType !== ADDRESS_NAME && addressType !== ADDRESS_IPV6) return reply.addressNotSupported;
  const host = await readHost(reader, addressType);
  const portBytes = await reader.take(2);
  if (host === null || portBytes === null) return null;
  if (command !== COMMAND_CONNECT) return reply.commandNotSupported;
  const port = portBytes.readUInt16BE(0);
  return { host: port === 0 ? null : parseTargetHost(host), port };
}

async function readHost(reader: Reader, addressType: number): Promise<string | null> {
  if (addressType === ADDRESS_IPV4) return (await reader.take(4))?.join(".") ?? null;
  if (addressType === ADDRESS_IPV6) {
    const bytes = await reader.take(16);
    return bytes === null ? null : `[${bytes.toString("hex").replaceAll(/(.{4})(?=.)/g, "$1:")}]`;
  }
  const length = await reader.take(1);
  return length === null ? null : ((await reader.take(length[0] ?? 0))?.toString("utf8") ?? null);
}

interface Reader {
  /** Returns exactly this many bytes, or null if they do not arrive. */
  take(count: number): Promise<Buffer | null>;
  /** Returns the bytes that were read but not taken. */
  rest(): Buffer;
}

/** The whole handshake must arrive within the time limit, however slowly its bytes trickle in. */
function createReader(client: Duplex, first: Buffer, timeoutMs: number): Reader {
  const endMs = performance.now() + timeoutMs;
  let have = first;
  return {
    async take(count) {
      while (have.length < count) {
        const next = await nextBytes(client, { timeoutMs: Math.max(0, endMs - performance.now()) });
        if (next.kind !== "bytes") return null;
        have = Buffer.concat([have, next.bytes]);
      }
      const bytes = have.subarray(0, count);
      have = have.subarray(count);
      return bytes;
    },
    rest: () => have,
  };
}
