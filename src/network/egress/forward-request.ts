import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import type { NetworkVia } from "../../contract/network/network-event.ts";
import { pathOf } from "../address/request-path.ts";
import type { RequestHead, ResponseHead } from "../http/head.ts";
import { type Header, header, methodOverrides, pathOverrides } from "../http/headers.ts";
import { type ForwardVerdict, RelayRefusal, type RelayVerdict } from "../http/relay-options.ts";
import { mustInspect } from "./decide-egress.ts";
import { type Attempt, attemptOf, denialAnswer, isDenial } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import type { EgressSecrets } from "./egress-options.ts";
import type { Passage } from "./passages.ts";
import { connectPassage } from "./passages.ts";

export interface ForwardOptions {
  passage: Passage;
  /** The allowed request, in origin form with its Host. */
  request: RequestHead;
  tls: boolean;
  via: NetworkVia;
  key: string;
  /** Whether the passage counts the bytes of the upstream socket. */
  measured: boolean;
  /** Returns an open connection to use, once; null afterwards. */
  upstream?: () => Duplex | null;
}

const PATH_MAX = 2048;
const WHY_MAX = 300;

/**
 * Returns the relay's verdict for an allowed request. Secrets are injected on the way out and redacted on the way back.
 */
export function forwardRequest(context: EgressContext, options: ForwardOptions): RelayVerdict | Promise<RelayVerdict> {
  const { passage, tls, via, measured } = options;
  // If rules restrict methods or paths, headers must not make the server act on a different method or path.
  const request = mustInspect(passage.grant) ? withoutOverrides(options.request) : options.request;
  passage.request(request.method, request.target);
  const attempt = attemptOf(passage.grant, via, request);
  const verdict: ForwardVerdict = {
    kind: "forward",
    key: options.key,
    async connect() {
      const ready = options.upstream?.();
      if (ready) return ready;
      const connected = await connectPassage(context, { passage, attempt, tls, measured });
      if (isDenial(connected)) throw new RelayRefusal(denialAnswer(connected));
      return connected;
    },
    request,
  };
  return hasSecrets(context) ? withSecrets(context, { verdict, passage, attempt, tls }) : verdict;
}

function withoutOverrides(request: RequestHead): RequestHead {
  const headers = request.headers.filter(({ lower }) => !methodOverrides.has(lower) && !pathOverrides.has(lower));
  return headers.length === request.headers.length ? request : { ...request, headers };
}

export function hasSecrets({ secrets }: EgressContext): boolean {
  for (const _name in secrets.placeholders) return true;
  return false;
}

async function withSecrets(
  context: EgressContext,
  options: { verdict: ForwardVerdict; passage: Passage; attempt: Attempt; tls: boolean },
): Promise<RelayVerdict> {
  const { verdict, passage, attempt, tls } = options;
  const put = await injectSecrets(context, { request: verdict.request, attempt, tls });
  if ("why" in put) return denialAnswer(context.deny(attempt, { reason: "secret_unavailable", why: put.why }));
  for (const name of put.used) passage.usedSecret(name);
  const out = tls ? redactorFor(context, attempt) : null;
  if (out === null) return { ...verdict, request: put.request };
  const response = (head: ResponseHead) => {
    const changed = out.head(head);
    // Interim responses have no body. Raw bytes follow a 101.
    return head.status < 200 && head.status !== 101 ? { head: changed } : { head: changed, body: out.body() };
  };
  return { ...verdict, request: identityEncoding(put.request), response };
}

/**
 * Injects secrets into the request, or says why it must not be sent. Emits events for the secrets used and withheld.
 */
export async function injectSecrets(
  context: EgressContext,
  options: { request: RequestHead; attempt: Attempt; tls: boolean },
): Promise<{ request: RequestHead; used: readonly string[] } | { why: string }> {
  const { request, attempt, tls } = options;
  const { host, port } = attempt;
  try {
    const { head, used, withheld } = await context.secrets.inject(request, { host, port, tls });
    tellUses(context, { request, host, used, withheld });
    for (const secret of used) context.sentSecrets.add(secret);
    return { request: head, used };
  } catch (error) {
    // Only our own errors are known not to contain a value.
    return { why: error instanceof CaissonError ? error.message : "a secret that this request needs is not available" };
  }
}

/** Emits an event for each use, but not again for the same use within a few seconds. */
function tellUses(
  { emit, checkRepeated }: EgressContext,
  options: { request: RequestHead; host: string; used: readonly string[]; withheld: readonly { secret: string; why: string }[] },
): void {
  const { request, host, used, withheld } = options;
  for (const { secret, why } of withheld) {
    if (!checkRepeated(`withheld ${secret} ${host} ${why}`))
      emit({ type: "secret.withheld", data: { secret, host, why: why.slice(0, WHY_MAX) } });
  }
  const { method } = request;
  const path = pathOf(request.target).slice(0, PATH_MAX);
  for (const secret of used) {
    if (!checkRepeated(`used ${secret} ${host} ${method} ${path}`)) emit({ type: "secret.used", data: { secret, host, method, path } });
  }
}

/** Returns the redactor for answers of this host, or null if they cannot contain a secret. */
export function redactorFor({ secrets, sentSecrets }: EgressContext, { host, port }: Attempt): ReturnType<EgressSecrets["answerRedactor"]> {
  return sentSecrets.size > 0 && secrets.concerns(host, port) ? secrets.answerRedactor([...sentSecrets]) : null;
}

/** Requests an uncompressed answer, because a compressed one could not be searched. */
export function identityEncoding(request: RequestHead): RequestHead {
  return {
    ...request,
    headers: [...request.headers.filter(({ lower }) => lower !== "accept-encoding"), header("Accept-Encoding", "identity")],
  };
}

/** Builds the request for the origin: a path as the target, exactly one Host, and no headers for the proxy. */
export function toOrigin(head: RequestHead, { path, authority }: { path: string; authority: string }): RequestHead {
  const headers: Header[] = [header("Host", authority)];
  for (const each of head.headers) {
    if (each.lower !== "host" && each.lower !== "proxy-authorization" && each.lower !== "proxy-connection") headers.push(each);
  }
  return { method: head.method, target: path, version: head.version, headers };
}
